"""From a cluster's state to a snapshot's text, and back, or every error in the text."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from reconciler.errors import Finding, Location, SnapshotError
from reconciler.files import DuplicateKeyError, ReplacedError, load_json
from reconciler.model.cluster import INTERNAL_TOPICS, Broker, ClusterState, TopicState
from reconciler.model.moves import LogDirectory
from reconciler.planfile.json_locations import locate, spell_path
from reconciler.planfile.snapshot_document import FORMAT_VERSION, SnapshotDocument, TopicEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


MOST_FINDINGS = 50
"""The number of errors shown per file."""

_WAY_OUT = "`reconciler schema snapshot` says what a snapshot holds"


def encode_snapshot(state: ClusterState) -> str:
    """Encode a state: equal states, equal text; a line for each broker, config default and topic.

    Empty values are omitted.
    """
    parts = {
        "format_version": json.dumps(FORMAT_VERSION),
        "cluster_id": _compact(state.cluster_id),
        "kafka_version": _compact(state.kafka_version) if state.kafka_version else None,
        "brokers": _lines(
            _broker(broker, state.directories.get(broker.id, ()))
            for broker in sorted(state.brokers)
        ),
        "config_defaults": _map(state.config_defaults),
        "broker_settings": _map(state.broker_settings),
        "can_cordon": "true" if state.can_cordon else None,
        "topics": _lines(_topic(state.topics[name]) for name in sorted(state.topics)),
        "notes": _lines(_note(note) for note in state.notes) if state.notes else None,
    }
    body = ",\n".join(f'  "{key}": {text}' for key, text in parts.items() if text is not None)
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
    _refuse_newer(raw, text, source)
    try:
        document = SnapshotDocument.model_validate(raw)
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
    return _state(document)


def refuse_file(source: str, what: str) -> SnapshotError:
    """Refuse a file without a line number."""
    return SnapshotError([Finding("snapshot-file", f"the snapshot {source} {what}")])


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))


def _lines(entries: Iterable[Mapping[str, Any]]) -> str:
    body = ",\n".join(f"    {_compact(entry)}" for entry in entries)
    return f"[\n{body}\n  ]" if body else "[]"


def _map(values: Mapping[str, str]) -> str | None:
    body = ",\n".join(f"    {_compact(key)}: {_compact(values[key])}" for key in sorted(values))
    return f"{{\n{body}\n  }}" if body else None


def _broker(broker: Broker, directories: Iterable[LogDirectory]) -> dict[str, Any]:
    entry: dict[str, Any] = {"id": broker.id, "rack": broker.rack}
    held = [
        {
            key: value
            for key, value in _fields(each).items()
            if value is not None and (key, value) != ("online", True)
        }
        for each in directories
    ]
    return (
        entry
        | ({} if broker.alive else {"alive": False})
        | ({"cordoned": True} if broker.cordoned else {})
        | ({"log_directories": held} if held else {})
    )


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _topic(topic: TopicState) -> dict[str, Any]:
    entry = {
        "name": topic.name,
        "topic_id": topic.topic_id,
        "partitions": topic.assignment,
        "config": {key: topic.config[key] for key in sorted(topic.config)},
        "in_sync": topic.in_sync,
        "reassigning": sorted(topic.reassigning),
        "internal": topic.internal,
        # The format has a number for every partition, so a topic with an unknown one has none.
        "size_bytes": topic.size_bytes if -1 not in topic.size_bytes else (),
        "rate_bytes_per_s": topic.rate_bytes_per_s if -1 not in topic.rate_bytes_per_s else (),
    }
    return {key: value for key, value in entry.items() if value or key in ("name", "partitions")}


def _note(note: Finding) -> dict[str, Any]:
    entry = _fields(note)
    if note.where is not None:
        entry["where"] = _fields(note.where)
    return {key: value for key, value in entry.items() if value}


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


def _refuse_newer(raw: dict[str, Any], text: str, source: str) -> None:
    """Refuse a newer major format; of a newer minor one, leave out the keys not known here."""
    version = raw.get("format_version", FORMAT_VERSION)
    ours, our_minor = map(int, FORMAT_VERSION.split("."))
    major, _, minor = version.partition(".") if isinstance(version, str) else ("", "", "")
    if not (_is_count(major) and _is_count(minor)):
        return  # its form is refused with the rest
    if int(major) != ours:
        what = f"format_version is {version}, and this reconciler reads {ours}.x"
        way_out = "use the reconciler that wrote it, or take the snapshot again"
        where = locate(text, ("format_version",), source)
        raise SnapshotError([Finding("snapshot-version", what, way_out, where)])
    if int(minor) > our_minor:
        _leave_out_unknown(raw)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def _leave_out_unknown(raw: dict[str, Any]) -> None:
    from reconciler.planfile.snapshot_document import BrokerEntry, LogDirectoryEntry

    for key in raw.keys() - SnapshotDocument.model_fields.keys() - {"$schema"}:
        del raw[key]
    for name, model in (("brokers", BrokerEntry), ("topics", TopicEntry)):
        entries = raw.get(name)
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict):
                _leave_out(entry, model)
                held = entry.get("log_directories")
                for each in held if isinstance(held, list) else ():
                    if isinstance(each, dict):
                        _leave_out(each, LogDirectoryEntry)


def _leave_out(entry: dict[str, Any], model: type[BaseModel]) -> None:
    for key in entry.keys() - model.model_fields.keys():
        del entry[key]


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


def _state(document: SnapshotDocument) -> ClusterState:
    written = [
        Broker(broker.id, broker.rack, broker.alive, broker.cordoned) for broker in document.brokers
    ]
    directories = {
        broker.id: tuple(
            LogDirectory(each.path, each.total_bytes, each.usable_bytes, each.replicas, each.online)
            for each in broker.log_directories
        )
        for broker in sorted(document.brokers, key=lambda broker: broker.id)
        if broker.log_directories
    }
    named = {broker for topic in document.topics for row in topic.partitions for broker in row}
    dead = [Broker(stranger, alive=False) for stranger in named - {known.id for known in written}]
    topics = {
        topic.name: TopicState(
            name=topic.name,
            topic_id=topic.topic_id,
            assignment=topic.partitions,
            config=topic.config,
            in_sync=topic.in_sync,
            reassigning=frozenset(topic.reassigning),
            internal=topic.internal or topic.name in INTERNAL_TOPICS,
            size_bytes=topic.size_bytes,
            rate_bytes_per_s=topic.rate_bytes_per_s,
        )
        for topic in sorted(document.topics, key=lambda topic: topic.name)
    }
    return ClusterState(
        cluster_id=document.cluster_id,
        brokers=tuple(sorted((*written, *dead), key=lambda broker: broker.id)),
        topics=topics,
        config_defaults=document.config_defaults,
        broker_settings=document.broker_settings,
        notes=document.notes,
        kafka_version=document.kafka_version,
        directories=directories,
        can_cordon=document.can_cordon,
    )


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
    topics: dict[str, int] = {}
    for number, topic in enumerate(document.topics):
        path = ("topics", number)
        if topic.name in topics:
            what = f"{topic.name} is there already, as topics[{topics[topic.name]}]"
            yield (*path, "name"), what, "keep one of them"
        topics.setdefault(topic.name, number)
        for inner, what, way_out in _check_topic(topic):
            yield (*path, *inner), f"{topic.name}: {what}", way_out


def _check_topic(topic: TopicEntry) -> Iterator[Mistake]:
    count = len(topic.partitions)
    for partition, row in enumerate(topic.partitions):
        if not row:
            yield ("partitions", partition), "the row is empty", "a partition has a replica"
        if len(set(row)) < len(row):
            what = f"a broker is listed twice in {list(row)}"
            yield ("partitions", partition), what, "a broker holds one replica of a partition"
    for key in ("in_sync", "size_bytes", "rate_bytes_per_s"):
        entries = getattr(topic, key)
        if entries and len(entries) != count:
            what = f"{len(entries)} entries for {count} partitions"
            yield (key,), what, "write one for each, or leave all of them out"
    for number, partition in enumerate(topic.reassigning):
        if partition >= count:
            what = f"there is no partition {partition}; the last is {count - 1}"
            yield ("reassigning", number), what, "partitions count from 0"
