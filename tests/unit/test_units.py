"""Durations and sizes: what is read, what is refused with which way out, what is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.units import (
    UnitError,
    describe_value,
    format_duration,
    format_size,
    parse_duration,
    parse_size,
    round_size,
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
    ("size_bytes", "said"),
    [
        (0, "0B"),
        (1023, "1023B"),
        (1024, "1KiB"),
        (700 * 2**20, "700MiB"),
        (90_000_000_000, "83.8GiB"),
        (3 * 2**50, "3072TiB"),
    ],
)
def test_a_size_is_rounded_in_the_largest_unit_that_it_reaches(size_bytes: int, said: str) -> None:
    assert round_size(size_bytes) == said
