"""clusters.yaml: written, or amended if it exists."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Any

from reconciler.adopt.amend import NotAmendableError, amend_document, set_key
from reconciler.adopt.profiles import Shared
from reconciler.adopt.spelling import humanise, render_document, spell_modeline
from reconciler.errors import UsageError
from reconciler.spec.configs import Catalogue

CLUSTERS_HEADER = """\
# The clusters, and what their topics inherit.
# A value is looked for in: override, topic, profile, the cluster's defaults, defaults.
"""


def describe_shared(shared: Shared, catalogue: Catalogue) -> dict[str, object]:
    """Return defaults and profiles by the keys of clusters.yaml; empty ones are left out."""
    profiles = {
        name: {"config": _humanise_all(config, catalogue)}
        for name, config in shared.profiles.items()
    }
    described = {"defaults": describe_defaults(shared, catalogue), "profiles": profiles}
    return {key: value for key, value in described.items() if value}


def describe_defaults(shared: Shared, catalogue: Catalogue) -> dict[str, object]:
    """Return a layer of defaults."""
    defaults: dict[str, object] = {}
    if shared.replication_factor is not None:
        defaults["replication_factor"] = shared.replication_factor
    if shared.config:
        defaults["config"] = _humanise_all(shared.config, catalogue)
    return defaults


def write_clusters(
    text: str | None, shared: Mapping[str, object], clusters: Mapping[str, Mapping[str, object]]
) -> str:
    """Return clusters.yaml with these defaults and profiles, and these keys of clusters.

    In: `text`, the current file, None if there is none. Errors: UsageError if it cannot be amended.
    """
    if text is None or not text.strip():
        added: dict[str, object] = {"version": 1, **shared}
        if clusters:
            added["clusters"] = dict(clusters)
        return spell_modeline("", "clusters") + CLUSTERS_HEADER + render_document(added)
    if not shared and not clusters:
        return text

    def edit(document: Any) -> None:
        for key, value in shared.items():
            set_key(document, key, value)
        if not clusters:
            return
        if not document.get("clusters"):
            set_key(document, "clusters", dict(clusters), at_end=True)
            return
        for name, entry in clusters.items():
            if not document["clusters"].get(name):
                set_key(document["clusters"], name, dict(entry))
                continue
            for key, value in entry.items():
                set_key(document["clusters"][name], key, value)

    try:
        return amend_document(text, 1 << 30, edit)  # a line behind the end: the last document
    except NotAmendableError as error:
        what = f"clusters.yaml cannot be amended: {error}; write one key per line"
        raise UsageError(what) from error


def ask_of_cluster(text: str, cluster: str, key: str, value: object) -> str:
    """Return clusters.yaml in which a cluster has one more key, or another value of it.

    Every other line stays. A map is written on one line. Errors: UsageError if it cannot be
    amended so.
    """

    def edit(document: Any) -> None:
        set_key(document["clusters"][cluster], key, value, on_one_line=True)

    try:
        amended = amend_document(text, 1 << 30, edit)
    except NotAmendableError as error:
        what = f"clusters.yaml cannot be amended: {error}; write one key per line"
        raise UsageError(what) from error
    return _keep_lines(text, amended)


def _keep_lines(before: str, after: str) -> str:
    """Return a text whose lines are those before, but where words changed: not the spaces alone."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    folded = [[" ".join(line.split()) for line in lines] for lines in (old, new)]
    lines: list[str] = []
    for tag, a, b, c, d in SequenceMatcher(
        None, folded[0], folded[1], autojunk=False
    ).get_opcodes():
        lines += old[a:b] if tag == "equal" else new[c:d]
    return "".join(lines)


def _humanise_all(config: Mapping[str, str], catalogue: Catalogue) -> dict[str, object]:
    return {key: humanise(catalogue, key, value) for key, value in sorted(config.items())}
