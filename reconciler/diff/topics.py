"""Each spec compared with its topic: differences, partitions to place, and refusals.

Every field that differs becomes work, a refusal, or a note that it is not managed.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from reconciler.diff.brokers import PlacementBrokers
from reconciler.diff.deletions import refuse_deletion
from reconciler.diff.fields import (
    FieldChange,
    compare_fields,
    current_fields,
    desired_config,
    desired_fields,
    desired_partitions,
    desired_replication,
    managed_overrides,
)
from reconciler.diff.gradual import lower_gradually
from reconciler.diff.refusals import (
    allow_all,
    check_tier,
    note_not_managed,
    refuse_change,
    refuse_expansion,
    refuse_look_alikes,
    refuse_min_insync,
    refuse_unknown_counts,
    refuse_untiering,
    warn_of_disputed,
)
from reconciler.errors import Finding, Severity
from reconciler.model import Deletion, Guards
from reconciler.spec import LAGS, TIERED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from reconciler.diff.fields import ConfigEquality
    from reconciler.diff.refusals import Allows
    from reconciler.model import Assignment, ClusterState, TopicSpec, TopicState


NO_GUARDS = Guards()


@dataclass(frozen=True, slots=True)
class TopicDiff:
    """One topic's spec against its state.

    `new_partitions` counts the partitions to place, of `replication_factor` replicas each;
    `manual` holds their rows if the spec lists them. `config` holds the managed overrides as
    they would be afterwards. `deletion` says what deleting the topic rests on, if that is what
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
    and by default none may. `allows` says whether validation accepts a spec: a
    way out names no edit that it refuses. Returns one diff a spec, by topic name.
    """
    desired = sorted(specs, key=lambda spec: spec.name)
    deletions = sum(spec.absent and spec.name in cluster.topics for spec in desired)
    comparison = _Comparison(cluster, equality, frozenset(excluded), guards, deletions, allows)
    return tuple(comparison.diff(spec) for spec in desired)


class _Comparison:
    """The shared inputs of one comparison."""

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
        self.brokers = PlacementBrokers(cluster.brokers, excluded, allows)
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
        partitions = desired_partitions(spec)
        replication = desired_replication(spec)
        look_alikes = self.look_alikes.get(spec.name.replace(".", "_"), ())
        refusals = [*refuse_look_alikes(spec, look_alikes, self.allows)]
        unfit, notes = self._check_config(spec, spec.config)
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
        whole = desired_config(spec, overrides, state.disputed, defaults, self.equality)
        step = lower_gradually(spec, overrides, whole, defaults)
        config = step.config
        changes = tuple(
            compare_fields(current_fields(spec, state, overrides), desired_fields(spec, config))
        )
        replication = max(state.replication_factors, default=0)
        new = max((desired_partitions(spec) or 0) - len(state.assignment), 0)
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

    def _check_config(
        self, spec: TopicSpec, config: Mapping[str, str]
    ) -> tuple[list[Finding], list[Finding]]:
        """Compare a config with the brokers' own settings. Returns refusals and notes."""
        whole = {**self.cluster.config_defaults, **config}
        refusals, notes = check_tier(spec, whole, self.cluster.broker_settings)
        judged = TIERED | LAGS if whole.get("remote.storage.enable") == "true" else LAGS
        if whole.keys() >= judged:  # if brokers disagree on a default, it is not known
            with suppress(ValueError):  # a snapshot that a person wrote
                refusals += self.equality.check_together(
                    whole, lambda key: spec.where(f"config.{key}")
                )
        return refusals, notes


def note_unoffered(
    diffs: Iterable[TopicDiff], state: ClusterState, offered: Collection[str] | None
) -> tuple[TopicDiff, ...]:
    """Add to each diff a note on the unmanaged parts of its topic. In: the state as it was read."""
    if offered is None:
        return tuple(diffs)
    return tuple(_note(diff, state.topics.get(diff.spec.name), offered) for diff in diffs)


def _note(diff: TopicDiff, live: TopicState | None, offered: Collection[str]) -> TopicDiff:
    left = sorted(live.config.keys() - set(offered)) if live else []
    notes = [
        Finding(
            "not-managed",
            f"{key} is set on the topic and is not among known_configs, so it is left alone",
            "name it there if it is to be managed",
            diff.spec.location,
            Severity.NOTE,
        )
        for key in left
    ]
    return replace(diff, notes=(*diff.notes, *notes)) if notes else diff
