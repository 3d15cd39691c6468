"""How a broker reads one config value, and how it prints it afterwards.

This follows ConfigDef.parseType and convertToString: blanks around values and commas are removed,
booleans become lower case, and doubles are printed as in Java. It is stricter than a broker if a
spelling is ambiguous: see `_SPELLED_OTHERWISE`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from fractions import Fraction
from math import copysign

from reconciler.spec.catalogue import ConfigKey, ConfigType
from reconciler.spec.config_docs import Dimension
from reconciler.spec.values import quote
from reconciler.units import UnitError, describe_value, parse_duration, parse_size

TRIMMED = "".join(map(chr, range(0x21)))
"""The characters that String.trim() removes from both ends: everything up to the blank."""

_BOUNDS = {
    ConfigType.INT: (-(1 << 31), (1 << 31) - 1),
    ConfigType.LONG: (-(1 << 63), (1 << 63) - 1),
}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_AROUND_COMMAS = " \t\n\x0b\f\r"
_DIGITS_AT_MOST = 20

# Numbers in other spellings. Brokers accept the first two, but YAML, shells and people disagree on
# the value of 012, so all of them are refused.
_SPELLED_OTHERWISE: tuple[tuple[re.Pattern[str], Callable[[str], Fraction | int]], ...] = (
    (re.compile(r"\+[0-9]{1,20}"), int),
    (re.compile(r"-?0[0-9]{1,20}"), int),
    (re.compile(r"[+-]?[0-9]{1,3}([_,'])[0-9]{3}(\1[0-9]{3}){0,5}"), lambda t: int(_ungroup(t))),
    (re.compile(r"0[xX][0-9a-fA-F]{1,16}"), lambda text: int(text, 16)),
    (re.compile(r"0[oO][0-7]{1,21}"), lambda text: int(text, 8)),
    (re.compile(r"[+-]?[0-9]{1,19}\.[0-9]{0,19}"), Fraction),
    (re.compile(r"[+-]?[0-9]{1,19}(\.[0-9]{1,19})?[eE]\+?[0-9]{1,2}"), Fraction),
)

_FLAGS_OTHERWISE = {
    **dict.fromkeys(("yes", "y", "on", "1", "t", "enabled", "enable"), "true"),
    **dict.fromkeys(("no", "n", "off", "0", "f", "disabled", "disable"), "false"),
}
RECORD_FORMAT = "message.format.version"
"""Its values are versions. Brokers accept more of them than they list as choices."""
_UNRELEASED = "4.0"
"""Kafka 3.9, the last line with that config, lists versions of 4.0, which was not out yet."""

_CHOICES_OTHERWISE = {"none": "uncompressed", "zstandard": "zstd", "gz": "gzip"}


class RefusedValueError(ValueError):
    """A value that the broker refuses or that is ambiguous: rule, message, way out."""

    def __init__(self, rule: str, what: str, way_out: str) -> None:
        self.rule = rule
        self.what = what
        self.way_out = way_out
        super().__init__(what)


def spell_value(key: ConfigKey, dimension: Dimension | None, text: str) -> str:
    """Spell a value as the broker reports it afterwards. Errors: RefusedValueError."""
    trimmed = text.strip(TRIMMED)
    match key.type:
        case ConfigType.INT | ConfigType.LONG:
            return _spell_integer(key, dimension, trimmed)
        case ConfigType.DOUBLE:
            return _spell_double(key, trimmed)
        case ConfigType.BOOLEAN:
            return _spell_flag(key, trimmed)
        case ConfigType.LIST:
            return _spell_list(key, trimmed)
        case ConfigType.STRING:
            return _spell_choice(key, trimmed)


def split_list(text: str) -> tuple[str, ...]:
    """Split a LIST value as the broker does; the empty text is the empty list."""
    trimmed = text.strip(TRIMMED)
    return tuple(item.strip(_AROUND_COMMAS) for item in trimmed.split(",")) if trimmed else ()


def spell_double(number: float) -> str:
    """Print a finite number as Java's Double.toString does: 0.5, 1.0, 1.0E-4."""
    if number == 0:
        return "-0.0" if copysign(1, number) < 0 else "0.0"
    if 1e-3 <= abs(number) < 1e7:
        return repr(number)
    digits, _, exponent = f"{number!r}".lower().partition("e")
    return _scientific(digits, int(exponent or 0))


def describe_range(key: ConfigKey) -> str:
    """Name the numbers that a config takes: `1 to 9, or -1`."""
    least, most = limits(key)
    holds_all = most == _BOUNDS.get(key.type, (0, None))[1]
    span = f"{least} or more" if holds_all else f"{least} to {most}"
    return span + "".join(f", or {number}" for number in key.also)


def limits(key: ConfigKey) -> tuple[int, int]:
    """Return the minimum and maximum of a number, by its own range or its type's."""
    least, most = _BOUNDS.get(key.type, (0, 0))
    return (
        least if key.minimum is None else key.minimum,
        most if key.maximum is None else key.maximum,
    )


def _check_range(key: ConfigKey, number: float, shown: str) -> None:
    least, most = limits(key)
    if least <= number <= most or number in key.also:
        return
    side = f"below {least}" if number < least else f"above {most}"
    raise RefusedValueError(
        "config-range", f"{key.name} {shown} is {side}", f"use {describe_range(key)}"
    )


def _spell_integer(key: ConfigKey, dimension: Dimension | None, text: str) -> str:
    if _INTEGER.fullmatch(text) and len(text) <= _DIGITS_AT_MOST:
        number = int(text)
    elif _INTEGER.fullmatch(text):
        _check_range(key, float("-inf" if text[0] == "-" else "inf"), quote(text))
        raise AssertionError("a bound of every integer type is shorter than that")
    else:
        number = _read_unit(key, dimension, text)
    _check_range(key, number, describe_value(key.name, str(number)))
    return str(number)


def _read_unit(key: ConfigKey, dimension: Dimension | None, text: str) -> int:
    for form, read in _SPELLED_OTHERWISE:
        if form.fullmatch(text):
            what = f"{key.name} needs a plain whole number, not {quote(text)}"
            meant = read(text)
            way_out = f"write {meant}" if meant.denominator == 1 else f"use {describe_range(key)}"
            raise RefusedValueError("config-type", what, way_out)
    if dimension not in {Dimension.DURATION, Dimension.SIZE}:
        what = f"{key.name} needs a whole number without a unit, not {quote(text)}"
        raise RefusedValueError("config-type", what, f"use {describe_range(key)}")
    try:
        return parse_duration(text) if dimension is Dimension.DURATION else parse_size(text)
    except UnitError as error:
        rule = "config-unit" if re.match(r"[+-]?\.?[0-9]", text) else "config-type"
        raise RefusedValueError(rule, f"{key.name}: {error.what}", error.way_out) from error


def _ungroup(text: str) -> str:
    return re.sub("[_,']", "", text)


def _spell_double(key: ConfigKey, text: str) -> str:
    if not _DECIMAL.fullmatch(text):
        percent = re.fullmatch(r"([0-9]{1,3}) ?%", text)
        way_out = f"write {int(percent[1]) / 100}" if percent else f"use {describe_range(key)}"
        what = f"{key.name} needs a decimal number, not {quote(text)}"
        raise RefusedValueError("config-type", what, way_out)
    number = float(text)
    _check_range(key, number, quote(text))
    return spell_double(number)


def _scientific(digits: str, exponent: int) -> str:
    sign = "-" if digits.startswith("-") else ""
    whole, _, fraction = digits.lstrip("-").partition(".")
    joined = whole + fraction
    significant = joined.lstrip("0")
    exponent += len(whole) - 1 - (len(joined) - len(significant))
    significant = significant.rstrip("0") or "0"
    return f"{sign}{significant[0]}.{significant[1:] or '0'}E{exponent}"


def _spell_flag(key: ConfigKey, text: str) -> str:
    lower = text.lower()
    if lower in {"true", "false"} and text.isascii():
        return lower
    meant = _FLAGS_OTHERWISE.get(lower)
    what = f"{key.name} is true or false, not {quote(text)}"
    raise RefusedValueError("config-type", what, f"write {meant or 'true or false'}")


def _spell_choice(key: ConfigKey, text: str) -> str:
    if text in key.choices or (key.name == RECORD_FORMAT and _names_release(key, text)):
        return text
    raise _refuse_choice(key, (text,))


def _names_release(key: ConfigKey, text: str) -> bool:
    """Return whether brokers read a text as one of the versions that `choices` lists.

    They list 2.8-IV1 only, and take 2.8 and 2.8.1 as well, for a release that is out. Source:
    fromVersionString of MetadataVersion, which drops what follows the release.
    """
    most = 3 if text.startswith("0.") else 2
    segments = text.rstrip(".").split(".")
    name = text if len(segments) <= most else ".".join(segments[:most])
    releases = {choice.partition("-")[0] for choice in key.choices} - {_UNRELEASED}
    return name in key.choices or name in releases


def _spell_list(key: ConfigKey, text: str) -> str:
    items = tuple(dict.fromkeys(split_list(text)))
    wrong = tuple(item for item in items if item not in key.choices)
    if wrong:
        raise _refuse_choice(key, wrong)
    return ",".join(items)


def _refuse_choice(key: ConfigKey, wrong: tuple[str, ...]) -> RefusedValueError:
    shown = ", ".join(quote(item) for item in wrong[:3])
    what = f"{key.name} does not accept {shown}"
    meant = _nearest(wrong[0], key.choices)
    hint = f"; did you mean {meant}?" if meant else ""
    return RefusedValueError("config-choice", what, f"use {_list_choices(key.choices)}{hint}")


def _list_choices(choices: tuple[str, ...]) -> str:
    if len(choices) > 8:
        return f"one from {choices[0]} to {choices[-1]}"
    return f"{', '.join(choices[:-1])} or {choices[-1]}"


def _nearest(text: str, choices: tuple[str, ...]) -> str | None:
    otherwise = _CHOICES_OTHERWISE.get(text.lower())
    if otherwise in choices:
        return otherwise
    lower = {choice.lower(): choice for choice in choices}
    found = get_close_matches(text.lower(), lower, n=1)
    return lower[found[0]] if found else None
