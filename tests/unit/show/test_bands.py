"""What a plan says of its bands: only what is true of the numbers below it."""

from __future__ import annotations

import pytest

from reconciler.model.moves import BrokerBand, LoadBand, LoadKind, PlannedBalance
from reconciler.show.bands import say_bands

Loads = tuple[tuple[int, int, bool], ...]
"""The load of each broker before and after, and whether it was outside."""


def say(by: LoadKind, share: int, loads: Loads) -> str:
    """Return the first line of a band whose brokers have one share, within 10 %."""
    bands = tuple(
        BrokerBand(broker, share, min(before, after), max(before, after), before, after)
        for broker, (before, after, _) in enumerate(loads, 1)
    )
    outside = tuple(broker for broker, (_, _, apart) in enumerate(loads, 1) if apart)
    band = LoadBand(by, by is LoadKind.COUNT, outside, bands)
    (name, words), *_ = say_bands(PlannedBalance(10, (band,)), ())
    return f"{name}: {words}"


@pytest.mark.parametrize(
    ("by", "share", "loads", "words"),
    [
        # One was outside and comes within half; another one was inside, and stays there.
        (LoadKind.DISK, 1000, ((1300, 1050, True), (950, 950, False)),
         "by disk: 1 broker is more than 10 % off the share · all within 5 % afterwards"),
        (LoadKind.DISK, 1000, ((1300, 1050, True), (920, 920, False)),
         "by disk: 1 broker is more than 10 % off the share · all within 10 % afterwards"),
        (LoadKind.DISK, 1000, ((1070, 1070, False), (930, 930, False)),
         "by disk: every broker is within 10 % of its share"),
        # No whole number but 3 itself is within 10 % of 3.
        (LoadKind.COUNT, 3, ((6, 3, True), (0, 3, True)),
         "by leaders: 2 brokers are more than 10 % off the share · all within 5 % afterwards"),
        (LoadKind.COUNT, 3, ((6, 4, True), (0, 3, True)),
         "by leaders: 2 brokers are more than 10 % off the share · all within 10 % afterwards · "
         "limits are rounded to whole leaders"),
        (LoadKind.COUNT, 3, ((4, 3, False), (0, 3, True)),
         "by leaders: 1 broker is more than 10 % off the share · all within 5 % afterwards · "
         "limits are rounded to whole leaders"),
        (LoadKind.COUNT, 3, ((4, 4, False), (2, 2, False)),
         "by leaders: every broker is within 10 % of its share · "
         "limits are rounded to whole leaders"),
    ],
)  # fmt: skip
def test_a_limit_is_named_only_if_every_broker_keeps_it(
    by: LoadKind, share: int, loads: Loads, words: str
) -> None:
    assert say(by, share, loads) == words
