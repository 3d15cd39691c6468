"""Snapshots: written readably, read from little, and refused with every reason at its place."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from shorthand import brokers, cluster, rows, said, topic

from reconciler.api.snapshots import read_snapshot, write_snapshot
from reconciler.errors import Finding, Severity, SnapshotError
from reconciler.model.cluster import (
    Broker,
    ClusterState,
    LeaderLog,
    LogDirectory,
    StoredReplica,
    TopicState,
)
from reconciler.model.requests import KafkaRequest
from reconciler.planfile.snapshot import decode_snapshot, encode_snapshot

SMALL: dict[str, Any] = {
    "brokers": [{"id": 1, "rack": "a"}, {"id": 2}],
    "topics": [{"name": "t", "partitions": [[1, 2], [2, 1]]}],
}


def refused(text: str) -> list[str]:
    with pytest.raises(SnapshotError) as refusal:
        decode_snapshot(text, "s.json")
    return said(refusal.value.findings)


def test_rates_of_writes_by_their_old_name_are_read() -> None:
    state = cluster(topic("1,2", write_bytes_per_s=(7,)))
    old = encode_snapshot(state).replace("write_bytes_per_s", "rate_bytes_per_s")
    assert decode_snapshot(old) == state


def test_an_unknown_number_is_null_and_the_others_of_its_topic_stay() -> None:
    state = cluster(topic("1,2 2,3", size_bytes=(7, -1), write_bytes_per_s=(-1, 0)))
    text = encode_snapshot(state)
    assert '"size_bytes": [7, null], "write_bytes_per_s": [null, 0]' in text
    assert decode_snapshot(text) == state


def test_what_a_later_snapshot_compares_is_in_it() -> None:
    live = topic("1,2 2,3", guessed_rates=frozenset({1}), logs=(LeaderLog(1, 0, 12, 900), None))
    state = replace(
        cluster(live),
        read_at_ms=1_767_225_600_250,
        measured_s=600,
        committed_offsets={"billing": {"shop.orders": (7, -1)}},
    )
    text = encode_snapshot(state)
    for line in (
        '  "read_at": "2026-01-01T00:00:00.250000Z",',
        '  "measured_s": 600,',
        '    "billing": {"shop.orders": [7, null]}',
    ):
        assert line in text.splitlines()
    assert '"guessed_rates": [1], "logs": [[1, 0, 12, 900], null]' in text
    assert decode_snapshot(text) == state


def test_what_a_later_snapshot_compares_is_checked() -> None:
    text = (
        '{"brokers": [{"id": 1}], "read_at": "2026-01-01T00:00:00",\n'
        ' "topics": [{"name": "t", "partitions": [[1]], "guessed_rates": [1]}]}'
    )
    (line,) = refused(text)
    assert line.startswith('s.json:1:37: read_at is "2026-01-01T00:00:00"; it should have timezone')
    text = text.replace('00",', '00Z",').replace("[1]}]", '[1], "logs": [[1, 8, 7, 0]]}]')
    assert [line.removesuffix(" [snapshot-form]") for line in refused(text)] == [
        "s.json:2:66: topics[0].guessed_rates[0]: t: there is no partition 1; the last is 0; "
        "partitions count from 0",
        "s.json:2:79: topics[0].logs[0]: t: the first offset, 8, is above the end offset, 7; "
        "a log ends where it begins, or later",
    ]


def test_a_topic_a_line_and_what_says_nothing_is_left_out() -> None:
    state = cluster(
        topic("1,2 2,3", "b", config={"z": "1", "a": "é", "old": None}, reassigning=frozenset({1})),
        topic("1", "a", topic_id=None, in_sync=rows("1"), internal=True, size_bytes=(7,)),
        nodes=(Broker(2, None, cordoned=True), Broker(1, "r", alive=False)),
        defaults={"retention.ms": "1", "flush.ms": "2"},
    )
    held = (LogDirectory("/a", 900, 800, 3), LogDirectory("/b", None, None, online=False))
    settings = {"delete.topic.enable": "true"}
    state = replace(state, broker_settings=settings, directories={2: held}, can_cordon=True)
    lacking = frozenset({KafkaRequest.ELECT_LEADERS, KafkaRequest.ALTER_CONFIGS})
    state = replace(state, unoffered=lacking)
    assert encode_snapshot(state) == (
        "{\n"
        '  "format_version": "1.1",\n'
        '  "cluster_id": "cluster-1",\n'
        '  "brokers": [\n'
        '    {"id": 1, "rack": "r", "alive": false},\n'
        '    {"id": 2, "rack": null, "cordoned": true, "log_directories": [{"path": "/a", '
        '"total_bytes": 900, "usable_bytes": 800, "replicas": 3}, '
        '{"path": "/b", "online": false}]}\n'
        "  ],\n"
        '  "config_defaults": {\n'
        '    "flush.ms": "2",\n'
        '    "retention.ms": "1"\n'
        "  },\n"
        '  "broker_settings": {\n'
        '    "delete.topic.enable": "true"\n'
        "  },\n"
        '  "can_cordon": true,\n'
        '  "unoffered": [\n'
        '    "ElectLeaders",\n'
        '    "IncrementalAlterConfigs"\n'
        "  ],\n"
        '  "topics": [\n'
        '    {"name": "a", "partitions": [[1]], "in_sync": [[1]], "internal": true, '
        '"size_bytes": [7]},\n'
        '    {"name": "b", "topic_id": "id-b", "partitions": [[1, 2], [2, 3]], '
        '"config": {"a": "é", "old": null, "z": "1"}, "reassigning": [1]}\n'
        "  ]\n"
        "}\n"
    )
    assert decode_snapshot(encode_snapshot(state), "s.json").unoffered == lacking


def test_several_log_directories_show_what_each_holds_and_gets() -> None:
    held = (LogDirectory("/a", 900, 800, 2), LogDirectory("/b", 900, 800, 1))
    moving = StoredReplica("/a", 7, "/b", 3)
    stored = {1: {("t", 0): moving, ("t", 1): StoredReplica("/a", 9)}}
    state = replace(
        cluster(topic("1 1", "t"), nodes=brokers("a")), directories={1: held}, stored=stored
    )
    text = encode_snapshot(state)
    assert '"stored": {"t": {"0": 7, "1": 9}}}' in text
    assert (
        '{"path": "/b", "total_bytes": 900, "usable_bytes": 800, "replicas": 1, '
        '"arriving": {"t": {"0": 3}}}' in text
    )
    assert decode_snapshot(text) == state


def test_a_replica_is_in_one_log_directory() -> None:
    directories = [{"path": path, "stored": {"t": {"0": 7}}} for path in ("/a", "/b")]
    broker = {"id": 1, "log_directories": directories}
    with pytest.raises(SnapshotError) as caught:
        decode_snapshot(json.dumps({"brokers": [broker]}), "s.json")
    assert "brokers[0].log_directories[1].stored.t.0: t partition 0 is in /a already" in str(
        caught.value
    )


def test_an_internal_topic_needs_no_mark_in_a_snapshot_written_by_hand() -> None:
    offsets = {"name": "__consumer_offsets", "partitions": [[1], [2]]}
    state = decode_snapshot(json.dumps({**SMALL, "topics": [*SMALL["topics"], offsets]}), "s.json")
    assert state.topics["__consumer_offsets"].internal
    assert list(state.user_topics) == ["t"]


def test_an_empty_cluster_is_written_and_read() -> None:
    state = ClusterState(None, brokers("a"), {})
    assert decode_snapshot(encode_snapshot(state)) == state


def test_brokers_and_topics_are_enough() -> None:
    assert decode_snapshot(json.dumps(SMALL)) == ClusterState(
        None, (Broker(1, "a"), Broker(2)), {"t": TopicState("t", None, rows("1,2 2,1"))}
    )


def test_a_schema_may_be_named_for_the_editor() -> None:
    assert decode_snapshot(json.dumps({"$schema": "snapshot.schema.json", **SMALL})).topics


def test_a_broker_that_only_rows_name_is_dead() -> None:
    text = '{"brokers": [{"id": 1}], "topics": [{"name": "t", "partitions": [[1, 9], [4]]}]}'
    dead = Broker(4, alive=False), Broker(9, alive=False)
    assert decode_snapshot(text).brokers == (Broker(1), *dead)


def test_rows_of_different_lengths_are_a_topic_that_exists() -> None:
    text = (
        '{"brokers": [{"id": 1}, {"id": 2}], "topics": [{"name": "t", "partitions": [[1],[2,1]]}]}'
    )
    assert decode_snapshot(text).topics["t"].replication_factors == {1, 2}


def test_notes_go_along() -> None:
    note = Finding("cluster-rights", "only some topics are seen", "ask", severity=Severity.NOTE)
    state = ClusterState("c", brokers(None), {}, notes=(note,))
    assert decode_snapshot(encode_snapshot(state)) == state


def test_every_error_is_reported_at_its_place() -> None:
    text = (
        '{"brokers": [\n'
        '  {"id": 1, "rack": ""},\n'
        '  {"id": true},\n'
        '  {"rack": "b", "colour": 1}\n'
        "],\n"
        ' "cluster_id": 7,\n'
        ' "topics": [{"name": "t",\n'
        '             "partitions": [[1], [], ["2"]]}]}'
    )
    assert [line.partition("; `rec")[0] for line in refused(text)] == [
        's.json:2:21: brokers[0].rack is ""; it should have at least 1 character',
        "s.json:3:10: brokers[1].id is true; it should be a valid integer",
        "s.json:4:3: brokers[2].id is missing",
        "s.json:4:27: brokers[2].colour: unknown key",
        "s.json:6:16: cluster_id is 7; it should be a valid string",
        's.json:8:39: topics[0].partitions[2][0] is "2"; it should be a valid integer',
    ]


def test_doubles_and_lists_that_do_not_fit_are_told_together() -> None:
    text = (
        '{"brokers": [{"id": 1}, {"id": 1, "rack": "\\u001b"}],\n'
        ' "topics": [\n'
        '  {"name": "t", "partitions": [[1, 1], []], "in_sync": [[1]], "reassigning": [2]},\n'
        '  {"name": "t", "partitions": [[1]], "size_bytes": [1, 2]}]}'
    )
    assert [line.removesuffix(" [snapshot-form]") for line in refused(text)] == [
        "s.json:1:32: brokers[1].id: broker 1 is there already, as brokers[0]; ids are unique",
        "s.json:1:43: brokers[1].rack: '\\x1b' is not a rack name; "
        "a rack is printable text, or null for none",
        "s.json:3:32: topics[0].partitions[0]: t: a broker is listed twice in [1, 1]; "
        "a broker holds one replica of a partition",
        "s.json:3:40: topics[0].partitions[1]: t: the row is empty; a partition has a replica",
        "s.json:3:56: topics[0].in_sync: t: 1 entries for 2 partitions; "
        "write one for each, or leave all of them out",
        "s.json:3:79: topics[0].reassigning[0]: t: there is no partition 2; the last is 1; "
        "partitions count from 0",
        "s.json:4:12: topics[1].name: t is there already, as topics[0]; keep one of them",
        "s.json:4:52: topics[1].size_bytes: t: 2 entries for 1 partitions; "
        "write one for each, or leave all of them out",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "s.json:1:1: this is not JSON: Expecting value; `rec"),
        ('{"brokers":\n [1,]}', "s.json:2:5: this is not JSON: "),
        ("[" * 100_000, "s.json:1:1: this is not JSON: "),
        ('{"brokers": [{"id": ' + "1" * 5_000 + "}]}", "s.json:1:1: this is not JSON: Exceeds"),
        ("[]", "s.json:1:1: a snapshot is an object: "),
        ('{"brokers": [], "brokers": []}', "s.json:1:1: keys appear twice in one object: brokers;"),
        ('{"brokers": NaN}', "s.json:1:13: brokers is NaN; it should be a valid tuple"),
        ('{"brokers": []}', "s.json:1:13: brokers: no broker is named; a cluster has at least one"),
        ('{"topics": []}', "s.json:1:1: brokers is missing; `reconciler schema snapshot` says"),
        (
            '{"brokers": [{"id": 1}], "kafka_version": "4"}',
            's.json:1:43: kafka_version is "4"; it ',
        ),
        (
            '{"brokers": [{"id": 1}],\n "format_version": "2.0"}',
            "s.json:2:20: format_version is 2.0, and this reconciler reads 1.x; "
            "use the reconciler that wrote it, or take the snapshot again [snapshot-version]",
        ),
        ('{"brokers": [{"id": 1}], "format_version": 1}', "s.json:1:44: format_version is 1; it "),
        (
            '{"brokers": [{"id": 1}], "notes": [{"rule": "nonsense", "what": "x"}]}',
            "s.json:1:35: a note names the rule 'nonsense', which this reconciler does not have",
        ),
    ],
)
def test_a_text_that_is_no_snapshot(text: str, message: str) -> None:
    (finding,) = refused(text)
    assert finding.startswith(message)


def test_a_newer_minor_format_is_read_without_what_it_added() -> None:
    newer = {
        "format_version": "1.7",
        "colour": 1,
        "brokers": [{"id": 1, "disks": 2}],
        "topics": [{"name": "t", "partitions": [[1]], "tags": []}],
    }
    assert decode_snapshot(json.dumps(newer)).topics["t"].assignment == ((1,),)


def test_only_some_errors_of_a_very_wrong_file_are_shown() -> None:
    findings = refused(json.dumps({"brokers": [{}] * 70}))
    assert len(findings) == 51
    assert any("20 more mistakes are not shown" in line for line in findings)


def test_a_file_is_read_with_or_without_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text("\ufeff" + json.dumps(SMALL), encoding="utf-8")
    assert list(read_snapshot(path).topics) == ["t"]


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    binary = tmp_path / "s.json"
    binary.write_bytes(b'{"brokers": "\xff"}')
    for path, reason in (
        (tmp_path / "none", "cannot be read: No such file or directory"),
        (tmp_path, "cannot be read: Is a directory"),
        (binary, "is not UTF-8: invalid start byte at byte 13"),
    ):
        with pytest.raises(SnapshotError) as refusal:
            read_snapshot(path)
        assert str(refusal.value) == f"the snapshot {path} {reason} [snapshot-file]"
    with pytest.raises(SnapshotError, match="cannot be written: No such file"):
        write_snapshot(cluster(), tmp_path / "none" / "s.json")
