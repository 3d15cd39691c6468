"""A connection to one cluster: open, or the reason why not. It is reopened if it is lost."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Self, TypeVar

from confluent_kafka import KafkaError, KafkaException, Node, ThrottleEvent
from confluent_kafka.admin import AdminClient, DescribeClusterResult

from reconciler.errors import ClusterError, Finding, keep_interrupts
from reconciler.kafka.diagnosis import (
    Trouble,
    explain,
    explain_refusal,
    read_awaited,
    read_trouble,
)
from reconciler.kafka.errors import (
    error_of,
    may_ask_again,
    name_error,
    refuse_request,
)
from reconciler.kafka.probe import Listener, Reach, probe_all
from reconciler.kafka.settings import ClientSettings, hides_servers, resolve_settings
from reconciler.kafka.trace import LOG, trace_request
from reconciler.model.identity import find_address, identify_cluster, name_cluster
from reconciler.spec.entry import ClusterEntry

T = TypeVar("T")

PATIENCE_S = 10.0  # for the first answer
REQUEST_S = 10.0  # for one answer to a question
PAUSES_S = (0.2, 1.0, 3.0)  # before a question is asked again

_POLL_S = 0.005
_SETTLE_S = 0.3  # after every server is known to be down, for one that comes up late
_DOUBT_S = 1.0  # without an answer or an error, before the servers are probed
_WATCH_S = 2.0  # without an answer, before it is watched which brokers the client waits for


def connect(
    entry: ClusterEntry,
    *,
    bootstrap_servers: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Connection:
    """Prepare a connection to a cluster of the estate; the first request opens it.

    `bootstrap_servers` overrides clusters.yaml. Secrets are resolved here and nowhere
    else. Errors: ClusterError naming each reference that cannot be resolved.
    """
    return Connection(entry, resolve_settings(entry, bootstrap_servers, environment))


class Connection:
    """One cluster and its connection. Safe to share between threads; printing shows no secret."""

    def __init__(self, entry: ClusterEntry, settings: ClientSettings) -> None:
        self.entry = entry
        self.settings = settings
        self._client: AdminClient | None = None
        self._nodes: Sequence[Node] = ()
        self.has_id = True
        self._throttled: list[ThrottleEvent] = []
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Connection({self.entry.name}, {', '.join(self.settings.servers)})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the client; the next request opens another."""
        with self._lock:
            self._client = None

    @keep_interrupts()
    def client(self) -> AdminClient:
        """Return the open client. Errors: ClusterError with every reason why there is none."""
        with self._lock:
            if self._client is None:
                self._client, self._nodes = self._open()
            return self._client

    def _open(self) -> tuple[AdminClient, Sequence[Node]]:
        spelled = f"{self.settings.protocol} to {', '.join(self.settings.servers)}"
        with trace_request(self.entry.name, f"connecting by {spelled}"):
            client, told = open_client(self.settings, self.entry, self._throttled.append)
        # Before any other request: the wrong cluster must not even be read.
        self.has_id = bool(told.cluster_id)
        self._refuse_other_cluster(self.identify(told.cluster_id))
        nodes = told.nodes
        brokers = ", ".join(f"{n.id} {n.host}:{n.port}" for n in sorted(nodes, key=lambda n: n.id))
        LOG.info("%s: brokers: %s", self.entry.name, brokers)
        return client, nodes

    def identify(self, reported: str | None) -> str:
        """Return what identifies the cluster, given the id that its brokers report."""
        is_secret = not self.settings.overridden and hides_servers(self.entry)
        return identify_cluster(reported, self.settings.servers, is_secret=is_secret)

    def _refuse_other_cluster(self, found: str) -> None:
        name, expected = self.entry.name, self.entry.cluster_id
        if expected is None or found == expected:
            return
        what = f"this is {name_cluster(found)}, and {name} is expected to be {expected}"
        correct = "correct cluster_id in clusters.yaml"
        if find_address(found) is not None:
            correct = f"write cluster_id: {found} in clusters.yaml"
        way_out = f"check bootstrap.servers, or {correct}"
        raise ClusterError([Finding("cluster-id", what, way_out, self.entry.location)])

    def forget(self, client: AdminClient) -> None:
        """Discard a client that lost its brokers: it may not find others, but a new client does."""
        with self._lock:
            if self._client is client:
                self._client = None

    def take_throttle(self, client: AdminClient) -> float:
        """Return how long the brokers throttle this client, and discard it then: other clients
        continue.

        Brokers answer at once, and read nothing more from the connection until a quota is kept
        again (KIP-219). Units: seconds, since the last call.
        """
        with self._lock:
            client.poll(0)
            throttled_s = max((event.throttle_time for event in self._throttled), default=0.0)
            self._throttled.clear()
        if throttled_s:
            self.forget(client)
        return throttled_s

    @keep_interrupts()
    def ask(self, question: Callable[[AdminClient], T], what: str) -> T:
        """Send a read-only request, and retry with a new client if the answer is lost.

        `what` names the question for the error. Errors: ClusterError if no answer comes, or a
        permanent error.
        """
        lost: Exception | None = None
        for pause in (*PAUSES_S, None):
            try:
                client = self.client()
            except ClusterError as error:
                if not self._nodes:  # it was never open, and a wrong address stays wrong
                    raise
                lost = error
            else:
                try:
                    with trace_request(self.entry.name, what):
                        return question(client)
                except KafkaException as error:
                    if not may_ask_again(error_of(error)):
                        raise refuse_request(error_of(error), what) from error
                    lost = error
                    # In KRaft the client takes any live broker for the controller. If that one
                    # dies it goes on to time out, and a new client gets an answer at once.
                    self.forget(client)
            if pause is not None:
                LOG.info("%s: %s: sent again in %.1f s", self.entry.name, what, pause)
                time.sleep(pause)
        if isinstance(lost, ClusterError):
            raise lost
        last = error_of(lost or KafkaException(KafkaError(KafkaError._TIMED_OUT)))
        tries = len(PAUSES_S) + 1
        text = f"{what}: no answer in {tries} tries ({name_error(last)}: {last.str()})"
        way_out = "check that the brokers are healthy, then run it again"
        lost_finding = Finding("connect-lost", text, way_out)
        raise ClusterError([lost_finding, *self._find_unreachable()]) from lost

    def _find_unreachable(self) -> list[Finding]:
        """Probe the brokers at the addresses that they advertise. Cost: a few seconds."""
        told = [
            Trouble(KafkaError._TRANSPORT, "", f"{node.host}:{node.port}", node.id)
            for node in self._nodes
        ]
        found = probe_all((trouble.server for trouble in told), self.settings.trust)
        return explain(self.settings, told, found, self.entry.location)


def open_client(
    settings: ClientSettings, entry: ClusterEntry, throttled: Callable[[ThrottleEvent], None]
) -> tuple[AdminClient, DescribeClusterResult]:
    """Return a client that received one answer, and that answer.

    Errors: ClusterError with every reason that can be found out, most within a second.
    """
    opening = _Opening(settings, entry, throttled)
    try:
        told = opening.wait()
    except _SilentServersError as error:
        # librdkafka may wait for a frozen server for the entire timeout, although others of the
        # list would answer. A second client starts at those that do.
        opening = _Opening(settings.start_at(",".join(error.well)), entry, throttled)
        told = opening.wait()
    return opening.client, told


class _Opening:
    """The first request of a client, and the errors until it is answered."""

    def __init__(
        self,
        settings: ClientSettings,
        entry: ClusterEntry,
        throttled: Callable[[ThrottleEvent], None],
    ) -> None:
        self.settings = settings
        self.entry = entry
        self.throttled = throttled
        self.errors: list[KafkaError] = []
        self.statistics: list[str] = []
        self.probed: dict[str, Listener] = {}
        self.client = self._create()

    @property
    def troubles(self) -> list[Trouble]:
        """What the client said so far."""
        return [read_trouble(error) for error in self.errors]

    @property
    def awaited(self) -> tuple[Trouble, ...]:
        """The brokers that the client waits for, by the last statistics of another client."""
        last = self.statistics[-1:]
        return read_awaited(last[0], self.settings.mechanism) if last else ()

    def wait(self) -> DescribeClusterResult:
        """Return the first answer, or raise the reason why none comes."""
        answer = self.client.describe_cluster(request_timeout=PATIENCE_S)
        started = time.monotonic()
        looked_around = False
        witness: AdminClient | None = None
        # A wrong password, a wrong authority and a dead broker all end as the same timeout of the
        # request. The reason comes within half a second, through the callback that poll() calls.
        while not answer.done():
            self.client.poll(_POLL_S)
            elapsed = time.monotonic() - started
            # Every server is down, or the client lacks something before it reaches any, such as
            # an OAuth token.
            hopeless = any(t.tells_nothing or not t.server for t in self.troubles)
            if hopeless and elapsed > _SETTLE_S:
                self._give_up()
            if not looked_around and elapsed > _DOUBT_S:
                looked_around = True
                self._look_around()
            # The client says nothing of a broker that it waits for. Its statistics do, and another
            # client has them, since this one would go on collecting them after its opening.
            if witness is None and elapsed > _WATCH_S:
                witness = self.settings.build_client(watch=self.statistics.append)
                witness.describe_cluster(request_timeout=PATIENCE_S)
            if witness is not None:
                witness.poll(0)
                self._look_further()
        if error := answer.exception():
            self._give_up()
            raise ClusterError([self._say_silence()]) from error
        told: DescribeClusterResult = answer.result()
        return told

    def _create(self) -> AdminClient:
        try:
            return self.settings.build_client(self.errors.append, self.throttled)
        # librdkafka raises the first. The others come from the Python around it, which has its own
        # conditions and imports what some properties need.
        except (KafkaException, ValueError, TypeError, ImportError) as error:
            findings = explain_refusal(self.settings, error, self.entry.location)
        # Outside the except block, so without a cause or a context: the client's error may quote a
        # value that is a secret.
        raise ClusterError(findings)

    def _give_up(self) -> None:
        """Raise an error that explains the failure; return if there is no explanation."""
        told = [trouble for trouble in self.troubles if not trouble.tells_nothing]
        named = {trouble.server for trouble in told}
        told += [trouble for trouble in self.awaited if trouble.server not in named]
        self._probe((*(trouble.server for trouble in told), *self.settings.servers))
        if findings := explain(self.settings, told, self.probed, self.entry.location):
            raise ClusterError(findings)

    def _probe(self, servers: Iterable[str]) -> set[str]:
        """Probe the servers that are not probed yet, and return them."""
        new = {server: None for server in servers if server and server not in self.probed}
        self.probed |= probe_all(new, self.settings.trust)
        return set(new)

    def _look_around(self) -> None:
        """Probe the servers of a client without answers; retry if some are healthy."""
        self._probe(self.settings.servers)
        well = [s for s in self.settings.servers if self.probed[s].reach is Reach.BROKER]
        if not well:
            # If all are silent, the client keeps its ten seconds: they may be slow, not dead.
            if any(found.reach is not Reach.SILENT for found in self.probed.values()):
                self._give_up()
            return
        if len(well) < len(self.settings.servers):
            raise _SilentServersError(well)

    def _look_further(self) -> None:
        """Probe the brokers that the cluster named and the client waits for."""
        new = self._probe(t.server for t in self.awaited if t.broker is not None)
        slow = (Reach.SILENT, Reach.BROKER)
        if any(self.probed[server].reach not in slow for server in new):
            self._give_up()

    def _say_silence(self) -> Finding:
        """Say that no answer came, and no more is known."""
        told = [trouble.text for trouble in self.troubles if not trouble.tells_nothing]
        told += [trouble.text for trouble in self.awaited]
        reason = f" ({told[-1]})" if told else ""
        servers = ", ".join(self.settings.servers)
        where = None if self.settings.overridden else self.entry.location
        reached = [s for s in self.settings.servers if self.probed[s].reach is Reach.BROKER]
        if reached:
            what = (
                f"{', '.join(reached)} accepts connections, but the client has no answer after "
                f"{PATIENCE_S:.0f} s{reason}"
            )
            way_out = "check whether the brokers or this machine are overloaded, then run it again"
        else:
            what = f"no answer from {servers} within {PATIENCE_S:.0f} s{reason}"
            way_out = "check the address, the firewalls on the way, and the brokers"
        return Finding("connect-timeout", what, way_out, where)


class _SilentServersError(Exception):
    """Some servers do not answer; carries those that do."""

    def __init__(self, well: list[str]) -> None:
        self.well = well
