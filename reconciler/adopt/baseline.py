"""The text of policy-baseline.yaml: what breaks a policy now, and why it may stay so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from reconciler.adopt.spelling import humanise, render_document
from reconciler.policy.breaches import Breach
from reconciler.policy.policy import BrokenLimit
from reconciler.spec.baseline import WrittenExemption
from reconciler.spec.catalogue import every_key, lines_that_know, spell_line
from reconciler.spec.configs import choose_catalogue

_HEAD = """\
# What broke the policy before its limits were introduced. Written by reconciler validate
# --write-baseline, which keeps each reason: write there why it may stay, and until when.
"""


class DraftedBaseline(NamedTuple):
    """A baseline as text, and the numbers of its entries; `removed` and `added` to the earlier."""

    text: str
    entries: int
    added: int
    removed: int


def draft_baseline(
    exempt: Mapping[str, Iterable[Breach]], written: Sequence[WrittenExemption]
) -> DraftedBaseline:
    """Draft the baseline of all breaches, by cluster. `written` is the earlier one.

    Clusters with the same value are one entry; it names them if they are not all.
    """
    clusters: dict[tuple[BrokenLimit, str], list[str]] = defaultdict(list)
    for cluster, breaches in exempt.items():
        for breach in breaches:
            if breach.broken is not None:
                at = clusters[breach.broken, breach.value]
                at += [cluster] * (cluster not in at)
    drafted, known = set(), {(e.broken, e.value, _sort(e.clusters, exempt)) for e in written}
    documents = []
    for (broken, value), names in sorted(clusters.items(), key=_order):
        on = _sort(names, exempt)
        drafted.add((broken, value, on))
        who = {"topic": broken.who, "owner": None}
        if broken.rule == "quota-per-owner":
            who = {"topic": None, "owner": broken.who}
        document = {
            **who,
            "rule": broken.rule,
            "limit": broken.limit or None,
            "value": _spell(broken, value),
            "clusters": None if on is None else [*on],
            "reason": _find_reason(broken, names, written),
        }
        documents.append({key: item for key, item in document.items() if item is not None})
    text = _HEAD + "---\n".join(map(render_document, documents))
    return DraftedBaseline(text, len(drafted), len(drafted - known), len(known - drafted))


def _order(item: tuple[tuple[BrokenLimit, str], list[str]]) -> tuple[str, ...]:
    (broken, value), names = item
    return (broken.who or "", broken.rule, broken.limit, value, *names)


def _sort(names: Iterable[str] | None, every: Mapping[str, object]) -> tuple[str, ...] | None:
    """Return the clusters of an entry; None if they are all."""
    return None if names is None or {*names} >= every.keys() else tuple(sorted(map(str, names)))


def _find_reason(
    broken: BrokenLimit, clusters: Iterable[str], written: Sequence[WrittenExemption]
) -> str:
    """Return the reason that was given for any of these clusters, also for another value."""
    earlier = (e for e in written if e.broken == broken and any(map(e.applies, clusters)))
    return next((each.reason for each in earlier if each.reason), "")


def _spell(broken: BrokenLimit, value: str) -> object:
    """Spell a value for people: a count as a number, a config with a unit."""
    if not value:
        return None
    if broken.rule in ("policy-partitions", "policy-replication", "quota-per-owner"):
        return int(value)
    if broken.limit in every_key():
        release = choose_catalogue(spell_line(lines_that_know(broken.limit)[-1]))
        spelled = humanise(release, broken.limit, value)
        return value if isinstance(spelled, list) else spelled
    return value
