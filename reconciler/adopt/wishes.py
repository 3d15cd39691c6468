"""Which live topics become specs, and as what: with a finding for each thing no spec can say."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from reconciler.adopt.adoption import Wish
from reconciler.diff import managed_overrides
from reconciler.errors import Finding, Severity
from reconciler.spec.names import check_name, find_collisions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from reconciler.model import ClusterState, TopicState
    from reconciler.spec.configs import Catalogue

MIN_INSYNC = "min.insync.replicas"


def list_wishes(
    state: ClusterState,
    catalogue: Catalogue,
    *,
    topics: str = "*",
    minds: Callable[[str], bool] = lambda _: True,
    assignments: bool = False,
) -> tuple[list[Wish], list[Finding]]:
    """Turn live topics into wishes that a plan finds fulfilled, sorted by name.

    Internal topics, and those that the estate does not mind, are nobody's business; others that
    stay out are findings.
    """
    chosen = [
        topic
        for name, topic in sorted(state.user_topics.items())
        if fnmatchcase(name, topics) and minds(name)
        if topic.assignment
    ]
    wishes: list[Wish] = []
    findings: list[Finding] = []
    look_alikes = {n: group[0] for group in find_collisions(t.name for t in chosen) for n in group}
    for topic in chosen:
        reasons = _list_reasons(topic, catalogue, look_alikes.get(topic.name, topic.name))
        if reasons:
            findings += [_leave_out(topic.name, reason) for reason in reasons]
        else:
            wishes.append(_make_wish(topic, findings, assignments=assignments))
    return wishes, findings


def drop_look_alikes(
    wishes: Iterable[Wish], written: Collection[str], findings: list[Finding]
) -> list[Wish]:
    """Leave out new topics that metrics cannot tell from one that is written already."""
    spelled = {name.replace(".", "_"): name for name in written}
    kept = []
    for wish in wishes:
        other = spelled.get(wish.name.replace(".", "_"), wish.name)
        if wish.name in written or other == wish.name:
            kept.append(wish)
        else:
            what = f"metrics cannot tell it from {other}, which is written"
            findings.append(_leave_out(wish.name, Finding("name-collides", what)))
    return kept


def _list_reasons(topic: TopicState, catalogue: Catalogue, first: str) -> list[Finding]:
    """List what keeps a topic from being a spec: mostly values that validation refuses."""
    if first != topic.name:
        what = f"metrics cannot tell it from {first}"
        return [Finding("name-collides", what, "write one of them, and rename the other")]
    reasons = check_name(topic.name, None)
    overrides = managed_overrides(topic)
    for key, value in sorted(overrides.items()):
        spelled = catalogue.normalise(key, value, None)
        if not isinstance(spelled, str):
            reasons += spelled
        elif not catalogue.same(key, spelled, value):
            reasons.append(_refuse_spelling(key, value, spelled))
    return reasons or catalogue.check_together(overrides, lambda _: None)


def _refuse_spelling(key: str, value: str, spelled: str) -> Finding:
    what = f"{key} is {value!r} on the topic, which a spec can only say as {spelled!r}"
    return Finding("config-type", what, f"set it to {spelled!r} on the cluster")


def _leave_out(name: str, reason: Finding) -> Finding:
    what = f"{name} stays out of the specs: {reason.what} [{reason.rule}]"
    way_out = "mend it on the cluster or set kafka_version in clusters.yaml, and import again"
    return Finding("import-left-out", what, way_out, severity=Severity.WARNING)


def _make_wish(topic: TopicState, findings: list[Finding], *, assignments: bool) -> Wish:
    config = dict(sorted(managed_overrides(topic).items()))
    factors = sorted(topic.replication_factors)
    reason = ""
    if len(factors) > 1:
        reason = f"its partitions have {_join(factors)} replicas"
    elif MIN_INSYNC in config and int(config[MIN_INSYNC]) > factors[0]:
        reason = f"{MIN_INSYNC} {config[MIN_INSYNC]} exceeds the {factors[0]} it has"
    if reason:
        findings.append(_leave_open(topic.name, reason, assignments=assignments))
    return Wish(
        topic.name,
        len(topic.assignment),
        None if reason else factors[0],
        config,
        topic.assignment if assignments and not reason else None,
    )


def _leave_open(name: str, reason: str, *, assignments: bool) -> Finding:
    open_ = "replication_factor and assignment are" if assignments else "replication_factor is"
    what = f"{open_} left open for {name}: {reason}"
    way_out = "reassign the topic or lower min.insync.replicas, and import again"
    return Finding("import-not-managed", what, way_out, severity=Severity.WARNING)


def _join(numbers: Iterable[int]) -> str:
    return " and ".join(map(str, numbers))
