"""A cluster, a network or a run in trouble"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from command import RECONCILER, TIMEOUT_S
from proxy import CREATE_TOPICS, Loss, failing_network
from security import start_secured
from test_rights import PLAN, Grants

from dangers.stage import SAVED, clusters
from reconciler.sandbox.cluster import Cluster, start_cluster

if TYPE_CHECKING:
    from proxy import Fault

    from dangers.stage import Stage

VALIDATIONS = 2  # of CreateTopics, before the first real one: for rights, and of the plan


@contextmanager
def stopped(cluster: Cluster, broker: int) -> Iterator[None]:
    """Stop a broker, and start it again at the end."""
    cluster.stop_broker(broker)
    try:
        yield
    finally:
        cluster.start_broker(broker)


def broker_down(stage: Stage) -> None:
    """A broker is down, and a new topic needs it"""
    stage.have("clicks", replication_factor=3)
    stage.enter(stopped(stage.cluster, 3))
    stage.wish("orders", replication_factor=3)
    stage.plan_and_apply()


def broker_lost(stage: Stage) -> None:
    """A broker goes down between plan and apply"""
    cluster = stage.enter(start_cluster(brokers=3, racks=3))
    stage.move_to(cluster)
    stage.wish("orders", replication_factor=3)
    stage.save()
    cluster.stop_broker(3)
    stage.apply_saved()


def broker_down_elsewhere(stage: Stage) -> None:
    """A broker is down, and nothing new needs it"""
    cluster = stage.enter(start_cluster(brokers=3, racks=3))
    stage.move_to(cluster)
    stage.have("orders")
    cluster.stop_broker(3)
    stage.wish("orders", config={"retention.ms": "30d"})
    stage.plan_and_apply()


def under_reassignment(stage: Stage) -> None:
    """The topic is being reassigned"""
    cluster = stage.enter(start_cluster(brokers=3, racks=3))
    stage.move_to(cluster)
    stage.have("orders", partitions=2, assignment=[[1, 2], [2, 1]])
    cluster.stop_broker(3)
    stage.hand.reassign("orders", {0: [3, 1]})
    stage.wish("orders", partitions=4)
    stage.plan_and_apply()


def nobody_there(stage: Stage) -> None:
    """No broker listens"""
    stage.servers = "127.0.0.1:1"
    stage.wish("orders")
    stage.plan_and_apply()


def no_rights(stage: Stage) -> None:
    """An account without any rights"""
    _take_account(stage, "nobody")
    stage.wish("orders", replication_factor=1)
    stage.plan_and_apply()


def rights_to_read(stage: Stage) -> None:
    """An account that may read, and not write"""
    _take_account(stage, "planner").give(PLAN)
    stage.wish("orders", replication_factor=1)
    stage.plan_and_apply()


def _take_account(stage: Stage, name: str) -> Grants:
    """Go on as a user of a cluster with an authorizer."""
    secured = stage.enter(start_secured(stage.directory))
    password = stage.directory / "password"
    password.write_text(f"{name}-secret")
    client = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": name,
        "sasl.password": f"${{file:{password}}}",
    }
    stage.write("clusters.yaml", clusters(json.dumps({"client": client})))
    stage.move_to(secured.cluster, secured.address("SASLPLAIN"))
    return Grants(secured, name)


def two_at_once(stage: Stage) -> None:
    """Two applies at once"""
    first, fault = _start_and_hold(stage)
    stage.applied.append("while another one is at work, `--lock-timeout 0`:")
    stage.apply(*SAVED, "--lock-timeout", "0")
    stage.applied.append("the other one, in the end:")
    fault.released.set()
    out, err = first.communicate(timeout=TIMEOUT_S)
    stage.note_apply(first.returncode, out, err)


def killed(stage: Stage) -> None:
    """Killed in the middle, and started again"""
    first, _ = _start_and_hold(stage)
    first.kill()
    first.communicate()
    stage.applied.append("`kill -9` while the brokers create refunds; then the same command again:")
    stage.apply_saved()


def _start_and_hold(stage: Stage) -> tuple[subprocess.Popen[str], Fault]:
    """Start to apply two changes; the brokers' answer to the first of them is held back."""
    _save_two_changes(stage)
    network = stage.enter(failing_network(stage.cluster))
    fault = network.lose(CREATE_TOPICS, Loss.HELD, skip=VALIDATIONS)
    program = [*RECONCILER, *SAVED, "--bootstrap-servers", network.bootstrap_servers]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(program, cwd=stage.directory, text=True, **pipes)
    assert fault.struck.wait(TIMEOUT_S)
    return process, fault


def answer_lost(stage: Stage) -> None:
    """The brokers' answer gets lost"""
    _save_two_changes(stage)
    network = stage.enter(failing_network(stage.cluster))
    fault = network.lose(CREATE_TOPICS, Loss.CUT_AFTER, skip=VALIDATIONS)
    stage.servers = network.bootstrap_servers
    stage.apply_saved()
    assert fault.struck.is_set()


def _save_two_changes(stage: Stage) -> None:
    stage.have("orders")
    stage.wish("orders", partitions=9)
    stage.wish("refunds")
    stage.save()


def too_much_for_one_request(stage: Stage) -> None:
    """12,000 new partitions in one plan, where a request takes 10,000 at most"""
    cluster = stage.enter(start_cluster(brokers=3, racks=3, isolate=True))
    stage.move_to(cluster)
    for topic in ("clicks", "orders", "refunds"):
        stage.have(topic, partitions=1, replication_factor=1)
    for topic in ("clicks", "orders", "refunds"):
        stage.wish(topic, partitions=4_001, replication_factor=1)
    stage.plan_and_apply()


SLOW = (
    broker_lost,
    broker_down_elsewhere,
    under_reassignment,
    no_rights,
    rights_to_read,
    killed,
    too_much_for_one_request,
)
"""Those that start a cluster or wait for a lock to expire; `broker_down` stays in the gate."""

DANGERS = (
    broker_down,
    broker_lost,
    broker_down_elsewhere,
    under_reassignment,
    nobody_there,
    no_rights,
    rights_to_read,
    two_at_once,
    killed,
    answer_lost,
    too_much_for_one_request,
)
