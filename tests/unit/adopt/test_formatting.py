"""The usual form of specs: what it changes, what stays, and what is left as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.adopt.draft import open_draft
from reconciler.adopt.formatting import format_estate, format_text
from reconciler.api.adoption import find_estate
from reconciler.cli.app import run
from reconciler.spec.configs import choose_catalogue

CATALOGUE = choose_catalogue(None)
WRITTEN = """\
# yaml-language-server: $schema=../schemas/topic.schema.json

# First.
topic:   "a"   # the first


partitions: 3 # enough~

# How long?
config:
    retention.ms: 604800000   # a week
    # Twice a day.
    flush.ms: "43200000"
    compression.type: 'zstd'
    # Of config.
    cleanup.policy:
    - compact
    - delete
    # commented.out: 1
# Who is it?
owner: 'us'
description: |
  Two lines,~
  # not a comment


  end
overrides: {lab: {partitions: 1},
   dev: {partitions: 2, config: {retention.ms: 86400000}}}   # tail
acknowledge:
- data-loss: retention.ms 7d → 1h
- ordering


--- # the second
topic:   b
labels: {pii: "true", tier: "gold", n: "1"}
assignment:
 - [1,2]
"""
USUAL = """\
# yaml-language-server: $schema=../schemas/topic.schema.json

# First.
topic: a       # the first

partitions: 3  # enough

# How long?
config:
  retention.ms: 7d            # a week
  # Twice a day.
  flush.ms: 12h
  compression.type: zstd
  # Of config.
  cleanup.policy: [compact, delete]
  # commented.out: 1
# Who is it?
owner: us
description: |
  Two lines,~
  # not a comment


  end
overrides:                                                   # tail
  lab: {partitions: 1}
  dev: {partitions: 2, config: {retention.ms: 1d}}
acknowledge:
  - data-loss: retention.ms 7d → 1h
  - ordering
--- # the second
topic: b
labels: {pii: "true", tier: gold, n: "1"}
assignment:
  - [1, 2]
"""
BLANKS = "   "
"""What `~` stands for above."""


def test_the_form_of_a_file() -> None:
    usual = USUAL.replace("~", BLANKS)
    assert format_text(WRITTEN.replace("~", BLANKS), CATALOGUE) == (usual, [])
    assert format_text(usual, CATALOGUE) == (usual, [])


def test_line_ends_and_a_missing_one() -> None:
    assert format_text("topic: a\r\npartitions: 3", CATALOGUE)[0] == "topic: a\npartitions: 3\n"


def test_a_comment_behind_a_value_keeps_its_column_if_there_is_room() -> None:
    text = "topic: a # x\npartitions:   30    # y\nowner: 'us'  # z\n"
    usual = "topic: a  # x\npartitions: 30      # y\nowner: us    # z\n"
    assert format_text(text, CATALOGUE)[0] == usual


def test_the_example_of_this_repository_has_the_usual_form() -> None:
    for path in (Path(__file__).parents[3] / "topics").rglob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        assert format_text(text, CATALOGUE) == (text, [])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("topic: a\noverrides: {x: {partitions: 1}, # lost\n  y: {}}\n", "the loss of a"),
        ("{topic: a, partitions: 1}\n", "not a map of one key per line"),
        ("--- {topic: a}\n", "begins on the line"),
    ],
)
def test_what_cannot_be_rewritten_safely_stays(text: str, why: str) -> None:
    same, ((line, said),) = format_text(text, CATALOGUE)
    assert (same, line) == (text, 1)
    assert why.replace("the loss of a", "a comment is where") in said


def test_a_kafka_topic_keeps_its_values() -> None:
    text = "apiVersion: kafka.strimzi.io/v1\nkind: KafkaTopic\nmetadata:\n    name: 'a'\n"
    usual = text.replace("    name", "  name")
    assert format_text(text, CATALOGUE) == (usual, [])


@pytest.mark.parametrize(
    ("config", "usual"),
    [
        ("retention.ms: -1", "retention.ms: -1"),
        ("retention.ms: '52w'", "retention.ms: 52w"),
        ("retention.ms: 129600000", "retention.ms: 36h"),
        ("max.message.bytes: 1048576", "max.message.bytes: 1MiB"),
        ("min.insync.replicas: '2'", "min.insync.replicas: 2"),
        ("unclean.leader.election.enable: 'false'", "unclean.leader.election.enable: false"),
        ("cleanup.policy: [compact]", "cleanup.policy: compact"),
        ("cleanup.policy: 'compact,delete'", "cleanup.policy: [compact, delete]"),
        ("min.cleanable.dirty.ratio: 0.50", "min.cleanable.dirty.ratio: 0.50"),
        ("flush.ms: null", "flush.ms: null"),
        ("not.a.config: '1'", "not.a.config: '1'"),
    ],
)
def test_a_config_is_written_as_import_writes_it(config: str, usual: str) -> None:
    assert format_text(f"topic: a\nconfig:\n  {config}\n", CATALOGUE)[0] == (
        f"topic: a\nconfig:\n  {usual}\n"
    )


def test_a_file_that_would_mean_something_else_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    draft = open_draft({"a.yaml": b"topic:  a\npartitions: 3\n"}, "topics")
    (written,) = format_estate(draft, ["a.yaml"]).texts
    assert written == "a.yaml"
    wrong = ("topic: a\npartitions: 4\n", [])
    monkeypatch.setattr("reconciler.adopt.formatting.format_text", lambda *_: wrong)
    done = format_estate(draft, ["a.yaml"])
    assert done.texts == {}
    assert [f"{note.where} {note.rule}" for note in done.notes] == ["topics/a.yaml:1:1 format-left"]


@pytest.fixture
def estate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topics" / "eu").mkdir(parents=True)
    (tmp_path / "topics" / "clusters.yaml").write_text("version:  1\nclusters: {prod: {}}\n")
    (tmp_path / "topics" / "a.yaml").write_text("topic:  a\npartitions: 3\n")
    (tmp_path / "topics" / "eu" / "b.yaml").write_text("topic: b\nconfig: {flush.ms: 60000}\n")
    return tmp_path / "topics"


def test_the_command_writes_every_file_and_then_none(
    estate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["fmt", "--check"]) == 2
    shown = capsys.readouterr()
    assert shown.out.split() == ["topics/a.yaml", "topics/clusters.yaml", "topics/eu/b.yaml"]
    assert shown.err == "3 files would be changed\n"
    assert run(["fmt", "--check", "--diff"]) == 2
    assert "+topic: a\n" in capsys.readouterr().out
    assert (estate / "a.yaml").read_text() == "topic:  a\npartitions: 3\n"
    assert run(["fmt"]) == 0
    assert capsys.readouterr().err == "3 files changed\n"
    assert (estate / "eu" / "b.yaml").read_text() == "topic: b\nconfig: {flush.ms: 1min}\n"
    assert run(["fmt", "--check"]) == 0
    assert capsys.readouterr().err == "every file has the usual form\n"


def test_the_command_takes_files_and_finds_their_estate(estate: Path) -> None:
    assert find_estate(Path("topics/eu")) == find_estate(Path("topics/a.yaml")) == Path("topics")
    assert run(["fmt", "topics/eu"]) == 0
    assert (estate / "eu" / "b.yaml").read_text().endswith("{flush.ms: 1min}\n")
    assert (estate / "a.yaml").read_text() == "topic:  a\npartitions: 3\n"
    assert run(["fmt", "topics/a.yaml"]) == 0
    assert (estate / "a.yaml").read_text() == "topic: a\npartitions: 3\n"


def test_an_estate_with_errors_is_shown_and_not_written(
    estate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (estate / "c.yaml").write_text("topic:  c\npartitions: many\n")
    assert run(["fmt"]) == 1
    assert "topics/c.yaml:2:13" in capsys.readouterr().err
    assert (estate / "a.yaml").read_text() == "topic:  a\npartitions: 3\n"
    assert run(["fmt", "nowhere"]) == 64
