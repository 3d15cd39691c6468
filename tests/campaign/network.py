"""The way from apply to the brokers: it knows each request, and loses or delays what it is told to.

A proxy before each broker, on one event loop in a thread of its own. Frames are passed on as they
are, but for the brokers' addresses in answers, which become the proxies'.
"""

from __future__ import annotations

import asyncio
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum

LARGEST = 100 << 20
CREATE, DELETE, EXPAND, CONFIGURE = 19, 20, 37, 44
CHANGING = {CREATE, EXPAND, CONFIGURE}
READING = {2, 3, 32, 46, 60}  # ListOffsets, Metadata, DescribeConfigs, reassignments, the cluster
LOCKING = {10, 11, 14}  # FindCoordinator, JoinGroup, SyncGroup
RECORDING = {0, 22}  # Produce, InitProducerId


class Stage(StrEnum):
    """What apply is about when it sends a request."""

    READ = "reading"
    LOCK = "taking the lock"
    VALIDATE = "validating"
    WRITE = "writing"
    VERIFY = "verifying"
    RECORD = "writing the audit record"
    OTHER = "anything else"


class Loss(StrEnum):
    """What becomes of a request."""

    CUT_BEFORE = "the broker never gets it, the connection ends"
    CUT_DURING = "the broker gets half of it, the connection ends"
    CUT_AFTER = "the broker gets it, the connection ends"
    NO_ANSWER = "the broker gets it, its answer is lost"


class Moment(StrEnum):
    """When a request lets a fault strike that is not the network's own."""

    BEFORE = "before the request"
    AFTER = "after the request"
    ANSWERED = "after the answer"


class Way(StrEnum):
    """How the network is as a whole."""

    OPEN = "open"
    REFUSING = "refusing connections"
    SILENT = "losing everything"


@dataclass(slots=True)
class Trap:
    """Waits for the n-th request of a stage; loses `times` of them, or strikes once."""

    stage: Stage
    number: int
    loss: Loss | None = None
    times: int = 1
    moment: Moment = Moment.BEFORE
    strike: Callable[[], None] | None = None
    api: int | None = None

    def meets(self, stage: Stage, seen: int, api: int) -> bool:
        """Say whether this request is the one, or one more to be lost; remember which it was."""
        if stage is not self.stage or seen < self.number or self.times == 0:
            return False
        self.times -= 1
        self.api = self.api or api
        return True


@dataclass(slots=True)
class Network:
    """One proxy for each of some ports on loopback; `servers` is where clients start."""

    ports: Iterable[int]
    way: Way = Way.OPEN
    delay_s: float = 0.0
    seen: Counter[Stage] = field(default_factory=Counter)
    trap: Trap | None = None
    servers: str = ""
    _addresses: dict[bytes, bytes] = field(default_factory=dict)
    _links: set[asyncio.StreamWriter] = field(default_factory=set)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    def start(self) -> None:
        """Listen, from now until this process ends."""
        own = [self._loop.run_until_complete(self._listen(port)) for port in self.ports]
        self.servers = ",".join(f"127.0.0.1:{port}" for port in own)
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def arm(self, trap: Trap | None) -> None:
        """Count from one again, and wait for a request."""
        self.seen = Counter()
        self.trap = trap

    def block(self, way: Way) -> None:
        """Let nothing through. Connections that there are end, where new ones are refused."""
        self.way = way
        if way is Way.REFUSING:
            self._loop.call_soon_threadsafe(self._cut_all)

    def open(self) -> None:
        """Let everything through at once. What was lost stays lost: its connections end."""
        was, self.way, self.delay_s, self.trap = self.way, Way.OPEN, 0.0, None
        if was is not Way.OPEN:
            self._loop.call_soon_threadsafe(self._cut_all)

    async def _listen(self, port: int) -> int:
        async def accept(client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
            await self._serve(client, back, port)

        server = await asyncio.start_server(accept, "127.0.0.1", 0, limit=1 << 20)
        own: int = server.sockets[0].getsockname()[1]
        self._addresses[_spell(port)] = _spell(own)
        return own

    async def _serve(
        self, client: asyncio.StreamReader, back: asyncio.StreamWriter, port: int
    ) -> None:
        if self.way is Way.REFUSING:
            back.transport.abort()
            return
        try:
            broker, forth = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        except OSError:  # the broker is down: so is its proxy
            back.transport.abort()
            return
        lost: dict[int, Trap] = {}
        pumps = (self._pass_requests(client, forth, lost), self._pass_answers(broker, back, lost))
        tasks = [asyncio.ensure_future(pump) for pump in pumps]
        self._links |= {forth, back}
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in (forth, back):
            self._links.discard(writer)
            writer.close()

    async def _pass_requests(
        self, client: asyncio.StreamReader, forth: asyncio.StreamWriter, met: dict[int, Trap]
    ) -> None:
        while frame := await _read(client):
            await asyncio.sleep(self.delay_s)
            if self.way is Way.SILENT:
                continue
            api, _, number = struct.unpack_from(">hhi", frame)
            trap = self._meet(api, frame)
            if trap and trap.strike and trap.moment is Moment.BEFORE:
                trap.strike()
            if trap and trap.loss is Loss.CUT_BEFORE:
                return
            if trap and trap.loss is Loss.CUT_DURING:
                forth.write(struct.pack(">i", len(frame)) + frame[: len(frame) // 2])
                await forth.drain()
                return
            forth.write(struct.pack(">i", len(frame)) + frame)
            await forth.drain()
            if trap and trap.loss is Loss.CUT_AFTER:
                return
            if trap:
                met[number] = trap
            if trap and trap.strike and trap.moment is Moment.AFTER:
                trap.strike()

    async def _pass_answers(
        self, broker: asyncio.StreamReader, back: asyncio.StreamWriter, met: dict[int, Trap]
    ) -> None:
        while frame := await _read(broker):
            await asyncio.sleep(self.delay_s)
            trap = met.pop(struct.unpack_from(">i", frame)[0], None)
            if self.way is Way.SILENT or (trap and trap.loss is Loss.NO_ANSWER):
                continue
            for old, new in self._addresses.items():
                frame = frame.replace(old, new)
            back.write(struct.pack(">i", len(frame)) + frame)
            await back.drain()
            if trap and trap.strike and trap.moment is Moment.ANSWERED:
                trap.strike()

    def _meet(self, api: int, frame: bytes) -> Trap | None:
        stage = tell_stage(api, frame, writing=bool(self.seen[Stage.WRITE]))
        self.seen[stage] += 1
        trap = self.trap
        return trap if trap and trap.meets(stage, self.seen[stage], api) else None

    def _cut_all(self) -> None:
        for writer in tuple(self._links):
            writer.transport.abort()


def tell_stage(api: int, frame: bytes, *, writing: bool) -> Stage:
    """Tell what a request is for. Reading after the first change is verifying.

    Requests that change topics end with whether they only validate: a byte, and in newer versions
    an empty list of tags after it.
    """
    if api == DELETE:
        return Stage.WRITE
    if api in CHANGING:
        validates = frame.endswith((b"\x01", b"\x01\x00"))
        return Stage.VALIDATE if validates else Stage.WRITE
    if api in READING:
        return Stage.VERIFY if writing else Stage.READ
    if api in LOCKING:
        return Stage.LOCK
    return Stage.RECORD if api in RECORDING else Stage.OTHER


async def _read(stream: asyncio.StreamReader) -> bytes:
    """Read a frame; nothing where the connection ended, or where it does not speak Kafka."""
    with suppress(asyncio.IncompleteReadError, OSError):
        (length,) = struct.unpack(">i", await stream.readexactly(4))
        if 8 <= length <= LARGEST or length == 4:
            return await stream.readexactly(length)
    return b""


def _spell(port: int) -> bytes:
    """Spell an address as Metadata, DescribeCluster and FindCoordinator answers do."""
    return b"127.0.0.1" + struct.pack(">i", port)
