"""The classic group protocol, as far as a lock needs it: five requests to a group's coordinator.

Kafka Connect and Schema Registry choose their leaders by the same requests. kafka-python speaks
them; librdkafka does for consumers only.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafka.errors import (
    GroupIdNotFoundError,
    KafkaError,
    MemberIdRequiredError,
    RetriableError,
    for_code,
)
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

REQUEST_MS = 5_000
NO_GENERATION = -1


@dataclass(frozen=True, slots=True)
class Seat:
    """A member of a group, as it joins: `protocol` is what it can agree on with others."""

    group: str
    kind: str
    protocol: str
    metadata: bytes
    session_ms: int
    member_id: str = ""


@dataclass(frozen=True, slots=True)
class Occupant:
    """A member as others see it; its metadata is told once the group has formed."""

    client_id: str
    host: str
    metadata: bytes


class GroupClient:
    """Asks the coordinator of one group. Safe to share between threads.

    A broker answers the requests of a connection in order, and a join may wait for seconds: joins
    have a connection of their own. Every method raises the coordinator's error, or a RetriableError
    where no answer comes, as kafka.errors; the next one looks for the coordinator afresh.
    """

    def __init__(self, properties: Mapping[str, Any], group: str) -> None:
        logging.getLogger("kafka").addHandler(logging.NullHandler())
        self._group = group
        self._net = NetworkSelector(**properties)
        self._manager = KafkaConnectionManager(self._net, **properties)
        self._coordinator: tuple[int, str] | None = None
        self._net.start()

    def close(self) -> None:
        """Close all connections; a request under way ends with an error."""
        self._manager.close()
        self._net.close()

    def register(self, seat: Seat) -> str:
        """Have a member id given out, which joins the group only when it comes back."""
        try:
            self._ask(_join_request(seat))
        except MemberIdRequiredError as error:
            return str(error.args[0])
        raise KafkaError("a member without an id was let in")

    def join(self, seat: Seat, timeout_ms: int) -> int:
        """Be a member; the answer comes once the group has formed. Returns its generation."""
        answer = self._ask(_join_request(seat), timeout_ms, waits=True)
        return int(answer.generation_id)

    def sync(self, seat: Seat, generation: int) -> None:
        """Complete the forming of the group, as its leader."""
        assignment = SyncGroupRequest.SyncGroupRequestAssignment(
            member_id=seat.member_id, assignment=b""
        )
        request = SyncGroupRequest(
            group_id=seat.group,
            generation_id=generation,
            member_id=seat.member_id,
            protocol_type=seat.kind,
            protocol_name=seat.protocol,
            assignments=[assignment],
        )
        self._ask(request)

    def beat(self, seat: Seat, generation: int) -> None:
        """Renew the session of a member."""
        request = HeartbeatRequest(
            group_id=seat.group, generation_id=generation, member_id=seat.member_id
        )
        self._ask(request)

    def leave(self, seat: Seat) -> None:
        """Give a seat up at once."""
        member = LeaveGroupRequest.MemberIdentity(member_id=seat.member_id)
        request = LeaveGroupRequest(group_id=seat.group, member_id=seat.member_id, members=[member])
        self._ask(request)

    def describe(self) -> tuple[str, list[Occupant]]:
        """Return the protocol type and the members of the group."""
        (group,) = self._ask(DescribeGroupsRequest(groups=[self._group])).groups
        with suppress(GroupIdNotFoundError):
            self._raise_error(group)
        members = [
            Occupant(member.client_id, member.client_host.lstrip("/"), member.member_metadata)
            for member in group.members
        ]
        return group.protocol_type, members

    def _ask(self, request: Any, timeout_ms: int = REQUEST_MS, *, waits: bool = False) -> Any:
        """Send a request to the coordinator; one that `waits` takes the connection of joins."""
        answer = self._manager.run(self._send, request, timeout_ms, waits)
        self._raise_error(answer)
        return answer

    def _raise_error(self, answer: Any) -> None:
        if code := getattr(answer, "error_code", 0):
            error = for_code(code)
            if issubclass(error, RetriableError):
                self._coordinator = None
            raise error(getattr(answer, "member_id", ""))

    async def _send(self, request: Any, timeout_ms: int, waits: bool) -> Any:  # noqa: FBT001
        try:
            if self._coordinator is None:
                self._coordinator = await self._find_coordinator()
            node = self._coordinator[waits]
            sent = self._manager.send(request, node_id=node, request_timeout_ms=timeout_ms)
            return await self._manager.wait_for(sent, timeout_ms)
        except KafkaError:
            self._coordinator = None
            raise

    async def _find_coordinator(self) -> tuple[int, str]:
        """Return the coordinator's node ids: of the usual connection, and of that for joins."""
        kind = CoordinatorType.GROUP
        if not self._manager.bootstrapped:
            await self._manager.bootstrap_async(REQUEST_MS)
        request = FindCoordinatorRequest(
            key_type=kind.value, coordinator_keys=[self._group], min_version=4
        )
        found = await self._manager.wait_for(self._manager.send(request), REQUEST_MS)
        (coordinator,) = found.coordinators
        add = self._manager.cluster.add_coordinator
        usual = add(coordinator, kind, self._group, synthesize_node_id=False)
        return usual, add(coordinator, kind, self._group)


def _join_request(seat: Seat) -> Any:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name=seat.protocol, metadata=seat.metadata)
    return JoinGroupRequest(
        group_id=seat.group,
        session_timeout_ms=seat.session_ms,
        rebalance_timeout_ms=seat.session_ms,
        member_id=seat.member_id,
        protocol_type=seat.kind,
        protocols=[protocol],
        min_version=4,  # from here on, a lost answer leaves no member behind
    )
