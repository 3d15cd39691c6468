"""Amend existing documents that differ from the cluster, at the right level.

A topic of one cluster is amended where it is; one of several gets an override.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from reconciler.adopt.amend import (
    NotAmendableError,
    amend_document,
    delete_key,
    edit_config,
    set_key,
)
from reconciler.adopt.profiles import list_own_configs
from reconciler.errors import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from reconciler.adopt.desired import DesiredTopic
    from reconciler.adopt.draft import EstateDraft
    from reconciler.model import TopicSpec
    from reconciler.spec import Catalogue, Estate, WrittenTopic

_COUNTS = ("partitions", "replication_factor")


def update_topics(
    draft: EstateDraft,
    chosen: Sequence[tuple[DesiredTopic, WrittenTopic]],
    cluster: str,
    catalogue: Catalogue,
) -> tuple[dict[str, str], dict[str, Finding]]:
    """Return the files with each topic amended, and a finding for each that cannot be."""
    edits = [
        (topic, _plan_edit(wanted, topic, draft.estate, cluster, catalogue))
        for wanted, topic in chosen
    ]
    return _amend(draft, edits)


def restrict_topics(
    draft: EstateDraft, live: Collection[str], cluster: str, others: Sequence[str]
) -> tuple[dict[str, str], dict[str, Finding]]:
    """Fit `clusters` of written topics to what is live on one of them.

    In: `others`, the clusters that a topic goes to that names none, if this one has only now
    joined them.
    """
    edits = []
    for topic in draft.estate.written:
        named = topic.document.clusters
        if named is None and others and topic.name not in live:
            edits.append((topic, _name_clusters(others)))
        elif named is not None and topic.name in live and cluster not in named:
            edits.append((topic, _name_clusters((*map(str, named), cluster))))
    return _amend(draft, edits)


def _name_clusters(names: Sequence[str]) -> Callable[[Any], None]:
    def edit(document: Any) -> None:
        if "topic" not in document:
            raise NotAmendableError("it is written for another tool")
        if "clusters" in document:
            document["clusters"].extend(n for n in names if n not in document["clusters"])
        else:
            set_key(document, "clusters", list(names))

    return edit


def _amend(
    draft: EstateDraft, edits: Sequence[tuple[WrittenTopic, Callable[[Any], None]]]
) -> tuple[dict[str, str], dict[str, Finding]]:
    """Edit documents, the last of each file first, so that lines stay true."""
    files, texts = draft.find_files(), dict[str, str]()
    kept: dict[str, Finding] = {}
    by_file: defaultdict[str, list[tuple[int, WrittenTopic, Callable[[Any], None]]]]
    by_file = defaultdict(list)
    for topic, edit in edits:
        by_file[files[topic.name]].append((topic.where.line, topic, edit))
    for path, waiting in by_file.items():
        for line, topic, edit in sorted(waiting, key=lambda item: -item[0]):
            text = texts.get(path, draft.texts[path])
            try:
                texts[path] = amend_document(text, line, edit)
            except NotAmendableError as error:
                kept[topic.name] = _keep(topic, path, str(error))
    return texts, kept


def _keep(topic: WrittenTopic, path: str, reason: str) -> Finding:
    what = f"{topic.name} in {path} differs from the cluster and is kept as it is: {reason}"
    return Finding(
        "import-kept", what, "amend it by hand; plan shows what differs", severity=Severity.WARNING
    )


def _plan_edit(
    wanted: DesiredTopic, topic: WrittenTopic, estate: Estate, cluster: str, catalogue: Catalogue
) -> Callable[[Any], None]:
    named = topic.document.clusters
    targets = set(estate.declared) | {cluster} if named is None else set(map(str, named))
    overridden = cluster in topic.overrides or targets != {cluster}
    below = _resolve_below(topic, estate, cluster, catalogue, with_document=overridden)

    def edit(document: Any) -> None:
        if "topic" in document:
            table = _find_override(document, cluster) if overridden else document
            _edit_layer(table, wanted, below, catalogue, {})
            if overridden and not table:
                delete_key(document["overrides"], cluster, document)
        elif document.get("kind") == "KafkaTopic" and not overridden:
            _edit_layer(_find_spec(document), wanted, below, catalogue, _spell_keys(document))
        else:
            raise NotAmendableError("it is written for another tool")

    return edit


def _resolve_below(
    topic: WrittenTopic, estate: Estate, cluster: str, catalogue: Catalogue, *, with_document: bool
) -> TopicSpec:
    """Resolve the layers below the one that is to be amended."""
    if with_document:
        return estate.resolve_base(topic, cluster, catalogue)
    profile = topic.document.profile
    return estate.inherit(cluster, None if profile is None else str(profile), catalogue)


def _find_override(document: Any, cluster: str) -> Any:
    if "overrides" not in document:
        set_key(document, "overrides", {cluster: {}})
    elif cluster not in document["overrides"]:
        set_key(document["overrides"], cluster, {})
    return document["overrides"][cluster]


def _find_spec(document: Any) -> Any:
    if document.get("spec") is None:
        set_key(document, "spec", {})
    return document["spec"]


def _spell_keys(document: Any) -> dict[str, str]:
    """Return what a KafkaTopic calls our keys: Strimzi's words, or Jikkou's."""
    spec = document.get("spec") or {}
    old = "replicationFactor" if "replicationFactor" in spec else "replicas"
    is_jikkou = "jikkou" in str(document.get("apiVersion", ""))
    plural = "configs" in spec or (is_jikkou and "config" not in spec)
    return {"replication_factor": old, "config": "configs" if plural else "config"}


def _edit_layer(
    table: Any,
    wanted: DesiredTopic,
    below: TopicSpec,
    catalogue: Catalogue,
    names: Mapping[str, str],
) -> None:
    """Edit one layer so that the topic gets the desired values; nothing else changes."""
    rows = "assignment" in table or below.assignment is not None
    if rows and wanted.assignment is not None:
        _edit_rows(table, wanted, [list(row) for row in wanted.assignment])
    else:
        if "assignment" in table:
            delete_key(table, "assignment")
        if below.assignment is not None:
            set_key(table, "assignment", None)
        for key in _COUNTS:
            _edit_count(table, names.get(key, key), getattr(wanted, key), getattr(below, key))
    own = list_own_configs(wanted.config, below.config, catalogue)
    key = names.get("config", "config")
    present = table.get(key) or {}
    normal = {
        name: catalogue.normalise(name, _plain(value), None) for name, value in present.items()
    }
    changes = {
        name: value
        for name, value in own.items()
        if name not in present or normal[name] != wanted.config.get(name)
    }
    edit_config(table, key, changes, {*present} - {*own})


def _edit_rows(table: Any, wanted: DesiredTopic, rows: list[list[int]]) -> None:
    live = table.get("assignment")
    if not isinstance(live, list) or [list(row) for row in live] != rows:
        set_key(table, "assignment", rows)
    for key in _COUNTS:
        if key in table:
            table[key] = getattr(wanted, key)


def _edit_count(table: Any, key: str, desired: int | None, below: int | None) -> None:
    if key in table and table[key] == desired:
        return
    if desired != below:
        set_key(table, key, desired)
    elif key in table:
        delete_key(table, key)


def _plain(value: Any) -> object:
    """Turn a value of ruamel.yaml into one of the catalogue's."""
    if isinstance(value, list):
        return [str(item) for item in value]
    if isinstance(value, bool) or value is None:
        return None if value is None else str(value).lower()
    return str(value)
