"""Rules across fields and across topics."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain

from reconciler.errors import Finding, Location, Severity
from reconciler.model.cluster import TopicSpec
from reconciler.model.moves import MoveKind
from reconciler.policy.baseline import Settled, settle
from reconciler.policy.facts import PolicyCluster
from reconciler.policy.limits import check_limits
from reconciler.policy.quotas import check_quotas
from reconciler.policy.rules import Judge
from reconciler.spec import names
from reconciler.spec.configs import Catalogue
from reconciler.spec.documents import WrittenTopic
from reconciler.spec.entry import SANDBOX, ClusterEntry
from reconciler.spec.fields import list_repeats, suggest
from reconciler.spec.keys import MOST_STAGES
from reconciler.spec.names import check_name
from reconciler.spec.services import (
    APACHE,
    SERVICES,
    Placement,
    check_moves,
    check_service,
    spell_moves,
    write_for_cluster,
)
from reconciler.spec.values import YamlText, quote
from reconciler.units import count

PATTERNS_SHOWN = 5
ENVIRONMENTS = ("-plan", "-drift")
"""The ends of the names of environments, after the name of their cluster."""
REQUESTS = "reconciler-requests"
"""The environment with what opens requests, which no job with secrets of a cluster may have."""
_MIN_INSYNC = "min.insync.replicas"
_PLACING = (
    "strategy",
    "capacity",
    "exclude_brokers",
    "drain_brokers",
    "internal_replication_factor",
    "balance",
    "rebalance",
    "moves",
)


def check_written_topics(
    topics: Sequence[WrittenTopic], clusters: Collection[str], profiles: Collection[str]
) -> Iterator[Finding]:
    """Check names, and that every named cluster and profile exists."""
    first: dict[str, Location] = {}
    for topic in topics:
        if topic.name in first:
            what = f"the topic {quote(topic.name)} is already at {first[topic.name]}"
            way_out = "keep one; write values that differ by cluster under overrides:"
            yield Finding("topic-duplicate", what, way_out, topic.where)
        first.setdefault(topic.name, topic.where)
    for topic in topics:
        yield from names.check_name(topic.name, topic.where)
        profile = topic.document.profile
        if profile is not None and profile not in profiles:
            if profiles:
                way_out = suggest(profile, profiles) or f"the profiles are {_join(profiles)}"
            else:
                way_out = "write it below profiles: in clusters.yaml, which has none"
            what = f"there is no profile {quote(profile)}"
            yield Finding("profile-unknown", what, way_out, profile.where)
        for cluster in topic.document.clusters or ():
            if cluster not in clusters:
                yield refuse_cluster(cluster, clusters, cluster.where)
        yield from _check_overrides(topic, clusters)


def check_moving(entry: ClusterEntry) -> Iterator[Finding]:
    """Check that a cluster allows the moves that its keys ask for, and that its service does."""
    if entry.placement is Placement.BROKER:  # `check_placing` refuses these keys
        return
    for key, kind, rule in (
        ("drain_brokers", MoveKind.DRAIN, "drain-allowed"),
        ("internal_replication_factor", MoveKind.REPLICATION, "replication-allowed"),
        ("rebalance", MoveKind.REBALANCE, "rebalance-allowed"),
    ):
        if getattr(entry, key) and (entry.moves is None or kind not in entry.moves.allow):
            way_out = spell_moves(entry.service, [kind], "below this cluster")
            if entry.moves is not None:
                way_out = f"add {kind} to moves.allow of this cluster"
            what = f"{key} moves replicas, and {entry.name} does not allow that"
            yield Finding(rule, what, way_out, entry.where(key))
    if entry.moves is not None:
        yield from check_moves(entry.service, entry.name, entry.moves, entry.where)


def check_placing(entry: ClusterEntry) -> Iterator[Finding]:
    """Check that a cluster whose brokers place replicas has no key that says where these go."""
    for key in _PLACING if entry.placement is Placement.BROKER else ():
        if key in entry.fields:
            what = f"{key} says where replicas go, but {entry.why_no_rows}"
            way_out = f"remove {key}"
            if entry.can_place:
                way_out += ", or write placement: reconciler below this cluster"
            yield Finding("placement-keys", what, way_out, entry.where(key))


def check_environments(clusters: Mapping[str, ClusterEntry]) -> Iterator[Finding]:
    """Check that no two environments of the workflows have one name, and so one set of secrets.

    A cluster has NAME, NAME-plan and NAME-drift, and all have one that opens requests. Code hosts
    ignore case in these names.
    """
    first: dict[str, str] = {}
    for name, entry in sorted(clusters.items()):
        lower = name.lower()
        if suffix := next((s for s in ENVIRONMENTS if lower.endswith(s)), ""):
            what = f"the cluster {quote(name)} has the name of an environment of the workflows: "
            what += f"that of {quote(name[: -len(suffix)])} for {suffix.removeprefix('-')}"
            way_out = f"choose a name that does not end in {' or '.join(ENVIRONMENTS)}"
            yield Finding("cluster-environment", what, way_out, entry.location)
        if lower == REQUESTS:
            what = f"the cluster {quote(name)} has the name of the environment that opens requests"
            yield Finding("cluster-environment", what, "choose another name", entry.location)
        if other := first.get(lower):
            what = f"the clusters {quote(other)} and {quote(name)} differ only in case, and "
            what += "environments of the workflows do not"
            yield Finding("cluster-environment", what, "rename one of them", entry.location)
        first.setdefault(lower, name)


def check_stages(
    stages: Sequence[Sequence[YamlText]], clusters: Mapping[str, ClusterEntry]
) -> Iterator[Finding]:
    """Check that stages, if there are any, name each cluster once, and nothing else."""
    named = [name for stage in stages for name in stage]
    if len(stages) > MOST_STAGES:
        what = f"there are {len(stages)} stages, and a merge reaches at most {MOST_STAGES}"
        way_out = "put clusters that need not wait for each other into one stage"
        yield Finding("stages-most", what, way_out, stages[MOST_STAGES][0].where)
    yield from list_repeats(named, "stages")
    for name in named:
        if name not in clusters:
            yield refuse_cluster(name, clusters, name.where)
    for entry in clusters.values() if named else ():
        if entry.name not in named and entry.name != SANDBOX:
            what = f"the cluster {quote(entry.name)} is in no stage, so no merge is applied to it"
            yield Finding("stage-missing", what, "add it to a stage of stages", entry.location)


def refuse_cluster(cluster: str, clusters: Collection[str], where: Location | None) -> Finding:
    """Return the finding for a cluster that the estate does not have."""
    way_out = suggest(cluster, clusters) or f"the clusters are {_join(clusters)}"
    if set(clusters) == {"sandbox"}:
        way_out = "name it below clusters: in clusters.yaml; without that there is only sandbox"
    return Finding("cluster-unknown", f"there is no cluster {quote(cluster)}", way_out, where)


def _check_overrides(topic: WrittenTopic, clusters: Collection[str]) -> Iterator[Finding]:
    if not topic.overrides:
        return
    keys = topic.layer.table["overrides"].places()
    for name, override in topic.overrides.items():
        where = keys[name]
        if name not in clusters:
            yield refuse_cluster(name, clusters, where)
        elif not topic.targets(name):
            what = f"the override for {quote(name)} has no effect: the topic is not on that cluster"
            way_out = f"add {name} to clusters, or remove the override"
            yield Finding("override-untargeted", what, way_out, where)
        elif not override.table and not topic.partial:
            what = f"the override for {quote(name)} is empty"
            yield Finding("value-missing", what, "write what differs, or remove it", where)


def check_spec(spec: TopicSpec, cluster: str) -> Iterator[Finding]:
    """Check a resolved topic's counts against its rows and its config."""
    if spec.absent:
        return
    yield from _check_rows(spec)
    yield from _check_min_insync(spec, cluster)


def check_counts(spec: TopicSpec) -> Iterator[Finding]:
    """Refuse a topic without counts in an estate without clusters.yaml: nothing can create it.

    Elsewhere the topic may exist, and a count that nothing writes is not managed. So is a null.
    """
    counts = ("partitions", "replication_factor")
    missing = " and ".join(key for key in counts if key not in spec.fields)
    if missing and not spec.absent:
        yield Finding(
            "create-needs-counts",
            f"no cluster has the topic {quote(spec.name)} yet, and its spec leaves out {missing}",
            f"write {missing} in the topic, its profile or the defaults",
            spec.location,
        )


def _check_rows(spec: TopicSpec) -> Iterator[Finding]:
    """Compare the rows with counts that were written in the same layer or a higher one."""
    if spec.assignment is None:
        return
    rows, replicas = len(spec.assignment), len(spec.assignment[0])
    way_out = "remove the count, or make both equal"
    if spec.partitions != rows:
        shown = "1 row" if rows == 1 else f"{rows} rows"
        what = f"partitions {spec.partitions} differs from the assignment's {shown}"
        yield Finding("assignment-partitions", what, way_out, spec.where("partitions"))
    if spec.replication_factor != replicas:
        what = (
            f"replication_factor {spec.replication_factor} differs from the assignment's rows of "
            f"{replicas}"
        )
        yield Finding("assignment-replication", what, way_out, spec.where("replication_factor"))


def _check_min_insync(spec: TopicSpec, cluster: str) -> Iterator[Finding]:
    """Refuse more in-sync replicas than replicas.

    Kafka accepts this, and then requires all replicas but no more (KAFKA-21110).
    """
    factor, least = spec.replication_factor, spec.config.get(_MIN_INSYNC)
    if factor is None or least is None or int(least) <= factor:
        return
    places = [spec.where(f"config.{_MIN_INSYNC}"), spec.where("replication_factor")]
    own = [place for place in places if place.file == spec.location.file]
    where = (own or places)[0]
    named = zip((_MIN_INSYNC, "replication_factor"), places, strict=True)
    away = [(name, place) for name, place in named if place not in (where, *own)]
    other = "".join(f" ({name} is at {place})" for name, place in away)
    what = (
        f"{_MIN_INSYNC} {least} exceeds replication_factor {factor} of {quote(spec.name)} on "
        f"{cluster}{other}: acks=all then guarantees {count(factor, 'replica')}, not {least}, "
        "and every such write fails while replication grows"
    )
    way_out = f"use at most {factor}, or more replicas for a new topic"
    yield Finding("min-insync-le-replication", what, way_out, where)


def check_cluster_topics(
    specs: Sequence[TopicSpec], ignore: Iterable[str], cluster: str
) -> Iterator[Finding]:
    """Check the topics of one cluster against each other and against what it ignores."""
    by_name = {spec.name: spec for spec in specs if not spec.absent}
    for group in names.find_collisions(by_name):
        for name in group[1:]:
            what = (
                f"the topic {quote(name)} collides with {quote(group[0])} on {cluster}: "
                "their metrics have one name"
            )
            way_out = f"rename one; the other is at {by_name[group[0]].location}"
            yield Finding("name-collides", what, way_out, by_name[name].location)
    patterns = tuple(ignore)
    for spec in specs:
        for pattern in patterns:
            if fnmatchcase(spec.name, pattern):
                what = (
                    f"the topic {quote(spec.name)} is ignored on {cluster} "
                    f"by the pattern {quote(pattern)}"
                )
                way_out = "remove the topic, or the pattern in clusters.yaml"
                yield Finding("topic-ignored", what, way_out, spec.location)


def check_owned(specs: Iterable[TopicSpec], owns: Sequence[str], cluster: str) -> Iterator[Finding]:
    """Check that the estate owns each topic of a cluster; it owns all if `owns` is not set."""
    for spec in specs if owns else ():
        if not any(fnmatchcase(spec.name, pattern) for pattern in owns):
            more = len(owns) - PATTERNS_SHOWN
            shown = ", ".join(map(quote, owns[:PATTERNS_SHOWN]))
            shown += f" and {more:,} more" if more > 0 else ""
            what = (
                f"the topic {quote(spec.name)} is not this estate's: on {cluster} it owns {shown}"
            )
            way_out = (
                "move the document to the estate that owns it, or widen owns: in clusters.yaml"
            )
            yield Finding("topic-not-owned", what, way_out, spec.location)


def _join(words: Collection[str]) -> str:
    return ", ".join(sorted(words))


class PolicyEngine:
    """Checks the specs of a cluster by its policy. `judge` evaluates the team's own rules.

    `specs` are all specs of the cluster, whose owners and labels have quotas.
    """

    def __init__(
        self, entry: ClusterEntry, catalogue: Catalogue, specs: Iterable[TopicSpec] = ()
    ) -> None:
        self._entry = entry
        quotas = entry.policy.per_owner or entry.policy.per_label
        self._specs = tuple(specs) if quotas else ()
        self._catalogue = catalogue
        rules = [rule for _, rule in sorted(entry.policy.rules.items())]
        estate = entry.location.file.rpartition("/")[0]  # where clusters.yaml is, or would be
        cluster = PolicyCluster(entry.name, entry.kafka_version, estate)
        self.judge = Judge(rules, cluster, catalogue.interpret)
        self.findings = tuple(self.judge.findings)

    def check(self, spec: TopicSpec) -> Settled:
        """Return the violations of the policy in a resolved spec, and what the baseline exempts."""
        limited = check_limits(spec, self._entry.policy, self._entry.name)
        settled = settle(chain(limited, self.judge.judge_spec(spec)), self._entry.policy)
        of_service = check_service(spec, self._entry.service, self._entry.name)
        own = (*self._check_offered(spec), *self._check_given_rows(spec), *of_service)
        return Settled((*settled.findings, *own), settled.exempt)

    def allows(self, spec: TopicSpec) -> bool:
        """Return whether validation accepts a spec, such as the result of a way out."""
        findings = [
            *check_name(spec.name, None),
            *check_spec(spec, self._entry.name),
            *self._catalogue.check_together(spec.config, spec.where),
            *self.check(spec).findings,
            *self._check_quota(spec),
        ]
        errors = any(finding.severity is Severity.ERROR for finding in findings)
        return self._entry.manages(spec.name) and not errors

    def _check_quota(self, spec: TopicSpec) -> tuple[Finding, ...]:
        """Check the quotas of owner and labels of a spec that replaces the one of its name."""
        others = (
            s
            for s in self._specs
            if s.name != spec.name
            and (s.owner == spec.owner or s.labels.items() & spec.labels.items())
        )
        asked = check_quotas([*others, spec], self._entry.policy, self._entry.name)
        return settle(asked, self._entry.policy).findings

    def _check_given_rows(self, spec: TopicSpec) -> Iterator[Finding]:
        entry = self._entry
        if entry.placement is Placement.BROKER and spec.assignment is not None and not spec.absent:
            counts = f"partitions: {spec.partitions} and "
            counts += f"replication_factor: {spec.replication_factor}"
            what = f"{quote(spec.name)} has an assignment, but {entry.why_no_rows}"
            way_out = f"write {counts} instead"
            if entry.can_place:
                way_out += f", or placement: reconciler below {entry.name} in clusters.yaml"
            yield Finding("placement-assignment", what, way_out, spec.where("assignment"))
        if entry.placement is Placement.BROKER and not spec.rack_aware and not spec.absent:
            what = f"rack_aware: false has no effect on {entry.name}, since {entry.why_no_rows}"
            way_out = "remove it, unless other clusters need it"
            yield Finding("placement-keys", what, way_out, spec.where("rack_aware"), Severity.NOTE)

    def _check_offered(self, spec: TopicSpec) -> Iterator[Finding]:
        offered = self._entry.known_configs
        if offered is None or spec.absent:
            return
        written = "known_configs" in self._entry.fields or self._entry.service == APACHE
        for key in sorted(spec.config.keys() - offered):
            name, where = self._entry.name, spec.where(f"config.{key}")
            rule = "config-not-offered" if written else "service-config"
            what = f"{key} is not among the known_configs of {name}, whose service refuses others"
            if not written:
                what = f"{SERVICES[self._entry.service].title} does not allow to set {key}"
            away = write_for_cluster(spec, where, name, f"config: {{{key}: null}}")
            yield Finding(rule, what, f"remove it, or {away}", where)
