"""Evenness of leaders and replicas over brokers and racks, of topics and of entire clusters."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet.audit.rules import Check, format_gib, format_share, say
from reconciler.spec.forms import AuditForm

TENFOLD = 10
"""How many times as large as the smallest partition of a topic the largest one is uneven."""


def check_topic_evenness(limits: AuditForm) -> Iterator[Check]:
    """Check topics. Internal topics are checked for racks only: Kafka controls their evenness."""
    counted = ~F.col("internal")
    yield Check(
        "topic-leaders-uneven",
        counted & (F.col("misplaced") * 100 > limits.topic_misplaced * F.col("partitions")),
        say(
            "leaders max − min %s over %s brokers; %s of %s partitions are misplaced",
            F.col("leaders_most") - F.col("leaders_least"),
            "brokers",
            "misplaced",
            "partitions",
        ),
        F.col("misplaced"),
        {**_range("leaders"), **_share("partitions")},
    )
    skew = F.col("replicas_most") - F.col("replicas_least")
    beyond = skew * F.col("brokers") * 100 > limits.skew * F.col("replicas")
    yield Check(
        "topic-replicas-uneven",
        counted & (skew > 1) & beyond,
        say("replicas max − min %s over %s brokers", skew, "brokers"),
        skew,
        _range("replicas"),
    )
    most, least = F.col("largest_bytes"), F.col("smallest_bytes")
    yield Check(
        "topic-partitions-uneven",
        counted & (most >= limits.large_partition) & (most >= least * TENFOLD) & (most > least),
        say(
            "its largest partition holds %s, its smallest %s: records of few keys, or of a hot one",
            format_gib(most),
            format_gib(least),
        ),
        # What no placement can divide, so that the largest partitions come first.
        F.floor(most / F.lit(2**30)),
        {name: F.col(name) for name in ("largest_bytes", "smallest_bytes")},
    )
    yield Check(
        "rack-violation",
        (F.col("rack_violations") > 0) & ~F.coalesce("wished_rackless", F.lit(False)),  # noqa: FBT003
        say(
            "%s of %s partitions are not spread over the racks as evenly as possible",
            "rack_violations",
            "partitions",
        ),
        F.col("rack_violations"),
        {name: F.col(name) for name in ("rack_violations", "partitions")},
    )


def check_clusters(limits: AuditForm) -> Iterator[Check]:
    """Check clusters. In: the rows of `weigh_clusters`.

    Clusters whose brokers have unequal capacity, or that are balanced by other loads than counts,
    are meant to be uneven, and are only checked for next leaders.
    """
    large = F.col("leaders") >= limits.even_from * F.col("brokers")
    enough = ~F.col("weighted") & large
    yield Check(
        "leaders-uneven",
        enough & (F.col("misplaced_share") * 100 > limits.misplaced),
        say(
            "leaders max − min %s over %s brokers; %s of the partitions are misplaced",
            F.col("leaders_most") - F.col("leaders_least"),
            "brokers",
            format_share(F.col("misplaced"), F.col("leaders")),
        ),
        F.col("misplaced"),
        {**_range("leaders"), **_share("leaders")},
        subject="cluster",
    )
    skew = F.col("replicas_most") - F.col("replicas_least")
    mean = F.col("mean_replicas")
    yield Check(
        "replicas-uneven",
        enough & (skew * 100 > limits.skew * mean) & (skew > 1),
        say(
            "replicas max − min %s over %s brokers, of %s on average", skew, "brokers", _whole(mean)
        ),
        skew,
        {**_range("replicas"), "mean": _whole(mean)},
        subject="cluster",
    )
    for rule, what, prefix in (
        ("next-leaders-uneven", "broker", ""),
        ("rack-next-leaders-uneven", "rack", "rack_"),
    ):
        names = (f"{prefix}next_leaders_most", f"{prefix}next_leaders_bound")
        most, bound = map(F.col, names)
        worst = F.col(f"{prefix}worst")
        yield Check(
            rule,
            large & ((most - bound) * F.col("brokers") * 100 > limits.skew * F.col("leaders")),
            say(
                f"if {what} %s is lost, broker %s takes over %s leaders (bound %s)",
                worst["lost"],
                worst["broker"],
                most,
                bound,
            ),
            most - bound,
            {**{name: F.col(name) for name in names}, "lost": worst["lost"]},
            subject="cluster",
        )


def check_racks(limits: AuditForm) -> Iterator[Check]:
    """Check racks. In: the rows of `weigh_racks`, with `part`: the rack's fair share of leaders."""
    beyond = F.abs(F.col("leaders") - F.col("part"))
    yield Check(
        "racks-uneven",
        ~F.col("weighted")
        & (F.col("part") >= limits.even_from * F.col("brokers"))
        & (F.col("brokers") > 0)
        & (beyond * 100 > limits.skew * F.col("part")),
        say(
            "rack %s leads %s partitions; its share, by brokers, is %s",
            "subject",
            "leaders",
            _whole(F.col("part")),
        ),
        beyond,
        {"leaders": F.col("leaders"), "part": _whole(F.col("part")), "brokers": F.col("brokers")},
        subject="subject",
    )


def _range(name: str) -> dict[str, Column]:
    return {column: F.col(column) for column in (f"{name}_least", f"{name}_most")}


def _share(whole: str) -> dict[str, Column]:
    share = format_share(F.col("misplaced"), F.col(whole))
    return {"misplaced": F.col("misplaced"), "misplaced_share": share}


def _whole(number: Column) -> Column:
    return F.round(number).cast("long")
