"""New topics as documents in files: beside their neighbours, or where their names put them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from reconciler.adopt.amend import append_documents
from reconciler.adopt.express import choose_profile, inherit
from reconciler.adopt.group import find_neighbours, group_topics
from reconciler.adopt.spelling import render_topic, spell_modeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconciler.adopt.adoption import Wish
    from reconciler.adopt.staging import Staging
    from reconciler.spec import Estate
    from reconciler.spec.configs import Catalogue

SPLIT_FROM = 3_000_000
"""A file that would grow beyond this takes nothing more. Units: bytes."""


def lay_out(
    wishes: Sequence[Wish], estate: Estate, cluster: str, catalogue: Catalogue, staging: Staging
) -> dict[str, str]:
    """Return the text of each file that takes new topics."""
    profiles = (None, *estate.profiles)
    bases = {name: inherit(estate, cluster, name, catalogue) for name in profiles}
    several = bool(set(estate.declared) - {cluster})
    documents = {}
    for wish in wishes:
        profile, said = choose_profile(wish, bases, catalogue)
        document: dict[str, object] = {"topic": wish.name}
        if several:
            document["clusters"] = [cluster]
        if profile is not None:
            document["profile"] = profile
        documents[wish.name] = render_topic(document | said)
    written = {t.name: staging.relative(t.where.file) for t in estate.written}
    return place_documents(documents, written, staging.texts)


def place_documents(
    documents: dict[str, str], written: dict[str, str], texts: dict[str, str]
) -> dict[str, str]:
    """Add documents to files. In: `written`, the file of each topic that is there already."""
    near = {name: find_neighbours(name, written) for name in documents}
    files = group_topics(name for name in documents if near[name] is None)
    added: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(documents):
        path = near[name] or files[name]
        if path not in texts and f"{path[:-5]}.yml" in texts:
            path = f"{path[:-5]}.yml"
        if len(texts.get(path, "")) > SPLIT_FROM:
            path = f"{path.rpartition('.')[0]}-more.yaml"
        added[path].append(documents[name])
    return {
        path: append_documents(texts.get(path) or spell_modeline(path, "topic"), new)
        for path, new in added.items()
    }
