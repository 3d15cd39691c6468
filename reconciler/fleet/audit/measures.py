"""How even counts are, as columns: what reconciler.placement.measure says, said in SQL.

A law holds the two equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

if TYPE_CHECKING:
    from pyspark.sql import Column


def measure_loads() -> dict[str, Column]:
    """Return the columns of `balance` that follow from `loads` over the brokers `able`."""
    leaders, replicas = _hold("leaders"), _hold("replicas")
    return {
        "brokers": F.size("able"),
        "leaders_least": _least(leaders),
        "leaders_most": _most(leaders),
        "replicas_least": _least(replicas),
        "replicas_most": _most(replicas),
        "misplaced": count_misplaced(leaders),
    }


def mean_replicas() -> Column:
    """Return what the brokers `able` hold of `loads` on average; null where there are none."""
    return F.try_divide(_sum(_hold("replicas")), F.size("able"))


def count_misplaced(leaders: Column) -> Column:
    """Count the partitions that would have to lead elsewhere for leaders to be even.

    Of D leaders on N brokers each keeps D div N, and D mod N of those that have more keep one
    more. `leaders` leaves out brokers that lead nothing, which have nothing to give.
    """
    total, brokers = _sum(leaders), F.size("able")
    even = F.floor(total / F.greatest(brokers, F.lit(1)))
    extra = total - even * brokers
    above = F.filter(leaders, lambda held: held > even)
    beyond = _sum(F.transform(above, lambda held: held - even))
    return (beyond - F.least(extra, F.size(above).cast("long"))).cast("long")


def violates_racks() -> Column:
    """Tell whether the row's `replicas` are less spread over the racks than these allow.

    A rack holds two more than another where a broker is free. A broker whose rack nobody knows,
    for it is gone, counts in favour. Replicas that are all in racks of their own are judged at
    once; only the others cost something.
    """
    placed = F.transform("replicas", lambda broker: F.try_element_at("rack_of", broker))
    known = F.filter(placed, lambda rack: rack.isNotNull())
    crowded = (F.size("racks") > 1) & (F.size(F.array_distinct(known)) < F.size(known))
    return F.when(crowded, _is_lopsided(placed)).otherwise(F.lit(False))  # noqa: FBT003


def _is_lopsided(placed: Column) -> Column:
    def held(rack: Column) -> Column:
        return F.size(F.filter(placed, lambda other: other == rack))

    able = F.filter("replicas", lambda broker: F.array_contains("able", broker))
    taken = F.transform(able, lambda broker: F.try_element_at("rack_of", broker))
    free = F.filter(
        "racks",
        lambda rack: F.size(F.filter(taken, lambda other: other == rack["rack"])) < rack["room"],
    )
    levels = F.array_sort(F.transform(free, lambda rack: held(rack["rack"])))
    unknown = F.size(F.filter(placed, lambda rack: rack.isNull()))
    most = F.array_max(F.transform("racks", lambda rack: held(rack["rack"])))
    return most - F.coalesce(F.array_min(_fill(levels, unknown)), most) > 1


def _fill(levels: Column, units: Column) -> Column:
    """Raise the lowest level by one, as many times as there are units."""

    def raise_lowest(sorted_levels: Column, _: Column) -> Column:
        others = F.slice(sorted_levels, 2, F.size(sorted_levels))
        lowest = F.array_min(sorted_levels) + 1
        return F.array_sort(F.concat(others, F.array(lowest)))

    filled = F.aggregate(F.sequence(F.lit(1), units), levels, raise_lowest)
    return F.when((units > 0) & (F.size(levels) > 0), filled).otherwise(levels)


def _hold(name: str) -> Column:
    """Return what able brokers hold; those that hold nothing are left out."""
    within = F.filter("loads", lambda load: F.array_contains("able", load["broker"]))
    return F.transform(within, lambda load: load[name])


def _least(held: Column) -> Column:
    empty = F.size(held) < F.size("able")
    return F.when(empty, F.lit(0)).otherwise(F.coalesce(F.array_min(held), F.lit(0))).cast("long")


def _most(held: Column) -> Column:
    return F.coalesce(F.array_max(held), F.lit(0)).cast("long")


def _sum(numbers: Column) -> Column:
    return F.aggregate(numbers, F.lit(0).cast("long"), lambda total, one: total + one)
