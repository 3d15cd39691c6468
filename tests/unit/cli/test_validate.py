"""`reconciler validate` and `reconciler schema`: what they print, and how they exit."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from formats import load_validator

from reconciler.cli.app import run
from reconciler.cli.findings import render_sarif
from reconciler.errors import Finding, Severity

BAD = "topic: a\npartitions: 012\nconfig: {retention.ms: 1y}\n"
GOOD = "topic: a\npartitions: 1\nreplication_factor: 1\n"
NOTED = f"apiVersion: kafka.strimzi.io/v1\nkind: KafkaUser\n---\n{GOOD}"


@pytest.fixture
def estate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of an estate with one topic; the current one is its parent."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    root = tmp_path / "topics"
    root.mkdir()
    (root / "a.yaml").write_text(GOOD)
    return root


def test_a_good_estate(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (estate / "clusters.yaml").write_text("version: 1\nclusters: {prod: {}, staging: {}}")
    assert run(["validate"]) == 0
    assert capsys.readouterr().out == "1 topic in 1 file, 2 clusters: all good\n"


def test_counts_are_asked_for_where_nothing_else_can_have_the_topic(
    estate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a plan asks for them. In an estate with clusters, the topic may exist."""
    (estate / "a.yaml").write_text("topic: a\n")
    assert run(["validate"]) == 1
    assert "leaves out partitions and replication_factor" in capsys.readouterr().out
    (estate / "clusters.yaml").write_text(
        "version: 1\ndefaults: {partitions: 3}\nclusters: {p: {}}"
    )
    assert run(["validate"]) == 0


def test_an_estate_without_clusters(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["validate", str(estate)]) == 0
    assert capsys.readouterr().out == "1 topic in 1 file, the sandbox alone: all good\n"


def test_no_topics(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (estate / "a.yaml").unlink()
    assert run(["validate"]) == 0
    assert capsys.readouterr().out.endswith("no topics: nothing to do\n")


def test_a_note_is_shown_and_is_no_error(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (estate / "a.yaml").write_text(NOTED)
    assert run(["validate"]) == 0
    assert capsys.readouterr().out == (
        "topics/a.yaml:1:1: note: a 'KafkaUser' of 'kafka.strimzi.io/v1' is not a Kafka topic, "
        "and is skipped [document-kind]\n\n"
        "1 topic in 1 file, the sandbox alone: all good\n"
    )


@pytest.mark.parametrize("path", ["nowhere", "topics/a.yaml"])
def test_a_path_that_is_no_estate_is_a_usage_error(
    path: str, estate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["validate", path]) == 64
    said = capsys.readouterr()
    assert said.out == ""
    assert path in said.err


def test_colours_when_they_are_wanted(
    estate: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (estate / "a.yaml").write_text(BAD)
    assert run(["validate"]) == 1
    plain = capsys.readouterr().out
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert run(["validate"]) == 1
    coloured = capsys.readouterr().out
    assert "\x1b[31merror" in coloured
    assert "\x1b" not in plain


def test_json(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (estate / "a.yaml").write_text(BAD)
    assert run(["validate", "--format", "json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["format_version"], answer["valid"]) == ("1.0", False)
    assert [finding["rule"] for finding in answer["findings"]] == ["value-count", "config-unit"]
    assert answer["findings"][0]["line"] == 2


ABOUT = """\
# the first
partitions: 012
topic: first
---
topic: [no, name]
partitions: x
---
topic: second
owner: me
config:
  retention.ms: 1y
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaTopicList
items:
  - metadata: {name: third}
    spec: {partitions: 3x}
  - metadata: {name: Fourth}
    spec: {partitions: 9}
---
topic: fifth
profile: inherits
"""


def test_json_says_which_topic_a_finding_is_about(
    estate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (estate / "a.yaml").write_text(ABOUT)
    (estate / "clusters.yaml").write_text(
        "version: 1\n"
        "profiles: {inherits: {partitions: 10}}\n"
        "policy: {name: {pattern: '[a-z]+'}, partitions: {max: 8}, per_owner: {topics: 1}}\n"
        "clusters: {prod: {}}\n"
    )
    assert run(["validate", "--format", "json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    load_validator("validation").validate(answer)
    found = [(f["topic"], f["rule"], f["file"], f["line"]) for f in answer["findings"]]
    assert found == [
        ("first", "value-count", "topics/a.yaml", 2),
        (None, "value-form", "topics/a.yaml", 5),
        (None, "value-count", "topics/a.yaml", 6),
        ("second", "config-unit", "topics/a.yaml", 11),
        ("third", "value-count", "topics/a.yaml", 17),
        ("Fourth", "policy-name", "topics/a.yaml", 18),
        ("Fourth", "policy-partitions", "topics/a.yaml", 19),
        (None, "quota-per-owner", "topics/a.yaml", 21),
        (None, "policy-partitions", "topics/clusters.yaml", 2),
    ]


def test_json_of_warnings_names_their_topics(
    estate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (estate / "clusters.yaml").write_text(
        "version: 1\npolicy: {owner: required, severity: {policy-owner: warning}}\n"
        "clusters: {prod: {}}\n"
    )
    assert run(["validate", "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    load_validator("validation").validate(answer)
    (finding,) = answer["findings"]
    assert (finding["topic"], finding["severity"]) == ("a", "warning")


def test_github_annotations(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (estate / "a,b.yaml").write_text("topic: b\ndescription: 100%\nprofile: 5\n")
    (estate / "c.yaml").write_text("---\n".join(f"topic: c{n}\nrf{n}: 1\n" for n in range(12)))
    assert run(["validate", "--format", "github"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "::error file=topics/a%2Cb.yaml,line=3,col=10,title=value-text::"
        "profile '5' without quotes is a number to YAML; write \"5\" in quotes"
    )
    assert sum(line.startswith("::error ") for line in lines) == 10
    assert lines[-3].startswith("topics/c.yaml:")
    assert lines[-2] == "3 more not shown as annotations: GitHub takes 10 of a kind"


def test_sarif(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (estate / "a b.yaml").write_text(BAD)
    assert run(["validate", "--format", "sarif"]) == 1
    (report,) = json.loads(capsys.readouterr().out)["runs"]
    rules = report["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["config-unit", "topic-duplicate", "value-count"]
    says = "Counts are plain decimal integers, so 012 and 1e3 are errors."
    assert rules[2]["shortDescription"] == rules[2]["fullDescription"] == {"text": says}
    assert rules[2]["help"]["text"].startswith(f"{says} The message of each result says")
    assert rules[2]["help"]["markdown"].startswith(f"{says}\n\n")
    place = report["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "topics/a%20b.yaml"


@pytest.mark.parametrize(
    ("more", "origin", "home"),
    [
        ("", '{"url": "https://git.example/a/reconciler"}', "https://git.example/a/reconciler"),
        ("", '{"url": "https://me:token@git.example:8443/a"}', "https://git.example:8443/a"),
        ("", '{"url": "file:///home/me/reconciler"}', None),
        ("", '{"url": "ssh://git@git.example/a/reconciler"}', None),
        ("", "", None),
        ("Project-URL: Homepage, https://own.example/r\n", "", "https://own.example/r"),
    ],
)
def test_sarif_names_the_address_of_the_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, origin: str, home: str | None
) -> None:
    """As pip records it, next to the package."""
    record = tmp_path / "kafka_reconciler-9.9.dist-info"
    record.mkdir()
    text = f"Metadata-Version: 2.1\nName: kafka-reconciler\nVersion: 9.9\n{more}"
    (record / "METADATA").write_text(text)
    if origin:
        (record / "direct_url.json").write_text(origin)
    monkeypatch.syspath_prepend(tmp_path)
    driver = json.loads(render_sarif([]))["runs"][0]["tool"]["driver"]
    assert (driver["version"], driver.get("informationUri")) == ("9.9", home)


def test_sarif_is_capped_worst_first() -> None:
    notes = [Finding("not-managed", f"{n}", severity=Severity.NOTE) for n in range(25_000)]
    (report,) = json.loads(render_sarif([*notes, Finding("not-managed", "bad")]))["runs"]
    assert len(report["results"]) == 25_000
    assert report["results"][0]["message"]["text"] == "bad"


def test_junit_of_a_bad_estate(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (estate / "a<b.yaml").write_text(BAD)
    assert run(["validate", "--format", "junit"]) == 1
    suites = ElementTree.fromstring(capsys.readouterr().out)
    assert (suites.get("tests"), suites.get("failures")) == ("3", "3")
    (case,) = (c for c in suites[0] if (c.get("name") or "").startswith("value-count"))
    assert (case.get("file"), case.get("line")) == ("topics/a<b.yaml", "2")
    assert case.get("name") == "value-count (topics/a<b.yaml:2)"
    failure = case[0]
    assert failure.get("type") == "value-count"
    assert (failure.text or "").startswith("topics/a<b.yaml:2:13: ")


def test_junit_of_a_good_estate(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (estate / "a.yaml").write_text(NOTED)
    assert run(["validate", "--format", "junit"]) == 0
    suites = ElementTree.fromstring(capsys.readouterr().out)
    assert [case.get("name") for case in suites[0].iter("testcase")] == ["a"]
    assert "not a Kafka topic" in (suites[0].findtext("system-out") or "")


@pytest.mark.parametrize("name", ["topic", "clusters"])
def test_schema_prints_what_the_tree_holds(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", name]) == 0
    assert json.loads(capsys.readouterr().out)["$schema"].endswith("draft-07/schema#")


def test_an_unknown_schema_is_a_usage_error() -> None:
    assert run(["schema", "nonsense"]) == 64
