"""The tables of the page: sortable columns, rows of text and pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.fleet.page.contents import Kept, say_share, say_when
from reconciler.fleet.page.pictures import (
    Axis,
    draw_axis,
    draw_bar,
    draw_dumbbell,
    draw_mark,
    draw_sparkline,
)
from reconciler.units import approximate_duration, approximate_size, count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from reconciler.fleet.page.contents import ClusterLine, FleetPage


def _number(key: str, title: str) -> ListingColumn:
    return ListingColumn(key, title, numeric=True)


def _amount(number: int | None) -> Cell:
    return Cell("–" if number is None else f"{number:,}")


def _unless_unknown(number: float | None, say: Callable[[float], str]) -> Cell:
    return Cell("–") if number is None else Cell(say(number), sort_by=number)


def _say_left_out(kept: Kept[object], noun: str, first: str) -> str:
    if not kept.left_out:
        return ""
    return f"{len(kept.rows):,} of {count(kept.total, noun)}, {first}; {kept.left_out:,} left out."


def number_clusters(clusters: Iterable[ClusterLine]) -> Mapping[str, str]:
    """Return the anchor of each cluster whose brokers are on the page.

    A name can contain any character, so an anchor has a number instead.
    """
    shown = (cluster for cluster in clusters if cluster.brokers)
    return {cluster.name: f"cluster-{number}" for number, cluster in enumerate(shown, 1)}


@dataclass(frozen=True, slots=True)
class Listings:
    """The tables of the page, one method per table."""

    page: FleetPage
    places: Mapping[str, str]

    def _name(self, cluster: str) -> Cell:
        place = self.places.get(cluster)
        return Cell(cluster, link=f"#{place}" if place else "")

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
            ListingColumn("state", "State", style="brief"),
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
                _number(f"{noun}-before", f"{noun.title()} before"),
                _number(f"{noun}-after", f"{noun.title()} after"),
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
            ListingColumn("state", "State", style="brief"),
            _number("pending", "To change"),
            _number("refused", "Refused"),
            _number("unchanged", "As specified"),
            _number("unmanaged", "Unmanaged"),
            ListingColumn("drift", "Drift over time", numeric=True),
            _number("topics", "Topics"),
            _number("partitions", "Partitions"),
            _number("brokers", "Brokers"),
        )
        rows = tuple(map(self._describe_cluster, self.page.clusters.rows))
        note = _say_left_out(self.page.clusters, "cluster", "those that are worst off first")
        return Listing("clusters", "Clusters and their plans", columns, rows, note)

    def _describe_cluster(self, cluster: ClusterLine) -> tuple[Cell, ...]:
        plan = cluster.plan
        said = (plan.changed, plan.refused, plan.unchanged, plan.unmanaged) if plan else [None] * 4
        drift = [n for n in cluster.drifts if n is not None]
        grown = drift[-1] - drift[0] if drift else None
        size = (cluster.topics, cluster.partitions, cluster.broker_count)
        return (
            self._name(cluster.name),
            Cell(str(cluster.standing), draw_mark(cluster.standing)),
            *map(_amount, said),
            Cell(
                "–" if grown is None else f"{grown:+,}" if grown else "±0",
                draw_sparkline(cluster.drifts) if drift else "",
                sort_by=grown,
            ),
            *map(_amount, size if cluster.read else [None] * 3),
        )

    def topics(self) -> Listing:
        """List the least even topics."""
        kept = self.page.topics
        most = max((row.leader_skew for row in kept.rows), default=0)
        most_replicas = max((row.replica_skew for row in kept.rows), default=0)
        columns = (
            ListingColumn("topic", "Topic", style="name"),
            ListingColumn("cluster", "Cluster", style="brief"),
            _number("partitions", "Partitions"),
            _number("leaders", "Leader skew"),
            _number("replicas", "Replica skew"),
            ListingColumn("plan", "Plan"),
        )
        rows = tuple(
            (
                Cell(row.topic),
                self._name(row.cluster),
                _amount(row.partitions),
                Cell(f"{row.leader_skew:,}", draw_bar(row.leader_skew, most)),
                Cell(f"{row.replica_skew:,}", draw_bar(row.replica_skew, most_replicas)),
                Cell(row.action or "–"),
            )
            for row in kept.rows
        )
        note = _say_left_out(kept, "topic", "the least even first")
        empty = "Every topic is as even as can be: max − min is at most one."
        return Listing("topics", "Least even topics", columns, rows, note, empty)

    def changes(self) -> Listing:
        """List what the plans change and refuse."""
        kept = self.page.changes
        columns = (
            ListingColumn("topic", "Topic", style="name"),
            ListingColumn("cluster", "Cluster", style="brief"),
            ListingColumn("action", "Action"),
            ListingColumn("change", "Change", style="long"),
            ListingColumn("risks", "Risks", style="brief"),
            ListingColumn("reasons", "Reasons", style="long"),
            ListingColumn("file", "File", style="brief"),
        )
        rows = tuple(
            (
                Cell(row.topic),
                self._name(row.cluster),
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
        note = _say_left_out(kept, "change", "refusals first")
        return Listing("changes", "Changes and refusals", columns, rows, note, "No change.")

    def moves(self) -> Listing:
        """List the plans of moves: what they copy, for how long, and what is refused."""
        kept = self.page.moves
        columns = (
            ListingColumn("cluster", "Cluster", style="brief"),
            _number("moving", "Topics"),
            _number("moving-partitions", "Partitions"),
            _number("copies", "Replicas to copy"),
            _number("bytes", "To copy"),
            _number("time", "Time"),
            _number("peak", "Fullest disk"),
            ListingColumn("drained", "Brokers to drain", style="brief"),
            _number("moves-refused", "Refused"),
            ListingColumn("moves-reasons", "Reasons", style="long"),
        )
        rows = tuple(
            (
                self._name(row.cluster),
                *map(_amount, (row.topics, row.partitions, row.replicas)),
                Cell(approximate_size(row.copied_bytes), sort_by=row.copied_bytes),
                _unless_unknown(row.seconds, approximate_duration),
                _unless_unknown(row.peak_share, "{:.0%}".format),
                Cell(", ".join(map(str, row.drained)) or "–"),
                _amount(row.refused),
                Cell("; ".join(row.reasons)),
            )
            for row in kept.rows
        )
        note = _say_left_out(kept, "cluster", "those that copy the most first")
        return Listing("moves", "Plans of moves", columns, rows, note, "Nothing is to be moved.")

    def rules(self) -> Listing:
        """List the rules of the audit with their numbers of findings."""
        columns = (
            ListingColumn("severity", "Severity"),
            ListingColumn("rule", "Rule", style="brief"),
            _number("findings", "Findings"),
            _number("clusters", "Clusters"),
        )
        found = self.page.audit.rules if self.page.audit else ()
        rows = tuple(
            (Cell(r.severity), Cell(r.rule), _amount(r.findings), _amount(r.clusters))
            for r in found
        )
        return Listing("rules", "Findings by rule", columns, rows, empty="No finding.")

    def findings(self) -> Listing:
        """List the most severe findings of the audit."""
        columns = (
            ListingColumn("severity", "Severity"),
            ListingColumn("cluster", "Cluster", style="brief"),
            ListingColumn("topic", "Topic", style="name"),
            ListingColumn("rule", "Rule", style="brief"),
            ListingColumn("what", "What", style="long"),
            ListingColumn("evidence", "Evidence", style="long"),
            ListingColumn("way_out", "What to do", style="long"),
        )
        audit = self.page.audit
        rows = tuple(
            tuple(
                self._name(found.cluster) if c.key == "cluster" else Cell(getattr(found, c.key))
                for c in columns
            )
            for found in (audit.findings.rows if audit else ())
        )
        note = _say_left_out(audit.findings, "finding", "the gravest first") if audit else ""
        return Listing("findings", "Findings", columns, rows, note, "No finding.")

    def next_leaders(self) -> Listing:
        """List the most leaders that one broker takes over on each cluster, with the bounds."""
        columns = (
            ListingColumn("cluster", "Cluster", style="brief"),
            _number("broker", "If a broker is lost"),
            _number("broker-bound", "Bound"),
            _number("rack", "If a rack is lost"),
            _number("rack-bound", "Bound"),
        )
        kept = self.page.audit.next_leaders if self.page.audit else Kept()
        rows = tuple(
            (
                self._name(row.cluster),
                *map(_amount, (row.most, row.bound, row.rack_most, row.rack_bound)),
            )
            for row in kept.rows
        )
        note = _say_left_out(kept, "cluster", "the farthest from their bounds first")
        title = "Leaders that one broker takes over"
        empty = "This audit counted no next leaders."
        return Listing("next-leaders", title, columns, rows, note, empty)

    def drift(self) -> Listing:
        """List the totals of the plans of each collection."""
        columns = (
            ListingColumn("collection", "Collection"),
            _number("pending", "To change"),
            _number("refused", "Refused"),
            _number("unchanged", "As specified"),
            ListingColumn("drift", "Drift", numeric=True),
            _number("planned", "Clusters planned"),
            _number("unplanned", "Not planned"),
        )
        rows = tuple(
            (
                Cell(say_when(point.collection)),
                *map(_amount, (point.changed, point.refused, point.unchanged)),
                Cell(
                    say_share(
                        point.changed + point.refused,
                        point.changed + point.refused + point.unchanged,
                    )
                ),
                *map(_amount, (point.planned, point.unplanned)),
            )
            for point in reversed(self.page.drift)
        )
        return Listing("drift-table", "The same in numbers", columns, rows, empty="No plans yet.")


def _scale(pairs: Iterable[tuple[int | None, int | None]]) -> Axis:
    return Axis(max((n for pair in pairs for n in pair if n is not None), default=0))


def _compare(before: int | None, after: int | None, scale: Axis) -> tuple[Cell, Cell, Cell]:
    """Return the change as a picture, and the two numbers."""
    if before is None or after is None:
        return Cell("–"), _amount(before), _amount(after)
    picture = Cell("", draw_dumbbell(before, after, scale), sort_by=before - after)
    return picture, _amount(before), _amount(after)


@dataclass(frozen=True, slots=True)
class ListingColumn:
    """A column: its key in addresses, its title and looks. `above` is a picture in its head."""

    key: str
    title: str
    numeric: bool = False
    above: str = ""
    style: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A text, which is escaped; a picture, which is markup; a link; and a number to sort by."""

    text: str = ""
    picture: str = ""
    link: str = ""
    sort_by: float | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """A table. `note` says what is left out; `empty` replaces the rows if there are none."""

    name: str
    title: str
    columns: tuple[ListingColumn, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    empty: str = "Nothing to show."
