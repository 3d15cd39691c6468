"""Manual assignments: rows of broker ids, read and checked by all of Kafka's rules.

There are two equivalent forms: a list (row p is partition p), and a map from partition to row.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from reconciler.errors import Finding, Location
from reconciler.model.cluster import Assignment, Replicas
from reconciler.spec.fields import FieldError, field_error, read_count, require_value
from reconciler.spec.values import YamlList, YamlMap, YamlText, YamlValue, describe_yaml
from reconciler.units import count

MOST_BROKER_ID = 2_147_483_647
MOST_PARTITIONS = 100_000
_KAFKA_FORM = re.compile(r"[0-9]{1,10}([:,][0-9]{1,10})*")


def read_assignment(value: YamlValue) -> Assignment:
    """Read a manual assignment. Errors: FieldError, with every finding."""
    require_value(value, "assignment")
    if isinstance(value, YamlText):
        raise _refuse_text(value)
    if isinstance(value, YamlList):
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


def list_row_places(value: YamlValue) -> Mapping[int, Location]:
    """Return the location of each partition's row. In: a value that read_assignment accepts."""
    if isinstance(value, YamlList):
        return {partition: row.where for partition, row in enumerate(value)}
    return {int(key): key.where for key, _ in value.entries()} if isinstance(value, YamlMap) else {}


def _refuse_text(value: YamlText) -> FieldError:
    """Refuse text, and translate it if it is in the form of kafka-topics."""
    what = f"assignment is {describe_yaml(value)}, not a list of rows"
    way_out = "write one row of broker ids for each partition: [[1, 2], [2, 3]]"
    if _KAFKA_FORM.fullmatch(value) and len(value) < 200:
        rows = (row.replace(":", ", ") for row in value.split(","))
        way_out = f"write [{', '.join(f'[{row}]' for row in rows)}]"
    return field_error("assignment-form", value.where, what, way_out)


def _refuse_flat(value: YamlList) -> None:
    """Refuse a flat list of broker ids. Errors: FieldError."""
    if value and all(isinstance(item, YamlText) and item.tag == "int" for item in value):
        one_row = f"[[{', '.join(value[:9])}]] for one partition"
        rows = f"[{', '.join(f'[{item}]' for item in value[:9])}] for {len(value)}"
        way_out = f"write {one_row}, {rows}" if len(value) < 10 else "write lists in the list"
        what = "assignment is a list of numbers, not of rows"
        raise field_error("assignment-form", value.where, what, way_out)


def _read_partitions(table: YamlMap) -> tuple[dict[int, YamlValue], list[Finding]]:
    """Read the keys of the map form: 0, 1, 2 … without a gap."""
    rows: dict[int, YamlValue] = {}
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


def _read_row(partition: int, row: YamlValue, findings: list[Finding]) -> Replicas:
    """Read one row; errors go to `findings`."""
    name = f"row of partition {partition}"
    if isinstance(row, YamlText) and row.tag == "null":
        findings.append(_refuse_empty(name, row))
        return ()
    if not isinstance(row, YamlList):
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


def _refuse_empty(name: str, row: YamlValue) -> Finding:
    way_out = "name at least one broker, the preferred leader first"
    return Finding("assignment-row-empty", f"{name} is empty", way_out, row.where)


def _refuse_row(name: str, row: YamlValue) -> Finding:
    shown = describe_yaml(row)
    way_out = "write a list of broker ids such as [1, 2]"
    if isinstance(row, YamlText) and _KAFKA_FORM.fullmatch(row):
        way_out = f"write [{re.sub('[:,]', ', ', row)}]"
    return Finding("assignment-form", f"{name} is {shown}, not a list", way_out, row.where)


def _compare_lengths(read: Mapping[int, Replicas], rows: Mapping[int, YamlValue]) -> list[Finding]:
    """Compare the length of every row with the most common length."""
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
