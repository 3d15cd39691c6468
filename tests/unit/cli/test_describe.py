"""`describe` on a snapshot: one screen for people, a document for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from reconciler.cli.app import run
from reconciler.cli.schema import render_schema

CLUSTERS = """version: 1
defaults: {config: {max.message.bytes: 2MiB}}
profiles: {log: {config: {retention.ms: 7d}}}
clusters: {prod: {kafka_version: "4.1", defaults: {config: {segment.ms: 1d}}}}
"""
SPECS = """topic: a
owner: team-a
partitions: 3
replication_factor: 2
profile: log
config: {cleanup.policy: delete}
overrides: {prod: {config: {flush.ms: 9s}}}
---
topic: new
partitions: 1
replication_factor: 2
"""
CONFIG = {
    "max.message.bytes": "2097152",
    "retention.ms": "604800000",
    "segment.ms": "86400000",
    "flush.ms": "9000",
    "retention.bytes": "1000",
    "cleanup.policy": "compact",
}
HELD = {"a": {"0": 9_000}}

SNAPSHOT = {
    "brokers": [{"id": 1, "rack": "r1"}, {"id": 2, "rack": "r2"}, {"id": 3, "alive": False}],
    "config_defaults": {"retention.bytes": "-1", "flush.messages": "7"},
    "topics": [
        {
            "name": "a",
            "partitions": [[1, 2], [2, 1], [1, 3]],
            "in_sync": [[1, 2], [2, 1], [1]],
            "config": CONFIG,
            "size_bytes": [9000, 500, 500],
        },
    ],
}


@pytest.fixture(autouse=True)
def estate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics" / "clusters.yaml").write_text(CLUSTERS)
    (tmp_path / "topics" / "a.yaml").write_text(SPECS)
    (tmp_path / "s.json").write_text(json.dumps(SNAPSHOT))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def describe(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["describe", *arguments, "--against", "s.json"]) == 0
    return capsys.readouterr().out


def test_a_topic_on_one_screen(capsys: pytest.CaptureFixture[str]) -> None:
    out = describe(capsys, "a", "--cluster", "prod")
    assert max(map(len, out.splitlines())) <= 80
    head, configs, plan, replicas = out.split("\n\n")
    assert head.splitlines() == [
        "a · managed",
        "owner       team-a",
        "spec        topics/a.yaml:1 · profile log",
        "partitions  3 × 2 replicas",
        "health      under-replicated 1",
        "size        9.8 KiB, each partition counted once · largest: partition 0 with 8.8",
        "            KiB, 2.7 × the mean; a hot key?",
        "written     unknown: a snapshot does not hold it",
    ]
    assert configs.splitlines() == [
        "Configs in force",
        "  cleanup.policy     compact         set on the topic",
        "    spec: delete topics/a.yaml:6",
        "  flush.ms           9s (9000)       override of the cluster topics/a.yaml:7",
        "  max.message.bytes  2MiB (2097152)  defaults of the estate",
        "                                     topics/clusters.yaml:2",
        "  retention.bytes    1000            set on the topic",
        "    spec: no override",
        "  retention.ms       7d (604800000)  profile topics/clusters.yaml:3",
        "  segment.ms         1d (86400000)   defaults of the cluster",
        "                                     topics/clusters.yaml:4",
        "  default: flush.messages=7",
    ]
    assert plan.startswith("Next plan\nx refuse    a ")
    assert "cleanup.policy                     compact → delete" in plan
    assert replicas.splitlines()[1:] == [
        "L preferred leader · F follower · * leads instead · ! not in sync",
        "        r1 │ r2 │     │",
        "broker   1 │  2 │ (3) │ leads     size            health",
        "────────────────────────────────────────────────────────",
        "0        L │  F │   · │     ?  8.8 KiB                ok",
        "1        F │  L │   · │     ?    500 B                ok",
        "2        L │  · │  !F │     ?    500 B  under-replicated",
    ]


def test_a_topic_of_a_spec_alone_has_only_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    out = describe(capsys, "topic", "new", "--cluster", "prod")
    assert out.startswith("new · not on prod yet\n\nNext plan\n+ create    new")


def test_a_broker_on_one_screen(capsys: pytest.CaptureFixture[str]) -> None:
    assert describe(capsys, "broker", "3").splitlines() == [
        "broker 3 · dead",
        "leads       ? as leader, 0 as preferred leader",
        "replicas    1, 1 not in sync",
        "",
        "Holds",
        "  topic  leads  preferred  replicas   size",
        "  a          0          0         1  500 B",
        "",
        "Not in sync here",
        "  a 2: under-replicated",
    ]


def test_a_broker_shows_what_is_in_each_log_directory(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    directories = [
        {"path": "/a", "total_bytes": 2**30, "usable_bytes": 2**29, "replicas": 1, "stored": HELD},
        {"path": "/b", "total_bytes": 2**30, "usable_bytes": 2**30, "replicas": 0},
        {"path": "/c", "online": False},
    ]
    broker = {"id": 1, "rack": "r1", "log_directories": directories}
    others = [each for each in SNAPSHOT["brokers"] if each["id"] != 1]
    (tmp_path / "s.json").write_text(json.dumps({**SNAPSHOT, "brokers": [broker, *others]}))
    lines = describe(capsys, "broker", "1").splitlines()
    assert [line for line in lines if line.startswith("directory")] == [
        "directory   /a: 512.0 MiB of 1.0 GiB free, 1 replica of 8.8 KiB",
        "directory   /b: 1.0 GiB of 1.0 GiB free, 0 replicas of 0 B",
        "directory   /c: offline",
    ]


@pytest.mark.parametrize(
    "arguments",
    [("a", "--cluster", "prod"), ("a",), ("new", "--cluster", "prod"), ("broker", "1")],
)
def test_json_and_yaml_say_the_same_by_the_schema(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    told = json.loads(describe(capsys, *arguments, "--format", "json"))
    Draft202012Validator(json.loads(render_schema("describe"))).validate(told)
    assert yaml.safe_load(describe(capsys, *arguments, "--format", "yaml")) == told


def test_the_document_has_every_origin(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(describe(capsys, "a", "--cluster", "prod", "--format", "json"))
    assert {each["key"]: each["origin"] for each in told["about"]["configs"]} == {
        "cleanup.policy": "topic",
        "flush.messages": "unknown",
        "flush.ms": "override",
        "max.message.bytes": "estate-defaults",
        "retention.bytes": "topic",
        "retention.ms": "profile",
        "segment.ms": "cluster-defaults",
    }
    assert [each["rule"] for each in told["next_plan"]["refusals"]] == ["risk-not-acknowledged"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("b", "--cluster", "prod"), "prod has no topic 'b', and no spec names it"),
        (("broker", "9"), "s.json has no broker 9; it has: 1, 2, 3"),
        (("broker", "a"), "'a' is not a valid integer"),
    ],
)
def test_what_is_not_there_is_a_usage_error(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["describe", *arguments, "--against", "s.json"]) == 64
    assert said in capsys.readouterr().err
