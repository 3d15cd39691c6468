"""The format of what `validate` finds, declared once: written, and published as JSON Schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Self

from pydantic import Field

from reconciler.errors import Finding, Severity
from reconciler.planfile.documents import Document

FORMAT_VERSION = "1.0"
"""Minor: added fields, which a reader may skip."""


class FindingDocument(Document):
    """What is wrong, how to fix it, and where; null: not in a file, or not about one topic.

    `rule` is the id in docs/reference/rules.md. A value that topics inherit is reported once, for
    all of them, and a quota is about all topics of an owner.
    """

    rule: str
    severity: Severity
    what: str
    way_out: str
    topic: str | None
    file: str | None
    line: int | None
    column: int | None

    @classmethod
    def describe(cls, finding: Finding, topic: str | None) -> Self:
        """Return a finding, with the topic that it is about."""
        where = finding.where
        return cls(
            rule=finding.rule,
            severity=finding.severity,
            what=finding.what,
            way_out=finding.way_out,
            topic=topic,
            file=where.file if where else None,
            line=where.line if where else None,
            column=where.column if where else None,
        )


class ValidationDocument(Document):
    """What `reconciler validate` finds in an estate.

    `valid`: there is no error. Then `topics` and `files` count those of the estate, and `clusters`
    names its clusters; otherwise these are null.
    """

    format_version: Annotated[str, Field(pattern=r"^\d+\.\d+$")] = FORMAT_VERSION
    valid: bool
    topics: int | None
    files: int | None
    clusters: tuple[str, ...] | None
    findings: tuple[FindingDocument, ...]


def describe_findings(
    findings: Iterable[Finding], topics: Mapping[Finding, str]
) -> tuple[FindingDocument, ...]:
    """Return findings as they are in JSON. `topics` names the topic of each that has one."""
    return tuple(FindingDocument.describe(each, topics.get(each)) for each in findings)
