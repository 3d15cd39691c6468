"""Values to try on every topic config, and those on which validation is stricter than brokers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from reconciler.spec.catalogue import LINES, ConfigKey, ConfigType, Line
from reconciler.spec.configs import MAX_VALUE_BYTES, Catalogue
from reconciler.spec.scalars import TRIMMED

WHOLE = {ConfigType.INT, ConfigType.LONG}
WITH_UNITS = ("7d", "7 d", "1GiB", "1B", "1ms", "0s")
ODD_SPELLINGS = (
    *WITH_UNITS,
    *("", " ", " 100 ", "\t1\n", "+5", "+0", "007", "-007", "-0", "--1", "- 1", "1_000", "1,000"),
    *("0x10", "0b1", "0o7", "1e3", "1E3", "1.0", "1.", ".5", "0.5", "0.50", "0.30000000000000004"),
    *("1e-4", "0.001", "0.0009999", "1e-320", "1e400", "-0.0", "+0.5", "0.5d", "0.5F", "0x1p-1"),
    *("NaN", "Infinity", "１", "١", "\u00a01", "1\u00a0", "\u20031", "1 000", "1;2", "null"),
    *("None", "true", "TRUE", " False ", "tRuE", "yes", "no", "on", "ſalse", "truE\u00a0", "1L"),
    *("delete", "Delete", "compact", "compact,delete", "delete , compact", "delete,delete"),
    *("compact,delete,compact", ",", "delete,", ",delete", "delete,,compact", "compact;delete"),
    *("delete\u00a0,compact", "delete\t,\ncompact", "delete\u000b,compact", "none", "*", "0:1"),
    *("0:1,1:2", "0:1,x", "zstd", "ZSTD", "gzip ", "uncompressed", "producer", "zstd,gzip"),
    *("CreateTime", "createtime", "LogAppendTime", "3.0", "3.0-IV1", "2.8-IV1", "2.8", "9.9"),
    *("0.10.0-IV1", "0.10", "3.0-IV9", "3.0.7", "4.0-IV1", "x" * 1_000, "é" * 500),
    *("3.0.", "3.0.7.", "2.8-IV1.1", "0.8.2", "0.10.2", "0.10.2.1", "4.0", "3", "3.10"),
    *("1GB", "1.5d", "1y", "9" * 400, "-" + "9" * 400, "0" * 400, "0." + "1" * 400),
)


@cache
def values_for(key: ConfigKey) -> list[str]:
    """Return values inside, at and outside a config's range, its choices, and odd spellings."""
    edges = {-3, -2, -1, 0, 1, 2, 3, 100, *key.also}
    for bound in (key.minimum, key.maximum, -(1 << 31), (1 << 31) - 1, -(1 << 63), (1 << 63) - 1):
        if bound is not None:
            edges |= {bound - 1, bound, bound + 1}
    own = [*map(str, sorted(edges)), *key.choices, key.default or ""]
    if key.type in WHOLE:
        # As long as the wire carries. Well formed only: a refusal repeats the value, and one that
        # long fails the whole request as UNKNOWN_SERVER_ERROR.
        own.append(" " * (MAX_VALUE_BYTES - 1) + "1")
    return list(dict.fromkeys([*own, *ODD_SPELLINGS]))


@dataclass(frozen=True)
class Stricter:
    """Values that brokers take and validation refuses: which, on which lines, and why so."""

    why: str
    covers: Callable[[ConfigKey, str], bool]
    lines: tuple[Line, ...] = LINES


def _is_plain(key: ConfigKey, text: str, form: str) -> bool:
    return key.type in WHOLE and re.fullmatch(form, text.strip(TRIMMED)) is not None


STRICTER = (
    Stricter(
        "brokers never show it, so it could be neither compared nor found",
        lambda key, _: key.internal,
        lines=tuple(line for line in LINES if line >= (4, 1)),
    ),
    Stricter(
        "the tools that move partitions set and clear it",
        lambda key, _: key.name.endswith(".replication.throttled.replicas"),
    ),
    Stricter(
        "012 is 10 in YAML 1.1 and in shells, and 12 to brokers",
        lambda key, text: _is_plain(key, text, r"-?0[0-9]+"),
    ),
    Stricter(
        "a number is written in one way, without a plus",
        lambda key, text: _is_plain(key, text, r"\+[0-9]+"),
    ),
    Stricter(
        "digits of other scripts look like something else to most readers",
        lambda key, text: key.type in WHOLE and text in {"１", "١"},
    ),
    Stricter(
        "NaN is in no range, though the broker's comparison lets it through",
        lambda key, text: key.type is ConfigType.DOUBLE and text == "NaN",
    ),
    Stricter(
        "suffixes and hexadecimal fractions are Java's own",
        lambda key, text: key.type is ConfigType.DOUBLE and text in {"0.5d", "0.5F", "0x1p-1"},
    ),
)


def accepted_values(known: Catalogue, name: str) -> list[str]:
    """Return the spellings of a config that both sides take, as they are written."""
    return [
        value
        for value in values_for(known.keys[name])
        if isinstance(known.normalise(name, value, None), str)
        and value not in WITH_UNITS
        # The one broker here has no tiered storage: it could not hold such a topic.
        and not (name == "remote.storage.enable" and value.strip().lower() == "true")
    ]


@cache
def odd_values(key: ConfigKey) -> list[str]:
    """Return all values of a config on which validation and brokers agree."""
    return [value for value in values_for(key) if not any(e.covers(key, value) for e in STRICTER)]
