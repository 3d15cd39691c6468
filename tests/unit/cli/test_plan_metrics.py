"""`plan --metrics`: what is refused before a cluster is read."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reconciler.cli.app import run

USAGE = 64


@pytest.fixture(autouse=True)
def estate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics" / "clusters.yaml").write_text(
        "version: 1\nclusters: {a: {moves: {allow: [replication], rate: 1MiB}}}\n"
    )
    (tmp_path / "s.json").write_text('{"brokers": [{"id": 1}], "topics": []}')


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--metrics m.prom --against s.json", "--metrics is about a live cluster; leave --against"),
        ("--metrics m.prom --moves", "--metrics is about a plan of changes; leave --moves out"),
        ("--metrics none/m.prom", "none/m.prom cannot be written: none is not a directory"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(
    arguments: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", "--cluster", "a", *arguments.split()]) == USAGE
    assert said in capsys.readouterr().err


def test_a_missing_library_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    assert run(["plan", "--cluster", "a", "--metrics", "m.prom"]) == USAGE
    said = "metrics need prometheus-client, which is not installed; pip install 'prometheus-client"
    assert said in capsys.readouterr().err
