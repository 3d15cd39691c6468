"""The hours in which moves may begin, on the clocks of a time zone.

What counts is what a clock there shows. So hours may pass midnight, and a change of summer time
needs no rule: the hour that clocks skip is in no window, and one that they repeat counts twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY_MINUTES = 24 * 60
LONGEST = timedelta(days=15)
"""Within this, every window opens and closes: summer time may skip the hours of one week."""


@dataclass(frozen=True, slots=True)
class MoveHours:
    """The hours of some days: from `begins` to `ends`, in minutes after midnight, in `zone`.

    If `ends` is not after `begins`, it is on the next day. `days` are those on which the hours
    begin, 0 is Monday.
    """

    name: str
    days: frozenset[int]
    begins: int
    ends: int
    zone: str

    def __str__(self) -> str:
        """Spell the hours: weekend (sat, sun from 22:00 to 06:00 Europe/Berlin)."""
        every = len(self.days) == len(DAYS)
        days = "every day" if every else ", ".join(DAYS[day] for day in sorted(self.days))
        begins, ends = (f"{m // 60:02}:{m % 60:02}" for m in (self.begins, self.ends))
        return f"{self.name} ({days} from {begins} to {ends} {self.zone})"

    def include(self, at: datetime) -> bool:
        """Return whether a moment, which knows its own zone, is within these hours."""
        there = at.astimezone(ZoneInfo(self.zone))
        minute, today = there.hour * 60 + there.minute, there.weekday()
        if self.begins < self.ends:
            return today in self.days and self.begins <= minute < self.ends
        began_today = today in self.days and minute >= self.begins
        return began_today or ((today - 1) % len(DAYS) in self.days and minute < self.ends)


def are_open(windows: Sequence[MoveHours], at: datetime) -> bool:
    """Return whether moves may begin at a moment. Without windows, they always may."""
    return not windows or any(window.include(at) for window in windows)


def find_change(windows: Sequence[MoveHours], at: datetime) -> datetime | None:
    """Return the first minute after a moment at which windows open, or close if they are open.

    None if they never do, as windows that fill the week. Cost: 10 µs for each minute and window.
    """
    before, minute = are_open(windows, at), at.replace(second=0, microsecond=0)
    for passed in range(1, LONGEST // timedelta(minutes=1)):
        moment = minute + timedelta(minutes=passed)
        if are_open(windows, moment) != before:
            return moment
    return None


def describe_moment(windows: Sequence[MoveHours], at: datetime) -> str:
    """Say when windows open or close, on the clocks of the one that does."""
    zone = next((w.zone for w in windows if w.include(at)), windows[0].zone if windows else "UTC")
    return f"{at.astimezone(ZoneInfo(zone)):%A %Y-%m-%d %H:%M} {zone}"
