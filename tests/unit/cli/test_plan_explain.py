"""`reconciler plan --explain`: beside the plan, as wide as the screen, and as a picture."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from reconciler.cli.app import run

SNAPSHOT = {
    "brokers": [{"id": n, "rack": "abc"[n % 3]} for n in range(1, 7)],
    "topics": [
        {"name": "grown", "partitions": [[1, 2], [2, 3], [3, 4]]},
        {"name": "alone", "partitions": [[1], [1]]},
    ],
}
DOCS = Path(__file__).parents[3] / "docs"
PLAN = ("plan", "--cluster", "prod", "--against", "s.json")


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "topics").mkdir()
    clusters = "version: 1\nclusters: {prod: {exclude_brokers: [6]}}\n"
    (tmp_path / "topics" / "clusters.yaml").write_text(clusters)
    (tmp_path / "topics" / "a.yaml").write_text("topic: grown\npartitions: 6\n")
    (tmp_path / "s.json").write_text(json.dumps(SNAPSHOT))
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


def test_the_matrix_follows_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*PLAN, "--explain", "grown"]) == 0
    plan, _, explanation = printed(capsys).partition("\n\ngrown · ")
    assert "~ expand    grown" in plan
    assert explanation.startswith("3 → 6 partitions × 2 replicas\n")
    assert "Broker 6 is excluded" in explanation


def test_several_topics_in_the_order_in_which_they_are_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run([*PLAN, "--explain", "grown", "--explain", "alone"]) == 0
    out = printed(capsys)
    assert 0 < out.index("\ngrown · 3 → 6") < out.index("\nalone · 2 partitions")


def test_it_is_never_wider_than_the_screen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert run([*PLAN, "--explain", "grown"]) == 0
    _, _, explanation = printed(capsys).partition("\n\ngrown · ")
    assert max(map(len, explanation.splitlines())) <= 40


def test_the_mark_of_new_replicas_survives_no_color(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert run([*PLAN, "--explain", "grown"]) == 0
    coloured = printed(capsys)
    monkeypatch.setenv("NO_COLOR", "1")
    assert run([*PLAN, "--explain", "grown"]) == 0
    plain = printed(capsys)
    assert "\x1b[32m+L" in coloured.replace(" ", "")
    assert "\x1b" not in plain
    assert plain.count("+L") == 3


def test_a_picture_beside_the_plan(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*PLAN, "--explain", "grown", "--svg", "grown.svg", "--format", "json"]) == 0
    assert json.loads(printed(capsys))["resource_changes"]
    assert ET.parse(directory / "grown.svg").getroot().tag == "{http://www.w3.org/2000/svg}svg"
    assert [path.name for path in directory.glob(".*")] == []


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--explain", "grwon"), "'grwon' is neither in the plan nor on prod; did you mean grown?"),
        (("--explain", "grown", "--topic", "a*"), "--topic a* leaves out grown"),
        (("--explain", "grown", "--format", "json"), "--explain is for people"),
        (("--svg", "x.svg"), "--svg draws one topic"),
        (("--svg", "x.svg", "--explain", "grown", "--explain", "alone"), "--svg draws one topic"),
        (("--explain", "grown", "--svg", "none/x.svg"), "none/x.svg cannot be written: No such"),
        (("--out", "none/plan.json"), "none/plan.json cannot be written: No such"),
    ],
)
def test_usage(more: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*PLAN, *more]) == 64
    assert said in capsys.readouterr().err


def test_the_documentation_shows_what_is_printed_and_drawn(
    directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    snapshot, topic = str(DOCS / "images" / "one-broker-down.json"), "payments.captured"
    command = ["plan", str(DOCS.parent / "topics"), "--cluster", "prod-eu", "--against", snapshot]
    assert run([*command, "--topic", topic, "--explain", topic, "--svg", "drawn.svg"]) == 0
    _, _, explanation = printed(capsys).partition(f"\n\n{topic} · ")
    assert explanation in (DOCS / "how-to" / "explain-a-placement.md").read_text(encoding="utf-8")
    drawn = (directory / "drawn.svg").read_text(encoding="utf-8")
    assert drawn == (DOCS / "images" / "explain.svg").read_text(encoding="utf-8")
