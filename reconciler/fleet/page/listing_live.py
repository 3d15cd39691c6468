"""The tables of the live state on the page: problems, brokers that are down, topics, trends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.fleet.page.cells import (
    Cell,
    Listing,
    ListingColumn,
    amount_cell,
    number_column,
    say_left_out,
    unknown_or,
)
from reconciler.fleet.page.contents import say_value, say_when
from reconciler.units import approximate_size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconciler.fleet.page.contents import FleetPage


@dataclass(frozen=True, slots=True)
class PageTables:
    """What every table is made of: the page, and the anchor of each cluster."""

    page: FleetPage
    places: Mapping[str, str]

    def _name(self, cluster: str) -> Cell:
        place = self.places.get(cluster)
        return Cell(cluster, link=f"#{place}" if place else "")


@dataclass(frozen=True, slots=True)
class LiveListings(PageTables):
    """The tables of the live state, one method per table."""

    def problems(self) -> Listing:
        """List the topics with partitions that are not healthy."""
        kept = self.page.problems
        columns = (
            ListingColumn("problem", "Problem", style="brief", choices=True),
            ListingColumn("cluster", "Cluster", style="brief", choices=True),
            ListingColumn("topic", "Topic", style="name"),
            ListingColumn("owner", "Owner", style="brief", choices=True),
            number_column("affected", "Partitions affected"),
            number_column("partitions", "Partitions"),
            ListingColumn("lagging", "Brokers not in sync", style="brief"),
        )
        rows = tuple(
            (
                Cell(row.problem),
                self._name(row.cluster),
                Cell(row.topic),
                Cell(row.owner or "–"),
                amount_cell(row.affected),
                amount_cell(row.partitions),
                Cell(_list_some(row.lagging)),
            )
            for row in kept.rows
        )
        note = say_left_out(kept, "row", "the worst first")
        note += " reconciler fleet audit --format json shows all." if note else ""
        empty = "Every partition has a leader, and every replica is in sync."
        return Listing("problems", "Topics with problems", columns, rows, note, empty)

    def brokers_down(self) -> Listing:
        """List the brokers that are down, of the clusters whose brokers are on the page."""
        columns = (
            ListingColumn("cluster", "Cluster", style="brief", choices=True),
            ListingColumn("broker", "Broker", numeric=True),
            ListingColumn("rack", "Rack", style="brief"),
            number_column("leaders", "Preferred leaders"),
            number_column("replicas", "Replicas"),
            number_column("size", "Size"),
        )
        rows = tuple(
            (
                self._name(cluster.name),
                Cell(str(broker.id)),
                Cell(broker.rack or "–"),
                amount_cell(broker.leaders),
                amount_cell(broker.replicas),
                unknown_or(broker.size_bytes, approximate_size),
            )
            for cluster in self.page.clusters.rows
            for broker in cluster.brokers
            if not broker.alive
        )
        left = self.page.health.brokers_down - len(rows)
        note = f"{left:,} left out: reconciler fleet audit shows them." if left > 0 else ""
        empty = "Every broker is alive."
        return Listing("brokers-down", "Brokers that are down", columns, rows, note, empty)

    def inventory(self) -> Listing:
        """List the topics of the fleet."""
        kept = self.page.inventory
        columns = (
            ListingColumn("topic", "Topic", style="name"),
            ListingColumn("cluster", "Cluster", style="brief", choices=True),
            ListingColumn("owner", "Owner", style="brief", choices=True),
            number_column("partitions", "Partitions"),
            number_column("replication", "Replication"),
            number_column("size", "Size"),
            ListingColumn("overrides", "Overrides", style="long"),
            ListingColumn("differs", "Differs from its spec", style="long"),
            ListingColumn("changed", "Last seen change", style="brief"),
            ListingColumn("event", "Change", style="brief", choices=True),
        )
        rows = tuple(
            (
                Cell(row.topic),
                self._name(row.cluster),
                Cell(row.owner or "–"),
                amount_cell(row.partitions),
                Cell(_say_range(*row.replication), sort_by=row.replication[0]),
                unknown_or(row.size_bytes, approximate_size),
                Cell(", ".join(f"{key} {say_value(key, held)}" for key, held in row.overrides)),
                Cell(row.differs),
                Cell(say_when(row.changed) if row.changed else "–"),
                Cell(row.event or "–"),
            )
            for row in kept.rows
        )
        note = say_left_out(kept, "topic", "those with the most partitions first")
        note += " The lake's table topics has all: docs/lake.md." if note else ""
        return Listing("inventory", "Topics", columns, rows, note, "There are no topics.")

    def trend(self) -> Listing:
        """List the fleet at each collection, the latest first."""
        columns = (
            ListingColumn("collection", "Collection", style="brief"),
            number_column("clusters", "Clusters read"),
            number_column("offline", "Offline"),
            number_column("unwritable", "Below min.insync.replicas"),
            number_column("under-replicated", "Under-replicated"),
            number_column("brokers-down", "Brokers down"),
            number_column("topics", "Topics"),
            number_column("partitions", "Partitions"),
            number_column("size", "Size"),
        )
        rows = tuple(
            (
                Cell(say_when(point.collection)),
                amount_cell(point.clusters),
                amount_cell(point.offline),
                amount_cell(point.unwritable),
                amount_cell(point.under_replicated),
                amount_cell(point.brokers_down),
                amount_cell(point.topics),
                amount_cell(point.partitions),
                unknown_or(point.size_bytes, approximate_size),
            )
            for point in reversed(self.page.trend)
        )
        empty = "No history of this collection yet: reconciler fleet history --lake DIR."
        return Listing("trend", "Trends over the collections", columns, rows, empty=empty)


def _say_range(least: int, most: int) -> str:
    return str(least) if least == most else f"{least}–{most}"


MOST_BROKERS_NAMED = 8


def _list_some(brokers: tuple[int, ...]) -> str:
    named = ", ".join(map(str, brokers[:MOST_BROKERS_NAMED]))
    left = len(brokers) - MOST_BROKERS_NAMED
    return f"{named}, and {left} more" if left > 0 else named or "–"
