"""From a cluster's state to a snapshot's text, and back, or every error in the text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import ValidationError

from reconciler.errors import Finding, Location, SnapshotError
from reconciler.files import DuplicateKeyError, ReplacedError, load_json
from reconciler.model.cluster import ClusterState
from reconciler.planfile.json_locations import locate, spell_path
from reconciler.planfile.snapshot_document import (
    FORMAT_VERSION,
    BrokerEntry,
    SnapshotDocument,
    TopicEntry,
)

MOST_FINDINGS = 50
"""The number of errors shown per file."""

_WAY_OUT = "`reconciler schema snapshot` says what a snapshot holds"


def encode_snapshot(state: ClusterState) -> str:
    """Encode a state: equal states, equal text; a line for each broker, config default and topic.

    Empty values are omitted.
    """
    document = SnapshotDocument.write(state).dump()
    for key in ("config_defaults", "broker_settings"):
        if key in document:
            document[key] = dict(sorted(document[key].items()))
    for note in document.get("notes", ()):
        for key in [key for key, value in note.items() if not value]:
            del note[key]
    body = ",\n".join(f'  "{key}": {_spread(value)}' for key, value in document.items())
    return f"{{\n{body}\n}}\n"


def decode_snapshot(content: str | bytes, source: str = "snapshot") -> ClusterState:
    """Decode a snapshot. Errors: SnapshotError with every error at its place.

    A broker that appears only in rows is dead. Config defaults stay empty if the file has none.
    """
    try:
        text = content if isinstance(content, str) else content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise refuse_file(source, f"is not UTF-8: {error.reason} at byte {error.start}") from error
    raw = _parse(text, source)
    # Before the form: a newer major version may have another one, and each difference would be an
    # error of its own.
    is_newer = _is_newer(raw, text, source)
    try:
        document = SnapshotDocument.model_validate(raw, extra="ignore" if is_newer else None)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        raise SnapshotError(_shorten(_report(p, text, source) for p in problems)) from error
    except KeyError as error:
        what = f"a note names the rule {error}, which this reconciler does not have"
        where = locate(text, ("notes",), source)
        raise SnapshotError([Finding("snapshot-form", what, "remove the note", where)]) from error
    wrong = [
        Finding("snapshot-form", f"{spell_path(path)}: {what}", way_out, locate(text, path, source))
        for path, what, way_out in check_document(document)
    ]
    if wrong:
        raise SnapshotError(_shorten(wrong))
    state: ClusterState = document.read()
    return state


def refuse_file(source: str, what: str) -> SnapshotError:
    """Refuse a file without a line number."""
    return SnapshotError([Finding("snapshot-file", f"the snapshot {source} {what}")])


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))


def _spread(value: Any) -> str:
    """Return an object or a list with a line for each of its entries."""
    if not isinstance(value, dict | list) or not value:
        return _compact(value)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    entries = (
        [f"{_compact(key)}: {_compact(each)}" for key, each in value.items()]
        if isinstance(value, dict)
        else map(_compact, value)
    )
    body = ",\n".join(f"    {entry}" for entry in entries)
    return f"{opening}\n{body}\n  {closing}"


def _parse(text: str, source: str) -> Any:
    try:
        raw = load_json(text)
    except DuplicateKeyError as error:
        raise SnapshotError([_refuse(str(error), Location(source, 1))]) from error
    except ReplacedError as error:
        where = Location(source, error.line)
        raise SnapshotError([Finding("snapshot-form", error.what, error.way_out, where)]) from error
    except json.JSONDecodeError as error:
        where = Location(source, error.lineno, error.colno)
        raise SnapshotError([_refuse(f"this is not JSON: {error.msg}", where)]) from error
    except (ValueError, RecursionError) as error:
        raise SnapshotError([_refuse(f"this is not JSON: {error}", Location(source, 1))]) from error
    if not isinstance(raw, dict):
        what = 'a snapshot is an object: {"brokers": [{"id": 1, "rack": "a"}, …], "topics": […]}'
        raise SnapshotError([_refuse(what, Location(source, 1))])
    return raw


def _refuse(what: str, where: Location) -> Finding:
    return Finding("snapshot-form", what, _WAY_OUT, where)


def _is_newer(raw: dict[str, Any], text: str, source: str) -> bool:
    """Return whether the minor format is newer, whose added keys count as nothing here.

    Errors: SnapshotError if the major format is another one.
    """
    version = raw.get("format_version")
    if not (isinstance(version, str) and re.fullmatch(r"[0-9]{1,9}\.[0-9]{1,9}", version)):
        return False  # its form is refused with the rest
    (major, minor), (ours, our_minor) = (
        map(int, each.split(".")) for each in (version, FORMAT_VERSION)
    )
    if major != ours:
        what = f"format_version is {version}, and this reconciler reads {ours}.x"
        way_out = "use the reconciler that wrote it, or take the snapshot again"
        where = locate(text, ("format_version",), source)
        raise SnapshotError([Finding("snapshot-version", what, way_out, where)])
    return minor > our_minor


def _report(problem: Any, text: str, source: str) -> Finding:
    """Report one of pydantic's errors, at the place of the value."""
    path = tuple(step for step in problem["loc"] if step != "[key]")
    where = locate(text, path, source)
    spelled = spell_path(path)
    match problem["type"]:
        case "missing":
            what = f"{spelled} is missing"
        case "extra_forbidden":
            what = f"{spelled}: unknown key"
        case _:
            _, should, wanted = str(problem["msg"]).partition("should ")
            given = _compact(problem["input"])
            shown = given if len(given) <= 40 else f"{given[:40]}…"
            what = f"{spelled} is {shown}; it {should}{wanted or problem['msg']}"
    return Finding("snapshot-form", what, _WAY_OUT, where)


def _shorten(findings: Iterable[Finding]) -> list[Finding]:
    """Limit the findings of a file with many errors."""
    kept: list[Finding] = []
    more = 0
    for finding in findings:
        if len(kept) < MOST_FINDINGS:
            kept.append(finding)
        else:
            more += 1
    if more:
        last = kept[-1].where
        kept.append(Finding("snapshot-form", f"{more:,} more mistakes are not shown", "", last))
    return kept


Mistake = tuple[tuple[int | str, ...], str, str]
"""The path, the error, and the way out."""


def check_document(document: SnapshotDocument) -> Iterator[Mistake]:
    """Return every error. Rows of different lengths are valid: such topics exist."""
    if not document.brokers:
        yield ("brokers",), "no broker is named", "a cluster has at least one"
    brokers: dict[int, int] = {}
    for number, broker in enumerate(document.brokers):
        if broker.id in brokers:
            what = f"broker {broker.id} is there already, as brokers[{brokers[broker.id]}]"
            yield ("brokers", number, "id"), what, "ids are unique"
        brokers.setdefault(broker.id, number)
        if broker.rack is not None and not broker.rack.isprintable():
            what = f"{broker.rack!r} is not a rack name"
            yield ("brokers", number, "rack"), what, "a rack is printable text, or null for none"
        for path, what in _list_doubled(broker):
            way_out = "a broker holds one replica of a partition"
            yield ("brokers", number, "log_directories", *path), what, way_out
    topics: dict[str, int] = {}
    for number, topic in enumerate(document.topics):
        path = ("topics", number)
        if topic.name in topics:
            what = f"{topic.name} is there already, as topics[{topics[topic.name]}]"
            yield (*path, "name"), what, "keep one of them"
        topics.setdefault(topic.name, number)
        for inner, what, way_out in _check_topic(topic):
            yield (*path, *inner), f"{topic.name}: {what}", way_out


def _list_doubled(broker: BrokerEntry) -> Iterator[tuple[tuple[int | str, ...], str]]:
    """Yield the replicas that more than one log directory of a broker holds."""
    for key in ("stored", "arriving"):
        seen: dict[tuple[str, str], str] = {}
        for number, directory in enumerate(broker.log_directories):
            for topic, sizes in getattr(directory, key).items():
                for partition in sizes:
                    first = seen.setdefault((topic, partition), directory.path)
                    if first != directory.path:
                        what = f"{topic} partition {partition} is in {first} already"
                        yield (number, key, topic, partition), what


def _check_topic(topic: TopicEntry) -> Iterator[Mistake]:
    count = len(topic.partitions)
    for partition, row in enumerate(topic.partitions):
        if not row:
            yield ("partitions", partition), "the row is empty", "a partition has a replica"
        if len(set(row)) < len(row):
            what = f"a broker is listed twice in {list(row)}"
            yield ("partitions", partition), what, "a broker holds one replica of a partition"
    for key in ("in_sync", "size_bytes", "write_bytes_per_s", "read_bytes_per_s", "logs"):
        entries = getattr(topic, key)
        if entries and len(entries) != count:
            what = f"{len(entries)} entries for {count} partitions"
            yield (key,), what, "write one for each, or leave all of them out"
    for key in ("reassigning", "guessed_rates"):
        for number, partition in enumerate(getattr(topic, key)):
            if partition >= count:
                what = f"there is no partition {partition}; the last is {count - 1}"
                yield (key, number), what, "partitions count from 0"
    for partition, log in enumerate(topic.logs):
        if log is not None and log[1] > log[2]:
            what = f"the first offset, {log[1]}, is above the end offset, {log[2]}"
            yield ("logs", partition), what, "a log ends where it begins, or later"
