"""Several controllers: a quorum of processes that outlives its active member."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from breakable import freeze_node, kill_node, thaw_node
from confluent_kafka.admin import AdminClient, NewTopic
from lab import wait_for

from reconciler.errors import SandboxError
from reconciler.sandbox.cluster import Cluster, start_cluster
from reconciler.sandbox.embedded import EmbeddedCluster
from reconciler.sandbox.request import BrokerState

pytestmark = pytest.mark.cluster

CONTROLLERS = (3000, 3001, 3002)
ELECTED_WITHIN_S = 30


@pytest.fixture(scope="module")
def quorum() -> Iterator[Cluster]:
    """Three brokers and three controllers; each test leaves all of them running."""
    # A broker waits as long for a controller that is frozen, before it asks the next one.
    patience = {"controller.socket.timeout.ms": "3000"}
    with start_cluster(brokers=3, racks=3, controllers=3, properties=patience) as cluster:
        yield cluster


def active_of(cluster: Cluster) -> int | None:
    return next((status.id for status in cluster.controller_statuses() if status.active), None)


def await_active(cluster: Cluster) -> int:
    wait_for(lambda: active_of(cluster) is not None, ELECTED_WITHIN_S)
    found = active_of(cluster)
    assert found is not None
    return found


def states_of(cluster: Cluster) -> dict[int, BrokerState]:
    return {status.id: status.state for status in cluster.controller_statuses()}


def create(cluster: Cluster, name: str) -> None:
    """Create a topic: only the active controller can."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    topic = NewTopic(name, 1, replica_assignment=[[1, 2, 3]])
    admin.create_topics([topic], request_timeout=30)[name].result(60)


@pytest.mark.slow
def test_every_node_has_its_own_process_and_one_controller_is_active(quorum: Cluster) -> None:
    assert len(quorum.process_ids) == 6
    assert states_of(quorum) == dict.fromkeys(CONTROLLERS, BrokerState.RUNNING)
    assert await_active(quorum) in CONTROLLERS
    create(quorum, "first")


LOSSES = {
    BrokerState.DEAD: (kill_node, EmbeddedCluster.start_controller),
    BrokerState.FROZEN: (freeze_node, thaw_node),
    BrokerState.STOPPED: (EmbeddedCluster.stop_controller, EmbeddedCluster.start_controller),
}


@pytest.mark.slow
@pytest.mark.parametrize("state", LOSSES)
def test_the_cluster_goes_on_without_its_active_controller(
    quorum: EmbeddedCluster, topic_prefix: str, state: BrokerState
) -> None:
    lose, bring_back = LOSSES[state]
    lost = await_active(quorum)
    lose(quorum, lost)
    try:
        assert states_of(quorum)[lost] is state
        wait_for(lambda: active_of(quorum) not in (None, lost), ELECTED_WITHIN_S)
        create(quorum, f"{topic_prefix}without")
    finally:
        bring_back(quorum, lost)
    assert states_of(quorum) == dict.fromkeys(CONTROLLERS, BrokerState.RUNNING)
    create(quorum, f"{topic_prefix}again")


@pytest.mark.slow
def test_a_quorum_without_its_majority_has_no_active_controller(quorum: Cluster) -> None:
    first = await_active(quorum)
    kill_node(quorum, first)
    wait_for(lambda: active_of(quorum) not in (None, first), ELECTED_WITHIN_S)
    second = await_active(quorum)
    kill_node(quorum, second)
    try:
        assert active_of(quorum) is None
        reasons = {status.id: status.reason for status in quorum.controller_statuses()}
        assert reasons[second].startswith(f"controller-{second} was ended by SIGKILL; its log: ")
    finally:
        quorum.start_controller(second)
        quorum.start_controller(first)
    assert await_active(quorum) in CONTROLLERS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("act", "message"),
    [
        (
            lambda c: c.stop_controller(1),
            "the sandbox has no controller 1; it has 3000, 3001, 3002",
        ),
        (lambda c: c.start_controller(3000), "controller 3000 is running already"),
        (lambda c: c.stop_broker(3000), "the sandbox has no broker 3000; it has 1, 2, 3"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(
    quorum: Cluster, act: Callable[[Cluster], None], message: str
) -> None:
    with pytest.raises(SandboxError, match=re.escape(message)):
        act(quorum)


def test_the_container_engine_refuses_several_controllers_by_name() -> None:
    with (
        pytest.raises(SandboxError, match="the container engine runs one controller"),
        start_cluster(brokers=1, controllers=3, engine="container"),
    ):
        pytest.fail("it started")
