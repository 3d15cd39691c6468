"""The tables of an audit on the page: causes, rules, clusters by rule, and findings."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.fleet.page.cells import (
    Cell,
    Listing,
    ListingColumn,
    amount_cell,
    number_column,
    say_left_out,
)
from reconciler.fleet.page.contents import Kept
from reconciler.fleet.page.listing_live import PageTables


@dataclass(frozen=True, slots=True)
class AuditListings(PageTables):
    """The tables of the audit, one method per table."""

    def causes(self) -> Listing:
        """List the causes of findings, what an operator should do first at the top."""
        columns = (
            number_column("rank", "Rank"),
            ListingColumn("cause", "Cause", style="long"),
            number_column("findings", "Findings"),
            number_column("clusters", "Clusters"),
        )
        found = self.page.audit.causes if self.page.audit else ()
        rows = tuple(
            (amount_cell(c.rank), Cell(c.cause), amount_cell(c.findings), amount_cell(c.clusters))
            for c in found
        )
        return Listing("causes", "Findings by cause", columns, rows, empty="No finding.")

    def rules(self) -> Listing:
        """List the rules of the audit with their numbers of findings."""
        columns = (
            ListingColumn("severity", "Severity", choices=True),
            ListingColumn("rule", "Rule", style="brief"),
            number_column("findings", "Findings"),
            number_column("clusters", "Clusters"),
        )
        found = self.page.audit.rules if self.page.audit else ()
        rows = tuple(
            (Cell(r.severity), Cell(r.rule), amount_cell(r.findings), amount_cell(r.clusters))
            for r in found
        )
        return Listing("rules", "Findings by rule", columns, rows, empty="No finding.")

    def matrix(self) -> Listing:
        """List the number of findings of each cluster by rule; a cell without findings is empty."""
        audit = self.page.audit
        rules = [rule.rule for rule in audit.rules] if audit else []
        columns = (
            ListingColumn("cluster", "Cluster", style="brief"),
            number_column("all", "All rules"),
            *(ListingColumn(rule, rule, numeric=True, style="upright") for rule in rules),
        )
        kept = audit.matrix if audit else Kept()
        rows = tuple(
            (
                self._name(row.cluster),
                amount_cell(row.findings),
                *(
                    amount_cell(row.by_rule[rule]) if rule in row.by_rule else Cell()
                    for rule in rules
                ),
            )
            for row in kept.rows
        )
        note = say_left_out(kept, "cluster", "the most severe rules first")
        note += " reconciler fleet audit --cluster NAME shows the others." if note else ""
        return Listing("matrix", "Findings by rule and cluster", columns, rows, note, "No finding.")

    def findings(self) -> Listing:
        """List the first findings of the audit: by rank, or else the most severe."""
        audit = self.page.audit
        found = audit.findings.rows if audit else ()
        ranked = any(row.rank is not None for row in found)
        columns = [
            ListingColumn("severity", "Severity", choices=True),
            ListingColumn("cluster", "Cluster", style="brief", choices=True),
            ListingColumn("topic", "Topic, broker or config", style="name"),
            ListingColumn("owner", "Owner", style="brief", choices=True),
            ListingColumn("rule", "Rule", style="brief", choices=True),
            ListingColumn("what", "What", style="long"),
            ListingColumn("evidence", "Evidence", style="long"),
            ListingColumn("way_out", "What to do", style="long"),
        ]
        if ranked:
            columns.insert(0, number_column("rank", "Rank"))
            columns.append(ListingColumn("cause", "Cause", style="long"))
            columns.append(ListingColumn("fixed_by", "Fixed by", style="brief", choices=True))
        rows = tuple(tuple(self._show(row, column.key) for column in columns) for row in found)
        first = "what to do first" if ranked else "the most severe first"
        note = say_left_out(audit.findings, "finding", first) if audit else ""
        note += " reconciler fleet audit --format json shows all." if note else ""
        return Listing("findings", "Findings", tuple(columns), rows, note, "No finding.")

    def _show(self, row: object, key: str) -> Cell:
        value = getattr(row, key)
        if key == "cluster":
            return self._name(value)
        if key == "rank":
            return amount_cell(value)
        return Cell(value or ("–" if key in ("owner", "fixed_by") else ""))
