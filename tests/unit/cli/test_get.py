"""`get` on a snapshot: what is printed, for people and programs, and what is an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from reconciler.cli.app import run
from reconciler.cli.schema import render_schema

CLUSTERS = "version: 1\nprofiles: {log: {config: {retention.ms: 7d}}}\nclusters: {prod: {}}\n"
SPECS = "topic: a\nowner: team-a\npartitions: 2\nreplication_factor: 2\nprofile: log\n"
LABELS = "labels: {pii: 'true', tier: gold}\n"
SNAPSHOT = {
    "cluster_id": "c-1",
    "brokers": [{"id": 1, "rack": "r1"}, {"id": 2, "rack": "r2"}],
    "topics": [
        {
            "name": "a",
            "partitions": [[1, 2], [2, 1]],
            "in_sync": [[1, 2], [1]],
            "config": {"retention.ms": "604800000"},
            "size_bytes": [3000, 1000],
        },
        {"name": "b", "partitions": [[1, 2]], "in_sync": [[1, 2]]},
        {"name": "__consumer_offsets", "partitions": [[1]], "internal": True},
    ],
}


@pytest.fixture(autouse=True)
def estate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics" / "clusters.yaml").write_text(CLUSTERS)
    (tmp_path / "topics" / "a.yaml").write_text(SPECS + LABELS)
    (tmp_path / "s.json").write_text(json.dumps(SNAPSHOT))
    monkeypatch.chdir(tmp_path)


def get(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["get", *arguments, "--against", "s.json"]) == 0
    return capsys.readouterr().out


def test_topics_of_a_snapshot(capsys: pytest.CaptureFixture[str]) -> None:
    assert get(capsys, "topics", "--cluster", "prod").splitlines() == [
        "topic  partitions  replicas     size  standing   owner   health              "
        "spec             labels",
        "a               2         2  3.9 KiB  managed    team-a  under-replicated 1  "
        "topics/a.yaml:1  pii: true, tier: gold",
        "b               1         2           unmanaged          ok",
        "2 topics · 1 internal topic not listed; --internal lists them",
    ]


@pytest.mark.parametrize("kind", ["topics", "partitions", "brokers", "configs"])
@pytest.mark.parametrize("target", [("--cluster", "prod"), ()], ids=["estate", "alone"])
def test_json_and_yaml_say_the_same_by_the_schema(
    kind: str, target: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    told: dict[str, Any] = json.loads(get(capsys, kind, *target, "--format", "json"))
    assert told[kind]
    Draft202012Validator(json.loads(render_schema("get"))).validate(told)
    assert yaml.safe_load(get(capsys, kind, *target, "--format", "yaml")) == told


def test_the_origin_of_a_value_is_its_profile(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(get(capsys, "configs", "--cluster", "prod", "--format", "json"))
    (row,) = told["configs"]
    assert (row["value"], row["origin"]) == ("604800000", "profile")
    assert (row["where"]["file"], row["where"]["line"]) == ("topics/clusters.yaml", 2)


def test_unhealthy_partitions_alone(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(get(capsys, "partitions", "--unhealthy", "--format", "json"))
    assert [(row["topic"], row["partition"], row["problems"]) for row in told["partitions"]] == [
        ("a", 1, ["under_replicated"])
    ]


@pytest.mark.parametrize("kind", ["topics", "partitions", "configs"])
def test_a_label_chooses_topics_and_what_belongs_to_them(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = (kind, "--cluster", "prod", "--label", "pii=true", "--label", "tier")
    told = json.loads(get(capsys, *asked, "--format", "json"))
    assert {row["topic"] for row in told[kind]} == {"a"}
    if kind == "topics":
        assert told[kind][0]["labels"] == {"pii": "true", "tier": "gold"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("topics", "--topic", "c"), "no topic of s.json matches --topic 'c'"),
        (("topics", "--owner", "team-a"), "--owner needs the specs"),
        (("topics", "--label", "pii"), "--label needs the specs"),
        (("topics", "--cluster", "prod", "--label", "pi=true"), "did you mean pii=true?"),
        (("topics", "--idle", "30d"), "a snapshot does not hold who writes and reads"),
        (("topics", "--idle", "30"), "'30' has no unit"),
        (("configs", "--config", "retention"), "no topic has a config 'retention'"),
        (("topics", "topics"), "ESTATE has several clusters; name one with --cluster NAME"),
        (("topics", "--bootstrap-servers", "b:9092"), "leave --bootstrap-servers out"),
    ],
)
def test_a_wrong_question_is_a_usage_error(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["get", *arguments, "--against", "s.json"]) == 64
    assert said in capsys.readouterr().err


def test_without_a_target_it_says_what_to_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["get", "topics"]) == 64
    assert "name the cluster: --cluster NAME, --bootstrap-servers" in capsys.readouterr().err
