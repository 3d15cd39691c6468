"""Durations and sizes: what is read, what is refused with which way out, what is shown."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.units import (
    DURATION,
    SIZE,
    Scale,
    UnitError,
    approximate_duration,
    approximate_size,
    describe_value,
    format_duration,
    format_size,
    name_unit,
    parse_duration,
    parse_size,
)

AMOUNTS = st.integers(min_value=0, max_value=2**63 - 1)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("0ms", 0),
        ("500ms", 500),
        ("1s", 1_000),
        ("90s", 90_000),
        ("1m", 60_000),
        ("1min", 60_000),
        ("36h", 129_600_000),
        ("7d", 604_800_000),
        ("7 d", 604_800_000),
        (" 7\td ", 604_800_000),
        ("1w", 604_800_000),
        ("007d", 604_800_000),
    ],
)
def test_a_duration_is_read_in_milliseconds(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("0B", 0),
        ("1B", 1),
        ("1KiB", 1024),
        ("16 MiB", 16 * 1024**2),
        ("1GiB", 1024**3),
        ("2TiB", 2 * 1024**4),
    ],
)
def test_a_size_is_read_in_bytes(text: str, size_bytes: int) -> None:
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1.5d", "'1.5d' is not accepted: only whole numbers are; write 36h"),
        ("0.5s", "'0.5s' is not accepted: only whole numbers are; write 500ms"),
        (
            "0.3333s",
            "'0.3333s' is not accepted: only whole numbers are; write a whole number such as 333ms",
        ),
        ("1y", "'1y' is not accepted: 'y' has no fixed length; write 365d"),
        ("2 months", "'2 months' is not accepted: 'months' has no fixed length; write 60d"),
        ("1M", "'1M' is not accepted: 'M', a month, has no fixed length; write 30d"),
        ("7D", "'7D' is not accepted: the unit is written 'd'; write 7d"),
        ("5MIN", "'5MIN' is not accepted: the unit is written 'min'; write 5min"),
        ("7days", "'7days' is not accepted: 'days' is not a unit here; write 7d"),
        ("+7d", "'+7d' is not accepted: write numbers without a plus; write 7d"),
        ("1d12h", "'1d12h' is more than one duration; write 36h"),
        (
            "1d 3q",
            "'1d 3q' is more than one duration; write a whole number and one of "
            "ms, s, m, min, h, d, w",
        ),
        (
            f"1{' ' * 500}q",
            "'q' in '1 q' is not a unit of a duration; write a whole number and one "
            "of ms, s, m, min, h, d, w",
        ),
        (
            "1\u00a0d",
            "'1\\xa0d' is not a duration; write a whole number and one of ms, s, m, min, h, d, w",
        ),
        ("-1d", "'-1d' is a duration below zero; write a limit such as -1 without a unit"),
        (
            "1GiB",
            "'GiB' in '1GiB' is not a unit of a duration; write a whole number and one of "
            "ms, s, m, min, h, d, w",
        ),
        (
            "1.5",
            "'1.5' has no unit and is not a whole number; write a whole number and one of "
            "ms, s, m, min, h, d, w",
        ),
        ("d", "'d' is not a duration; write a whole number and one of ms, s, m, min, h, d, w"),
        ("", "'' is not a duration; write a whole number and one of ms, s, m, min, h, d, w"),
        (
            "\x1b[31m",
            "'\\x1b[31m' is not a duration; write a whole number and one of ms, s, m, min, h, d, w",
        ),
    ],
)
def test_what_is_no_duration_is_refused_with_what_to_write(text: str, message: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_duration(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "1GB",
            "'1GB' is not accepted: 'GB' may mean powers of 1000 or of 1024; "
            "write 1GiB, or 1000000000B for powers of 1000",
        ),
        (
            "1.5k",
            "'1.5k' is not accepted: 'k' may mean powers of 1000 or of 1024; "
            "write 1536B, or 1500B for powers of 1000",
        ),
        (
            "512Mi",
            "'512Mi' is not accepted: 'Mi' may mean powers of 1000 or of 1024; "
            "write 512MiB, or 512000000B for powers of 1000",
        ),
        ("1gib", "'1gib' is not accepted: the unit is written 'GiB'; write 1GiB"),
        ("1.5GiB", "'1.5GiB' is not accepted: only whole numbers are; write 1536MiB"),
        ("10 bytes", "'10 bytes' is not accepted: 'bytes' is not a unit here; write 10B"),
        (
            "8b",
            "'b' in '8b' is not a unit of a size; write a whole number and one of "
            "B, KiB, MiB, GiB, TiB",
        ),
        (
            "7d",
            "'d' in '7d' is not a unit of a size; write a whole number and one of "
            "B, KiB, MiB, GiB, TiB",
        ),
    ],
)
def test_what_is_no_size_is_refused_with_what_to_write(text: str, message: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_size(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("number", "scale", "way_out"),
    [
        (30, DURATION, "write one, as in 30s, 30min or 30d"),
        (0, DURATION, "write one, as in 7s, 7min or 7d"),
        (3_600, DURATION, "write 3600ms if it is milliseconds, 1h if it is seconds"),
        (604_800_000, DURATION, "write 7d"),
        (30, SIZE, "write one, as in 30MiB"),
        (-5, SIZE, "write one, as in 30MiB"),
        (50_000_000, SIZE, "write 50000000B, or a round 48MiB"),
        (1_073_741_824, SIZE, "write 1GiB"),
    ],
)
def test_a_number_without_a_unit_is_given_one(number: int, scale: Scale, way_out: str) -> None:
    assert name_unit(number, scale) == way_out


def test_a_whole_number_is_not_said_to_be_none() -> None:
    with pytest.raises(UnitError) as refused:
        parse_size("50000000")
    assert str(refused.value) == "'50000000' has no unit; write 50000000B, or a round 48MiB"


@given(st.integers(min_value=1, max_value=10**15), st.sampled_from([DURATION, SIZE]))
def test_what_is_proposed_for_a_number_is_read(number: int, scale: Scale) -> None:
    parse = parse_duration if scale is DURATION else parse_size
    spelled = re.findall(r"\b[0-9]+[A-Za-z]+", name_unit(number, scale))
    assert spelled
    assert all(parse(text) > 0 for text in spelled)


@pytest.mark.parametrize("text", ["0.0001ms", "0.3B"])
def test_no_amount_of_nothing_is_proposed(text: str) -> None:
    with pytest.raises(UnitError, match=r"such as 1(ms|B)"):
        (parse_size if text.endswith("B") else parse_duration)(text)


@given(AMOUNTS)
def test_a_duration_survives_the_way_to_text_and_back(milliseconds: int) -> None:
    assert parse_duration(format_duration(milliseconds)) == milliseconds


@given(AMOUNTS)
def test_a_size_survives_the_way_to_text_and_back(size_bytes: int) -> None:
    assert parse_size(format_size(size_bytes)) == size_bytes


@given(st.text(max_size=40) | st.text("0123456789.+-eE dhmswyKiMGTB", max_size=40))
def test_any_text_is_read_or_refused_with_a_way_out(text: str) -> None:
    for parse in (parse_duration, parse_size):
        try:
            read: int | str = parse(text)
        except UnitError as error:
            read = error.way_out
        assert read == 0 or read


def test_a_text_of_any_length_is_refused() -> None:
    with pytest.raises(UnitError, match="is not a duration") as caught:
        parse_duration("9" * 5_000 + "d")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("retention.ms", "604800000", "7d (604800000)"),
        ("retention.ms", "5400000", "90min (5400000)"),
        ("retention.ms", "1000", "1s (1000)"),
        ("retention.ms", "90061001", "90061001"),
        ("retention.ms", "0", "0"),
        ("retention.ms", "-1", "-1"),
        ("flush.ms", "9223372036854775807", "9223372036854775807"),
        ("segment.bytes", "1073741824", "1GiB (1073741824)"),
        ("max.message.bytes", "1048588", "1048588"),
        ("min.insync.replicas", "2048", "2048"),
        ("compression.type", "zstd", "zstd"),
    ],
)
def test_a_value_is_shown_with_a_unit_where_one_holds_it(key: str, value: str, shown: str) -> None:
    assert describe_value(key, value) == shown


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (300_000, "293.0 KiB"),
        (5 << 30, "5.0 GiB"),
        (3 << 50, "3,072.0 TiB"),
        (-2048, "-2.0 KiB"),
    ],
)
def test_sizes_are_shown_to_a_tenth(amount: int, shown: str) -> None:
    assert approximate_size(amount) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.2, "0 s"),
        (89.4, "89 s"),
        (90, "2 min"),
        (59 * 60, "59 min"),
        (3599, "1 h"),
        (8400, "2 h 20 min"),
        (86_400, "1 d"),
        (273_600, "3 d 4 h"),
        (10_000_000 * 86_400, "10,000,000 d"),
    ],
)
def test_spans_are_shown_in_two_units(seconds: float, shown: str) -> None:
    assert approximate_duration(seconds) == shown
