"""The locks of a cluster: one apply at a time, one run of moves, for as long as a holder lives.

A lock is the only member of a consumer group, so it needs no topic. It is released when its
holder leaves, or when the session of a killed or frozen holder ends. Kafka cannot refuse the
requests of a former holder, so each run checks the lock before every request that changes
something; a request already sent cannot be revoked.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from reconciler.errors import ClusterError, Finding, LockHeldError, LockLostError, Severity
from reconciler.kafka.connection import REQUEST_S, Connection
from reconciler.kafka.errors import TokenError, UntranslatableError
from reconciler.kafka.offered import read_unoffered, say_unoffered
from reconciler.kafka.rights import missing_on_group
from reconciler.kafka.second_client import NoAnswerError
from reconciler.model.requests import LOCK, KafkaRequest
from reconciler.model.rights import GROUP, MOVES_GROUP
from reconciler.units import SECOND, format_duration

if TYPE_CHECKING:
    from kafka.errors import KafkaError

    from reconciler.kafka.group import GroupClient, Member, Membership

KIND = "reconciler"
SESSION_MS = 10_000  # within the default limits of brokers: 6 s to 30 min

POLL_S = 0.5
FORMING_S = 4.0  # by then a new group shows its members, unless a broker's delay was raised

NOT_SHOWN = "a client that does not show"
OURSELVES = "this run itself, whose last release the brokers did not get"
"""The holder while a coordinator moves: it expires with the session."""

WITHOUT = {
    GROUP: "pass --no-lock if a CI concurrency group or the like prevents other applies",
    MOVES_GROUP: "pass --no-lock if a CI concurrency group or the like prevents other moves",
}


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of a lock, as shown to others. `since` is a time in ISO 8601."""

    user: str
    host: str
    pid: int
    since: str
    fingerprint: str = ""
    commit: str = ""

    def __str__(self) -> str:
        commit = f", commit {self.commit}" if self.commit else ""
        plan = f", plan {self.fingerprint}" if self.fingerprint else ""
        return f"{self.user}@{self.host} (process {self.pid}) since {self.since}{plan}{commit}"


@dataclass(frozen=True, slots=True)
class Waiting:
    """Progress: how long a run has waited for a lock, and who holds it."""

    holder: str
    waited_s: float


@contextmanager
def hold_lock(
    connection: Connection,
    holder: Holder,
    *,
    group: str = GROUP,
    patience_s: float = 0.0,
    observe: Callable[[Waiting], None] = lambda _: None,
) -> Iterator[ClusterLock]:
    """Hold a lock of a cluster in a block; wait for it up to `patience_s`.

    `group` is GROUP or MOVES_GROUP; the two locks do not exclude each other.

    Errors: LockHeldError that names the holder; ClusterError if there can be no lock.
    Cost: 0.2 s, most of it the import and the connections of the second client.
    """
    client = _open_client(connection, group)
    try:
        lock = _Taking(connection, client, holder, group, observe).take(patience_s)
        try:
            yield lock
        finally:
            lock.membership.leave()  # otherwise the next run waits until the session has ended
    finally:
        client.close()


@dataclass(frozen=True, slots=True)
class ClusterLock:
    """A lock that is held; implements Lease."""

    name: str
    membership: Membership

    def check(self) -> None:
        """Ask the cluster. Cost: a heartbeat, 1 to 3 ms."""
        from reconciler.kafka.group import MembershipLostError

        try:
            self.membership.check()
        except MembershipLostError as error:
            what = f"the lock of {self.name} is lost: {error}"
            way_out = "check what another run changed, then plan again"
            raise LockLostError([Finding("lock-lost", what, way_out)]) from error


@dataclass(frozen=True, slots=True)
class _Taking:
    """One attempt to take a lock, and the holder it finds."""

    connection: Connection
    client: GroupClient
    holder: Holder
    group: str
    observe: Callable[[Waiting], None]

    @property
    def name(self) -> str:
        """What is locked, for messages."""
        return _name_locked(self.connection, self.group)

    def take(self, patience_s: float) -> ClusterLock:
        """Retry until the lock is taken, or the time is up."""
        from kafka.errors import KafkaError

        started = time.monotonic()
        try:
            while (lock := self._ask()) is None:
                found = self._find_holder()
                # Without a holder the group has emptied meanwhile, so it is tried again at once. A
                # run that does not wait does so as well, for as long as a group may be forming.
                waited_s = time.monotonic() - started
                if waited_s >= patience_s and (found or waited_s > patience_s + FORMING_S):
                    raise self._refuse(found or NOT_SHOWN, patience_s)
                if found:
                    self.observe(Waiting(found, waited_s))
                time.sleep(POLL_S if found else 0.05)
        except KafkaError as error:
            raise self._fail(error) from error
        return lock

    def _ask(self) -> ClusterLock | None:
        from reconciler.kafka.group import PATIENCE_S, RETRY_S, VOID, Membership

        deadline = time.monotonic() + PATIENCE_S
        while True:
            # A new member for each try: the coordinator does not know the former one's id.
            membership = Membership(self.client, self._make_member())
            try:
                return ClusterLock(self.name, membership) if membership.take() else None
            except VOID:  # a coordinator that moves forgets the ids that it gave out
                if time.monotonic() > deadline:
                    raise
                time.sleep(RETRY_S)
            except BaseException:  # such as an interrupt: the coordinator would not notice
                membership.leave()
                raise

    def _make_member(self) -> Member:
        from reconciler.kafka.group import Member

        told = json.dumps(asdict(self.holder)).encode()
        return Member(self.group, KIND, uuid.uuid4().hex, told, SESSION_MS)

    def _find_holder(self) -> str:
        """Return the holder of the lock, "" if there is none any more.

        A group that is forming does not show its member's metadata yet, and a coordinator that
        moves shows no group.
        """
        from reconciler.kafka.group import PASSING

        deadline = time.monotonic() + FORMING_S
        found = NOT_SHOWN
        while True:
            try:
                kind, members = self.client.describe()
            except PASSING:
                kind, members = KIND, None
            if members == []:
                return ""
            if members:
                told = _read_holder(members[0].metadata)
                told = OURSELVES if told == str(self.holder) else told
                found = told or f"a client on {members[0].host} ({members[0].client_id})"
                # A group of another kind has taken the name: its metadata will never be ours.
                if told or kind != KIND:
                    return found
            if time.monotonic() > deadline:
                return found
            time.sleep(0.1)

    def _refuse(self, found: str, patience_s: float) -> LockHeldError:
        be = "are" if self.group == MOVES_GROUP else "is"
        what = f"{self.name} {be} locked"
        if patience_s:
            waited = format_duration(round(patience_s * SECOND))
            what = f"{self.name} {be} still locked after {waited}"
        way_out = (
            "wait for it with --lock-timeout 10m; the lock of a run that died expires "
            f"within {format_duration(SESSION_MS)}"
        )
        return LockHeldError([Finding("lock-held", f"{what} by {found}", way_out)])

    def _fail(self, error: KafkaError) -> ClusterError:
        from kafka.errors import GroupAuthorizationFailedError

        without = WITHOUT[self.group]
        if isinstance(error, GroupAuthorizationFailedError):
            return ClusterError(
                [missing_on_group(self.connection, "Read", self.group, WITHOUT[self.group])]
            )
        from reconciler.kafka.group import UnofferedError, name_kafka_error

        if isinstance(error, UnofferedError):
            lacking = say_unoffered(self.connection.entry.name, error.requests)
            what = f"the lock of {self.name} cannot be taken: {lacking}"
            return ClusterError([Finding("lock-unavailable", what, without)])
        what = f"the lock of {self.name} cannot be taken: {name_kafka_error(error)}"
        way_out = f"check that the brokers with __consumer_offsets are healthy; {without}"
        return ClusterError([Finding("lock-unavailable", what, way_out)])


def check_requests(connection: Connection) -> tuple[frozenset[KafkaRequest], list[Finding]]:
    """Find the requests that brokers do not offer, and say why applies can take no lock.

    As far as an account that plans can know. Returns: also an error if what a lock asks for is
    among them; a warning for settings that only librdkafka takes, with which it is known that
    `--no-lock` is needed, and not what is offered. Cost: 0.2 s.
    """
    from kafka.errors import KafkaError

    name = connection.entry.name
    try:
        unoffered = read_unoffered(connection)
    except UntranslatableError as error:
        if any(note.rule == "lock-unavailable" for note in connection.entry.notes):
            return frozenset(), []  # validate said so
        what = f"apply takes the lock of {name} with a second client: {error}"
        warning = Finding("lock-unavailable", what, WITHOUT[GROUP], severity=Severity.WARNING)
        return frozenset(), [warning]
    except (NoAnswerError, KafkaError):  # apply may get an answer
        return frozenset(), []
    lacking = unoffered.intersection(LOCK)
    if not lacking:
        return unoffered, []
    what = f"{say_unoffered(name, lacking)}, so apply can take no lock"
    return unoffered, [Finding("lock-unavailable", what, WITHOUT[GROUP])]


def _name_locked(connection: Connection, group: str) -> str:
    cluster = connection.entry.name
    return f"moves of {cluster}" if group == MOVES_GROUP else cluster


def _open_client(connection: Connection, group: str) -> GroupClient:
    """Open a second client with the same settings to the live brokers."""
    from reconciler.kafka.group import GroupClient
    from reconciler.kafka.second_client import translate_settings

    what = f"asking for the brokers of {connection.entry.name}"
    nodes = connection.ask(
        lambda client: client.describe_cluster(request_timeout=REQUEST_S).result().nodes, what
    )
    try:
        return GroupClient(translate_settings(connection.settings, nodes), group)
    except UntranslatableError as error:
        what = f"the lock of {_name_locked(connection, group)} is taken by a second client: {error}"
        raise ClusterError([Finding("lock-unavailable", what, WITHOUT[group])]) from None
    except TokenError as error:
        what = f"the lock of {_name_locked(connection, group)} is taken by a second client: {error}"
        way_out = f"{error.way_out}, then run it again; {WITHOUT[group]}"
        raise ClusterError([Finding("lock-unavailable", what, way_out)]) from error


def _read_holder(metadata: bytes) -> str:
    """Read a holder's metadata; "" if it is not in our format."""
    try:
        told: Any = json.loads(metadata)
        return str(Holder(**told))
    except (ValueError, TypeError):
        return ""
