"""The classic group protocol, as far as a lock needs it: one member, kept alive by heartbeats.

Kafka Connect and Schema Registry elect their leaders by the same requests. kafka-python supports
them; librdkafka does so for consumers only.

Members of a group have to agree on a protocol. Each of our members offers a unique one. The
coordinator takes one request at a time, so it admits the first member and refuses every other
(INCONSISTENT_GROUP_PROTOCOL), without disturbing the first.

A new group forms after group.initial.rebalance.delay.ms, 3 s by default, but its first member is
admitted at once: the coordinator knows its id, and that is enough for a lock.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from kafka.errors import (
    FencedInstanceIdError,
    GroupIdNotFoundError,
    GroupMaxSizeReachedError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    KafkaError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    RetriableError,
    UnknownBrokerIdError,
    UnknownMemberIdError,
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

from reconciler.kafka.offered import OLDEST, list_unoffered
from reconciler.model.requests import LOCK, KafkaRequest

REQUEST_MS = 5_000
NO_GENERATION = -1


@dataclass(frozen=True, slots=True)
class Member:
    """A member that joins a group: `protocol` must match that of the other members."""

    group: str
    kind: str
    protocol: str
    metadata: bytes
    session_ms: int
    member_id: str = ""


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """A member as others see it; its metadata is available once the group has formed."""

    client_id: str
    host: str
    metadata: bytes


class UnofferedError(KafkaError):  # type: ignore[misc]
    """The brokers do not offer requests that a lock needs."""

    def __init__(self, requests: frozenset[KafkaRequest]) -> None:
        super().__init__(requests)
        self.requests = requests


class GroupClient:
    """A client of the coordinator of one group. Safe to share between threads.

    A broker answers the requests of a connection in order, and a join may wait for seconds: joins
    have a connection of their own. Every method raises the coordinator's error, or a RetriableError
    if no answer comes, as kafka.errors; the next call looks up the coordinator again.
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

    def register(self, member: Member) -> str:
        """Request a member id; the member joins only when it sends this id back."""
        # Before the coordinator gives out an id (KIP-394), it compares the protocols with those of
        # the members: a group that is taken refuses here.
        try:
            self._ask(_join_request(member))
        except MemberIdRequiredError as error:
            return str(error.args[0])
        raise KafkaError("a member without an id was let in")

    def join(self, member: Member, timeout_ms: int) -> int:
        """Join the group; the answer comes once the group has formed. Returns its generation."""
        answer = self._ask(_join_request(member), timeout_ms, waits=True)
        return int(answer.generation_id)

    def sync(self, member: Member, generation: int) -> None:
        """Complete the forming of the group, as its leader."""
        # There is nothing to assign. But until its leader has synced, a group is not stable, and
        # only a stable group shows others the metadata of its members.
        assignment = SyncGroupRequest.SyncGroupRequestAssignment(
            member_id=member.member_id, assignment=b""
        )
        request = SyncGroupRequest(
            group_id=member.group,
            generation_id=generation,
            member_id=member.member_id,
            protocol_type=member.kind,
            protocol_name=member.protocol,
            assignments=[assignment],
        )
        self._ask(request)

    def beat(self, member: Member, generation: int) -> None:
        """Renew the session of a member."""
        request = HeartbeatRequest(
            group_id=member.group, generation_id=generation, member_id=member.member_id
        )
        self._ask(request)

    def leave(self, member: Member) -> None:
        """Leave the group at once."""
        # Brokers read `members` from version 3 of the request on (KIP-345), `member_id` before.
        identity = LeaveGroupRequest.MemberIdentity(member_id=member.member_id)
        request = LeaveGroupRequest(
            group_id=member.group, member_id=member.member_id, members=[identity]
        )
        self._ask(request)

    def describe(self) -> tuple[str, list[MemberDescription]]:
        """Return the protocol type and the members of the group."""
        (group,) = self._ask(DescribeGroupsRequest(groups=[self._group])).groups
        # A group that does not exist is an error from version 6 on (KIP-1043), and a group without
        # members before.
        with suppress(GroupIdNotFoundError):
            self._raise_error(group)
        members = [
            MemberDescription(
                member.client_id, member.client_host.lstrip("/"), member.member_metadata
            )
            for member in group.members
        ]
        return group.protocol_type, members

    def _ask(self, request: Any, timeout_ms: int = REQUEST_MS, *, waits: bool = False) -> Any:
        """Send a request to the coordinator; one that `waits` uses the connection for joins."""
        answer = self._manager.run(self._send, request, timeout_ms, waits)
        self._raise_error(answer)
        return answer

    def _raise_error(self, answer: Any) -> None:
        if code := getattr(answer, "error_code", 0):
            error = for_code(code)
            if issubclass(error, RetriableError):
                self._coordinator = None
            raise error(getattr(answer, "member_id", ""))  # for MEMBER_ID_REQUIRED: the new id

    async def _send(self, request: Any, timeout_ms: int, waits: bool) -> Any:  # noqa: FBT001
        try:
            # The thread of a caller may forget the coordinator meanwhile: read it once.
            nodes = self._coordinator
            if nodes is None:
                nodes = self._coordinator = await self._find_coordinator()
            sent = self._manager.send(request, node_id=nodes[waits], request_timeout_ms=timeout_ms)
            return await self._manager.wait_for(sent, timeout_ms)
        except KafkaError:
            self._coordinator = None
            raise

    async def _find_coordinator(self) -> tuple[int, str]:
        """Return the coordinator's node ids for the usual connection and for that of joins."""
        kind = CoordinatorType.GROUP
        if not self._manager.bootstrapped:
            await self._manager.bootstrap_async(REQUEST_MS)
        # Before the first request: what is not offered would end a lock that is held.
        if lacking := list_unoffered(self).intersection(LOCK):
            raise UnofferedError(lacking)
        request = FindCoordinatorRequest(
            key_type=kind.value,
            coordinator_keys=[self._group],
            min_version=OLDEST[KafkaRequest.FIND_COORDINATOR][1],
        )
        found = await self._manager.wait_for(self._manager.send(request), REQUEST_MS)
        (coordinator,) = found.coordinators
        # Connections are told apart by node id. The same broker under a second, made-up id gets a
        # second connection.
        add = self._manager.cluster.add_coordinator
        usual = add(coordinator, kind, self._group, synthesize_node_id=False)
        return usual, add(coordinator, kind, self._group)


def _join_request(member: Member) -> Any:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(
        name=member.protocol, metadata=member.metadata
    )
    return JoinGroupRequest(
        group_id=member.group,
        session_timeout_ms=member.session_ms,
        rebalance_timeout_ms=member.session_ms,
        member_id=member.member_id,
        protocol_type=member.kind,
        protocols=[protocol],
        min_version=OLDEST[KafkaRequest.JOIN_GROUP][1],
    )


BEAT_S = 3.0  # below a third of the session, as Kafka advises: two may be lost
RETRY_S = 0.25
JOIN_MS = 120_000  # well over any delay before a group forms
PATIENCE_S = 30.0  # a coordinator that dies is replaced within some ten seconds

_TAKEN = (InconsistentGroupProtocolError, GroupMaxSizeReachedError)
_REBALANCING = (RebalanceInProgressError, IllegalGenerationError)
PASSING = (RetriableError, UnknownBrokerIdError)
VOID = (UnknownMemberIdError, MemberIdRequiredError, FencedInstanceIdError)
"""The coordinator does not know the member id: the session expired, or another coordinator took
over and never knew the id."""


class MembershipLostError(Exception):
    """The membership is lost; says why."""


class Membership:
    """One membership: requested, confirmed, released. `check` may be called from any thread."""

    def __init__(self, client: GroupClient, member: Member) -> None:
        self._client = client
        self._member = member
        self._generation = NO_GENERATION
        self._formed = False
        self._end: KafkaError | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True)

    def take(self) -> bool:
        """Request the membership. Returns False if another process has it.

        Errors: one of VOID if the coordinator forgets the id at once, so that another id must be
        requested; KafkaError if it refuses for another reason, or does not answer.
        """
        deadline = time.monotonic() + PATIENCE_S
        if not self._register(deadline):
            return False
        # The thread joins, and that may wait for group.initial.rebalance.delay.ms. Meanwhile this
        # one asks by heartbeats, on the other connection, whether the coordinator knows the id as a
        # member. Another process may be admitted before: then the join ends with one of _TAKEN.
        self._thread.start()
        while self._end is None:
            try:
                if self._is_member():
                    return True
            except PASSING:
                if time.monotonic() > deadline:
                    self.leave()
                    raise
            time.sleep(0.01)
        self.leave()
        if isinstance(self._end, _TAKEN):
            return False
        raise self._end

    def check(self) -> None:
        """Ask the coordinator whether we are still its member. Errors: MembershipLostError."""
        deadline = time.monotonic() + PATIENCE_S
        while self._end is None:
            try:
                if self._is_member():
                    return
                self._end = UnknownMemberIdError()
            except KafkaError as error:
                # A coordinator that moves takes the group along: its members are still members.
                if not isinstance(error, PASSING) or time.monotonic() > deadline:
                    self._end = error
            if self._end is None:
                time.sleep(RETRY_S)
        if isinstance(self._end, VOID):
            raise MembershipLostError("its session ran out")
        raise MembershipLostError(
            f"the coordinator does not confirm it: {name_kafka_error(self._end)}"
        )

    def leave(self) -> None:
        """Leave the group, or release the id; otherwise the session expires."""
        self._over.set()  # first: a heartbeat after the departure would look like a lost session
        try:
            self._client.leave(self._member)
        except KafkaError:
            return
        if self._thread.is_alive():
            self._thread.join(1.0)

    def _register(self, deadline: float) -> bool:
        """Request a member id. Returns False if another process has the membership."""
        while True:
            try:
                member_id = self._client.register(self._member)
            except _TAKEN:
                return False
            except PASSING:
                if time.monotonic() > deadline:
                    raise
                time.sleep(RETRY_S)
            else:
                self._member = replace(self._member, member_id=member_id)
                return True

    def _is_member(self) -> bool:
        """Send a heartbeat. Errors: KafkaError if it is not answered.

        For a member that it knows, the coordinator may answer that the group is forming or has
        another generation. For a removed member it answers that the id is unknown. Ids are never
        reused.
        """
        generation = self._generation
        try:
            self._client.beat(self._member, generation)
        except _REBALANCING:
            # Only an answer to the generation that still counts says that the group has to form
            # again. The thread may have got a newer one while the heartbeat was under way.
            if NO_GENERATION != generation == self._generation:
                self._formed = False
        except VOID:
            return False
        return True

    def _keep(self) -> None:
        """Form the group, then send heartbeats, until the membership is released or lost."""
        while not self._over.is_set() and self._end is None:
            try:
                if not self._formed:
                    self._form()
                elif not self._over.wait(BEAT_S) and not self._is_member():
                    self._end = UnknownMemberIdError()
            except (*PASSING, *_REBALANCING):
                self._over.wait(RETRY_S)
            except KafkaError as error:
                self._end = error

    def _form(self) -> None:
        """Wait until the group has formed, and lead it. A lost answer may be asked for again."""
        generation = self._client.join(self._member, JOIN_MS)
        self._client.sync(self._member, generation)
        self._generation = generation
        self._formed = True


def name_kafka_error(error: KafkaError) -> str:
    """Name an error as the Kafka protocol does, or by the failure of the connection."""
    return str(getattr(error, "message", None) or type(error).__name__)
