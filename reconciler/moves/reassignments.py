"""Files of kafka-reassign-partitions: rows of existing partitions, to and from a plan of moves."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reconciler.diff.notes import assume_defaults, note_failed_directories, note_unregistered
from reconciler.errors import Finding, Location, PlanFileError
from reconciler.files import ReplacedError, load_json
from reconciler.model.cluster import ClusterState, Place, Replicas, TopicSpec
from reconciler.model.moves import MoveKind
from reconciler.model.plan import Plan
from reconciler.moves.differences import diff_moves
from reconciler.moves.plan import add_cost, allowed_moves, compose_moves, list_notes
from reconciler.spec.entry import ClusterEntry
from reconciler.spec.rules import PolicyEngine
from reconciler.units import count

Number = Annotated[int, Field(ge=0, strict=True)]


class _Partition(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    topic: Annotated[str, Field(min_length=1)]
    partition: Number
    replicas: Annotated[tuple[Number, ...], Field(min_length=1)]
    log_dirs: tuple[Literal["any"], ...] | None = None


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1]
    partitions: tuple[_Partition, ...]


def encode_rows(plan: Plan, *, before: bool = False) -> str:
    """Encode the rows that a plan of moves changes, as kafka-reassign-partitions reads them.

    `before`: the rows before the plan, to go back. Returns: one line of JSON, in the order of
    topics and partitions.
    """
    rows = []
    for topic in plan.topics:
        if topic.before is None or topic.after is None or topic.refusals:
            continue
        pairs = zip(topic.before.assignment, topic.after.assignment, strict=False)
        for number, (old, new) in enumerate(pairs):
            if old != new:
                row = list(old if before else new)
                rows.append({"topic": topic.name, "partition": number, "replicas": row})
    return json.dumps({"version": 1, "partitions": rows}) + "\n"


_PROPOSED = re.compile(r"^Proposed partition reassignment configuration\s*?$", re.MULTILINE)
"""What --generate prints above the rows that it proposes; above it are the current ones."""


def decode_rows(text: str, source: str) -> Mapping[Place, Replicas]:
    """Decode a file of kafka-reassign-partitions, or what its --generate prints.

    Errors: PlanFileError with every error in it.
    """
    where = Location(source, 1)
    if proposed := _PROPOSED.search(text):
        text = text[proposed.end() :]
    try:
        file = _File.model_validate(load_json(text))
    except ValidationError as error:
        findings = [
            _refuse(f"{'.'.join(map(str, each['loc']))}: {each['msg']}", where)
            for each in error.errors()
        ]
        raise PlanFileError(findings) from error
    except ReplacedError as error:
        place = Location(source, error.line)
        finding = Finding("reassignment-file", error.what, error.way_out, place)
        raise PlanFileError([finding]) from error
    except (ValueError, RecursionError) as error:
        raise PlanFileError([_refuse(f"it is not JSON: {error}", where)]) from error
    times = Counter((each.topic, each.partition) for each in file.partitions)
    findings = [
        _refuse(f"{topic} partition {number} is there {each} times", where)
        for (topic, number), each in times.items()
        if each > 1
    ]
    findings += [
        _refuse(f"{each.topic} partition {each.partition} names a broker twice", where)
        for each in file.partitions
        if len(set(each.replicas)) < len(each.replicas)
    ]
    if findings:
        raise PlanFileError(findings)
    return {(each.topic, each.partition): each.replicas for each in file.partitions}


def _refuse(what: str, where: Location) -> Finding:
    way_out = (
        "give the output of kafka-reassign-partitions --generate, or the JSON below its second "
        "heading; log_dirs may only be any"
    )
    return Finding("reassignment-file", what, way_out, where)


def plan_rows(
    entry: ClusterEntry,
    specs: Mapping[str, TopicSpec],
    state: ClusterState,
    rows: Mapping[Place, Replicas],
    source: str,
) -> Plan:
    """Plan the moves to given rows of existing partitions. Every other row stays.

    In: `rows` of the file `source`; `state` as for `plan_moves`. A row that the spec of its topic
    would change again is refused. Errors: UsageError if the cluster allows no moves.
    """
    where = Location(source, 1)
    state = assume_defaults(entry, state)
    by_topic: dict[str, dict[int, Replicas]] = defaultdict(dict)
    for (name, number), row in rows.items():
        by_topic[name][number] = row
    wished = []
    refusals = []
    for name, asked in sorted(by_topic.items()):
        if found := list(_refuse_topic(name, asked, state, specs.get(name), where)):
            refusals += found
            continue
        live = state.topics[name].assignment
        assignment = tuple(asked.get(number, row) for number, row in enumerate(live))
        spec = specs.get(name, TopicSpec(name, where))
        wished.append(
            replace(
                spec,
                location=where,
                fields={},
                partitions=None,
                assignment=assignment,
                replication_factor=None,
            )
        )
    allows = PolicyEngine(entry, entry.catalogue).allows
    allowed = allowed_moves(entry, MoveKind.ASSIGNMENT)
    diffs = diff_moves(wished, state, allowed, entry.exclude_brokers, allows)
    plan = compose_moves(entry, diffs, state)
    about = (*note_unregistered(entry, state), *note_failed_directories(entry, state))
    notes = (*entry.notes, *list_notes(state), *about, *plan.notes)
    plan = replace(
        plan,
        refusals=tuple(refusals),
        notes=notes,
        unchanged=len(wished) - len(diffs),
        files=1,
    )
    return add_cost(entry, plan, state, made_by=f"moves import {source}")


def _refuse_topic(
    name: str,
    asked: Mapping[int, Replicas],
    state: ClusterState,
    spec: TopicSpec | None,
    where: Location,
) -> Iterator[Finding]:
    """Refuse rows of partitions that do not exist, or that a spec would change again."""
    topic = state.topics.get(name)
    if topic is None:
        yield Finding("reassignment-rows", f"there is no topic {name}", "take it out", where)
        return
    if beyond := sorted(number for number in asked if number >= len(topic.assignment)):
        what = f"{name} has {count(len(topic.assignment), 'partition')}, and no {beyond[0]}"
        yield Finding("reassignment-rows", what, "take it out", where)
    if spec is None or spec.absent:
        return
    if spec.assignment is not None:
        for number, row in asked.items():
            if spec.assignment[number : number + 1] != (row,):
                what = f"{name} partition {number} has another row in its spec"
                yield Finding("reassignment-rows", what, "change the spec instead", where)
    elif spec.replication_factor is not None:
        for number, row in asked.items():
            if len(row) != spec.replication_factor:
                what = (
                    f"{name} partition {number} gets {count(len(row), 'replica')}, and its spec "
                    f"asks for {spec.replication_factor}"
                )
                yield Finding("reassignment-rows", what, "change the spec as well", where)
