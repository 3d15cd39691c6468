"""The faults: drawn from a seed, struck at a request of apply, and healed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
import traceback
from dataclasses import dataclass, field
from enum import StrEnum

from breakable import freeze_node, kill_node, thaw_node

from campaign.network import Loss, Moment, Network, Stage, Trap, Way
from campaign.world import BROKERS
from reconciler.sandbox.cluster import Cluster
from reconciler.sandbox.request import BrokerState


class Kind(StrEnum):
    """What goes wrong. A round has one kind, in turn."""

    KILL = "kill -9 of apply"
    TERMINATE = "SIGTERM of apply"
    INTERRUPT = "SIGINT of apply"
    BROKER_FROZEN = "broker frozen"
    BROKER_KILLED = "broker killed"
    CONTROLLER_FROZEN = "active controller frozen"
    CONTROLLER_KILLED = "active controller killed"
    FAILOVER = "controller failover"
    CUT_BEFORE = "connection cut before a request"
    CUT_DURING = "connection cut during a request"
    CUT_AFTER = "connection cut after a request"
    NO_ANSWER = "answer lost"
    SLOW = "slow network"
    UNREACHABLE = "all brokers unreachable"


SIGNALS = {
    Kind.KILL: signal.SIGKILL,
    Kind.TERMINATE: signal.SIGTERM,
    Kind.INTERRUPT: signal.SIGINT,
}
LOSSES = {
    Kind.CUT_BEFORE: Loss.CUT_BEFORE,
    Kind.CUT_DURING: Loss.CUT_DURING,
    Kind.CUT_AFTER: Loss.CUT_AFTER,
    Kind.NO_ANSWER: Loss.NO_ANSWER,
}
WEIGHTS = {
    Stage.WRITE: 66,
    Stage.VALIDATE: 8,
    Stage.LOCK: 6,
    Stage.READ: 8,
    Stage.VERIFY: 8,
    Stage.RECORD: 4,
}
"""Most faults strike while apply changes the cluster: there a wrong report does harm."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: at which request it strikes, for how long, and whom."""

    kind: Kind
    stage: Stage
    number: int
    moment: Moment
    times: int
    lasts_s: float
    broker: int
    way: Way
    delay_s: float
    again_s: float


def draw_fault(rng: random.Random, kind: Kind, writes: int) -> Fault:
    """Draw a fault; `writes` is how many requests that change something apply will send."""
    (stage,) = rng.choices(tuple(WEIGHTS), tuple(WEIGHTS.values()))
    most = {Stage.WRITE: writes, Stage.READ: 12, Stage.LOCK: 3, Stage.VERIFY: 6}.get(stage, 2)
    return Fault(
        kind,
        stage,
        number=rng.randint(1, most),
        moment=rng.choice(tuple(Moment)),
        times=rng.choice((1, 1, 2, 3, 8)),
        lasts_s=rng.choice((1.0, 3.0, 6.0, 12.0, 20.0)),
        broker=rng.choice(BROKERS),
        way=rng.choice((Way.REFUSING, Way.SILENT)),
        delay_s=rng.choice((0.05, 0.1, 0.3, 0.6)),
        again_s=rng.choice((0.0, 0.0, 0.0, 0.7)),
    )


@dataclass(slots=True)
class Strike:
    """A fault on its way to a cluster, to the network before it, or to apply itself."""

    fault: Fault
    cluster: Cluster
    network: Network
    trap: Trap
    process: subprocess.Popen[bytes] | None = None
    at: float | None = None
    whom: str = ""
    trouble: str = ""
    _thread: threading.Thread | None = field(default=None)

    @classmethod
    def prepare(cls, fault: Fault, cluster: Cluster, network: Network) -> Strike:
        """Set the trap that springs it."""
        loss = LOSSES.get(fault.kind)
        trap = Trap(fault.stage, fault.number, loss, fault.times if loss else 1, fault.moment)
        strike = cls(fault, cluster, network, trap)
        if loss is None:
            trap.strike = strike.strike
        network.arm(trap)
        return strike

    @property
    def struck(self) -> bool:
        """Whether it has come true."""
        return self.at is not None or (self.trap.loss is not None and self.trap.api is not None)

    @property
    def is_over(self) -> bool:
        """Whether it has lasted as long as it should."""
        return self.at is not None and time.monotonic() > self.at + self.fault.lasts_s

    def strike(self) -> None:
        """Let it happen, from the network's thread: at once, or beside it where that takes long."""
        self.at = time.monotonic()
        if self.fault.kind is Kind.FAILOVER:
            self._thread = threading.Thread(target=self._act, daemon=True)
            self._thread.start()
        else:
            self._act()

    def heal(self) -> None:
        """Bring everything back that is gone. Errors: SandboxError where a node does not start."""
        self.network.open()
        if self._thread is not None:
            self._thread.join()
        heal_cluster(self.cluster)

    def _act(self) -> None:
        try:
            self._strike()
        except Exception:  # noqa: BLE001 - told with the round's result
            self.trouble = traceback.format_exc()

    def _strike(self) -> None:
        fault, cluster = self.fault, self.cluster
        match fault.kind:
            case Kind.KILL | Kind.TERMINATE | Kind.INTERRUPT:
                self._signal(SIGNALS[fault.kind])
            case Kind.BROKER_FROZEN:
                freeze_node(cluster, fault.broker)
                self.whom = f"broker {fault.broker}"
            case Kind.BROKER_KILLED:
                kill_node(cluster, fault.broker)
                self.whom = f"broker {fault.broker}"
            case Kind.CONTROLLER_FROZEN:
                freeze_node(cluster, self._find_active())
            case Kind.CONTROLLER_KILLED:
                kill_node(cluster, self._find_active())
            case Kind.FAILOVER:
                cluster.stop_controller(self._find_active())
            case Kind.SLOW:
                self.network.delay_s = fault.delay_s
            case Kind.UNREACHABLE:
                self.whom = fault.way.value
                self.network.block(fault.way)
            case _:
                raise AssertionError(fault.kind)

    def _signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        pid = self.process.pid
        os.kill(pid, number)
        if self.fault.again_s and number is signal.SIGINT:
            self.whom = "twice"
            threading.Timer(self.fault.again_s, self._signal_again, (number,)).start()

    def _signal_again(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def _find_active(self) -> int:
        statuses = self.cluster.controller_statuses()
        active = next((status.id for status in statuses if status.active), statuses[0].id)
        self.whom = f"controller {active}"
        return active


def heal_cluster(cluster: Cluster) -> None:
    """Thaw and start what is frozen, stopped or dead. Errors: SandboxError where that fails."""
    controllers = cluster.controller_statuses()
    brokers = cluster.statuses()
    for node in (*controllers, *brokers):
        if node.state is BrokerState.FROZEN:
            thaw_node(cluster, node.id)
    for status in controllers:
        if status.state in (BrokerState.DEAD, BrokerState.STOPPED):
            cluster.start_controller(status.id)
    for broker in brokers:
        if broker.state in (BrokerState.DEAD, BrokerState.STOPPED):
            cluster.start_broker(broker.id)
