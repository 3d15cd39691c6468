"""Run a plan on a throwaway cluster of the same shape; nothing is written to its own cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from reconciler.model.outcomes import Outcome, OutcomeKind

if TYPE_CHECKING:
    from reconciler.kafka.connection import Connection
    from reconciler.kafka.reader import KafkaReader
    from reconciler.model.cluster import ClusterState
    from reconciler.model.plan import Balance, Plan
    from reconciler.rehearse.needs import Machine
    from reconciler.rehearse.rehearsal import Rehearsal
    from reconciler.rehearse.setup import Setup
    from reconciler.run.ending import Applied
    from reconciler.sandbox.cluster import Cluster
    from reconciler.sandbox.request import StartObserver
    from reconciler.spec.entry import ClusterEntry

STARTING, SETTING_UP, APPLYING = "start", "set up", "apply"
START_S, START_S_PER_BROKER = 120, 5
PATIENCE_S = 60.0
"""The time that a broker may lag behind the controller."""


def rehearse_plan(
    plan: Plan,
    *,
    state: ClusterState | None = None,
    entry: ClusterEntry | None = None,
    replan: Callable[[ClusterState], Plan] | None = None,
    kafka_version: str | None = None,
    progress: StartObserver | None = None,
) -> Rehearsal:
    """Apply a plan to a throwaway cluster like its own, and check the result.

    `state` is that of the real cluster; without it, only the topics of the plan are set up. `entry`
    gives the Kafka release and the excluded brokers. `replan` plans again on the result; without
    it, the same plan is applied again. Refused topics are left out. Only the throwaway cluster is
    written to.
    Errors: RefusedPlanError for a plan that is refused as a whole; FindingsError if the cluster is
    too large for this machine; SandboxError if it does not start; StalePlanError if the plan does
    not fit the state; ClusterError.
    """
    from reconciler.errors import FindingsError
    from reconciler.kafka.reader import KafkaReader
    from reconciler.rehearse.needs import measure_needs
    from reconciler.rehearse.setup import choose_release, prepare_setup
    from reconciler.sandbox.cluster import start_cluster
    from reconciler.sandbox.jars import find_release, known_releases
    from reconciler.sandbox.request import Silence, choose_controller_ids

    _refuse_misfit(plan, state)
    progress = progress or Silence()
    asked = find_release(kafka_version) if kafka_version else None
    told = asked or (state and state.kafka_version) or (entry and entry.kafka_version) or None
    release, notes = choose_release(told, known_releases())
    setup = prepare_setup(plan, state, release)
    if refusals := [*measure_needs(setup, plan).refuse_beyond(_ask_machine())]:
        raise FindingsError(refusals)
    # The controller judges tiered topics only with the tier switched on. Without storage behind
    # it this is enough: no record is ever written to them here.
    (controller,) = choose_controller_ids(setup.brokers)
    tier = {controller: {"remote.log.storage.system.enable": "true"}} if setup.tiered else {}
    stopwatch = _Stopwatch()
    with ExitStack() as stack:
        with stopwatch.measure(STARTING):
            cluster = stack.enter_context(
                start_cluster(
                    shape=setup.brokers,
                    kafka_version=release,
                    properties=setup.properties,
                    broker_properties=tier,
                    timeout_s=START_S + START_S_PER_BROKER * len(setup.brokers),
                    progress=progress,
                )
            )
            connection = stack.enter_context(_connect(cluster))
        reader = KafkaReader(connection)
        stage = _Stage(setup, cluster, connection, reader, stopwatch, progress)
        rehearsal = stage.perform(plan, entry.exclude_brokers if entry else (), replan)
    return replace(rehearsal, notes=(*notes, *setup.notes))


@dataclass(slots=True)
class _Stopwatch:
    """The duration of each stage. Units: seconds."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.seconds[stage] = time.monotonic() - began


@dataclass(slots=True)
class _Stage:
    """A running throwaway cluster, and the steps of a rehearsal on it."""

    setup: Setup
    cluster: Cluster
    connection: Connection
    reader: KafkaReader
    stopwatch: _Stopwatch
    progress: StartObserver

    def perform(
        self,
        plan: Plan,
        excluded: Collection[int],
        replan: Callable[[ClusterState], Plan] | None,
    ) -> Rehearsal:
        """Set the cluster up, apply the plan, and compare the result with the plan."""
        from reconciler.rehearse.bind import bind_plan
        from reconciler.rehearse.compare import compare_found
        from reconciler.rehearse.rehearsal import Rehearsal
        from reconciler.rehearse.setup import keep_known

        with self.stopwatch.measure(SETTING_UP):
            self._set_up()
        before = self._read(lambda state: self.setup.topics.keys() <= state.topics.keys())
        ids = {name: topic.topic_id for name, topic in before.topics.items() if topic.topic_id}
        missing = self.setup.left_out
        rehearsed = keep_known(plan, self.cluster.kafka_version)
        bound = bind_plan(rehearsed, self.cluster.cluster_id, ids, missing)
        self.progress.enter("applying the plan")
        with self.stopwatch.measure(APPLYING):
            applied = self._apply(bound)
        compare = partial(compare_found, bound, self.setup, applied.outcomes)
        after = self._read(lambda state: not compare(state))
        outcomes = (*applied.outcomes, *_list_missing(plan, missing))
        pending = () if applied.interrupted else self._find_pending(plan, bound, after, replan)
        return Rehearsal(
            plan=plan,
            setup=self.setup,
            kafka_version=self.cluster.kafka_version,
            outcomes=tuple(sorted(outcomes, key=lambda outcome: outcome.topic)),
            differences=compare(after),
            pending=pending,
            balance_before=_measure(before, self.setup, excluded),
            balance_after=_measure(after, self.setup, excluded),
            seconds=self.stopwatch.seconds,
            planned_again=replan is not None,
            interrupted=applied.interrupted,
        )

    def _set_up(self) -> None:
        """Create the topics, then stop and cordon brokers to match the real cluster."""
        from reconciler.kafka.writer import cordon_brokers
        from reconciler.rehearse.bind import plan_setup

        self.progress.enter(f"setting up {len(self.setup.topics):,} topics")
        created = self._apply(plan_setup(self.setup, self.cluster.cluster_id))
        if created.interrupted:
            raise KeyboardInterrupt
        failed = {o.topic: o.text for o in created.outcomes if o.kind is not OutcomeKind.DONE}
        kept = {name: image for name, image in self.setup.topics.items() if name not in failed}
        left_out = {**self.setup.left_out, **failed}
        self.setup = replace(self.setup, topics=kept, left_out=left_out)
        # Brokers stop after the topics exist: dead brokers of the real cluster hold replicas, too.
        for broker in self.setup.dead:
            self.cluster.stop_broker(broker)
        cordon_brokers(self.connection, self.setup.cordoned)

    def _apply(self, plan: Plan) -> Applied:
        from reconciler.apply.engine import run_plan
        from reconciler.kafka.writer import KafkaWriter

        writer = KafkaWriter(self.connection)
        return run_plan(plan, self.reader, writer, time, skip_refused=True)

    def _read(self, is_there: Callable[[ClusterState], bool]) -> ClusterState:
        """Read the cluster until `is_there`, because a broker can lag behind the controller."""
        from reconciler.api.snapshots import identify_topics

        deadline = time.monotonic() + PATIENCE_S
        while not is_there(state := self.reader.read_cluster()) and time.monotonic() < deadline:
            time.sleep(1)
        return identify_topics(state, self.reader.read_topic_ids(state.topics.keys()))

    def _find_pending(
        self,
        plan: Plan,
        bound: Plan,
        after: ClusterState,
        replan: Callable[[ClusterState], Plan] | None,
    ) -> tuple[str, ...]:
        """Name the topics that a second run would change: with a new plan, or the same one."""
        from reconciler.model.steps import steps_of
        from reconciler.rehearse.setup import keep_known

        if replan is None:
            again = self._apply(bound).outcomes
            settled = (OutcomeKind.ALREADY_DONE, OutcomeKind.REFUSED)
            return tuple(outcome.topic for outcome in again if outcome.kind not in settled)
        second = replan(replace(after, cluster_id=plan.cluster_id))
        rehearsed = keep_known(second, self.cluster.kafka_version)
        return tuple(topic.name for topic in rehearsed.topics if steps_of(topic))


def _connect(cluster: Cluster) -> Connection:
    """Connect to the throwaway cluster, and to no other: its id is expected."""
    from reconciler.errors import Location
    from reconciler.kafka.connection import connect
    from reconciler.spec.entry import ClusterEntry

    entry = ClusterEntry("rehearsal", Location("rehearsal", 1), cluster_id=cluster.cluster_id)
    return connect(entry, bootstrap_servers=cluster.bootstrap_servers)


def _ask_machine() -> Machine:
    from reconciler.rehearse.needs import Machine
    from reconciler.sandbox.paths import read_file_limit, read_free_memory_mb

    return Machine(read_free_memory_mb(), read_file_limit())


def _refuse_misfit(plan: Plan, state: ClusterState | None) -> None:
    """Refuse a plan that apply would refuse in any case, and the state of another cluster."""
    from reconciler.diff.guards import list_refusals
    from reconciler.errors import Finding, FindingsError, RefusedPlanError
    from reconciler.model.identity import name_cluster

    if refusals := list_refusals(plan, skip_refused=True):
        raise RefusedPlanError(refusals)
    if state and plan.cluster_id and state.cluster_id and plan.cluster_id != state.cluster_id:
        planned, found = name_cluster(plan.cluster_id), name_cluster(state.cluster_id)
        what = f"the plan is for {planned}, and the state is that of {found}"
        way_out = f"rehearse it against a snapshot of {plan.cluster}"
        raise FindingsError([Finding("plan-cluster", what, way_out)])


def _list_missing(plan: Plan, missing: Mapping[str, str]) -> Iterator[Outcome]:
    """List the planned topics that were not rehearsed, because they could not be set up."""
    from reconciler.model.steps import steps_of

    for topic in plan.topics:
        if topic.name in missing and steps_of(topic):
            text = f"it could not be set up: {missing[topic.name]}"
            yield Outcome(topic.name, OutcomeKind.NOT_ATTEMPTED, text)


def _measure(state: ClusterState, setup: Setup, excluded: Collection[int]) -> Balance | None:
    """Measure the balance of the topics that brokers show, over the eligible brokers."""
    from reconciler.placement.measure import measure_balance

    out = {*setup.dead, *setup.cordoned, *excluded}
    ids = [broker.id for broker in setup.brokers if broker.id not in out]
    return measure_balance([topic.assignment for topic in state.user_topics.values()], ids)
