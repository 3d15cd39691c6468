"""Amounts with units: 7d is 604800000 ms, 1GiB is 1073741824 bytes; 1 topic, 2 topics.

Only integers with unambiguous units are accepted. An error contains the correct spelling.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


class UnitError(ValueError):
    """A text is not a quantity of the scale. `way_out` says what to write, if that is known."""

    def __init__(self, what: str, way_out: str) -> None:
        self.what = what
        self.way_out = way_out
        super().__init__(f"{what}; {way_out}")


@dataclass(frozen=True, slots=True)
class Scale:
    """The units of a dimension: the accepted, the shown, and the mistaken ones.

    `mistaken` holds units that people often write, in lower case, with the amount that they most
    likely mean and the reason why they are not accepted.
    """

    noun: str
    units: Mapping[str, int]
    shown: tuple[str, ...]
    mistaken: Mapping[str, tuple[int, str]]

    @property
    def legend(self) -> str:
        """List the accepted units."""
        return ", ".join(self.units)


def _same(amount: int, *names: str, why: str = "is not a unit here") -> dict[str, tuple[int, str]]:
    return dict.fromkeys(names, (amount, why))


_NO_FIXED_LENGTH = "has no fixed length"
_DECIMAL = "may mean powers of 1000 or of 1024"

DURATION = Scale(
    noun="duration",
    units=MappingProxyType(
        {
            "ms": 1,
            "s": SECOND,
            "m": MINUTE,
            "min": MINUTE,
            "h": HOUR,
            "d": DAY,
            "w": 7 * DAY,
        }
    ),
    shown=("d", "h", "min", "s", "ms"),
    mistaken=MappingProxyType(
        {
            **_same(1, "msec", "msecs", "milli", "millis", "millisecond", "milliseconds"),
            **_same(SECOND, "sec", "secs", "second", "seconds"),
            **_same(MINUTE, "mins", "minute", "minutes"),
            **_same(HOUR, "hr", "hrs", "hour", "hours"),
            **_same(DAY, "day", "days"),
            **_same(7 * DAY, "wk", "wks", "week", "weeks"),
            **_same(30 * DAY, "mo", "mon", "month", "months", why=_NO_FIXED_LENGTH),
            **_same(365 * DAY, "y", "yr", "yrs", "year", "years", why=_NO_FIXED_LENGTH),
        }
    ),
)

_PREFIXES = ("k", "m", "g", "t")

SIZE = Scale(
    noun="size",
    units=MappingProxyType(
        {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
    ),
    shown=("TiB", "GiB", "MiB", "KiB", "B"),
    mistaken=MappingProxyType(
        _same(1, "byte", "bytes")
        | {
            spelling: (1024 ** (power + 1), _DECIMAL)
            for power, prefix in enumerate(_PREFIXES)
            for spelling in (prefix, f"{prefix}b", f"{prefix}i")
        }
    ),
)

_QUANTITY = re.compile(r"([0-9]{1,19})[ \t]*([A-Za-z]{1,12})")
_AMOUNT = re.compile(r"([+-]?)([0-9]{1,19}(?:\.[0-9]{1,19})?)[ \t]*([A-Za-z]{0,12})")
_COMPOUND = re.compile(r"(?:[0-9]{1,19}[ \t]*[A-Za-z]{1,12}[ \t]*){2,9}")


def count(number: int, noun: str) -> str:
    """Format a number with its noun: 1 topic, 2 topics, 1,000 topics."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def name_each(noun: str, ids: Collection[int]) -> str:
    """Name things by their ids: broker 1, brokers 1, 2."""
    return f"{noun}{'' if len(ids) == 1 else 's'} {', '.join(map(str, ids))}"


def approximate_size(size_bytes: float) -> str:
    """Format a number of bytes in its largest unit, to a tenth: 512 B, 4.1 MiB."""
    for unit in SIZE.shown[:0:-1]:
        if abs(size_bytes) < 1024:
            return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:,.1f} {SIZE.shown[0]}"


def approximate_duration(seconds: float) -> str:
    """Format a duration in its two largest units: 52 s, 9 min, 2 h 20 min, 3 d 4 h."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days:,} d {hours} h" if hours else f"{days:,} d"


def parse_duration(text: str) -> int:
    """Parse a duration such as `7d`. Units: milliseconds. Errors: UnitError."""
    return _parse(text, DURATION)


def parse_size(text: str) -> int:
    """Parse a size such as `1GiB`. Units: bytes. Errors: UnitError."""
    return _parse(text, SIZE)


def name_unit(number: int, scale: Scale) -> str:
    """Return the way out for a number without a unit: what it may mean, spelled with its unit.

    A small number counts larger units, as in 30 s, 7 days or 30 MiB; a large one Kafka's own.
    """
    if scale is DURATION:
        if number < SECOND:
            number = max(number, 0) or 7
            return f"write one, as in {number}s, {number}min or {number}d"
        if number >= _SURELY_MS:
            return f"write {format_duration(number)}"
        as_ms, as_s = format_duration(number), format_duration(number * SECOND)
        return f"write {as_ms} if it is milliseconds, {as_s} if it is seconds"
    if number < 1024:
        return f"write one, as in {max(number, 0) or 30}MiB"
    shown = format_size(number)
    round_one = next((f"{round(number / n)}{u}" for u, n in _FROM_LARGEST if number >= n), shown)
    return f"write {shown}" if shown == round_one else f"write {shown}, or a round {round_one}"


_SURELY_MS = 10_000_000
"""A number this large is milliseconds: it would be more than a hundred days in seconds."""
_FROM_LARGEST = tuple((unit, SIZE.units[unit]) for unit in SIZE.shown)


def format_duration(milliseconds: int) -> str:
    """Format a duration in the largest unit that is exact: 7d, 90min, 500ms."""
    return _format(milliseconds, DURATION)


def format_size(size_bytes: int) -> str:
    """Format a size in the largest unit that is exact: 1GiB, 1000B."""
    return _format(size_bytes, SIZE)


def _approximate_rate(amount: float) -> str:
    return f"{approximate_size(amount)}/s"


AMOUNTS: Mapping[str, Callable[[float], str]] = MappingProxyType(
    {
        "count": lambda amount: f"{amount:,}",
        "disk": approximate_size,
        "write": _approximate_rate,
        "read": _approximate_rate,
        "rate": _approximate_rate,
    }
)
"""How an amount is formatted, by what it is. Units: bytes, or bytes per second."""


def describe_value(key: str, value: str) -> str:
    """Format a config value for people: `7d (604800000)` if a unit is exact.

    The suffix of the key gives the dimension, as in all of Kafka's names. A value without an exact
    larger unit stays as it is, and so do limits such as -1. An empty value is two quotes.
    """
    if not value:
        return "''"
    scale = DURATION if key.endswith(".ms") else SIZE if key.endswith(".bytes") else None
    if scale is None or not re.fullmatch(r"[1-9][0-9]*", value):
        return value
    shown = _format(int(value), scale)
    return value if shown == f"{value}{scale.shown[-1]}" else f"{shown} ({value})"


def _parse(text: str, scale: Scale) -> int:
    match = _QUANTITY.fullmatch(text.strip(" \t"))
    if match and match[2] in scale.units:
        return int(match[1]) * scale.units[match[2]]
    raise _explain(re.sub(r"[ \t]+", " ", text).strip(), scale)


def _format(amount: int, scale: Scale) -> str:
    whole = (unit for unit in scale.shown if amount % scale.units[unit] == 0)
    unit = next(whole) if amount else scale.shown[-1]
    return f"{amount // scale.units[unit]}{unit}"


def _explain(text: str, scale: Scale) -> UnitError:
    """Guess what was meant, so that the message can say what to write."""
    otherwise = f"write a whole number and one of {scale.legend}"
    if _COMPOUND.fullmatch(text):
        return _explain_compound(text, scale, otherwise)
    match = _AMOUNT.fullmatch(text)
    if match is None:
        return UnitError(f"{text[:60]!r} is not a {scale.noun}", otherwise)
    sign, number, unit = match.groups()
    if sign == "-":
        return UnitError(
            f"'{text}' is a {scale.noun} below zero", "write a limit such as -1 without a unit"
        )
    if not unit and number.isdigit():
        return UnitError(f"'{text}' has no unit", name_unit(int(number), scale))
    if not unit:
        return UnitError(f"'{text}' has no unit and is not a whole number", otherwise)
    amount, why = _weigh(unit, scale)
    if amount is None:
        return UnitError(f"'{unit}' in '{text}' is not a unit of a {scale.noun}", otherwise)
    return UnitError(
        f"'{text}' is not accepted: {why or _fault(sign)}",
        _propose(Fraction(number) * amount, unit, Fraction(number), scale),
    )


def _fault(sign: str) -> str:
    return "write numbers without a plus" if sign else "only whole numbers are"


def _weigh(unit: str, scale: Scale) -> tuple[int | None, str]:
    """Return the amount of a unit, and why it is not accepted; no reason for an accepted one."""
    if unit in scale.units:
        return scale.units[unit], ""
    for name, amount in scale.units.items():
        if name.lower() == unit.lower() and len(name) > 1:
            return amount, f"the unit is written '{name}'"
    if unit == "M" and scale is DURATION:
        return 30 * DAY, f"'M', a month, {_NO_FIXED_LENGTH}"
    if unit.lower() in scale.units:
        return scale.units[unit.lower()], f"the unit is written '{unit.lower()}'"
    amount_and_why = scale.mistaken.get(unit.lower())
    if amount_and_why is None:
        return None, ""
    return amount_and_why[0], f"'{unit}' {amount_and_why[1]}"


def _propose(exact: Fraction, unit: str, number: Fraction, scale: Scale) -> str:
    if exact.denominator != 1:
        return f"write a whole number such as {_format(max(round(exact), 1), scale)}"
    proposal = f"write {_format(int(exact), scale)}"
    power = _PREFIXES.index(unit[0].lower()) + 1 if _is_decimal(unit, scale) else 0
    decimal = number * 1000**power
    if power and decimal.denominator == 1:
        proposal += f", or {decimal}B for powers of 1000"
    return proposal


def _is_decimal(unit: str, scale: Scale) -> bool:
    return unit not in scale.units and scale.mistaken.get(unit.lower(), (0, ""))[1] == _DECIMAL


def _explain_compound(text: str, scale: Scale, otherwise: str) -> UnitError:
    parts = [(int(number), _weigh(unit, scale)[0]) for number, unit in _QUANTITY.findall(text)]
    what = f"'{text}' is more than one {scale.noun}"
    if any(amount is None for _, amount in parts):
        return UnitError(what, otherwise)
    total = sum(number * (amount or 0) for number, amount in parts)
    return UnitError(what, f"write {_format(total, scale)}")
