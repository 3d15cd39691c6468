"""Each spec compared with its topic: differences, partitions to place, and refusals.

Every field that differs becomes a change, a refusal, or a note that it is not managed.
`diff_topics` is the entry.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from reconciler.changes.deletions import refuse_deletion
from reconciler.changes.gradual import lower_gradually
from reconciler.diff.brokers import PlacementBrokers
from reconciler.diff.fields import (
    ConfigEquality,
    FieldChange,
    compare_fields,
    current_fields,
    desired_config,
    desired_fields,
    desired_partitions,
    desired_replication,
    leave_foreign,
    list_explicit,
    managed_overrides,
)
from reconciler.diff.moving import (
    allow_moves,
    hold_min_insync,
    kind_of,
    list_kinds,
    list_pending,
    note_pending,
    object_to_min_insync,
    waits_for_moves,
)
from reconciler.diff.refusals import (
    BY_SERVICE,
    Allows,
    allow_all,
    check_tier,
    note_not_managed,
    refuse_change,
    refuse_expansion,
    refuse_look_alikes,
    refuse_min_insync,
    refuse_unknown_counts,
    refuse_unsynced,
    refuse_untiering,
    warn_of_disputed,
)
from reconciler.diff.requests import refuse_unoffered
from reconciler.errors import Finding
from reconciler.model.cluster import (
    Assignment,
    ClusterState,
    Guards,
    TopicSpec,
    TopicState,
    leave_to_brokers,
)
from reconciler.model.health import read_min_insync
from reconciler.model.moves import MIN_INSYNC, MoveKind, MovePolicy
from reconciler.model.plan import Deletion
from reconciler.model.steps import Verb
from reconciler.spec.configs import LAGS, TIERED
from reconciler.spec.services import APACHE, Placement

NO_GUARDS = Guards()


@dataclass(frozen=True, slots=True)
class TopicDiff:
    """The differences between one spec and its topic.

    `new_partitions` counts the partitions to place, and each gets `replication_factor` replicas;
    `given` holds their rows if the spec lists them, or if the brokers place them. `config` holds
    the managed overrides after the change. `deletion` holds the facts that justify a deletion. If
    there are `refusals`, the topic does not change at all. `pending` lists differences that this
    plan leaves to a plan of moves. `explicit` holds the configs that are in force by the brokers'
    defaults, and that are set explicitly so that they stay in force.
    """

    spec: TopicSpec
    state: TopicState | None
    changes: tuple[FieldChange, ...] = ()
    new_partitions: int = 0
    replication_factor: int = 0
    given: Assignment | None = None
    config: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    refusals: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    deletion: Deletion | None = None
    pending: tuple[FieldChange, ...] = ()
    explicit: tuple[str, ...] = ()

    @property
    def only_explicit(self) -> bool:
        """Return whether its changes alter nothing that is in force."""
        paths = {f"config.{key}" for key in self.explicit}
        return bool(self.changes) and all(change.path in paths for change in self.changes)


def diff_topics(
    specs: Iterable[TopicSpec],
    cluster: ClusterState,
    equality: ConfigEquality,
    excluded: Collection[int] = (),
    guards: Guards = NO_GUARDS,
    allows: Allows = allow_all,
    moves: MovePolicy | None = None,
    placement: Placement = Placement.RECONCILER,
    service: str = APACHE,
) -> tuple[TopicDiff, ...]:
    """Compare every spec with the cluster: each topic is deleted, created or altered.

    `excluded` holds the ids of brokers that take no new replicas. `guards` says how many topics may
    be deleted; the default is none. `allows` returns whether validation accepts a spec: a way out
    only names edits that it accepts. Differences that `moves` allows are pending, others that move
    replicas are refused, with what the `service` needs to allow them. With `placement` by the
    brokers, only counts are planned. Returns one diff per spec, sorted by topic name.
    """
    desired = sorted(specs, key=lambda spec: spec.name)
    # The budget applies to the entire plan, so its deletions are counted before the first diff.
    deletions = sum(spec.absent and spec.name in cluster.topics for spec in desired)
    comparison = _Comparison(
        cluster, equality, frozenset(excluded), guards, deletions, allows, moves, placement, service
    )
    diffs = []
    for spec in desired:
        state = cluster.topics.get(spec.name)
        if state is None:
            diffs.append(TopicDiff(spec, None) if spec.absent else comparison.create(spec))
        elif spec.absent:
            diffs.append(comparison.delete(spec, state))
        else:
            diffs.append(comparison.alter(spec, leave_foreign(state, equality, spec)))
    return tuple(diffs)


class _Comparison:
    """The inputs that all topics of one comparison share."""

    def __init__(
        self,
        cluster: ClusterState,
        equality: ConfigEquality,
        excluded: frozenset[int],
        guards: Guards,
        deletions: int,
        allows: Allows,
        moves: MovePolicy | None,
        placement: Placement,
        service: str,
    ) -> None:
        self.cluster = cluster
        self.by_brokers = placement is Placement.BROKER
        self.moves = moves
        self.service = service
        self.allows = allows
        self.guards = guards
        self.deletions = deletions
        self.equality = equality
        self.brokers = PlacementBrokers(cluster.brokers, excluded, allows)
        # Metrics spell '.' and '_' alike, so Kafka refuses names that only differ in them.
        self.look_alikes: dict[str, list[str]] = defaultdict(list)
        for name in cluster.topics:
            self.look_alikes[name.replace(".", "_")].append(name)

    def delete(self, spec: TopicSpec, state: TopicState) -> TopicDiff:
        """Check whether a topic may be deleted, and record the facts behind that."""
        usage = self.cluster.usage.get(spec.name)
        in_force = {**self.cluster.config_defaults, **managed_overrides(state)}
        in_force = {key: value for key, value in in_force.items() if key not in state.disputed}
        # Without the request nothing else helps, and the id of a topic may be unknown for it.
        refusals = list(self._check_offered(spec, Verb.DELETE, "state")) or refuse_deletion(
            spec,
            state,
            self.guards,
            usage,
            in_force,
            wanted=self.deletions,
            settings=self.cluster.broker_settings,
        )
        rests_on = Deletion(self.guards.unused_for_ms, ())
        if usage is not None:
            rests_on = replace(
                rests_on, ends=usage.ends, records=usage.records, newest_ms=usage.newest_ms
            )
        return TopicDiff(
            spec,
            state,
            changes=(FieldChange("topic", spec.name, None),),
            refusals=tuple(refusals),
            notes=tuple(warn_of_disputed(spec, state)),
            deletion=rests_on,
        )

    def create(self, spec: TopicSpec) -> TopicDiff:
        """Check whether a topic can be created."""
        partitions = desired_partitions(spec)
        replication = desired_replication(spec)
        look_alikes = self.look_alikes.get(spec.name.replace(".", "_"), ())
        refusals = [*refuse_look_alikes(spec, look_alikes, self.allows)]
        refusals += self._check_offered(spec, Verb.CREATE, "topic")
        unfit, notes = self._check_config(spec, spec.config)
        refusals += unfit
        if partitions is None or replication is None:
            refusals += refuse_unknown_counts(spec, partitions, replication)
        else:
            if not self.by_brokers:  # a service may show fewer brokers than it has
                refusals += self.brokers.refuse_placement(spec, spec.assignment, replication)
            refusals += refuse_min_insync(spec, spec.config, replication, self.allows)
        return TopicDiff(
            spec,
            None,
            changes=(FieldChange("topic", None, spec.name),),
            new_partitions=partitions or 0,
            replication_factor=replication or 0,
            given=self._give_rows(spec.assignment, partitions or 0, replication or 0),
            config=dict(sorted(spec.config.items())),
            refusals=tuple(refusals),
            notes=tuple(notes),
        )

    def alter(self, spec: TopicSpec, state: TopicState) -> TopicDiff:
        """Compare the fields of a topic with its spec, and check whether each may change."""
        overrides = managed_overrides(state)
        defaults = self.cluster.config_defaults
        desired = desired_config(spec, overrides, state.disputed, defaults, self.equality)
        # Before the comparison: only the step of this plan is a change.
        step = lower_gradually(spec, overrides, desired, defaults)
        found = current_fields(spec, state, overrides)
        changes = tuple(compare_fields(found, desired_fields(spec, step.config)))
        pending = list_pending(changes, self.moves)
        config, held = step.config, tuple[Finding, ...]()
        if self.moves is not None:
            config, held = hold_min_insync(spec, state, pending, overrides, config, defaults)
        replication = max(state.replication_factors, default=0)
        new = max((desired_partitions(spec) or 0) - len(state.assignment), 0)
        waiting = None
        if new and waits_for_moves(spec, state, pending):
            waiting = next(change for change in changes if change.path == "partitions")
            pending, new = (*pending, waiting), 0
        later = {change.path for change in pending} | {f"config.{MIN_INSYNC}" for _ in held}
        changes = tuple(change for change in changes if change.path not in later)
        explicit = list_explicit(config, overrides, defaults, self.equality)
        manual = spec.assignment[len(state.assignment) :] if spec.assignment else None
        refusals = [*step.refusals]
        if new:
            refusals += self._check_offered(spec, Verb.EXPAND, "partitions")
        altered = (change.path for change in changes if change.path.startswith("config."))
        if path := next(altered, ""):
            refusals += self._check_offered(spec, Verb.CONFIGURE, path)
        allow = self._allow(list_kinds(changes))
        for change in changes:
            if self.moves is None or kind_of(change) not in self.moves.allow:
                refusals += refuse_change(spec, state, change, self.allows, allow)
        if new:
            refusals += refuse_expansion(spec, state, self.allows, self._allow_replication(changes))
            if not self.by_brokers:
                refusals += self.brokers.refuse_placement(spec, manual, replication, fixed=True)
        # Contradictions among live configs do not block other changes: configs are checked only if
        # one of them changes.
        paths = {change.path for change in changes}
        if f"config.{MIN_INSYNC}" in paths and MIN_INSYNC not in explicit:
            fewest = min(state.replication_factors, default=0)
            allow = self._allow_replication(changes)
            refusals += refuse_min_insync(spec, config, fewest, self.allows, allow)
            now, wanted = (read_min_insync(found, defaults) for found in (overrides, config))
            alive = {broker.id for broker in self.cluster.brokers if broker.alive}
            objections = object_to_min_insync(state, now, wanted, alive)
            refusals += refuse_unsynced(spec, objections, now, self.allows)
        notes: list[Finding] = []
        if any(change.path.startswith("config.") for change in changes):
            unfit, notes = self._check_config(spec, config)
            refusals += unfit
        in_force = {**defaults, **overrides}
        refusals += refuse_untiering(spec, in_force, {**defaults, **config}, self.allows)
        return TopicDiff(
            spec,
            state,
            changes=changes,
            new_partitions=new,
            replication_factor=replication,
            given=self._give_rows(manual, new, replication) if new else None,
            config=config,
            refusals=tuple(refusals),
            notes=(
                *step.notes,
                *notes,
                *note_pending(spec, pending, waiting, self.cluster.unoffered),
                *held,
                *warn_of_disputed(spec, state),
                *note_not_managed(spec, state),
            ),
            pending=pending,
            explicit=explicit,
        )

    def _check_offered(self, spec: TopicSpec, verb: Verb, path: str) -> Iterator[Finding]:
        return refuse_unoffered(spec, path, verb, self.cluster.unoffered)

    def _allow_replication(self, changes: Iterable[FieldChange]) -> str:
        """Return the edit of clusters.yaml that allows another number of replicas, if needed."""
        kinds = list_kinds(changes) | {MoveKind.REPLICATION}
        if self.moves is not None and kinds <= self.moves.allow:
            return ""
        return self._allow(kinds)

    def _allow(self, kinds: frozenset[MoveKind]) -> str:
        """Return what allows some kinds of moves: an edit of clusters.yaml, if there is one."""
        return BY_SERVICE if self.by_brokers else allow_moves(kinds, self.moves, self.service)

    def _give_rows(
        self, manual: Assignment | None, partitions: int, replication: int
    ) -> Assignment | None:
        """Return the rows of new partitions, unless reconciler is to place them."""
        return leave_to_brokers(partitions, replication) if self.by_brokers else manual

    def _check_config(
        self, spec: TopicSpec, config: Mapping[str, str]
    ) -> tuple[list[Finding], list[Finding]]:
        """Check an entire config against the brokers' settings. Returns refusals and notes."""
        whole = {**self.cluster.config_defaults, **config}
        refusals, notes = check_tier(spec, whole, self.cluster.broker_settings)
        needed = TIERED | LAGS if whole.get("remote.storage.enable") == "true" else LAGS
        if whole.keys() >= needed:  # a default is unknown if brokers disagree on it
            with suppress(ValueError):  # a snapshot that a person edited can hold any value
                refusals += self.equality.check_together(
                    whole, lambda key: spec.where(f"config.{key}")
                )
        return refusals, notes


def list_left_alone(diffs: Iterable[TopicDiff], cluster: ClusterState) -> dict[str, list[str]]:
    """Return the configs that are set on topics and that no spec of them manages, with the topics.

    In: the state that was compared.
    """
    left: dict[str, list[str]] = defaultdict(list)
    for diff in diffs:
        live = cluster.topics.get(diff.spec.name)
        if live is None or diff.state is None or diff.state is live:  # nearly all topics
            continue
        managed = {*diff.state.config, *diff.state.disputed}
        for key in sorted({*live.config, *live.disputed} - managed):
            left[key].append(diff.spec.name)
    return left
