"""The estate of a new repository: an example, or the topics that its clusters have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from reconciler.adopt.desired import find_foreign
from reconciler.adopt.draft import open_draft
from reconciler.adopt.live import AdoptionRequest, adopt_topics
from reconciler.errors import Finding
from reconciler.model.cluster import ClusterState
from reconciler.scaffold.answers import Answers
from reconciler.scaffold.estate import EXAMPLE, write_example, write_new_clusters
from reconciler.scaffold.repository import ESTATE


@dataclass(frozen=True, slots=True)
class NewEstate:
    """The files of an estate by path.

    `topics` counts those that were imported, `foreign` those that are ignored because other
    software creates them, `differences` what the next plans would change.
    """

    texts: Mapping[str, str]
    topics: int = 0
    foreign: int = 0
    differences: int = 0
    notes: tuple[Finding, ...] = ()


def write_estate(answers: Answers, states: Mapping[str, ClusterState]) -> NewEstate:
    """Return clusters.yaml, and the topics of the clusters in `states`; without any, an example."""
    foreign = {name: find_foreign(state.user_topics) for name, state in states.items()}
    clusters = tuple(
        replace(each, ignore=tuple(sorted({p for _, p in foreign.get(each.name, {}).values()})))
        for each in answers.clusters
    )
    answers = replace(answers, clusters=clusters)
    ignored = sum(map(len, foreign.values()))
    if not any(len(state.user_topics) > len(foreign[n]) for n, state in states.items()):
        texts = {"clusters.yaml": write_new_clusters(answers), EXAMPLE: write_example(answers)}
        return NewEstate(texts, foreign=ignored)
    # Without defaults: an import finds those that most topics share, and leaves others alone.
    draft = open_draft(
        {"clusters.yaml": write_new_clusters(answers, defaults=False).encode()}, ESTATE
    )
    topics, notes = set[str](), list[Finding]()
    left = 0
    for name in answers.names:
        if name in states:
            adoption = adopt_topics(draft, states[name], AdoptionRequest(name))
            draft = draft.change(adoption.texts)
            topics.update(adoption.written)
            notes += adoption.notes
            left += adoption.differences or 0
    texts = dict(draft.texts)
    texts["clusters.yaml"] = _order_keys(texts["clusters.yaml"])
    return NewEstate(texts, len(topics), ignored, left, tuple(notes))


def _order_keys(text: str) -> str:
    """Put what an import added at the end of clusters.yaml above the clusters."""
    head, *blocks = re.split(r"^(?=[a-z_]+:)", text, flags=re.MULTILINE)
    added = ("version:", "defaults:", "profiles:")
    first = [block for key in added for block in blocks if block.startswith(key)]
    return head + "".join([*first, *(block for block in blocks if block not in first)])
