"""Windows of moves: open exactly while a clock there shows their hours, also when clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.hours import (
    DAY_MINUTES,
    MoveHours,
    are_open,
    describe_moment,
    find_change,
)

BERLIN = "Europe/Berlin"
ZONES = (BERLIN, "UTC", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kolkata", "Africa/Cairo")
WEEKEND = MoveHours("weekend", frozenset({5, 6}), 22 * 60, 6 * 60, BERLIN)
NIGHT = MoveHours("night", frozenset(range(7)), 60, 150, BERLIN)
"""Every night from 01:00 to 02:30, in whose midst clocks change."""

START = datetime(2026, 1, 1, tzinfo=UTC)
MOMENTS = st.timedeltas(timedelta(0), timedelta(days=730)).map(lambda passed: START + passed)


@st.composite
def draw_windows(draw: st.DrawFn) -> tuple[MoveHours, ...]:
    def one(number: int) -> MoveHours:
        days = draw(st.frozensets(st.integers(0, 6), min_size=1))
        begins = draw(st.integers(0, DAY_MINUTES - 1))
        ends = draw(st.integers(1, DAY_MINUTES))
        return MoveHours(f"w{number}", days, begins, ends, draw(st.sampled_from(ZONES)))

    return tuple(one(number) for number in range(draw(st.integers(1, 2))))


def list_hours(window: MoveHours, around: datetime) -> list[tuple[datetime, datetime]]:
    """List the wall times, without a zone, of the hours that begin within a day of a moment."""
    there = around.astimezone(ZoneInfo(window.zone)).replace(tzinfo=None)
    midnight = there.replace(hour=0, minute=0, second=0, microsecond=0)
    midnights = [midnight + timedelta(n) for n in (-1, 0)]
    length = (window.ends - window.begins - 1) % DAY_MINUTES + 1
    begins = [each + timedelta(minutes=window.begins) for each in midnights
              if each.weekday() in window.days]  # fmt: skip
    return [(each, each + timedelta(minutes=length)) for each in begins]


@given(draw_windows(), MOMENTS)
def test_moves_begin_exactly_while_a_clock_there_shows_the_hours(
    windows: tuple[MoveHours, ...], at: datetime
) -> None:
    shown = (
        begins <= at.astimezone(ZoneInfo(window.zone)).replace(tzinfo=None) < ends
        for window in windows
        for begins, ends in list_hours(window, at)
    )
    assert are_open(windows, at) == any(shown)


@given(draw_windows(), MOMENTS)
def test_nothing_changes_before_the_change_that_is_found(
    windows: tuple[MoveHours, ...], at: datetime
) -> None:
    change, now = find_change(windows, at), are_open(windows, at)
    last = at + timedelta(days=8) if change is None else change
    assert change is None or change > at
    assert change is None or are_open(windows, change) != now
    step = max((last - at) / 50, timedelta(seconds=1))
    for passed in range(50):
        moment = at + step * passed
        assert moment >= last or are_open(windows, moment) == now


def test_a_window_is_open_at_its_first_minute_and_closed_at_its_last() -> None:
    def local(text: str) -> datetime:
        return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(BERLIN))

    opens, closes = local("2026-12-05 22:00"), local("2026-12-06 06:00")  # a Saturday
    second = timedelta(seconds=1)
    states = [are_open([WEEKEND], at) for at in (opens - second, opens, closes - second, closes)]
    assert states == [False, True, True, False]
    # Sunday's hours begin on Sunday evening; none begin on Monday.
    assert are_open([WEEKEND], local("2026-12-07 05:59"))
    assert not are_open([WEEKEND], local("2026-12-07 22:30"))
    assert find_change([WEEKEND], local("2026-12-02 12:00")) == opens
    assert describe_moment([WEEKEND], opens) == "Saturday 2026-12-05 22:00 Europe/Berlin"


@pytest.mark.parametrize(
    ("opens", "hours"),
    [
        # In autumn, clocks go back from 03:00 to 02:00: they show 02:00 to 02:30 twice.
        ("2026-10-25T00:00:00+02:00", ["01:00", "02:30", "02:00", "02:30"]),
        # In spring, they go from 02:00 to 03:00: the last half hour is in no window.
        ("2026-03-29T00:00:00+01:00", ["01:00", "03:00"]),
        ("2026-06-01T00:00:00+02:00", ["01:00", "02:30"]),
    ],
)
def test_clocks_that_change_shorten_the_hours_or_repeat_them(opens: str, hours: list[str]) -> None:
    at, shown = datetime.fromisoformat(opens), []
    until = at + timedelta(hours=12)
    while (change := find_change([NIGHT], at)) and change < until:
        shown.append(f"{change.astimezone(ZoneInfo(BERLIN)):%H:%M}")
        at = change
    assert shown == hours


def test_windows_that_fill_the_week_never_close() -> None:
    all_week = MoveHours("always", frozenset(range(7)), 0, DAY_MINUTES, BERLIN)
    assert find_change([all_week], datetime(2026, 12, 1, tzinfo=UTC)) is None
    assert are_open([], datetime(2026, 12, 1, tzinfo=UTC))
