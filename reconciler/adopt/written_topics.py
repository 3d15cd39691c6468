"""Amend written documents that differ from the cluster, at the right level.

A topic of one cluster is amended in its own keys; a topic of several clusters gets an override.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from reconciler.adopt.amend import (
    NotAmendableError,
    amend_document,
    delete_key,
    edit_config,
    set_key,
)
from reconciler.adopt.desired import DesiredTopic
from reconciler.adopt.draft import EstateDraft
from reconciler.adopt.profiles import list_own_configs
from reconciler.errors import Finding, Severity
from reconciler.model.cluster import TopicSpec
from reconciler.spec.configs import Catalogue
from reconciler.spec.documents import WrittenTopic
from reconciler.spec.estate import Estate

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
    """Change `clusters` of written topics to match the live topics of one cluster.

    In: `others`, the other clusters of the estate if this cluster is new in it. A topic that names
    no cluster would otherwise also be created on the new one.
    """
    edits = []
    for topic in draft.estate.written:
        named = topic.document.clusters
        if named is None and others and topic.name not in live:
            edits.append((topic, _name_clusters(others)))
        elif named is not None and topic.name in live and cluster not in named:
            edits.append((topic, _name_clusters((*map(str, named), cluster))))
    return _amend(draft, edits)


def claim_topics(
    draft: EstateDraft, live: Collection[str], owner: str
) -> tuple[dict[str, str], dict[str, Finding]]:
    """Write the owner of each live topic that is written without one.

    Returns: the new texts, and a finding for each topic that another owner has.
    """
    edits, kept = [], {}
    for topic in draft.estate.written:
        if topic.name not in live:
            continue
        if (known := topic.document.owner) is None:
            edits.append((topic, _set_owner(owner)))
        elif known != owner:
            what = f"{topic.name} has the owner {known}, at {known.where}, and is kept"
            way_out = "change the owner there, after that owner agreed"
            kept[topic.name] = Finding("import-kept", what, way_out, severity=Severity.WARNING)
    texts, refused = _amend(draft, edits)
    return texts, {**kept, **refused}


def _set_owner(owner: str) -> Callable[[Any], None]:
    def edit(document: Any) -> None:
        if "topic" not in document:
            raise NotAmendableError("it is written for another tool")
        set_key(document, "owner", owner)

    return edit


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
    """Edit documents. Returns: the new texts, and a finding for each topic that is kept."""
    files, texts = draft.find_files(), dict[str, str]()
    kept: dict[str, Finding] = {}
    by_file: defaultdict[str, list[tuple[int, WrittenTopic, Callable[[Any], None]]]]
    by_file = defaultdict(list)
    for topic, edit in edits:
        by_file[files[topic.name]].append((topic.where.line, topic, edit))
    for path, waiting in by_file.items():
        # The last document first: an edit moves the lines of the documents below it.
        for line, topic, edit in sorted(waiting, key=lambda item: -item[0]):
            text = texts.get(path, draft.texts[path])
            try:
                texts[path] = amend_document(text, line, edit)
            except NotAmendableError as error:
                differs = f"{topic.name} in {path} differs from the cluster"
                what = f"{differs} and is kept as it is: {error}"
                way_out = "amend it by hand; plan shows what differs"
                finding = Finding("import-kept", what, way_out, severity=Severity.WARNING)
                kept[topic.name] = finding
    return texts, kept


def _plan_edit(
    wanted: DesiredTopic, topic: WrittenTopic, estate: Estate, cluster: str, catalogue: Catalogue
) -> Callable[[Any], None]:
    named = topic.document.clusters
    targets = set(estate.declared) | {cluster} if named is None else set(map(str, named))
    overridden = cluster in topic.overrides or targets != {cluster}
    # The layers below the one to amend: with the document below an override, else without it.
    if overridden:
        below = estate.resolve_base(topic, cluster, catalogue)
    else:
        profile = topic.document.profile
        below = estate.inherit(cluster, None if profile is None else str(profile), catalogue)

    def edit(document: Any) -> None:
        if "topic" in document and overridden:
            if "overrides" not in document:
                set_key(document, "overrides", {cluster: {}})
            elif cluster not in document["overrides"]:
                set_key(document["overrides"], cluster, {})
            table = document["overrides"][cluster]
            _edit_layer(table, wanted, below, catalogue, {})
            if not table:
                delete_key(document["overrides"], cluster, document)
        elif "topic" in document:
            _edit_layer(document, wanted, below, catalogue, {})
        elif document.get("kind") == "KafkaTopic" and not overridden:
            if document.get("spec") is None:
                set_key(document, "spec", {})
            _edit_layer(document["spec"], wanted, below, catalogue, _spell_keys(document))
        else:
            raise NotAmendableError("it is written for another tool")

    return edit


def _spell_keys(document: Any) -> dict[str, str]:
    """Return the names of our keys in a KafkaTopic: those of Strimzi, or of Jikkou."""
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
        desired, written = [list(row) for row in wanted.assignment], table.get("assignment")
        if not isinstance(written, list) or [list(row) for row in written] != desired:
            set_key(table, "assignment", desired)
        for key in _COUNTS:  # counts next to rows are optional, but must match them
            if key in table:
                table[key] = getattr(wanted, key)
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


def _edit_count(table: Any, key: str, desired: int | None, below: int | None) -> None:
    if key in table and table[key] == desired:
        return
    if desired != below:
        set_key(table, key, desired)
    elif key in table:
        delete_key(table, key)


def _plain(value: Any) -> object:
    """Turn a value of ruamel.yaml into one that the catalogue reads."""
    if isinstance(value, list):
        return [str(item) for item in value]
    if isinstance(value, bool) or value is None:
        return None if value is None else str(value).lower()
    return str(value)
