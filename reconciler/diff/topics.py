"""Each spec against its topic: what differs, what has to be placed, and what is refused.

Every field that differs becomes work, a refusal, or a note that it is not managed.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from reconciler.diff.brokers import Brokers
from reconciler.diff.deletions import refuse_deletion
from reconciler.diff.fields import (
    FieldChange,
    compare_fields,
    list_found,
    list_wished,
    managed_overrides,
    wished_partitions,
    wished_replication,
)
from reconciler.diff.gradual import lower_gradually
from reconciler.diff.refusals import (
    judge_tier,
    note_not_managed,
    refuse_change,
    refuse_expansion,
    refuse_look_alikes,
    refuse_min_insync,
    refuse_unknown_counts,
    refuse_untiering,
    warn_of_disputed,
)
from reconciler.diff.ways_out import allow_all
from reconciler.model import Deletion, Guards
from reconciler.spec.together import LAGS, TIERED

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from reconciler.diff.ways_out import Allows
    from reconciler.errors import Finding, Location
    from reconciler.model import Assignment, ClusterState, TopicSpec, TopicState


NO_GUARDS = Guards()


class ConfigEquality(Protocol):
    """What configs mean to the broker: which values are equal, and which contradict each other."""

    def same(self, key: str, a: str, b: str) -> bool:
        """Compare two values in the broker's spelling; lists have no order."""
        ...

    def check_together(
        self, config: Mapping[str, str], where: Callable[[str], Location | None]
    ) -> list[Finding]:
        """Check a topic's whole config for keys that contradict each other."""
        ...


@dataclass(frozen=True, slots=True)
class TopicDiff:
    """One topic's spec against its state.

    `new_partitions` counts the partitions to place, of `replication_factor` replicas each;
    `manual` holds their rows where the spec lists them. `config` holds the managed overrides as
    they would be afterwards. `deletion` says what deleting the topic rests on, where that is what
    is to be done. With `refusals` nothing of the topic is done.
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
    deletion: Deletion | None = None


def diff_topics(
    specs: Iterable[TopicSpec],
    cluster: ClusterState,
    equality: ConfigEquality,
    excluded: Collection[int] = (),
    guards: Guards = NO_GUARDS,
    allows: Allows = allow_all,
) -> tuple[TopicDiff, ...]:
    """Compare every spec with the cluster.

    `excluded` names brokers that take nothing new; `guards` says whether topics may be deleted,
    and as they stand by default none may. `allows` tells whether validation accepts a spec: a
    way out names no edit that it refuses. Returns one diff a spec, by topic name.
    """
    wished = sorted(specs, key=lambda spec: spec.name)
    deletions = sum(spec.absent and spec.name in cluster.topics for spec in wished)
    judge = _Judge(cluster, equality, frozenset(excluded), guards, deletions, allows)
    return tuple(judge.diff(spec) for spec in wished)


class _Judge:
    """Holds what all topics of one comparison share."""

    def __init__(
        self,
        cluster: ClusterState,
        equality: ConfigEquality,
        excluded: frozenset[int],
        guards: Guards,
        deletions: int,
        allows: Allows,
    ) -> None:
        self.cluster = cluster
        self.allows = allows
        self.guards = guards
        self.deletions = deletions
        self.equality = equality
        self.brokers = Brokers(cluster.brokers, excluded, allows)
        self.look_alikes: dict[str, list[str]] = defaultdict(list)
        for name in cluster.topics:
            self.look_alikes[name.replace(".", "_")].append(name)

    def diff(self, spec: TopicSpec) -> TopicDiff:
        state = self.cluster.topics.get(spec.name)
        if spec.absent:
            return TopicDiff(spec, None) if state is None else self._delete(spec, state)
        return self._create(spec) if state is None else self._alter(spec, state)

    def _delete(self, spec: TopicSpec, state: TopicState) -> TopicDiff:
        usage = self.cluster.usage.get(spec.name)
        in_force = {**self.cluster.config_defaults, **managed_overrides(state)}
        in_force = {key: value for key, value in in_force.items() if key not in state.disputed}
        refusals = refuse_deletion(
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

    def _create(self, spec: TopicSpec) -> TopicDiff:
        partitions = wished_partitions(spec)
        replication = wished_replication(spec)
        look_alikes = self.look_alikes.get(spec.name.replace(".", "_"), ())
        refusals = [*refuse_look_alikes(spec, look_alikes, self.allows)]
        unfit, notes = self._judge_config(spec, spec.config)
        refusals += unfit
        if partitions is None or replication is None:
            refusals += refuse_unknown_counts(spec, partitions, replication)
        else:
            refusals += self.brokers.refuse_placement(spec, spec.assignment, replication)
            refusals += refuse_min_insync(spec, spec.config, replication, self.allows)
        return TopicDiff(
            spec,
            None,
            changes=(FieldChange("topic", None, spec.name),),
            new_partitions=partitions or 0,
            replication_factor=replication or 0,
            manual=spec.assignment,
            config=dict(sorted(spec.config.items())),
            refusals=tuple(refusals),
            notes=tuple(notes),
        )

    def _alter(self, spec: TopicSpec, state: TopicState) -> TopicDiff:
        overrides = managed_overrides(state)
        defaults = self.cluster.config_defaults
        whole = self._wished_config(spec, overrides, state.disputed)
        step = lower_gradually(spec, overrides, whole, defaults)
        config = step.config
        changes = tuple(
            compare_fields(list_found(spec, state, overrides), list_wished(spec, config))
        )
        replication = max(state.replication_factors, default=0)
        new = max((wished_partitions(spec) or 0) - len(state.assignment), 0)
        manual = spec.assignment[len(state.assignment) :] if spec.assignment else None
        refusals = [*step.refusals]
        for change in changes:
            refusals += refuse_change(spec, state, change, self.allows)
        if new:
            refusals += refuse_expansion(spec, state)
            refusals += self.brokers.refuse_placement(spec, manual, replication, fixed=True)
        if any(change.path.startswith("config.min.insync") for change in changes):
            fewest = min(state.replication_factors, default=0)
            refusals += refuse_min_insync(spec, config, fewest, self.allows)
        notes: list[Finding] = []
        if any(change.path.startswith("config.") for change in changes):
            unfit, notes = self._judge_config(spec, config)
            refusals += unfit
        in_force = {**defaults, **overrides}
        refusals += refuse_untiering(spec, in_force, {**defaults, **config}, self.allows)
        return TopicDiff(
            spec,
            state,
            changes=changes,
            new_partitions=new,
            replication_factor=replication,
            manual=manual if new else None,
            config=config,
            refusals=tuple(refusals),
            notes=(
                *step.notes,
                *notes,
                *warn_of_disputed(spec, state),
                *note_not_managed(spec, state),
            ),
        )

    def _judge_config(
        self, spec: TopicSpec, config: Mapping[str, str]
    ) -> tuple[list[Finding], list[Finding]]:
        """Hold a config against the brokers' own settings. Returns refusals and notes."""
        whole = {**self.cluster.config_defaults, **config}
        refusals, notes = judge_tier(spec, whole, self.cluster.broker_settings)
        judged = TIERED | LAGS if whole.get("remote.storage.enable") == "true" else LAGS
        if whole.keys() >= judged:  # where brokers disagree on a default, nobody can say
            with suppress(ValueError):  # a snapshot that a person wrote
                refusals += self.equality.check_together(
                    whole, lambda key: spec.where(f"config.{key}")
                )
        return refusals, notes

    def _wished_config(
        self, spec: TopicSpec, overrides: Mapping[str, str], disputed: Collection[str]
    ) -> dict[str, str]:
        """Return the overrides as they should be, in the live spelling where that means the same.

        A key that is not overridden and whose default says what the spec says is no difference;
        one on which the brokers disagree is left as it is.
        """
        wished = {}
        for key, value in sorted(spec.config.items()):
            if key in disputed:
                continue
            live = overrides.get(key, self.cluster.config_defaults.get(key))
            if live is None or not self.equality.same(key, live, value):
                wished[key] = value
            elif key in overrides:
                wished[key] = live
        return wished
