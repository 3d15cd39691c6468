"""A network that fails: TCP proxies before real brokers, for chosen requests.

It loses a request or its answer, answers with an error code of its own, offers no requests of a
kind, leaves out the id of the cluster, or has new topics made otherwise than they are asked for.
All other frames are passed on as they are, but for the brokers' own addresses in answers, which
become the proxies', so that a client which starts at a proxy stays with them.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from types import MappingProxyType

from answers import (  # noqa: F401 - what tests lose
    ALTER_CONFIGS,
    ALTER_REASSIGNMENTS,
    API_VERSIONS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    DESCRIBE_CLUSTER,
    METADATA,
    drop_assignment,
    drop_configs,
    has_assignment,
    has_replicas,
    hide_cluster_id,
    limit_versions,
    make_harmless,
    put_error,
    replace_wishes,
)

from reconciler.sandbox.cluster import Cluster

_LARGEST = 100 << 20
EVERY = 1_000_000
NOTHING: Mapping[str, str] = MappingProxyType({})
NO_ASSIGNMENT = 39  # INVALID_REPLICA_ASSIGNMENT
NO_REQUEST = 42  # INVALID_REQUEST
AGAINST_POLICY = 44  # POLICY_VIOLATION


class Loss(Enum):
    """What becomes of a request: who hears of it, and what the client sees."""

    SILENT_BEFORE = "the broker never gets it, the client hears nothing"
    SILENT_AFTER = "the broker does it, the client hears nothing"
    CUT_BEFORE = "the broker never gets it, the connection ends"
    CUT_AFTER = "the broker does it, the connection ends"
    HELD = "the broker does it, the client hears of it once `released` is set"
    ERROR_BEFORE = "the broker only checks it, the client gets an error code"
    ERROR_AFTER = "the broker does it, the client gets an error code"

    @property
    def is_before(self) -> bool:
        return self in (Loss.SILENT_BEFORE, Loss.CUT_BEFORE)

    @property
    def cuts(self) -> bool:
        return self in (Loss.CUT_BEFORE, Loss.CUT_AFTER)

    @property
    def answers(self) -> bool:
        return self in (Loss.ERROR_BEFORE, Loss.ERROR_AFTER)


@dataclass(slots=True)
class Fault:
    """Lose `times` requests of one kind, or answer them, after letting `skip` of them pass.

    `only` says which requests of the kind it is about, of their version and frame.
    """

    api: int
    loss: Loss
    skip: int = 0
    times: int = 1
    code: int = 0
    text: str = ""
    only: Callable[[int, bytes], bool] = lambda _version, _frame: True
    struck: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def strikes(self) -> bool:
        """Count one request of the kind; say whether it is lost."""
        if self.skip:
            self.skip -= 1
            return False
        self.times -= 1
        return self.times >= 0


class FailingNetwork:
    """One proxy a broker; all is well until `lose` or `answer` says otherwise.

    `kinds`: the kinds of requests that came. `delay_s`: how long each answer is held back.
    """

    def __init__(self, cluster: Cluster, listener: str = "PLAINTEXT") -> None:
        self._faults: dict[int, Fault] = {}
        self.kinds: set[int] = set()
        self._newest: dict[int, int] = {}
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._replaced: dict[bytes, bytes] = {}
        self._ports: list[int] = []
        self.delay_s = 0.0
        self.places_itself = False
        self.has_id = True
        self.no_configs: frozenset[str] = frozenset()
        self.replaced_by: tuple[int, Mapping[str, str]] | None = None
        for address in cluster.addresses(listener).values():
            self._listen_for(int(address.rpartition(":")[2]))

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self._ports)

    def lose(self, api: int, loss: Loss, *, skip: int = 1, times: int = 1) -> Fault:
        """Lose requests of a kind; one of each plan's is let by, since it only validates."""
        return self._strike_with(Fault(api, loss, skip, times))

    def answer(
        self,
        api: int,
        code: int,
        *,
        skip: int = 0,
        times: int = 1,
        done: bool = True,
        text: str = "",
    ) -> Fault:
        """Answer requests of a kind with an error code; `done` says whether the broker does them.

        Only what changes a topic can be left undone.
        """
        loss = Loss.ERROR_AFTER if done else Loss.ERROR_BEFORE
        return self._strike_with(Fault(api, loss, skip, times, code, text))

    def ignore_configs(self, keys: Iterable[str]) -> None:
        """Have the brokers take changes of these configs without an error, and change nothing."""
        self.no_configs = frozenset(keys)

    def refuse_assignments(self) -> None:
        """Refuse new partitions whose request says where replicas go, as some services do."""
        for api, code in ((CREATE_TOPICS, NO_ASSIGNMENT), (CREATE_PARTITIONS, NO_REQUEST)):
            has_rows = partial(has_assignment, api)
            fault = Fault(api, Loss.ERROR_BEFORE, times=EVERY, code=code, only=has_rows)
            self._strike_with(fault)

    def ignore_assignments(self) -> None:
        """Have the brokers place new partitions themselves, whatever a request says."""
        self.places_itself = True

    def hide_cluster_id(self) -> None:
        """Have the brokers report no id of their cluster, as Amazon MSK Serverless does."""
        self.has_id = False

    def replace_wishes(self, replicas: int, config: Mapping[str, str] = NOTHING) -> None:
        """Have new topics get so many replicas, and configs, without an error, as some services do.

        Expansions are as Kafka makes them.
        """
        self.replaced_by = replicas, config

    def refuse_replicas(self, least: int) -> None:
        """Refuse new topics whose request lists so many brokers for a partition."""
        lists = partial(has_replicas, least)
        loss, code = Loss.ERROR_BEFORE, AGAINST_POLICY
        self._strike_with(Fault(CREATE_TOPICS, loss, times=EVERY, code=code, only=lists))

    def advertise(self, host: str, port: int) -> None:
        """Have the brokers tell an address that is not theirs; the proxies stay where they are."""
        wrong = host.encode() + struct.pack(">i", port)
        self._replaced = {right: wrong for right in self._replaced if len(right) == len(wrong)}
        assert self._replaced, f"the host has {len('127.0.0.1')} characters"

    def offer(self, api: int, newest: int = -1) -> None:
        """Have brokers offer a kind of requests up to a version; without one, none of it.

        As a service does that lacks it: its connection ends if such a request comes all the same.
        """
        self._newest[api] = min(newest, self._newest.get(api, newest))

    def lacks(self, api: int, version: int) -> bool:
        """Return whether brokers offer no such request."""
        return version > self._newest.get(api, version)

    def heal(self) -> None:
        """Let all requests pass, and forget which kinds there were."""
        with self._lock:
            self._faults.clear()
            self.kinds.clear()

    def close(self) -> None:
        """End every connection."""
        for fault in self._faults.values():
            fault.released.set()
        with self._lock:
            for each in self._sockets:
                _shut(each)

    def _listen_for(self, port: int) -> None:
        listener = self._keep(socket.create_server(("127.0.0.1", 0)))
        own = listener.getsockname()[1]
        self._ports.append(own)
        self._replaced[_address(port)] = _address(own)
        threading.Thread(target=self._accept, args=(listener, port), daemon=True).start()

    def _accept(self, listener: socket.socket, port: int) -> None:
        with suppress(OSError):
            while True:
                client = self._keep(listener.accept()[0])
                try:
                    broker = self._keep(socket.create_connection(("127.0.0.1", port)))
                except OSError:  # the broker is down: so is its proxy
                    _shut(client)
                    continue
                self.link(client, broker)

    def link(self, client: socket.socket, broker: socket.socket) -> None:
        """Pass on what one client sends and gets."""
        _Link(self, client, broker).start()

    def _keep(self, each: socket.socket) -> socket.socket:
        with self._lock:
            self._sockets.add(each)
        return each

    def strike(self, api: int, version: int, frame: bytes) -> Fault | None:
        """Return the fault that meets this request, if one does."""
        with self._lock:
            self.kinds.add(api)
            fault = self._faults.get(api)
            met = fault and fault.only(version, frame) and fault.strikes()
            return fault if met else None

    def _strike_with(self, fault: Fault) -> Fault:
        """Have a fault, and no other one of its kind."""
        with self._lock:
            self._faults[fault.api] = fault
        return fault

    def limit(self, version: int, answer: bytes) -> bytes:
        """Leave out of an answer to ApiVersions what is not offered."""
        return limit_versions(version, answer, self._newest)

    def rewrite(self, answer: bytes) -> bytes:
        """Put the proxies' addresses in the place of the brokers'."""
        time.sleep(self.delay_s)
        for old, new in self._replaced.items():
            answer = answer.replace(old, new)
        return answer


class _Link:
    """One client's connection to one broker."""

    def __init__(
        self, network: FailingNetwork, client: socket.socket, broker: socket.socket
    ) -> None:
        self.network = network
        self.client = client
        self.broker = broker
        self.lost: dict[int, tuple[Fault, int]] = {}
        self.asked: dict[int, int] = {}
        self.named: dict[int, tuple[int, int]] = {}

    def start(self) -> None:
        for pump in (self._pass_requests, self._pass_answers):
            threading.Thread(target=self._run, args=(pump,), daemon=True).start()

    def _run(self, pump: object) -> None:
        with suppress(OSError, EOFError):
            pump()  # type: ignore[operator]
        _shut(self.client)
        _shut(self.broker)

    def _pass_requests(self) -> None:
        while True:
            frame = _read_frame(self.client)
            api, version, number = struct.unpack_from(">hhi", frame)
            fault = self.network.strike(api, version, frame)
            if self.network.lacks(api, version):
                return
            if api == API_VERSIONS:
                self.asked[number] = version
            if api in (METADATA, DESCRIBE_CLUSTER) and not self.network.has_id:
                self.named[number] = api, version
            if fault and fault.loss.is_before:
                fault.struck.set()
                if fault.loss.cuts:
                    return
                continue
            if fault:
                self.lost[number] = fault, version
                if fault.loss is Loss.ERROR_BEFORE:
                    frame = make_harmless(api, version, frame)
            if self.network.places_itself and api in (CREATE_TOPICS, CREATE_PARTITIONS):
                frame = drop_assignment(api, version, frame)
            if self.network.no_configs and api == ALTER_CONFIGS:
                frame = drop_configs(version, frame, self.network.no_configs)
            if self.network.replaced_by and api == CREATE_TOPICS:
                frame = replace_wishes(version, frame, *self.network.replaced_by)
            _write_frame(self.broker, frame)

    def _pass_answers(self) -> None:
        while True:
            frame = _read_frame(self.broker)
            (number,) = struct.unpack_from(">i", frame)
            if number in self.asked:
                frame = self.network.limit(self.asked.pop(number), frame)
            if number in self.named:
                frame = hide_cluster_id(*self.named.pop(number), frame)
            fault, version = self.lost.pop(number, (None, 0))
            if fault:
                fault.struck.set()
                if fault.loss.cuts:
                    return
                if fault.loss is Loss.SILENT_AFTER:
                    continue
                if fault.loss.answers:
                    harmless = fault.loss is Loss.ERROR_BEFORE
                    code, text = fault.code, fault.text
                    frame = put_error(fault.api, version, frame, code, harmless=harmless, text=text)
                else:
                    fault.released.wait()
            _write_frame(self.client, self.network.rewrite(frame))


@contextmanager
def failing_network(cluster: Cluster, listener: str = "PLAINTEXT") -> Iterator[FailingNetwork]:
    """Put proxies before a cluster's brokers."""
    network = FailingNetwork(cluster, listener)
    try:
        yield network
    finally:
        network.close()


def _address(port: int) -> bytes:
    """Spell a broker's address as Metadata and DescribeCluster answers do."""
    return b"127.0.0.1" + struct.pack(">i", port)


def _read_frame(stream: socket.socket) -> bytes:
    length = struct.unpack(">i", _read(stream, 4))[0]
    if not 0 <= length <= _LARGEST:  # no Kafka: a probe for TLS, which brokers hang up on as well
        raise EOFError
    return _read(stream, length)


def _read(stream: socket.socket, length: int) -> bytes:
    found = b""
    while len(found) < length:
        part = stream.recv(length - len(found))
        if not part:
            raise EOFError
        found += part
    return found


def _write_frame(stream: socket.socket, frame: bytes) -> None:
    stream.sendall(struct.pack(">i", len(frame)) + frame)


def _shut(stream: socket.socket) -> None:
    with suppress(OSError):
        stream.shutdown(socket.SHUT_RDWR)
    stream.close()
