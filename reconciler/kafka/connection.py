"""A connection to one cluster: open, or the reason why not. It is reopened if it is lost."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Self, TypeVar

from confluent_kafka import KafkaError, KafkaException

from reconciler.errors import ClusterError, Finding, keep_interrupts
from reconciler.kafka.diagnosis import explain, explain_refusal, read_trouble
from reconciler.kafka.errors import (
    error_of,
    may_ask_again,
    name_error,
    refuse_request,
)
from reconciler.kafka.probe import Reach, Trust, probe_all
from reconciler.kafka.settings import resolve_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from confluent_kafka import ThrottleEvent
    from confluent_kafka.admin import AdminClient

    from reconciler.kafka.diagnosis import Trouble
    from reconciler.kafka.probe import Listener
    from reconciler.kafka.settings import ClientSettings
    from reconciler.spec import ClusterEntry

T = TypeVar("T")

PATIENCE_S = 10.0  # for the first answer
REQUEST_S = 10.0  # for one answer to a question
PAUSES_S = (0.2, 1.0, 3.0)  # before a question is asked again

_POLL_S = 0.005
_SETTLE_S = 0.3  # after every server is known to be down, for one that comes up late
_DOUBT_S = 1.0  # without an answer or an error, before the servers are probed


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
        self._was_open = False
        self._throttled_s = 0.0
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
                self._client = open_client(self.settings, self.entry, self._note_throttle)
                self._was_open = True
            return self._client

    def forget(self, client: AdminClient) -> None:
        """Discard a client that lost its brokers: it may not find others, but a new client does."""
        with self._lock:
            if self._client is client:
                self._client = None

    def _note_throttle(self, event: ThrottleEvent) -> None:
        self._throttled_s = max(self._throttled_s, event.throttle_time)

    def take_throttle(self, client: AdminClient) -> float:
        """Return for how long the brokers hold up this client, and discard it then: others go on.

        Brokers answer at once, and read nothing more from the connection until a quota is kept
        again (KIP-219). Units: seconds, since the last call.
        """
        client.poll(0)
        throttled_s, self._throttled_s = self._throttled_s, 0.0
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
                if not self._was_open:  # a wrong address does not become right by waiting
                    raise
                lost = error
            else:
                try:
                    return question(client)
                except KafkaException as error:
                    if not may_ask_again(error_of(error)):
                        raise refuse_request(error_of(error), what) from error
                    lost = error
                    # In KRaft the client takes any live broker for the controller. If that one
                    # dies it goes on to time out, and a new client gets an answer at once.
                    self.forget(client)
            if pause is not None:
                time.sleep(pause)
        if isinstance(lost, ClusterError):
            raise lost
        last = error_of(lost or KafkaException(KafkaError(KafkaError._TIMED_OUT)))
        tries = len(PAUSES_S) + 1
        text = f"{what}: no answer in {tries} tries ({name_error(last)}: {last.str()})"
        way_out = "check that the brokers are healthy, then run it again"
        raise ClusterError([Finding("connect-lost", text, way_out)]) from lost


def open_client(
    settings: ClientSettings, entry: ClusterEntry, throttled: Callable[[ThrottleEvent], None]
) -> AdminClient:
    """Return a client that received one answer from the expected cluster.

    Errors: ClusterError with every reason that can be found out, most within a second.
    """
    opening = _Opening(settings, entry, throttled)
    try:
        opening.wait()
    except _SilentServersError as error:
        # librdkafka may wait for a frozen server for the entire timeout, although others of the
        # list would answer. A second client starts at those that do.
        opening = _Opening(settings.start_at(",".join(error.well)), entry, throttled)
        opening.wait()
    return opening.client


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
        self.troubles: list[Trouble] = []
        self.probed: Mapping[str, Listener] | None = None
        self.client = self._create()

    def wait(self) -> None:
        """Wait for the first answer, or for a reason why none comes."""
        answer = self.client.describe_cluster(request_timeout=PATIENCE_S)
        started = time.monotonic()
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
            if self.probed is None and elapsed > _DOUBT_S:
                self._look_around()
        if error := answer.exception():
            self._give_up()
            servers = ", ".join(self.settings.servers)
            what = f"no answer from {servers} within {PATIENCE_S:.0f} s"
            if told := [trouble.text for trouble in self.troubles if not trouble.tells_nothing]:
                what += f" ({told[-1]})"
            way_out = "check the address, firewalls between here and there, and the brokers"
            where = None if self.settings.overridden else self.entry.location
            raise ClusterError([Finding("connect-timeout", what, way_out, where)]) from error
        # Before any other request: the wrong cluster must not even be read.
        cluster_id, expected = answer.result().cluster_id, self.entry.cluster_id
        if expected is not None and cluster_id != expected:
            name = self.entry.name
            what = f"this is cluster {cluster_id}, and {name} is expected to be {expected}"
            way_out = "check bootstrap.servers, or correct cluster_id in clusters.yaml"
            raise ClusterError([Finding("cluster-id", what, way_out, self.entry.location)])

    def _create(self) -> AdminClient:
        try:
            return self.settings.build_client(self._take, self.throttled)
        # librdkafka raises the first. The others come from the Python around it, which has its own
        # conditions and imports what some properties need.
        except (KafkaException, ValueError, TypeError, ImportError) as error:
            findings = explain_refusal(self.settings, error, self.entry.location)
        # Outside the except block, so without a cause or a context: the client's error may quote a
        # value that is a secret.
        raise ClusterError(findings)

    def _take(self, error: KafkaError) -> None:
        self.troubles.append(read_trouble(error))

    def _give_up(self) -> None:
        """Raise an error that explains the failure; return if there is no explanation."""
        told = [trouble for trouble in self.troubles if not trouble.tells_nothing]
        if self.probed is None:
            self.probed = self._probe(trouble.server for trouble in told if trouble.server)
        if findings := explain(self.settings, told, self.probed, self.entry.location):
            raise ClusterError(findings)

    def _probe(self, further: Iterable[str]) -> Mapping[str, Listener]:
        get = self.settings.get
        trust = Trust(get("ssl.ca.location"), get("ssl.ca.pem"))
        return probe_all((*further, *self.settings.servers), trust)

    def _look_around(self) -> None:
        """Probe the servers of a client without answers; retry if some are healthy."""
        self.probed = self._probe(())
        well = [s for s, found in self.probed.items() if found.reach is Reach.BROKER]
        if not well:
            # If all are silent, the client keeps its ten seconds: they may be slow, not dead.
            if any(found.reach is not Reach.SILENT for found in self.probed.values()):
                self._give_up()
            return
        if len(well) < len(self.probed):
            raise _SilentServersError(well)


class _SilentServersError(Exception):
    """Some servers do not answer; carries those that do."""

    def __init__(self, well: list[str]) -> None:
        self.well = well
