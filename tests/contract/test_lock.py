"""The lock of a cluster, on real brokers: one holder, named to others, gone when it dies."""

from __future__ import annotations

import gc
import json
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer
from kafka import errors
from kafka.errors import KafkaError
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from kafka.protocol.metadata import FindCoordinatorRequest
from lab import HERE, connect_to, create, wait_for
from proxy import failing_network
from shorthand import spec
from test_connections import ENVIRONMENT, WAYS
from workbench import Workbench, outcomes, texts

from reconciler.api.planning import build_plan, load_estate, plan_elections, read_cluster
from reconciler.errors import Finding, LockHeldError, LockLostError
from reconciler.kafka import group
from reconciler.kafka.connection import connect
from reconciler.kafka.group import GroupClient, Member, MemberDescription
from reconciler.kafka.lock import Holder, Waiting, hold_lock
from reconciler.kafka.mover import KafkaMover
from reconciler.model.plan import Plan
from reconciler.model.rights import GROUP, MOVES_GROUP
from reconciler.model.steps import CreateTopic, has_steps
from reconciler.run.events import StepAnswered
from reconciler.sandbox.cluster import Cluster, start_cluster
from reconciler.spec.entry import ClusterEntry

if TYPE_CHECKING:
    from security import Secured

pytestmark = pytest.mark.cluster

ANA = Holder("ana", "desk", 7, "2026-03-01T12:00:00Z", "0123456789ab", "abcdef")
BEN = Holder("ben", "ci-4", 8, "2026-03-01T12:00:05Z")
CONTENDERS = 4
REQUESTS = (
    JoinGroupRequest,
    SyncGroupRequest,
    HeartbeatRequest,
    LeaveGroupRequest,
    DescribeGroupsRequest,
)


@pytest.fixture(scope="module", params=["4.4.0", pytest.param("3.9.2", marks=pytest.mark.slow)])
def slow_to_form(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Start brokers that let groups form after 3 s, as is the default."""
    properties = {"group.initial.rebalance.delay.ms": "3000"}
    with start_cluster(brokers=3, kafka_version=request.param, properties=properties) as cluster:
        yield cluster


def refusal(cluster: Cluster) -> str:
    with pytest.raises(LockHeldError) as refused, hold_lock(connect_to(cluster), BEN):
        pass
    return str(refused.value)


def look_at_group(cluster: Cluster) -> tuple[int | None, list[MemberDescription]]:
    """Return the coordinator of the group, and its members."""
    client = GroupClient({"bootstrap_servers": cluster.bootstrap_servers}, GROUP)
    try:
        members = client.describe()[1]
        return client._coordinator[0] if client._coordinator else None, members
    except KafkaError:  # there is no coordinator yet
        return None, []
    finally:
        client.close()


def test_a_second_apply_names_the_holder_of_the_lock(cluster3: Cluster) -> None:
    with hold_lock(connect_to(cluster3), ANA) as lease:
        assert refusal(cluster3) == (
            "lab is locked by ana@desk (process 7) since 2026-03-01T12:00:00Z, plan 0123456789ab, "
            "commit abcdef; wait for it with --lock-timeout 10m; the lock of a run that died "
            "expires within 10s [lock-held]"
        )
        lease.check()
    with hold_lock(connect_to(cluster3), BEN) as lease:
        lease.check()


def test_moves_have_a_lock_of_their_own(cluster3: Cluster) -> None:
    with (
        hold_lock(connect_to(cluster3), ANA, group=MOVES_GROUP) as moves,
        hold_lock(connect_to(cluster3), BEN) as apply,
    ):
        with (
            pytest.raises(LockHeldError) as refused,
            hold_lock(connect_to(cluster3), BEN, group=MOVES_GROUP),
        ):
            pass
        with pytest.raises(LockHeldError, match="lab is locked by ben@ci-4"):
            hold_lock(connect_to(cluster3), ANA).__enter__()
        moves.check()
        apply.check()
    assert str(refused.value).startswith("moves of lab are locked by ana@desk (process 7) since ")


def test_whoever_waits_gets_it_once_it_is_let_go(cluster3: Cluster) -> None:
    met: list[Waiting] = []
    with ExitStack() as first:
        first.enter_context(hold_lock(connect_to(cluster3), ANA))

        def observe(waiting: Waiting) -> None:
            met.append(waiting)
            first.close()

        second = hold_lock(connect_to(cluster3), BEN, patience_s=30, observe=observe)
        with second as lease:
            lease.check()
    assert {waiting.holder for waiting in met} == {str(ANA)}


def test_a_run_that_meets_itself_says_so(cluster3: Cluster) -> None:
    """A release can be lost while the coordinator moves; the same run then asks once more."""
    with (
        hold_lock(connect_to(cluster3), ANA),
        pytest.raises(LockHeldError, match="lab is locked by this run itself, whose last release"),
        hold_lock(connect_to(cluster3), ANA),
    ):
        pass


def test_patience_ends(cluster3: Cluster) -> None:
    with (
        hold_lock(connect_to(cluster3), ANA),
        pytest.raises(LockHeldError, match="lab is still locked after 1s by ana@desk"),
        hold_lock(connect_to(cluster3), BEN, patience_s=1),
    ):
        pass


@pytest.mark.parametrize("attempt", range(3))
def test_of_many_at_once_exactly_one_gets_it(cluster3: Cluster, attempt: int) -> None:
    """Whoever gets it holds it until all the others were refused."""
    together = threading.Barrier(CONTENDERS)
    refused = threading.Semaphore(0)

    def contend(number: int) -> bool:
        connection = connect_to(cluster3)
        connection.client()
        together.wait(30)
        try:
            with hold_lock(connection, Holder("many", "lab", number, "now")) as lease:
                for _ in range(CONTENDERS - 1):
                    assert refused.acquire(timeout=30)
                lease.check()
                return True
        except LockHeldError:
            refused.release()
            return False

    with ThreadPoolExecutor(CONTENDERS) as pool:
        assert sorted(pool.map(contend, range(CONTENDERS))) == [False] * 3 + [True]


class Unlucky(GroupClient):
    """Its ids are taken away after it got them, as by a coordinator that moves meanwhile."""

    left = 0

    def register(self, member: Member) -> str:
        member_id = super().register(member)
        if Unlucky.left:
            Unlucky.left -= 1
            self.leave(replace(member, member_id=member_id))
        return member_id


def test_an_id_that_the_coordinator_forgot_is_replaced(
    cluster3: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.kafka.group.GroupClient", Unlucky)
    Unlucky.left = 2
    with hold_lock(connect_to(cluster3), ANA) as lease:
        lease.check()
        assert refusal(cluster3).startswith("lab is locked by ana@desk")
    assert Unlucky.left == 0


class Answering(GroupClient):
    """The brokers carry requests of one kind out, and their next answers carry an error instead.

    With `joins_first`, heartbeats wait for that answer, and an id that it denied is denied to them
    as well: an id that a heartbeat has proven would be lost, where another one is replaced.
    """

    kind: type = object
    error: type[KafkaError] = KafkaError
    left = 0
    joins_first = False
    denied = ""

    def _ask(self, request: object, *arguments: int, **more: bool) -> object:
        if Answering.joins_first and isinstance(request, HeartbeatRequest):
            wait_for(lambda: not Answering.left)
            if request.member_id == Answering.denied:
                raise errors.UnknownMemberIdError("")
        answer = super()._ask(request, *arguments, **more)
        if Answering.left and isinstance(request, Answering.kind):
            if issubclass(Answering.error, group.VOID):
                Answering.denied = request.member_id
            Answering.left -= 1
            raise Answering.error("")
        return answer


PASSING = (
    errors.CoordinatorLoadInProgressError,
    errors.CoordinatorNotAvailableError,
    errors.NotCoordinatorError,
    errors.RequestTimedOutError,
    errors.KafkaConnectionError,
)
ANSWERS = [
    *((kind, error) for kind in REQUESTS for error in PASSING),
    (JoinGroupRequest, errors.UnknownMemberIdError),
    (JoinGroupRequest, errors.MemberIdRequiredError),
    (JoinGroupRequest, errors.FencedInstanceIdError),
    (JoinGroupRequest, errors.RebalanceInProgressError),
    (JoinGroupRequest, errors.IllegalGenerationError),
    (SyncGroupRequest, errors.RebalanceInProgressError),
    (SyncGroupRequest, errors.IllegalGenerationError),
    (HeartbeatRequest, errors.RebalanceInProgressError),
    (HeartbeatRequest, errors.IllegalGenerationError),
]


@pytest.mark.parametrize(
    ("kind", "error"), ANSWERS, ids=[f"{k.__name__}-{e.__name__}" for k, e in ANSWERS]
)
def test_a_lock_is_had_whatever_the_coordinator_answers_first(
    cluster3: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    kind: type,
    error: type[KafkaError],
) -> None:
    """Whoever holds it is asked for as well: the second one meets the same answers."""
    monkeypatch.setattr("reconciler.kafka.group.GroupClient", Answering)
    monkeypatch.setattr(Answering, "kind", kind)
    monkeypatch.setattr(Answering, "error", error)
    monkeypatch.setattr(Answering, "left", 1)
    monkeypatch.setattr(Answering, "joins_first", kind is JoinGroupRequest)
    with hold_lock(connect_to(cluster3), ANA, patience_s=12) as lease:
        lease.check()
        wait_for(lambda: shows_holder(cluster3))  # what the holder asked to get in is answered
        monkeypatch.setattr(Answering, "joins_first", False)
        monkeypatch.setattr(Answering, "left", 1)
        lease.check()
        assert refusal(cluster3).startswith("lab is locked by ana@desk")


def test_an_id_that_is_forgotten_while_the_group_forms_is_replaced_or_lost(
    cluster3: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replaced before the first heartbeat proves it, lost after that."""
    monkeypatch.setattr("reconciler.kafka.group.GroupClient", Answering)
    monkeypatch.setattr(Answering, "kind", SyncGroupRequest)
    monkeypatch.setattr(Answering, "error", errors.UnknownMemberIdError)
    monkeypatch.setattr(Answering, "left", 1)
    with hold_lock(connect_to(cluster3), ANA) as lease, suppress(LockLostError):
        lease.check()
    with hold_lock(connect_to(cluster3), BEN) as lease:
        lease.check()


@pytest.mark.parametrize("error", [errors.UnknownMemberIdError, errors.FencedInstanceIdError])
def test_a_seat_that_the_coordinator_denies_is_lost(
    cluster3: Cluster, monkeypatch: pytest.MonkeyPatch, error: type[KafkaError]
) -> None:
    monkeypatch.setattr("reconciler.kafka.group.GroupClient", Answering)
    monkeypatch.setattr(Answering, "kind", HeartbeatRequest)
    monkeypatch.setattr(Answering, "error", error)
    with hold_lock(connect_to(cluster3), ANA) as lease:
        wait_for(lambda: shows_holder(cluster3))  # until then, heartbeats have another answer
        monkeypatch.setattr(Answering, "left", 1)
        with pytest.raises(LockLostError, match="the lock of lab is lost: its session ran out"):
            lease.check()


def test_a_group_of_others_by_that_name_is_no_lock_and_is_named(
    cluster3: Cluster, topic_prefix: str
) -> None:
    create(connect_to(cluster3), CreateTopic(topic_prefix + "any", ((1,),), {}))
    quiet = {"bootstrap.servers": cluster3.bootstrap_servers, "log_level": 0}
    consumer = Consumer({**quiet, "group.id": GROUP, "client.id": "stranger"})
    consumer.subscribe([topic_prefix + "any"])
    try:
        wait_for(lambda: has_members(cluster3, consumer))
        assert refusal(cluster3).startswith(
            "lab is locked by a client on 127.0.0.1 (stranger); wait for it"
        )
    finally:
        consumer.close()


def has_members(cluster: Cluster, consumer: Consumer) -> bool:
    consumer.poll(0.1)  # joins meanwhile
    return bool(look_at_group(cluster)[1])


@pytest.mark.slow
def test_a_holder_whose_session_ran_out_sends_nothing_more(
    cluster3: Cluster, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is silent while the first of two requests is on its way; another takes over."""
    monkeypatch.setattr(group, "BEAT_S", 3_600)
    bench = Workbench(cluster3)
    old, new = topic_prefix + "old", topic_prefix + "new"
    bench.bring(spec(old, partitions=2, replication_factor=1))
    plan = bench.plan(
        spec(old, partitions=3, replication_factor=1),
        spec(new, partitions=1, replication_factor=1),
    )

    def lose_it(answered: StepAnswered) -> None:
        if answered.phase == "create":
            with hold_lock(connect_to(cluster3), BEN, patience_s=40):
                pass

    with hold_lock(bench.connection, ANA) as lease:
        applied = bench.apply(plan, lease=lease, observe=lose_it)
    assert outcomes(applied) == {new: "done", old: "not attempted"}
    assert texts(applied)[old] == (
        "stopped, since the lock of lab is lost: its session ran out, before its turn"
    )
    assert isinstance(applied.cause, LockLostError)
    assert not applied.succeeded
    assert len(bench.topics(old)[old].assignment) == 2


def test_a_lock_that_is_lost_before_anything_was_sent_is_an_error(
    cluster3: Cluster, topic_prefix: str
) -> None:
    class Lost:
        def check(self) -> None:
            raise LockLostError([Finding("lock-lost", "it is lost", "plan again")])

    bench = Workbench(cluster3)
    plan = bench.plan(spec(topic_prefix + "new", partitions=1, replication_factor=1))
    with pytest.raises(LockLostError, match="it is lost"):
        bench.apply(plan, lease=Lost())
    assert bench.topics(topic_prefix + "new") == {}


def test_the_first_is_in_before_the_group_has_formed(slow_to_form: Cluster) -> None:
    with hold_lock(connect_to(slow_to_form), ANA) as lease:
        assert not shows_holder(slow_to_form)
        lease.check()
        assert refusal(slow_to_form).startswith("lab is locked by ana@desk (process 7)")
        lease.check()
    with hold_lock(connect_to(slow_to_form), BEN) as lease:
        lease.check()
    with hold_lock(connect_to(slow_to_form), ANA) as lease:
        lease.check()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_it_is_kept_while_its_coordinator_moves(
    slow_to_form: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    # kafka-python leaves the sockets of addresses that refuse to the garbage collector, and
    # what pytest captures of its log would keep them from it.
    monkeypatch.setattr(logging.getLogger("kafka"), "propagate", False)
    with hold_lock(connect_to(slow_to_form), ANA) as lease:
        wait_for(lambda: shows_holder(slow_to_form))
        stopped, _ = look_at_group(slow_to_form)
        assert stopped is not None
        slow_to_form.stop_broker(stopped)
        try:
            lease.check()
            assert refusal(slow_to_form).startswith("lab is locked by ana@desk (process 7)")
            assert look_at_group(slow_to_form)[0] != stopped
            lease.check()
        finally:
            slow_to_form.start_broker(stopped)
        lease.check()
    with hold_lock(connect_to(slow_to_form), BEN) as lease:
        lease.check()
    gc.collect()


def shows_holder(cluster: Cluster) -> bool:
    """Tell whether the group has formed."""
    return any(member.metadata for member in look_at_group(cluster)[1])


class TestSecurity:
    @pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
    def test_it_is_taken_in_every_way_to_connect(
        self, secured: Secured, way: Callable[[Secured], dict[str, str]]
    ) -> None:
        entry = ClusterEntry("lab", HERE, client=way(secured))
        with hold_lock(connect(entry, environment=ENVIRONMENT), ANA) as lease:
            lease.check()


def test_a_plan_knows_whether_brokers_offer_what_the_lock_asks_for(
    cluster3: Cluster, topic_prefix: str, tmp_path: Path
) -> None:
    """Seen in what they offer: a request about the group would create the topic of all groups."""
    turned, new = topic_prefix + "turned", topic_prefix + "new"
    create(connect_to(cluster3), CreateTopic(turned, ((1, 2),), {}))
    mover = KafkaMover(connect_to(cluster3))
    mover.reassign({(turned, 0): (2, 1)})  # another preferred leader, and the same leader
    mover.close()
    (tmp_path / "clusters.yaml").write_text("version: 1\nclusters: {lab: {}}\n")
    wanted = {"topic": new, "partitions": 1, "replication_factor": 1}
    (tmp_path / "new.yaml").write_text(json.dumps(wanted))
    estate = load_estate(tmp_path)

    def make_plans(servers: str) -> Iterator[Plan]:
        state = read_cluster(estate, "lab", bootstrap_servers=servers)
        yield build_plan(estate, "lab", state)
        yield plan_elections(estate, "lab", topics=turned, bootstrap_servers=servers)

    with failing_network(cluster3) as network:
        for plan in make_plans(network.bootstrap_servers):
            assert (plan.refusals, has_steps(plan)) == ((), True)
        network.offer(JoinGroupRequest.API_KEY)
        for plan in make_plans(network.bootstrap_servers):
            assert [str(refusal) for refusal in plan.refusals] == [
                "the brokers of lab do not offer JoinGroup, so apply can take no lock; pass "
                "--no-lock if a CI concurrency group or the like prevents other applies "
                "[lock-unavailable]"
            ]
        assert FindCoordinatorRequest.API_KEY not in network.kinds
