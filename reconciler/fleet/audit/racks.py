"""Do brokers say where they stand. In: clusters, as `describe_clusters` has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

from reconciler.fleet.audit.checks import Check, say

if TYPE_CHECKING:
    from collections.abc import Iterator


def check_rack_names() -> Iterator[Check]:
    """Check clusters of several brokers."""
    racks = F.map_values("rack_of")
    brokers, without = F.size(racks), F.size(F.filter(racks, lambda rack: rack == ""))
    evidence = {"brokers": brokers, "without_rack": without}
    yield Check(
        "rack-unknown",
        (without > 0) & (without < brokers),
        say("%s of %s brokers name no rack", without, brokers),
        without,
        evidence,
        subject="cluster",
    )
    yield Check(
        "rack-none",
        (brokers > 1) & (without == brokers),
        say("none of %s brokers names a rack", brokers),
        brokers,
        evidence,
        subject="cluster",
    )
