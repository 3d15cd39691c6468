"""Stage 2: what each spec asks for that its cluster does not have yet, or must not be given.

`deepdiff` names the fields that differ; every one of them becomes work, a refusal, or a note that
says it is not managed. Nothing is silent.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from reconciler.errors import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from reconciler.model import Assignment, Broker, ClusterState, TopicSpec, TopicState

NOT_MANAGED_KEYS = frozenset(
    {"leader.replication.throttled.replicas", "follower.replication.throttled.replicas"}
)
"""Set and cleared by whoever moves replicas; a spec has no business with them."""


class ConfigEquality(Protocol):
    """Whether two values of a config key mean the same to the broker (lists have no order)."""

    def same(self, key: str, a: str, b: str) -> bool:
        """Compare two values in the broker's spelling."""
        ...


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field that differs: its dotted path, what is there (None: nothing), what is wished."""

    path: str
    found: object
    wished: object


@dataclass(frozen=True, slots=True)
class TopicDiff:
    """One topic's spec against its state.

    `new_partitions` counts the partitions to place, of `replication_factor` replicas each;
    `manual` holds their rows where the spec lists them. `config` holds the managed overrides as
    they would be afterwards. With `refusals` nothing of the topic is done.
    """

    spec: TopicSpec
    state: TopicState | None
    changes: tuple[FieldChange, ...] = ()
    new_partitions: int = 0
    replication_factor: int = 0
    manual: Assignment | None = None
    config: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    refusals: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()


def eligible_brokers(
    brokers: Iterable[Broker], excluded: Collection[int] = ()
) -> tuple[Broker, ...]:
    """Return the brokers that may take something new: alive, not cordoned, not excluded; by id."""
    return tuple(sorted(b for b in brokers if b.alive and not b.cordoned and b.id not in excluded))


def diff_topics(
    specs: Iterable[TopicSpec],
    cluster: ClusterState,
    equality: ConfigEquality,
    excluded: Collection[int] = (),
) -> tuple[TopicDiff, ...]:
    """Compare every spec with the cluster.

    `excluded` names brokers that take nothing new. Returns one diff a spec, by topic name.
    """
    judge = _Judge(cluster, equality, frozenset(excluded))
    return tuple(judge.diff(spec) for spec in sorted(specs, key=lambda spec: spec.name))


def managed_overrides(state: TopicState) -> Mapping[str, str]:
    """Return the overrides that a spec can speak of: known to the broker, not a throttle list."""
    return {
        key: value
        for key, value in state.config.items()
        if value is not None and key not in NOT_MANAGED_KEYS
    }


class _Judge:
    """Holds what all topics of one comparison share."""

    def __init__(
        self, cluster: ClusterState, equality: ConfigEquality, excluded: frozenset[int]
    ) -> None:
        self.cluster = cluster
        self.equality = equality
        self.excluded = excluded
        self.brokers = {broker.id: broker for broker in cluster.brokers}
        self.eligible = eligible_brokers(cluster.brokers, excluded)
        self.look_alikes: dict[str, list[str]] = defaultdict(list)
        for name in cluster.topics:
            self.look_alikes[name.replace(".", "_")].append(name)

    def diff(self, spec: TopicSpec) -> TopicDiff:
        state = self.cluster.topics.get(spec.name)
        if spec.absent:
            return TopicDiff(spec, state, refusals=tuple(_refuse_deletion(spec, state)))
        return self._create(spec) if state is None else self._alter(spec, state)

    def _create(self, spec: TopicSpec) -> TopicDiff:
        partitions = wished_partitions(spec)
        replication = wished_replication(spec)
        refusals = [*self._refuse_look_alikes(spec)]
        if partitions is None or replication is None:
            refusals += _refuse_unknown_counts(spec, partitions, replication)
        else:
            refusals += self._refuse_placement(spec, spec.assignment, replication)
            refusals += _refuse_min_insync(spec, spec.config, replication)
        return TopicDiff(
            spec,
            None,
            changes=(FieldChange("topic", None, spec.name),),
            new_partitions=partitions or 0,
            replication_factor=replication or 0,
            manual=spec.assignment,
            config=dict(sorted(spec.config.items())),
            refusals=tuple(refusals),
        )

    def _alter(self, spec: TopicSpec, state: TopicState) -> TopicDiff:
        overrides = managed_overrides(state)
        config = self._wished_config(spec, overrides)
        changes = tuple(_field_changes(_found(spec, state, overrides), _wished(spec, config)))
        replication = max(state.replication_factors, default=0)
        new = max((wished_partitions(spec) or 0) - len(state.assignment), 0)
        manual = spec.assignment[len(state.assignment) :] if spec.assignment else None
        refusals = [finding for change in changes for finding in _refuse_change(spec, change)]
        if new:
            refusals += _refuse_expansion(spec, state)
            refusals += self._refuse_placement(spec, manual, replication)
        if any(change.path.startswith("config.min.insync") for change in changes):
            refusals += _refuse_min_insync(spec, config, replication)
        return TopicDiff(
            spec,
            state,
            changes=changes,
            new_partitions=new,
            replication_factor=replication,
            manual=manual if new else None,
            config=config,
            refusals=tuple(refusals),
            notes=tuple(_note_not_managed(spec, state)),
        )

    def _wished_config(self, spec: TopicSpec, overrides: Mapping[str, str]) -> dict[str, str]:
        """Return the overrides as they should be, in the live spelling where that means the same.

        A key that is not overridden and whose default says what the spec says is no difference.
        """
        wished = {}
        for key, value in sorted(spec.config.items()):
            live = overrides.get(key, self.cluster.config_defaults.get(key))
            if live is None or not self.equality.same(key, live, value):
                wished[key] = value
            elif key in overrides:
                wished[key] = live
        return wished

    def _refuse_look_alikes(self, spec: TopicSpec) -> Iterator[Finding]:
        for live in sorted(self.look_alikes.get(spec.name.replace(".", "_"), ())):
            yield Finding(
                "name-collides-with-live",
                f"topic {spec.name} would collide with the live topic {live}: "
                "metrics spell '.' and '_' alike, so Kafka refuses it",
                f"name it otherwise, or put {live} into the spec instead",
                spec.location,
            )

    def _refuse_placement(
        self, spec: TopicSpec, manual: Assignment | None, replication: int
    ) -> Iterator[Finding]:
        if manual is not None:
            yield from self._refuse_rows(spec, manual)
        elif replication > len(self.eligible):
            yield self._too_few_brokers(spec, replication)
        elif spec.rack_aware:
            yield from self._refuse_partial_racks(spec)

    def _too_few_brokers(self, spec: TopicSpec, replication: int) -> Finding:
        idle = len(self.brokers) - len(self.eligible)
        beside = f" ({idle} more take nothing new)" if idle else ""
        return Finding(
            "rf-le-brokers",
            f"replication_factor {replication} exceeds the {len(self.eligible)} brokers "
            f"that can take replicas{beside}",
            f"use at most {len(self.eligible)}",
            spec.where("replication_factor"),
        )

    def _refuse_partial_racks(self, spec: TopicSpec) -> Iterator[Finding]:
        without = [broker.id for broker in self.eligible if broker.rack is None]
        if without and len(without) < len(self.eligible):
            listed = ", ".join(map(str, without))
            yield Finding(
                "racks-known",
                f"brokers {listed} tell no rack while others do, so spreading over racks "
                "cannot be promised",
                "set broker.rack on them, or write rack_aware: false in the spec",
                spec.location,
            )

    def _refuse_rows(self, spec: TopicSpec, rows: Assignment) -> Iterator[Finding]:
        start = len(spec.assignment or ()) - len(rows)
        for partition, replicas in enumerate(rows, start):
            for broker_id in replicas:
                trouble = self._trouble_with(broker_id)
                if trouble:
                    rule, what, way_out = trouble
                    where = spec.where(f"assignment.{partition}")
                    said = f"partition {partition} is assigned to broker {broker_id}, {what}"
                    yield Finding(rule, said, way_out, where)

    def _trouble_with(self, broker_id: int) -> tuple[str, str, str] | None:
        broker = self.brokers.get(broker_id)
        others = ", ".join(str(b.id) for b in self.eligible) or "none"
        way_out = f"brokers that can take replicas: {others}"
        if broker is None:
            return ("broker-unknown", "which the cluster does not have", way_out)
        if not broker.alive:
            return ("broker-dead", "which is not alive", f"start it first; {way_out}")
        if broker.cordoned:
            return ("broker-cordoned", "whose log directories are all cordoned", way_out)
        if broker_id in self.excluded:
            return ("broker-excluded", "which exclude_brokers keeps out", way_out)
        return None


def wished_partitions(spec: TopicSpec) -> int | None:
    """Return the partition count a spec asks for: manual rows win over a count."""
    return len(spec.assignment) if spec.assignment is not None else spec.partitions


def wished_replication(spec: TopicSpec) -> int | None:
    """Return the replication factor a spec asks for: manual rows win over a count."""
    return len(spec.assignment[0]) if spec.assignment else spec.replication_factor


def _wished(spec: TopicSpec, config: Mapping[str, str]) -> dict[str, object]:
    """Return the managed fields as wished; what the spec leaves out is left out here."""
    wished: dict[str, object] = {"config": dict(config)}
    if (partitions := wished_partitions(spec)) is not None:
        wished["partitions"] = partitions
    if (replication := wished_replication(spec)) is not None:
        wished["replication_factor"] = replication
    if spec.assignment is not None:
        wished["assignment"] = {row: list(ids) for row, ids in enumerate(spec.assignment)}
    return wished


def _found(spec: TopicSpec, state: TopicState, overrides: Mapping[str, str]) -> dict[str, object]:
    """Return the same fields as found; manual rows are compared where both sides have them."""
    found: dict[str, object] = {"config": dict(overrides)}
    if wished_partitions(spec) is not None:
        found["partitions"] = len(state.assignment)
    if (wished := wished_replication(spec)) is not None:
        factors = state.replication_factors
        odd = next(iter(sorted(factors - {wished})), wished)
        found["replication_factor"] = odd
    if spec.assignment is not None:
        rows = dict(enumerate(map(list, state.assignment[: len(spec.assignment)])))
        rows |= {row: list(spec.assignment[row]) for row in range(len(rows), len(spec.assignment))}
        found["assignment"] = rows
    return found


def _field_changes(found: dict[str, object], wished: dict[str, object]) -> Iterator[FieldChange]:
    if found == wished:
        return
    from deepdiff import DeepDiff  # 0.1 s to import, and most topics do not differ

    # A threshold of 0: configs with few keys in common are compared key by key all the same.
    tree: Any = DeepDiff(found, wished, view="tree", max_passes=1, threshold_to_diff_deeper=0)
    leaves = {
        tuple(leaf.path(output_format="list")): leaf for kind in tree.values() for leaf in kind
    }
    by_field = {path[:2]: leaf for path, leaf in leaves.items()}
    for path in sorted(by_field):
        yield FieldChange(".".join(map(str, path)), _at(found, path), _at(wished, path))


def _at(fields: dict[str, object], path: tuple[object, ...]) -> object:
    """Return what stands at `path`, None where nothing does."""
    value: Any = fields
    for key in path:
        value = value.get(key)
    return value


def _refuse_change(spec: TopicSpec, change: FieldChange) -> Iterator[Finding]:
    """Refuse what cannot be done; config changes and more partitions can."""
    field_name = change.path.partition(".")[0]
    if field_name == "config":
        return
    where = spec.where(change.path)
    found, wished = change.found, change.wished
    if field_name == "partitions":
        if isinstance(found, int) and isinstance(wished, int) and wished < found:
            yield Finding(
                "partitions-never-shrink",
                f"{found} → {wished} partitions: Kafka cannot remove partitions",
                f"put {found} back, or create a new topic and move its producers and consumers",
                where,
            )
    elif field_name == "replication_factor":
        yield Finding(
            "replication-stays",
            f"replication_factor {found} → {wished}: changing it moves replicas, "
            "which reconciler does not do",
            f"put {found} back, or reassign with kafka-reassign-partitions and plan again",
            where,
        )
    else:
        yield Finding(
            "replicas-stay",
            f"{change.path.replace('.', ' of partition ')}: {found} → {wished}: existing "
            "replicas are never moved",
            f"write {found}, or reassign with kafka-reassign-partitions and plan again",
            where,
        )


def _refuse_expansion(spec: TopicSpec, state: TopicState) -> Iterator[Finding]:
    if state.reassigning:
        listed = ", ".join(map(str, sorted(state.reassigning)))
        yield Finding(
            "expand-after-reassignment",
            f"partitions {listed} are being reassigned; Kafka may take their inflated replica "
            "lists for the replication factor",
            "wait until the reassignment has ended, or cancel it, and plan again",
            spec.where("partitions"),
        )
    factors = sorted(state.replication_factors)
    if len(factors) > 1:
        yield Finding(
            "expand-uniform-replication",
            f"its partitions have {' and '.join(map(str, factors))} replicas; Kafka holds new "
            "partitions against an arbitrary one of them",
            "give all of them the same number with kafka-reassign-partitions and plan again",
            spec.where("partitions"),
        )


def _refuse_unknown_counts(
    spec: TopicSpec, partitions: int | None, replication: int | None
) -> Iterator[Finding]:
    wanted = {"partitions": partitions, "replication_factor": replication}
    missing = " and ".join(name for name, count in wanted.items() if count is None)
    yield Finding(
        "create-needs-counts",
        f"topic {spec.name} does not exist, and its spec leaves out {missing}",
        f"write {missing} in the topic, its profile or the defaults",
        spec.location,
    )


def _refuse_min_insync(
    spec: TopicSpec, config: Mapping[str, str], replication: int
) -> Iterator[Finding]:
    wished = config.get("min.insync.replicas")
    if wished is not None and int(wished) > replication > 0:
        yield Finding(
            "min-insync-le-replication",
            f"min.insync.replicas {wished} exceeds the {replication} replicas of {spec.name}: "
            "no producer with acks=all could write",
            f"use at most {replication}",
            spec.where("config.min.insync.replicas"),
        )


def _refuse_deletion(spec: TopicSpec, state: TopicState | None) -> Iterator[Finding]:
    if state is not None:
        yield Finding(
            "deletion-not-done",
            f"state: absent asks to delete {spec.name}, which reconciler does not do",
            "delete it by hand once nothing uses it, or take the document out of the estate",
            spec.where("state"),
        )


def _note_not_managed(spec: TopicSpec, state: TopicState) -> Iterator[Finding]:
    for key, value in sorted(state.config.items()):
        if key in NOT_MANAGED_KEYS:
            what = f"{key} is set on the topic: a reassignment is throttled, or left it behind"
            way_out = "kafka-reassign-partitions --verify clears it once the moves have ended"
        elif value is None:
            what = f"{key} is set on the topic, though the brokers do not know that key"
            way_out = "kafka-configs --delete-config takes it away"
        else:
            continue
        yield Finding("not-managed", what, way_out, spec.location, Severity.NOTE)
