"""A crowded topic is levelled; its plan leaves as a file of Kafka's own tool, and comes back."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reconciler.api.planning import load_estate, read_cluster
from reconciler.cli.app import run
from reconciler.model.cluster import Assignment

if TYPE_CHECKING:
    from moving import Moving

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("brief_rates")]

CROWDED = ((1, 2), (2, 1), (1, 2), (2, 1))


def test_a_topic_is_levelled_and_brought_back_by_a_file(
    moving: Moving,
    topic_prefix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    name, estate = f"{topic_prefix}crowded", tmp_path / "topics"
    estate.mkdir()
    (estate / "clusters.yaml").write_text(
        "version: 1\nclusters:\n  lab:\n"
        f"    client: {{bootstrap.servers: '{moving.cluster.bootstrap_servers}'}}\n"
        "    moves: {allow: [rebalance, assignment], rate: 30MiB, keep_free: 0%}\n"
    )
    moving.fill(name, CROWDED)
    rebalance = ["rebalance", "--cluster", "lab", "--even-topics", "--topic", name]
    rebalance += ["--out", "level.json"]

    assert run(rebalance) == 0
    assert run(["apply", "level.json", "--auto-approve"]) == 0
    level = read(estate, name)
    assert Counter(broker for row in level for broker in row) == {1: 2, 2: 2, 3: 2, 4: 2}
    assert Counter(row[0] for row in level) == {1: 1, 2: 1, 3: 1, 4: 1}
    saved = (tmp_path / "level.json").read_text()
    assert run(rebalance) == 0
    capsys.readouterr()
    assert run(["apply", "level.json", "--auto-approve"]) == 0  # nothing is left to do
    assert "Nothing to do." in capsys.readouterr().out
    (tmp_path / "level.json").write_text(saved)

    assert run(["moves", "export", "level.json", "--before"]) == 0
    back = capsys.readouterr().out
    rows = {each["partition"]: tuple(each["replicas"]) for each in json.loads(back)["partitions"]}
    assert rows == {n: CROWDED[n] for n in range(4) if CROWDED[n] != level[n]}
    (tmp_path / "back.json").write_text(back)
    saving = ["--cluster", "lab", "--out", "moves.json"]
    assert run(["moves", "import", "back.json", *saving]) == 0
    assert run(["apply", "moves.json", "--auto-approve"]) == 0
    assert read(estate, name) == CROWDED


def read(estate: Path, name: str) -> Assignment:
    state = read_cluster(load_estate(estate), "lab")
    return state.topics[name].assignment
