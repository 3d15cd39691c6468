"""The rate of copies between log directories: set for what moves, and removed afterwards.

It is the cluster default of one broker config, which limits all such copies of a broker together,
whoever moves them. Rates of others stay: a run goes on under a lower one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from reconciler.errors import ClusterError, Finding
from reconciler.model.cluster import RateSource
from reconciler.model.moves import (
    DIRECTORY_RATE,
    DirectoryRate,
    MovesReading,
    PlannedMoves,
    mark_directory_rate,
)
from reconciler.model.outcomes import AnswerKind
from reconciler.moves.guards import least_rate, name_rate
from reconciler.moves.running.writes import Writes
from reconciler.run.ports import ClusterMover

LEFT = "#directories"
"""What is left of the rate, among the texts by topic: no topic has such a name."""


def find_rate(reading: MovesReading, broker: int | None) -> DirectoryRate | None:
    """Return the rate in force on a broker, or the cluster default; None if there is none."""
    return next((rate for rate in reading.directory_rates if rate.broker == broker), None)


def judge_directory_rates(
    reading: MovesReading, moves: PlannedMoves, brokers: Collection[int]
) -> Iterator[Finding]:
    """Refuse rates of others that make the rate of a plan untrue, or under which it never ends."""
    wanted, least = moves.policy.rate_bytes_per_s, least_rate(moves)
    for broker in sorted(brokers):
        rate = find_rate(reading, broker)
        if rate is None or rate.is_of_moves:
            continue
        amount = name_rate(rate.bytes_per_s)
        of_all = rate.source is RateSource.CLUSTER_DEFAULT
        what = f"broker {broker} has a rate of {amount} between log directories"
        if wanted is not None and rate.bytes_per_s > wanted:
            what += f", more than the {wanted} B/s of the plan"
        elif rate.bytes_per_s < least:
            what += f", less than the {least} B/s that the moves need to end"
        else:
            continue
        entity = "--entity-default" if of_all else f"--entity-name {broker}"
        way_out = f"kafka-configs --alter --entity-type brokers {entity} --delete-config "
        way_out += DIRECTORY_RATE
        if rate.source is RateSource.STATIC:
            way_out = f"remove {DIRECTORY_RATE} from server.properties, and restart the broker"
        yield Finding("moves-rate-taken", f"{what}, which reconciler did not set", way_out)


@dataclass(slots=True)
class DirectoryThrottle:
    """Sets and removes the rate of a run between log directories.

    `policy_rate` is that of the plan in bytes per second and broker, None for no limit, or if
    brokers take none.
    """

    policy_rate: int | None
    mover: ClusterMover
    writes: Writes

    @property
    def _wanted(self) -> int | None:
        return None if self.policy_rate is None else mark_directory_rate(self.policy_rate)

    def find_limit(self, reading: MovesReading, brokers: Collection[int]) -> int | None:
        """Return the lowest rate of some brokers, as it is or will be; None for no limit."""
        shown = (find_rate(reading, broker) for broker in brokers)
        rates = [rate.bytes_per_s for rate in shown if rate is not None]
        return min(rates, default=self._wanted)

    def keep(self, reading: MovesReading) -> None:
        """Set the rate, unless somebody else has set one. Errors: ClusterError if it is refused."""
        now = find_rate(reading, None)
        if self._wanted is None or (now is not None and not now.is_of_moves):
            return
        if now is None or now.bytes_per_s != self._wanted:
            self._write(self._wanted)

    def name_unready(self, reading: MovesReading, brokers: Collection[int]) -> str:
        """Name a broker that does not show a rate yet; empty if all of them do."""
        for broker in sorted(brokers) if self._wanted is not None else ():
            rate = find_rate(reading, broker)
            if rate is None or (rate.is_of_moves and rate.bytes_per_s != self._wanted):
                return f"broker {broker} does not show the rate between its log directories"
        return ""

    def remove(self, reading: MovesReading, left: dict[str, str]) -> bool:
        """Remove a rate of moves if nothing uses it. `left` gets why it is still set.

        Returns: whether none is left that is to be removed now.
        """
        if reading.own_directory_rate is None or reading.is_relocating:
            return True  # it stays for what is in flight
        self._write(None)
        left[LEFT] = "the throttle rate between log directories is still set"
        return False

    def _write(self, value: int | None) -> None:
        text = None if value is None else str(value)
        if not self.writes.is_due(("", DIRECTORY_RATE), text):
            return
        self.writes.check_right()
        self.writes.mark(("", DIRECTORY_RATE), text)
        answer = self.mover.set_directory_rate(value)
        if answer.kind is AnswerKind.REFUSED:
            said = answer.text or answer.error
            what = f"the brokers refuse the throttle rate between log directories: {said}"
            way_out = "grant AlterConfigs on the cluster, then run the same command again"
            raise ClusterError([Finding("cluster-answer", what, way_out)])
