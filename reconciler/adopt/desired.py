"""The live topics that become specs, with a finding for everything that no spec can express."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from types import MappingProxyType

from reconciler.diff.fields import drop_overrides, managed_overrides
from reconciler.diff.refusals import note_left_alone
from reconciler.errors import Finding, Severity
from reconciler.model.cluster import EMPTY, Assignment, ClusterState, TopicState
from reconciler.model.plan import is_chosen
from reconciler.spec.configs import Catalogue
from reconciler.spec.names import check_name, find_collisions
from reconciler.units import count

MIN_INSYNC = "min.insync.replicas"


@dataclass(frozen=True, slots=True)
class DesiredTopic:
    """The desired spec of a topic, before its inherited values are known.

    A count that is None is left open. Config values are in the broker's spelling.
    """

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    config: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    assignment: Assignment | None = None


def list_adoptable(
    state: ClusterState,
    catalogue: Catalogue,
    *,
    topics: str = "*",
    manages: Callable[[str], bool] = lambda _: True,
    assignments: bool = False,
) -> tuple[list[DesiredTopic], list[Finding]]:
    """List live topics as specs with which the next plan is empty, sorted by name.

    Internal topics, and those that the estate does not manage, are left out without a finding;
    others that are left out have one. Configs that no spec can set are named and left alone.
    """
    chosen = [
        topic
        for name, topic in sorted(state.user_topics.items())
        if is_chosen(name, topics) and manages(name)
        if topic.assignment
    ]
    desired: list[DesiredTopic] = []
    findings: list[Finding] = []
    look_alikes = {n: group[0] for group in find_collisions(t.name for t in chosen) for n in group}
    left: dict[str, list[str]] = {}
    for live in chosen:
        topic = drop_overrides(live, lambda key: not catalogue.offers(key))
        for key in sorted(live.config.keys() - topic.config.keys()):
            left.setdefault(key, []).append(topic.name)
        reasons = _list_reasons(topic, catalogue, look_alikes.get(topic.name, topic.name))
        if reasons:
            findings += [_leave_out(topic.name, reason) for reason in reasons]
        else:
            desired.append(_make_desired(topic, findings, assignments=assignments))
    return desired, [*findings, *note_left_alone(left, catalogue)]


def drop_look_alikes(
    desired: Iterable[DesiredTopic], written: Collection[str], findings: list[Finding]
) -> list[DesiredTopic]:
    """Leave out new topics that metrics cannot distinguish from one that has a spec."""
    # Kafka replaces '.' by '_' in names of metrics, and refuses a topic that would collide there.
    spelled = {name.replace(".", "_"): name for name in written}
    kept = []
    for wanted in desired:
        other = spelled.get(wanted.name.replace(".", "_"), wanted.name)
        if wanted.name in written or other == wanted.name:
            kept.append(wanted)
        else:
            what = f"metrics cannot distinguish it from {other}, which is written"
            findings.append(_leave_out(wanted.name, Finding("name-collides", what)))
    return kept


def _list_reasons(topic: TopicState, catalogue: Catalogue, first: str) -> list[Finding]:
    """List the reasons why a topic cannot be a spec: mostly values that validation refuses."""
    if first != topic.name:
        what = f"metrics cannot distinguish it from {first}"
        return [Finding("name-collides", what, "write one of them, and rename the other")]
    reasons = check_name(topic.name, None)
    overrides = managed_overrides(topic)
    for key, value in sorted(overrides.items()):
        spelled = catalogue.normalise(key, value, None)
        if not isinstance(spelled, str):
            reasons += spelled
        elif not catalogue.same(key, spelled, value):
            what = f"{key} is {value!r} on the topic, which a spec can only say as {spelled!r}"
            way_out = f"set it to {spelled!r} on the cluster"
            reasons.append(Finding("config-type", what, way_out))
    return reasons or catalogue.check_together(overrides, lambda _: None)


def _leave_out(name: str, reason: Finding) -> Finding:
    what = f"{name} stays out of the specs: {reason.what} [{reason.rule}]"
    way_out = "fix it on the cluster, or set kafka_version in clusters.yaml, and import again"
    return Finding("import-left-out", what, way_out, severity=Severity.WARNING)


def _make_desired(topic: TopicState, findings: list[Finding], *, assignments: bool) -> DesiredTopic:
    config = dict(sorted(managed_overrides(topic).items()))
    factors = sorted(topic.replication_factors)
    reason = way_out = ""
    if len(factors) > 1:
        reason = f"its partitions have {' and '.join(map(str, factors))} replicas"
        way_out = "give them the same number of replicas, and import again"
    elif MIN_INSYNC in config and int(config[MIN_INSYNC]) > factors[0]:
        reason = (
            f"{MIN_INSYNC} {config[MIN_INSYNC]} exceeds the {count(factors[0], 'replica')} it has"
        )
        way_out = f"lower it to at most {factors[0]}, or add replicas, and import again"
    if reason:
        # Written down, either would fail validation: an open count keeps the topic manageable.
        open_ = "replication_factor and assignment are" if assignments else "replication_factor is"
        what = f"{open_} left open for {topic.name}: {reason}"
        left = Finding("import-not-managed", what, way_out, severity=Severity.WARNING)
        findings.append(left)
    return DesiredTopic(
        topic.name,
        len(topic.assignment),
        None if reason else factors[0],
        config,
        topic.assignment if assignments and not reason else None,
    )


OWNERS: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "Amazon MSK": ("__amazon_msk_*",),
        "Confluent Platform": ("_confluent*", "__confluent*"),
        "Cruise Control": ("__CruiseControl*", "__KafkaCruiseControl*", "strimzi.cruisecontrol.*"),
        "Kafka Connect": (
            "connect-*configs",
            "connect-*offsets",
            "connect-*status",
            "*[-_]connect-configs",
            "*[-_]connect-offsets",
            "*[-_]connect-status",
        ),
        "Kafka Streams": ("*-changelog", "*-repartition", "*-KTABLE-FK-JOIN-SUBSCRIPTION-*"),
        "ksqlDB": ("*ksql_processing_log",),
        "MirrorMaker 2": ("heartbeats", "*.heartbeats", "*.checkpoints.internal", "mm2-*.internal"),
        "Schema Registry": ("_schemas", "_schema_encoders"),
        "Strimzi": ("__strimzi*",),
    }
)
"""Patterns for `ignore` by software: the default names of its topics."""

NAMED = 3
"""The number of topics to name per software."""


def find_foreign(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the topics of other software, sorted: its name, and the pattern that matches."""
    known = [(owner, pattern) for owner, globs in OWNERS.items() for pattern in globs]
    matches = {
        name: next((one for one in known if fnmatchcase(name, one[1])), None)
        for name in sorted(names)
    }
    return {name: match for name, match in matches.items() if match is not None}


def suggest_ignores(names: Iterable[str]) -> list[Finding]:
    """Name the new topics that look like those of other software, and how to leave them out."""
    found = find_foreign(names)
    if not found:
        return []
    options = " ".join(f"--ignore '{one}'" for one in sorted({one for _, one in found.values()}))
    way_out = f"to leave them out, remove their documents and import again with {options}"
    return [_report_foreign(found, "new topic", way_out)]


def suggest_foreign(names: Iterable[str]) -> list[Finding]:
    """Name the topics to be deleted that look like those of other software."""
    found = find_foreign(names)
    way_out = "remove their documents, unless that software is gone"
    return [_report_foreign(found, "topic to delete", way_out)] if found else []


def _report_foreign(found: Mapping[str, tuple[str, str]], noun: str, way_out: str) -> Finding:
    by_owner: dict[str, list[str]] = {}
    for name, (owner, _) in found.items():
        by_owner.setdefault(owner, []).append(name)
    listed = []
    for owner, own in sorted(by_owner.items()):
        more = f" and {len(own) - NAMED:,} more" if len(own) > NAMED else ""
        listed.append(f"{owner} ({', '.join(own[:NAMED])}{more})")
    look = "looks like one" if len(found) == 1 else "look like those"
    topics = f"{len(found):,} {noun if len(found) == 1 else noun.replace('topic', 'topics', 1)}"
    what = f"{topics} {look} that other software creates for itself: {', '.join(listed)}"
    return Finding("import-foreign", what, way_out, severity=Severity.WARNING)
