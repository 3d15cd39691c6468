"""Moves as text, at the widths of terminals, and as one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from readings import BROKERS, LEADER, MIB, default, listed, move, rate, reading, sizes

from reconciler.errors import Finding, Severity
from reconciler.model.cluster import Broker, RateSource, StoredReplica
from reconciler.model.moves import DirectoryRate, MovesReading
from reconciler.moves.progress import measure_moves
from reconciler.show.moves_in_flight import render_moves, summarise_moves
from reconciler.styling import Paint, strip_colours

PLAIN = Paint(wanted=False)

ORDERS, LONG = "orders.events", "payments.captured.by.the.provider.and.settled.v2"
MOVING = reading(
    move(ORDERS, 0),
    move(ORDERS, 11, replicas=(5, 2, 3, 1), adding=(5,)),
    move(LONG, 3, replicas=(2, 5, 1, 3, 4), adding=(2, 5), removing=(1, 3, 4), in_sync=(1,)),
    brokers=(*BROKERS[:4], Broker(5, alive=False)),
    sizes={
        broker: of
        for broker, of in sizes(
            b1={(ORDERS, 0): 200 * MIB, (ORDERS, 11): 300 * MIB, (LONG, 3): 1500 * MIB},
            b2={(LONG, 3): 30 * MIB},
            b4={(ORDERS, 0): 50 * MIB},
        ).items()
        if broker != 5
    },
    rates=(*default(10 * MIB), rate(2, 5_000_000)),
    lists=(
        listed(ORDERS, "0:1,0:2,0:3,11:1", LEADER),
        listed(ORDERS, "0:4,11:5"),
        listed("u", "*"),
    ),
)


def earlier(now: MovesReading) -> MovesReading:
    held = dict(now.sizes) | {4: {(ORDERS, 0): 10 * MIB}, 2: {(LONG, 3): 0}}
    return replace(now, clock_s=now.clock_s - 10, sizes=held)


COMMAND = "  reconciler moves unthrottle --topic u\n"
AT_80 = """\
prod-eu · 5L6g3nShT-eMCtK--X86sw · 5 brokers, 1 not alive · 2025-11-23T00:00:00Z

3 partitions of 2 topics in flight · 4 replicas to copy
80.0 MiB of 3.4 GiB known to be done (2 %)

  partition  replicas       adds  removes  copied
orders.events
          0  2,3,1 → 4,2,3  4     1        50.0 MiB of 200.0 MiB    25 %
         11  2,3,1 → 5,2,3  5     1        ? of 300.0 MiB
payments.captured.by.the.provider.and.settled.v2
          3  1,3,4 → 2,5    2,5   1,3,4    30.0 MiB + ? of 2.9 GiB

slowest  payments.captured.by.the.provider.and.settled.v2 partition 3 to broker
         5, bytes unknown
         broker 5 is not alive

broker  still to take
     1              -
     2        1.4 GiB
     4      150.0 MiB
     5        1.8 GiB  not alive

throttles
  cluster default  leader rate        10485760 B/s (10.0 MiB/s)
                   follower rate      10485761 B/s (10.0 MiB/s)
  broker 2         follower rate      5000000 B/s (4.8 MiB/s)
  orders.events    leader replicas    0:1,0:2,0:3,11:1
                   follower replicas  0:4,11:5
  u                follower replicas  *

Throttles that nothing in flight uses are left. To remove them (add --cluster):
"""
AT_120 = """\
prod-eu · 5L6g3nShT-eMCtK--X86sw · 5 brokers, 1 not alive · 2025-11-23T00:00:00Z

3 partitions of 2 topics in flight · 4 replicas to copy
80.0 MiB of 3.4 GiB known to be done (2 %) · 7.0 MiB/s · time left unknown

  partition  replicas       adds  removes  copied
orders.events
          0  2,3,1 → 4,2,3  4     1        50.0 MiB of 200.0 MiB    25 %
         11  2,3,1 → 5,2,3  5     1        ? of 300.0 MiB
payments.captured.by.the.provider.and.settled.v2
          3  1,3,4 → 2,5    2,5   1,3,4    30.0 MiB + ? of 2.9 GiB

slowest  payments.captured.by.the.provider.and.settled.v2 partition 3 to broker 5, bytes unknown
         broker 5 is not alive

broker  still to take         in        out  time left
     1              -          -  7.0 MiB/s          -
     2        1.4 GiB  3.0 MiB/s          -      8 min
     4      150.0 MiB  4.0 MiB/s          -       38 s
     5        1.8 GiB          -          -          ?  not alive

throttles
  cluster default  leader rate        10485760 B/s (10.0 MiB/s)
                   follower rate      10485761 B/s (10.0 MiB/s)
  broker 2         follower rate      5000000 B/s (4.8 MiB/s)
  orders.events    leader replicas    0:1,0:2,0:3,11:1
                   follower replicas  0:4,11:5
  u                follower replicas  *

Throttles that nothing in flight uses are left. To remove them (add --cluster):
"""


def test_80_columns() -> None:
    text = render_moves(measure_moves(MOVING), PLAIN, width=80)
    assert text == AT_80 + COMMAND


def test_120_columns_and_rates() -> None:
    text = render_moves(measure_moves(MOVING, earlier(MOVING)), PLAIN, width=120)
    assert text == AT_120 + COMMAND


@pytest.mark.parametrize("width", [80, 120])
def test_only_commands_are_wider_than_the_terminal(width: int) -> None:
    text = render_moves(measure_moves(MOVING, earlier(MOVING)), PLAIN, width=width)
    wide = [line for line in text.splitlines() if len(line) > width]
    assert all(line.startswith("  kafka-configs --alter ") for line in wide)


def test_colours_add_nothing_to_the_text() -> None:
    report = measure_moves(MOVING)
    coloured = render_moves(report, Paint(wanted=True), width=80)
    assert strip_colours(coloured) == render_moves(report, PLAIN, width=80)
    assert "\x1b[31mbroker 5 is not alive\x1b[0m" in coloured


def test_nothing_in_flight_is_said() -> None:
    assert render_moves(measure_moves(reading()), PLAIN) == (
        "prod-eu · 5L6g3nShT-eMCtK--X86sw · 5 brokers · 2025-11-23T00:00:00Z\n"
        "\n"
        "No partition is being moved.\n"
    )


def test_what_is_not_seen_is_said() -> None:
    note = Finding("broker-silent", "broker 4 is silent", "look", severity=Severity.WARNING)
    text = render_moves(measure_moves(reading(notes=(note,))), PLAIN)
    assert text.endswith("\n\nwarning: broker 4 is silent; look [broker-silent]\n")


def test_a_reordering_has_nothing_to_copy() -> None:
    text = render_moves(
        measure_moves(reading(move(replicas=(2, 1), adding=(), removing=()))), PLAIN
    )
    assert "\n          0  2,1 → 2,1  -     -        nothing to copy\n" in text
    assert "1 partition of 1 topic in flight · 0 replicas to copy\n" in text
    assert "slowest" not in text


def test_a_screen_shows_those_that_are_farthest_behind() -> None:
    held = sizes(
        b1={("t", number): 100 for number in range(9)},
        b4={("t", number): 10 * number for number in range(9)},
    )
    report = measure_moves(reading(*(move(partition=n) for n in range(9)), sizes=held))
    text = render_moves(report, PLAIN, most=2)
    shown = [line.split()[0] for line in text.splitlines() if "→" in line]
    assert shown == ["0", "1"]
    assert "\n… 7 more partitions, farther ahead\n" in text


def test_an_unthrottled_copy_is_said_to_be_one() -> None:
    text = render_moves(measure_moves(reading(move())), PLAIN)
    assert "slowest  t partition 0 to broker 4, 100 %\n         no throttle limits it\n" in text


class TestOneLine:
    def test_a_log_has_the_time_the_bytes_and_the_slowest(self) -> None:
        assert summarise_moves(measure_moves(MOVING, earlier(MOVING))) == (
            "2025-11-23T00:00:00Z · 3 partitions of 2 topics in flight · 4 replicas to copy · "
            "80.0 MiB of 3.4 GiB known to be done (2 %) · 7.0 MiB/s · time left unknown · slowest: "
            f"{LONG} partition 3 to broker 5, bytes unknown: broker 5 is not alive · "
            "throttles left over: u"
        )

    def test_the_end_is_one_line_too(self) -> None:
        assert summarise_moves(measure_moves(reading(rates=(*default(9), rate(3, 9))))) == (
            "2025-11-23T00:00:00Z · No partition is being moved. · "
            "throttles left over: cluster default, broker 3"
        )


class TestDirectories:
    """Replicas between log directories of broker 1, under a rate of moves."""

    RATE = DirectoryRate(None, 10 * MIB + 1, RateSource.CLUSTER_DEFAULT)
    STORED: ClassVar[Mapping[Any, StoredReplica]] = {
        (ORDERS, 0): StoredReplica("/a", 200 * MIB, "/b", 50 * MIB),
        (ORDERS, 1): StoredReplica("/b", 100 * MIB),
        (ORDERS, 2): StoredReplica("/a", 0, "/b", 0),
    }

    def test_they_are_listed_with_both_directories_and_their_progress(self) -> None:
        now = reading(stored={1: self.STORED}, directory_rates=(self.RATE,))
        moving = self.STORED[ORDERS, 0]._replace(copied_bytes=40 * MIB)
        before = {1: {**self.STORED, (ORDERS, 0): moving}}
        then = replace(now, clock_s=now.clock_s - 10, stored=before)
        report = measure_moves(now, then)
        assert report.is_moving
        _, text = render_moves(report, PLAIN).split("\n\n", 1)
        assert text == (
            "2 replicas in flight between log directories · 50.0 MiB of 200.0 MiB done\n"
            "\n"
            "between log directories\n"
            "  orders.events partition 0 on broker 1  /a → /b  50.0 MiB of 200.0 MiB  25 %   "
            "1.0 MiB/s\n"
            "  orders.events partition 2 on broker 1  /a → /b  0 B of 0 B             100 %  "
            "0 B/s\n"
            "\n"
            "throttles\n"
            "  cluster default  log directories rate  10485761 B/s (10.0 MiB/s)\n"
        )
        assert "in flight between log directories" in summarise_moves(report)

    def test_a_rate_that_is_left_has_its_way_out(self) -> None:
        report = measure_moves(reading(directory_rates=(self.RATE,)))
        text = render_moves(report, PLAIN)
        assert "No partition is being moved." in text
        assert text.endswith("is left. To remove it (add --cluster):\n  reconciler moves settle\n")

    def test_a_rate_of_somebody_else_is_named(self) -> None:
        theirs = replace(self.RATE, bytes_per_s=10 * MIB)
        text = render_moves(measure_moves(reading(directory_rates=(theirs,))), PLAIN)
        assert "10485760 B/s (10.0 MiB/s), which reconciler did not set" in text
        assert "moves settle" not in text
