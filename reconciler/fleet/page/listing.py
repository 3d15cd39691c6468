"""The tables of the page: sortable columns, rows of text and pictures."""

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
from reconciler.fleet.page.contents import Kept, Standing, say_share, say_when
from reconciler.fleet.page.listing_audit import AuditListings
from reconciler.fleet.page.listing_live import LiveListings
from reconciler.fleet.page.pictures import (
    Axis,
    draw_axis,
    draw_bar,
    draw_dumbbell,
    draw_mark,
    draw_sparkline,
)
from reconciler.units import approximate_duration, approximate_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reconciler.fleet.page.contents import ClusterLine


def number_clusters(clusters: Iterable[ClusterLine]) -> Mapping[str, str]:
    """Return the anchor of each cluster whose brokers are on the page.

    A name can contain any character, so an anchor has a number instead.
    """
    shown = (cluster for cluster in clusters if cluster.brokers)
    return {cluster.name: f"cluster-{number}" for number, cluster in enumerate(shown, 1)}


@dataclass(frozen=True, slots=True)
class Listings(LiveListings, AuditListings):
    """The tables of the page, one method per table."""

    def all(self) -> tuple[Listing, ...]:
        """Return every table of the page."""
        return tuple(
            table()
            for table in (
                *(self.problems, self.brokers_down, self.unreadable, self.skew, self.drift),
                *(self.plans, self.changes, self.moves, self.topics, self.inventory, self.trend),
                *(self.causes, self.matrix, self.rules, self.findings, self.next_leaders),
            )
        )

    def unreadable(self) -> Listing:
        """List the clusters that were not read or not planned, and why."""
        rows = (
            (
                self._name(cluster.name),
                Cell(str(cluster.standing), draw_mark(cluster.standing)),
                *map(Cell, cluster.trouble),
            )
            for cluster in self.page.clusters.rows
            if cluster.trouble and cluster.plan is None
        )
        columns = (
            ListingColumn("cluster", "Cluster", style="brief"),
            ListingColumn("state", "State", style="brief", choices=True),
            ListingColumn("rule", "Rule", style="brief"),
            ListingColumn("reason", "Reason", style="long"),
        )
        title = "Clusters that could not be read or planned"
        return Listing(
            "unreadable", title, columns, tuple(rows), empty="Every cluster was read and planned."
        )

    def skew(self) -> Listing:
        """List the skew of each cluster before and after its plan."""
        plans = [(c, c.plan) for c in self.page.clusters.rows if c.plan is not None]
        scales = (
            _scale((plan.leaders_before, plan.leaders_after) for _, plan in plans),
            _scale((plan.replicas_before, plan.replicas_after) for _, plan in plans),
        )
        columns = [ListingColumn("cluster", "Cluster", style="brief")]
        for noun, scale in zip(("leaders", "replicas"), scales, strict=True):
            columns += [
                ListingColumn(
                    f"{noun}-gain", noun.title(), numeric=True, above=draw_axis(scale), style="wide"
                ),
                number_column(f"{noun}-before", f"{noun.title()} before"),
                number_column(f"{noun}-after", f"{noun.title()} after"),
            ]
        rows = []
        for cluster, plan in plans:
            leaders = _compare(plan.leaders_before, plan.leaders_after, scales[0])
            replicas = _compare(plan.replicas_before, plan.replicas_after, scales[1])
            rows.append((self._name(cluster.name), *leaders, *replicas))
        title = "Skew before and after the plans"
        return Listing("skew", title, tuple(columns), tuple(rows), empty="There are no plans.")

    def plans(self) -> Listing:
        """List the clusters and their plans."""
        columns = (
            ListingColumn("cluster", "Cluster", style="brief"),
            ListingColumn("health", "Health", style="brief", choices=True),
            ListingColumn("state", "Plan", style="brief", choices=True),
            number_column("pending", "To change"),
            number_column("refused", "Refused"),
            number_column("unchanged", "As specified"),
            number_column("unmanaged", "Unmanaged"),
            ListingColumn("drift", "Drift over time", numeric=True),
            number_column("topics", "Topics"),
            number_column("partitions", "Partitions"),
            number_column("brokers", "Brokers"),
        )
        rows = tuple(map(self._describe_cluster, self.page.clusters.rows))
        note = say_left_out(self.page.clusters, "cluster", "those that are worst off first")
        return Listing("clusters", "Clusters and their plans", columns, rows, note)

    def _describe_cluster(self, cluster: ClusterLine) -> tuple[Cell, ...]:
        plan = cluster.plan
        said = (plan.changed, plan.refused, plan.unchanged, plan.unmanaged) if plan else [None] * 4
        drift = [n for n in cluster.drifts if n is not None]
        grown = drift[-1] - drift[0] if drift else None
        # A cluster that was not read has no plan: the column of health says why.
        planned = cluster.standing if cluster.read else Standing.UNPLANNED
        size = (cluster.topics, cluster.partitions, cluster.broker_count)
        return (
            self._name(cluster.name),
            Cell(str(cluster.health), draw_mark(cluster.health)),
            Cell(str(planned), draw_mark(planned)),
            *map(amount_cell, said),
            Cell(
                "–" if grown is None else f"{grown:+,}" if grown else "±0",
                draw_sparkline(cluster.drifts) if drift else "",
                sort_by=grown,
            ),
            *map(amount_cell, size if cluster.read else [None] * 3),
        )

    def topics(self) -> Listing:
        """List the least even topics."""
        kept = self.page.topics
        most = max((row.leader_skew for row in kept.rows), default=0)
        most_replicas = max((row.replica_skew for row in kept.rows), default=0)
        columns = (
            ListingColumn("topic", "Topic", style="name"),
            ListingColumn("cluster", "Cluster", style="brief"),
            ListingColumn("owner", "Owner", style="brief", choices=True),
            number_column("partitions", "Partitions"),
            number_column("leaders", "Leader skew"),
            number_column("replicas", "Replica skew"),
            ListingColumn("plan", "Plan"),
        )
        rows = tuple(
            (
                Cell(row.topic),
                self._name(row.cluster),
                Cell(row.owner or "–"),
                amount_cell(row.partitions),
                Cell(f"{row.leader_skew:,}", draw_bar(row.leader_skew, most)),
                Cell(f"{row.replica_skew:,}", draw_bar(row.replica_skew, most_replicas)),
                Cell(row.action or "–"),
            )
            for row in kept.rows
        )
        note = say_left_out(kept, "topic", "the least even first")
        empty = "Every topic is as even as can be: max − min is at most one."
        return Listing("topics", "Least even topics", columns, rows, note, empty)

    def changes(self) -> Listing:
        """List what the plans change and refuse."""
        kept = self.page.changes
        columns = (
            ListingColumn("topic", "Topic", style="name"),
            ListingColumn("cluster", "Cluster", style="brief"),
            ListingColumn("owner", "Owner", style="brief", choices=True),
            ListingColumn("action", "Action", choices=True),
            ListingColumn("change", "Change", style="long"),
            ListingColumn("risks", "Risks", style="brief"),
            ListingColumn("reasons", "Reasons", style="long"),
            ListingColumn("file", "File", style="brief"),
        )
        rows = tuple(
            (
                Cell(row.topic),
                self._name(row.cluster),
                Cell(row.owner or "–"),
                Cell(row.action),
                Cell(row.what),
                Cell(", ".join(risk for risk in row.risks if risk != "none")),
                Cell(
                    "; ".join(
                        f"{what} [{rule}]"
                        for what, rule in zip(row.reasons, row.rules, strict=True)
                    )
                ),
                Cell(row.place),
            )
            for row in kept.rows
        )
        note = say_left_out(kept, "change", "refusals first")
        return Listing("changes", "Changes and refusals", columns, rows, note, "No change.")

    def moves(self) -> Listing:
        """List the plans of moves: what they copy, for how long, and what is refused."""
        kept = self.page.moves
        columns = (
            ListingColumn("cluster", "Cluster", style="brief"),
            number_column("moving", "Topics"),
            number_column("moving-partitions", "Partitions"),
            number_column("copies", "Replicas to copy"),
            number_column("bytes", "To copy"),
            number_column("time", "Time"),
            number_column("peak", "Fullest disk"),
            ListingColumn("drained", "Brokers to drain", style="brief"),
            number_column("moves-refused", "Refused"),
            ListingColumn("moves-reasons", "Reasons", style="long"),
        )
        rows = tuple(
            (
                self._name(row.cluster),
                *map(amount_cell, (row.topics, row.partitions, row.replicas)),
                Cell(approximate_size(row.copied_bytes), sort_by=row.copied_bytes),
                unknown_or(row.seconds, approximate_duration),
                unknown_or(row.peak_share, "{:.0%}".format),
                Cell(", ".join(map(str, row.drained)) or "–"),
                amount_cell(row.refused),
                Cell("; ".join(row.reasons)),
            )
            for row in kept.rows
        )
        note = say_left_out(kept, "cluster", "those that copy the most first")
        return Listing("moves", "Plans of moves", columns, rows, note, "Nothing is to be moved.")

    def next_leaders(self) -> Listing:
        """List the most leaders that one broker takes over on each cluster, with the bounds."""
        columns = (
            ListingColumn("cluster", "Cluster", style="brief"),
            number_column("broker", "If a broker is lost"),
            number_column("broker-bound", "Bound"),
            number_column("rack", "If a rack is lost"),
            number_column("rack-bound", "Bound"),
        )
        kept = self.page.audit.next_leaders if self.page.audit else Kept()
        rows = tuple(
            (
                self._name(row.cluster),
                *map(amount_cell, (row.most, row.bound, row.rack_most, row.rack_bound)),
            )
            for row in kept.rows
        )
        note = say_left_out(kept, "cluster", "the farthest from their bounds first")
        title = "Leaders that one broker takes over"
        empty = "This audit counted no next leaders."
        return Listing("next-leaders", title, columns, rows, note, empty)

    def drift(self) -> Listing:
        """List the totals of the plans of each collection."""
        columns = (
            ListingColumn("collection", "Collection"),
            number_column("pending", "To change"),
            number_column("refused", "Refused"),
            number_column("unchanged", "As specified"),
            ListingColumn("drift", "Drift", numeric=True),
            number_column("planned", "Clusters planned"),
            number_column("unplanned", "Not planned"),
        )
        rows = tuple(
            (
                Cell(say_when(point.collection)),
                *map(amount_cell, (point.changed, point.refused, point.unchanged)),
                Cell(
                    say_share(
                        point.changed + point.refused,
                        point.changed + point.refused + point.unchanged,
                    )
                ),
                *map(amount_cell, (point.planned, point.unplanned)),
            )
            for point in reversed(self.page.drift)
        )
        return Listing("drift-table", "The same in numbers", columns, rows, empty="No plans yet.")


def _scale(pairs: Iterable[tuple[int | None, int | None]]) -> Axis:
    return Axis(max((n for pair in pairs for n in pair if n is not None), default=0))


def _compare(before: int | None, after: int | None, scale: Axis) -> tuple[Cell, Cell, Cell]:
    """Return the change as a picture, and the two numbers."""
    if before is None or after is None:
        return Cell("–"), amount_cell(before), amount_cell(after)
    picture = Cell("", draw_dumbbell(before, after, scale), sort_by=before - after)
    return picture, amount_cell(before), amount_cell(after)
