"""Leftovers: live topics that no file names, written as requests to delete them."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from reconciler.adopt.desired import suggest_foreign
from reconciler.adopt.draft import Adoption, EstateDraft
from reconciler.adopt.new_topics import add_documents
from reconciler.adopt.spelling import render_topic
from reconciler.errors import Finding, Severity, UsageError, show_path
from reconciler.model.cluster import ClusterState
from reconciler.spec.names import check_name
from reconciler.units import count


def request_deletions(
    draft: EstateDraft,
    state: ClusterState,
    cluster: str,
    globs: Sequence[str],
    owner: str | None = None,
) -> Adoption:
    """Write a document with `state: absent` for each live topic that no file names.

    In: `globs`, which choose the topics. A topic that files name for other clusters is kept, with
    a note. Errors: UsageError for a glob without such a topic; SpecError if the policy refuses one.
    """
    entry, files = draft.estate.clusters[cluster], draft.find_files()
    live = [name for name in sorted(state.user_topics) if entry.manages(name)]
    here = {spec.name for spec in draft.estate.topics_for(cluster)}
    unnamed = [name for name in live if name not in here]
    for glob in globs:
        _check_glob(glob, live, unnamed, cluster)
    chosen = [name for name in unnamed if any(fnmatchcase(name, glob) for glob in globs)]
    written = [name for name in chosen if name not in files and not check_name(name, None)]
    several = bool(set(draft.estate.declared) - {cluster})
    documents = {}
    for name in written:
        document: dict[str, object] = {"topic": name}
        if owner is not None:
            document["owner"] = owner
        if several:
            document["clusters"] = [cluster]
        documents[name] = render_topic(document | {"state": "absent"})
    done = draft.change(add_documents(documents, files, draft.texts))
    notes = [
        _note_other(name, cluster, show_path(draft.root, files[name]))
        for name in chosen
        if name in files
    ]
    return Adoption(
        texts=done.changed,
        created=tuple(sorted(done.changed.keys() - draft.texts)),
        written=tuple(written),
        notes=(*notes, *suggest_foreign(written), *_note_guard(written, entry.guards.max_deletes)),
    )


def _check_glob(glob: str, live: Sequence[str], unnamed: Sequence[str], cluster: str) -> None:
    if any(fnmatchcase(name, glob) for name in unnamed):
        return
    matched = sum(fnmatchcase(name, glob) for name in live)
    if matched:
        said = f"each of the {matched:,} live topics that match {glob} on {cluster} has a file"
        raise UsageError(f"{said}; to delete one, write state: absent there")
    raise UsageError(f"no live topic of {cluster} that the estate manages matches {glob}")


def _note_other(name: str, cluster: str, file: str) -> Finding:
    what = f"{name} is written in {file}, for other clusters, and is kept"
    way_out = (
        f"add {cluster} to its clusters, and write overrides: {{{cluster}: {{state: absent}}}}"
    )
    return Finding("import-kept", what, way_out, severity=Severity.WARNING)


def _note_guard(written: Sequence[str], most: int) -> list[Finding]:
    """Note that a plan refuses to delete more topics than a guard allows."""
    if len(written) <= most:
        return []
    what = (
        f"{count(len(written), 'deletion')} requested, and guards allow "
        f"{f'{most:,} in one plan' if most else 'none'}"
    )
    way_out = f"write guards: {{max_deletes: {len(written)}}} for the cluster in clusters.yaml"
    return [Finding("import-deletes", what, way_out, severity=Severity.NOTE)]
