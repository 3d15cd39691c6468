"""Files of kafka-reassign-partitions: a plan becomes one, and one becomes a plan."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from shorthand import brokers, cluster, may_move, rows, said, spec, topic

from reconciler.api.planning import read_rows
from reconciler.errors import Location, PlanFileError
from reconciler.model.cluster import LogDirectory
from reconciler.model.plan import Plan
from reconciler.model.steps import steps_of
from reconciler.moves.plan import assemble_moves
from reconciler.moves.reassignments import decode_rows, encode_rows, plan_rows
from reconciler.spec.entry import ClusterEntry

ENTRY = ClusterEntry("prod", Location("topics/clusters.yaml", 2), moves=may_move())
DISKS = {b: (LogDirectory("/data", 10**9, 9 * 10**8, 0),) for b in (1, 2, 3, 4)}
LIVE = replace(topic("1,2 2,3 3,4 4,1"), size_bytes=(10, 20, 30, 40))
NAME = LIVE.name


def state(*found: Any) -> Any:
    live = cluster(*(found or [LIVE]), nodes=brokers(None, None, None, None))
    return replace(live, directories=DISKS)


def read(*partitions: tuple[str, int, list[int]]) -> Any:
    listed = [{"topic": t, "partition": p, "replicas": r} for t, p, r in partitions]
    return decode_rows(json.dumps({"version": 1, "partitions": listed}), "rows.json")


def plan(*partitions: tuple[str, int, list[int]], wished: Any = None, found: Any = ()) -> Plan:
    specs = {wished.name: wished} if wished else {}
    return plan_rows(ENTRY, specs, state(*found), read(*partitions), "rows.json")


def test_the_rows_of_a_file_are_planned_and_no_others() -> None:
    made = plan((NAME, 1, [2, 4]), (NAME, 3, [1, 4]))
    (planned,) = made.topics
    assert planned.after is not None
    assert planned.after.assignment == rows("1,2 2,4 3,4 1,4")
    assert made.moves is not None
    assert made.moves.replicas == made.moves.least_replicas == 1
    assert made.moves.forecast is not None
    assert made.moves.forecast.copied_bytes == 20
    assert said(made.refusals) == []


def test_what_generate_prints_is_read_as_it_is() -> None:
    """The rows that it proposes are below its second heading; the current ones are above them."""
    current, proposed = (
        json.dumps({"version": 1, "partitions": [{"topic": "a", "partition": 0, "replicas": row}]})
        for row in ([1, 2], [2, 1])
    )
    printed = (
        f"Current partition replica assignment\n{current}\n\n"
        f"Proposed partition reassignment configuration\n{proposed}\n"
    )
    for text in (printed, printed.replace("\n", "\r\n")):
        assert decode_rows(text, "rows.json") == {("a", 0): (2, 1)}
    with pytest.raises(PlanFileError, match="the output of kafka-reassign-partitions --generate"):
        decode_rows(printed.replace("Proposed", "Other"), "rows.json")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_no_error(tmp_path: Path, encoding: str) -> None:
    """PowerShell writes one, and UTF-16, where a command's output goes into a file."""
    file = tmp_path / "rows.json"
    row = '{"version": 1, "partitions": [{"topic": "a", "partition": 0, "replicas": [2, 1]}]}'
    file.write_text(f"Proposed partition reassignment configuration\n{row}\n", encoding=encoding)
    assert read_rows(file) == {("a", 0): (2, 1)}


def test_what_is_exported_gives_the_same_plan() -> None:
    grown = assemble_moves(ENTRY, [spec(replication_factor=3)], state())
    wished = spec(replication_factor=3)
    text = encode_rows(grown)
    again = plan_rows(ENTRY, {NAME: wished}, state(), decode_rows(text, "rows.json"), "rows.json")
    assert [topic.after for topic in again.topics] == [topic.after for topic in grown.topics]
    assert encode_rows(again) == text


def test_rows_before_a_plan_lead_back() -> None:
    made = plan((NAME, 1, [2, 4]))
    back = decode_rows(encode_rows(made, before=True), "back.json")
    assert back == {(NAME, 1): (2, 3)}


def test_rows_that_are_there_already_are_no_plan() -> None:
    assert not any(map(steps_of, plan((NAME, 1, [2, 3])).topics))


def test_a_file_as_the_tool_writes_it_is_read() -> None:
    text = (
        '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[2,1],'
        '"log_dirs":["any","any"]}]}'
    )
    assert decode_rows(text, "rows.json") == {("a", 0): (2, 1)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", ["it is not JSON"]),
        ("[]", ["Input should be"]),
        ('{"version": 2, "partitions": []}', ["version: Input should be 1"]),
        ('{"version": 1, "partitions": [], "version": 1}', ["keys appear twice"]),
        (
            '{"version": 1, "partitions": [{"topic": "a", "partition": -1, "replicas": []}]}',
            ["partitions.0.partition", "partitions.0.replicas"],
        ),
        (
            '{"version": 1, "partitions": [{"topic": "a", "partition": 0, "replicas": [1],'
            ' "log_dirs": ["/data1"]}]}',
            ["partitions.0.log_dirs.0"],
        ),
        (
            '{"version": 1, "partitions": [{"topic": "a", "partition": 0, "replicas": [1, 1]},'
            '{"topic": "a", "partition": 0, "replicas": [2]}]}',
            ["a partition 0 is there 2 times", "a partition 0 names a broker twice"],
        ),
    ],
)
def test_every_error_of_a_file_is_said(text: str, expected: list[str]) -> None:
    with pytest.raises(PlanFileError) as caught:
        decode_rows(text, "rows.json")
    found = said(caught.value.findings)
    assert len(found) == len(expected)
    for sentence, part in zip(found, expected, strict=True):
        assert sentence.startswith("rows.json:1:1: ")
        assert part in sentence
        assert sentence.endswith("[reassignment-file]")


def test_rows_of_nothing_and_rows_against_a_spec_refuse_the_plan() -> None:
    made = plan(
        (NAME, 0, [2, 4]),
        (NAME, 9, [2, 4, 1]),
        ("gone", 0, [1]),
        wished=spec(replication_factor=3),
    )
    assert [refusal.what for refusal in made.refusals] == [
        "there is no topic gone",
        f"{NAME} has 4 partitions, and no 9",
        f"{NAME} partition 0 gets 2 replicas, and its spec asks for 3",
    ]
    assert {refusal.rule for refusal in made.refusals} == {"reassignment-rows"}
    assert not any(map(steps_of, made.topics))


def test_internal_topics_get_more_replicas() -> None:
    internal = topic("1 2", "__consumer_offsets", internal=True, size_bytes=(10, 10))
    made = plan(("__consumer_offsets", 0, [1, 2, 3]), found=(LIVE, internal))
    (planned,) = made.topics
    assert planned.after is not None
    assert planned.after.assignment == rows("1,2,3 2")
    assert (made.refusals, planned.refusals) == ((), ())


def test_a_row_that_the_assignment_of_a_spec_would_change_again_is_refused() -> None:
    wished = spec(assignment=rows("1,2 2,3 3,4 4,1"))
    (refusal,) = plan((NAME, 0, [2, 4]), wished=wished).refusals
    assert refusal.what == f"{NAME} partition 0 has another row in its spec"


def test_brokers_that_are_not_there_refuse_the_topic() -> None:
    (planned,) = plan((NAME, 0, [1, 9])).topics
    assert [refusal.rule for refusal in planned.refusals] == ["broker-unknown"]


def test_a_cluster_that_allows_no_assignment_refuses() -> None:
    entry = replace(ENTRY, moves=may_move("replication"))
    made = plan_rows(entry, {}, state(), read((NAME, 0, [2, 4])), "rows.json")
    (planned,) = made.topics
    assert [refusal.rule for refusal in planned.refusals] == ["replicas-stay"]
    assert "add assignment to moves.allow" in planned.refusals[0].way_out
