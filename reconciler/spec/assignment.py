"""Manual assignments: rows of broker ids, read and held against every rule of Kafka's own.

Two forms mean the same: a list, whose row p is partition p, and a map from partition to row.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from reconciler.errors import Finding
from reconciler.spec.fields import FieldError, field_error, read_count, require_value
from reconciler.spec.values import Sequence, Table, Text, Value, describe
from reconciler.units import count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconciler.errors import Location
    from reconciler.model import Assignment, Replicas

MOST_BROKER_ID = 2_147_483_647
MOST_PARTITIONS = 100_000
_KAFKA_FORM = re.compile(r"[0-9]{1,10}([:,][0-9]{1,10})*")


def read_assignment(value: Value) -> Assignment:
    """Read a manual assignment. Errors: FieldError, with every finding there is."""
    require_value(value, "assignment")
    if isinstance(value, Text):
        raise _refuse_text(value)
    if isinstance(value, Sequence):
        _refuse_flat(value)
        rows = dict(enumerate(value))
        findings: list[Finding] = []
    else:
        rows, findings = _read_partitions(value)
    if not rows and not findings:
        raise field_error(
            "assignment-form",
            value.where,
            "assignment has no rows",
            "write one row of broker ids for each partition, or leave assignment out",
        )
    if len(rows) > MOST_PARTITIONS:
        what = f"assignment has {len(rows):,} rows"
        way_out = f"a topic has at most {MOST_PARTITIONS:,} partitions"
        raise field_error("value-range", value.where, what, way_out)
    read = {partition: _read_row(partition, row, findings) for partition, row in rows.items()}
    findings.extend(_compare_lengths(read, rows))
    if findings:
        raise FieldError(findings)
    return tuple(read[partition] for partition in sorted(read))


def list_row_places(value: Value) -> Mapping[int, Location]:
    """Tell where the row of each partition is written. In: a value that read_assignment takes."""
    if isinstance(value, Sequence):
        return {partition: row.where for partition, row in enumerate(value)}
    return {int(key): key.where for key, _ in value.entries()} if isinstance(value, Table) else {}


def _refuse_text(value: Text) -> FieldError:
    """Refuse text, and translate it where it is in the form of kafka-topics."""
    what = f"assignment is {describe(value)}, not a list of rows"
    way_out = "write one row of broker ids for each partition: [[1, 2], [2, 3]]"
    if _KAFKA_FORM.fullmatch(value) and len(value) < 200:
        rows = (row.replace(":", ", ") for row in value.split(","))
        way_out = f"write [{', '.join(f'[{row}]' for row in rows)}]"
    return field_error("assignment-form", value.where, what, way_out)


def _refuse_flat(value: Sequence) -> None:
    """Refuse broker ids without rows around them. Errors: FieldError."""
    if value and all(isinstance(item, Text) and item.tag == "int" for item in value):
        one_row = f"[[{', '.join(value[:9])}]] for one partition"
        rows = f"[{', '.join(f'[{item}]' for item in value[:9])}] for {len(value)}"
        way_out = f"write {one_row}, {rows}" if len(value) < 10 else "write lists in the list"
        what = "assignment is a list of numbers, not of rows"
        raise field_error("assignment-form", value.where, what, way_out)


def _read_partitions(table: Table) -> tuple[dict[int, Value], list[Finding]]:
    """Read the keys of the map form: 0, 1, 2 … without a gap."""
    rows: dict[int, Value] = {}
    findings: list[Finding] = []
    for key, row in table.entries():
        try:
            number = read_count(key, "assignment: partition", 0, MOST_PARTITIONS - 1)
        except FieldError as error:
            findings.extend(error.findings)
            continue
        rows[number] = row
    missing = next((number for number in range(len(rows)) if number not in rows), None)
    if missing is not None and not findings:
        highest = table.key(str(max(rows)))
        what = f"assignment has rows up to partition {highest}, but none for partition {missing}"
        way_out = "write rows for partitions 0, 1, 2 … without a gap"
        findings.append(Finding("assignment-consecutive", what, way_out, highest.where))
    return rows, findings


def _read_row(partition: int, row: Value, findings: list[Finding]) -> Replicas:
    """Read one row; what is wrong with it goes to `findings`."""
    name = f"row of partition {partition}"
    if isinstance(row, Text) and row.tag == "null":
        findings.append(_refuse_empty(name, row))
        return ()
    if not isinstance(row, Sequence):
        findings.append(_refuse_row(name, row))
        return ()
    if not row:
        findings.append(_refuse_empty(name, row))
    brokers: list[int] = []
    for item in row:
        try:
            brokers.append(read_count(item, f"{name}: broker id", 0, MOST_BROKER_ID))
        except FieldError as error:
            findings.extend(error.findings)
    for broker, times in Counter(brokers).items():
        if times > 1:
            what = f"{name} names broker {broker} more than once"
            way_out = "a broker holds one replica of a partition: name another"
            findings.append(Finding("assignment-broker-twice", what, way_out, row.where))
    return tuple(brokers)


def _refuse_empty(name: str, row: Value) -> Finding:
    way_out = "name at least one broker, the preferred leader first"
    return Finding("assignment-row-empty", f"{name} is empty", way_out, row.where)


def _refuse_row(name: str, row: Value) -> Finding:
    shown = describe(row)
    way_out = "write a list of broker ids such as [1, 2]"
    if isinstance(row, Text) and _KAFKA_FORM.fullmatch(row):
        way_out = f"write [{re.sub('[:,]', ', ', row)}]"
    return Finding("assignment-form", f"{name} is {shown}, not a list", way_out, row.where)


def _compare_lengths(read: Mapping[int, Replicas], rows: Mapping[int, Value]) -> list[Finding]:
    """Hold every row against the length that most rows have."""
    lengths = Counter(len(brokers) for brokers in read.values() if brokers)
    if len(lengths) < 2:
        return []
    usual = max(lengths, key=lambda length: (lengths[length], length))
    return [
        Finding(
            "assignment-lengths",
            f"row of partition {partition} has {count(len(brokers), 'broker')}, "
            f"where other rows have {usual}",
            f"give every partition {count(usual, 'broker')}",
            rows[partition].where,
        )
        for partition, brokers in read.items()
        if brokers and len(brokers) != usual
    ]
