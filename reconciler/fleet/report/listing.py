"""The tables of a report: columns that a reader sorts by, rows of text with pictures beside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.fleet.report.pictures import (
    draw_axis,
    draw_bar,
    draw_dumbbell,
    draw_mark,
    draw_sparkline,
)
from reconciler.fleet.report.scale import Scale
from reconciler.fleet.report.table import Cell, Column, Listing
from reconciler.fleet.report.words import say_share, say_when
from reconciler.units import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from reconciler.fleet.report.contents import ClusterLine, Kept, Report


def _number(key: str, title: str) -> Column:
    return Column(key, title, numeric=True)


def _amount(number: int | None) -> Cell:
    return Cell("–" if number is None else f"{number:,}")


def _say_left_out(kept: Kept[object], noun: str, first: str) -> str:
    if not kept.left_out:
        return ""
    return f"{len(kept.rows):,} of {count(kept.total, noun)}, {first}; {kept.left_out:,} left out."


def number_clusters(clusters: Iterable[ClusterLine]) -> Mapping[str, str]:
    """Return where on the page each cluster's brokers are, for those that have any there.

    A name may hold anything, so clusters are numbered.
    """
    shown = (cluster for cluster in clusters if cluster.brokers)
    return {cluster.name: f"cluster-{number}" for number, cluster in enumerate(shown, 1)}


@dataclass(frozen=True, slots=True)
class Listings:
    """Lists what a report says, table by table."""

    report: Report
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
            for cluster in self.report.clusters.rows
            if cluster.trouble and cluster.plan is None
        )
        columns = (
            Column("cluster", "Cluster", style="brief"),
            Column("state", "State", style="brief"),
            Column("rule", "Rule", style="brief"),
            Column("reason", "Reason", style="long"),
        )
        title = "Clusters that could not be read or planned"
        return Listing(
            "unreadable", title, columns, tuple(rows), empty="Every cluster was read and planned."
        )

    def skew(self) -> Listing:
        """List the skew of each cluster before and after its plan."""
        plans = [(c, c.plan) for c in self.report.clusters.rows if c.plan is not None]
        scales = (
            _scale((plan.leaders_before, plan.leaders_after) for _, plan in plans),
            _scale((plan.replicas_before, plan.replicas_after) for _, plan in plans),
        )
        columns = [Column("cluster", "Cluster", style="brief")]
        for noun, scale in zip(("leaders", "replicas"), scales, strict=True):
            columns += [
                Column(
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
            Column("cluster", "Cluster", style="brief"),
            Column("state", "State", style="brief"),
            _number("pending", "To change"),
            _number("refused", "Refused"),
            _number("unchanged", "As specified"),
            _number("unmanaged", "Unmanaged"),
            Column("drift", "Drift over time", numeric=True),
            _number("topics", "Topics"),
            _number("partitions", "Partitions"),
            _number("brokers", "Brokers"),
        )
        rows = tuple(map(self._describe_cluster, self.report.clusters.rows))
        note = _say_left_out(self.report.clusters, "cluster", "those that are worst off first")
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
        """List the topics that lie least evenly."""
        kept = self.report.topics
        most = max((row.leader_skew for row in kept.rows), default=0)
        most_replicas = max((row.replica_skew for row in kept.rows), default=0)
        columns = (
            Column("topic", "Topic", style="name"),
            Column("cluster", "Cluster", style="brief"),
            _number("partitions", "Partitions"),
            _number("leaders", "Leader skew"),
            _number("replicas", "Replica skew"),
            Column("plan", "Plan"),
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
        kept = self.report.changes
        columns = (
            Column("topic", "Topic", style="name"),
            Column("cluster", "Cluster", style="brief"),
            Column("action", "Action"),
            Column("change", "Change", style="long"),
            Column("risks", "Risks", style="brief"),
            Column("reasons", "Reasons", style="long"),
            Column("file", "File", style="brief"),
        )
        rows = tuple(
            (
                Cell(row.topic),
                self._name(row.cluster),
                Cell(row.action),
                Cell(row.what),
                Cell(", ".join(risk for risk in row.risks if risk != "none")),
                Cell("; ".join(_join_rules(row.reasons, row.rules))),
                Cell(row.place),
            )
            for row in kept.rows
        )
        note = _say_left_out(kept, "change", "refusals first")
        return Listing("changes", "Changes and refusals", columns, rows, note, "No change.")

    def rules(self) -> Listing:
        """List how often each rule of the audit was found broken."""
        columns = (
            Column("severity", "Severity"),
            Column("rule", "Rule", style="brief"),
            _number("findings", "Findings"),
            _number("clusters", "Clusters"),
        )
        found = self.report.audit.rules if self.report.audit else ()
        rows = tuple(
            (Cell(r.severity), Cell(r.rule), _amount(r.findings), _amount(r.clusters))
            for r in found
        )
        return Listing("rules", "Findings by rule", columns, rows, empty="No finding.")

    def findings(self) -> Listing:
        """List the gravest findings of the audit."""
        columns = (
            Column("severity", "Severity"),
            Column("cluster", "Cluster", style="brief"),
            Column("topic", "Topic", style="name"),
            Column("rule", "Rule", style="brief"),
            Column("what", "What", style="long"),
            Column("evidence", "Evidence", style="long"),
            Column("way_out", "What to do", style="long"),
        )
        audit = self.report.audit
        rows = tuple(
            tuple(
                self._name(found.cluster) if c.key == "cluster" else Cell(getattr(found, c.key))
                for c in columns
            )
            for found in (audit.findings.rows if audit else ())
        )
        note = _say_left_out(audit.findings, "finding", "the gravest first") if audit else ""
        return Listing("findings", "Findings", columns, rows, note, "No finding.")

    def drift(self) -> Listing:
        """List what the plans of each collection came to."""
        columns = (
            Column("collection", "Collection"),
            _number("pending", "To change"),
            _number("refused", "Refused"),
            _number("unchanged", "As specified"),
            Column("drift", "Drift", numeric=True),
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
            for point in reversed(self.report.drift)
        )
        return Listing("drift-table", "The same in numbers", columns, rows, empty="No plans yet.")


def _scale(pairs: Iterable[tuple[int | None, int | None]]) -> Scale:
    return Scale(max((n for pair in pairs for n in pair if n is not None), default=0))


def _compare(before: int | None, after: int | None, scale: Scale) -> tuple[Cell, Cell, Cell]:
    """Return what was gained as a picture, and the two numbers."""
    if before is None or after is None:
        return Cell("–"), _amount(before), _amount(after)
    picture = Cell("", draw_dumbbell(before, after, scale), sort_by=before - after)
    return picture, _amount(before), _amount(after)


def _join_rules(reasons: Sequence[str], rules: Sequence[str]) -> Iterable[str]:
    return (f"{what} [{rule}]" for what, rule in zip(reasons, rules, strict=True))
