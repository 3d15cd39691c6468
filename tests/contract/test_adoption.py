"""A real cluster of varied topics, imported: the next plan is empty, and so is the one after."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from config_values import accepted_values
from lab import connect_to, create

from reconciler.api.planning import build_plan, load_estate, read_cluster
from reconciler.cli.app import run
from reconciler.kafka.reader import KafkaReader
from reconciler.model.steps import CreateTopic, steps_of
from reconciler.sandbox.cluster import Cluster, start_cluster
from reconciler.spec.configs import choose_catalogue

ODD = (
    "null",
    "TRUE",
    "012",
    "1e3",
    "no",
    "-",
    "_",
    ".hidden",
    "..x",
    "clusters",
    "0x1f",
    "A.b-C_d",
)
TEAMS = ("orders", "payments", "shop", "search", "audit", "_internal", "eu-west")
USUAL = ({"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.2"},
         {"retention.ms": "604800000", "compression.type": "zstd"}, {})  # fmt: skip


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[Cluster]:
    """Six brokers that hold nothing but what this module creates."""
    with start_cluster(brokers=6, racks=3) as cluster:
        yield cluster


def vary(number: int, seed: int) -> list[CreateTopic]:
    """Make topics of every kind: counts, replication, and values over the whole catalogue."""
    dice = random.Random(seed)
    plain = [f"{dice.choice(TEAMS)}.k{n % 9}.t{n}" for n in range(number - len(ODD))]
    names = [*ODD, *(f"{name}-of-{number}" for name in plain)]
    return [CreateTopic(name, draw_rows(dice), draw_config(dice)) for name in names]


def draw_rows(dice: random.Random) -> tuple[tuple[int, ...], ...]:
    replication = dice.choice((1, 2, 3, 3, 3))
    return tuple(
        tuple(dice.sample(range(1, 7), replication)) for _ in range(dice.choice((1, 1, 2, 3, 6)))
    )


def draw_config(dice: random.Random) -> dict[str, str]:
    """Draw a config that brokers take: usual ones, or anything the catalogue knows."""
    known = choose_catalogue()
    config = dict(dice.choice(USUAL))
    for key in dice.sample(known.settable, dice.choice((0, 0, 1, 2, 4))):
        if not key.startswith(("remote.", "local.")):
            value = dice.choice(accepted_values(known, key))
            config[key] = str(known.normalise(key, value, None))
    if known.check_together(config, lambda _: None):
        return {}
    return config


def import_all(cluster: Cluster, root: Path) -> None:
    connection = ["--cluster", "lab", "--bootstrap-servers", cluster.bootstrap_servers]
    assert run(["import", str(root), *connection]) == 0


def count_work(root: Path) -> int:
    estate = load_estate(root)
    plan = build_plan(estate, "lab", read_cluster(estate, "lab"))
    assert plan.unchanged > 0
    return sum(bool(steps_of(topic) or topic.refusals) for topic in plan.topics)


@pytest.mark.cluster
@pytest.mark.parametrize("number", [40, pytest.param(500, marks=pytest.mark.slow)])
def test_the_plan_after_an_import_is_empty(
    own_cluster: Cluster, number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "topics"
    existing = KafkaReader(connect_to(own_cluster)).read_cluster().topics
    steps = [step for step in vary(number, seed=number) if step.topic not in existing]
    create(connect_to(own_cluster), *steps)
    import_all(own_cluster, root)
    assert "the next plan is empty: 0 differences" in capsys.readouterr().err
    assert count_work(root) == 0
    specs = {spec.name for spec in load_estate(root).topics_for("lab")}
    assert {step.topic for step in steps} <= specs
    assert len(specs) >= number
    texts = {path: path.read_text() for path in root.rglob("*.yaml")}
    import_all(own_cluster, root)
    assert {path: path.read_text() for path in root.rglob("*.yaml")} == texts


@pytest.mark.cluster
def test_a_second_import_keeps_comments_and_amends_what_differs(
    own_cluster: Cluster, tmp_path: Path
) -> None:
    root = tmp_path / "topics"
    root.mkdir()
    create(connect_to(own_cluster), CreateTopic("hand.made", ((1, 2), (2, 3)), {"flush.ms": "5"}))
    (root / "clusters.yaml").write_text(
        "version: 1  # ours\nclusters:\n  lab:   # the lab\n"
        f"    client: {{bootstrap.servers: '{own_cluster.bootstrap_servers}'}}\n"
    )
    text = (
        "# Made by hand.\ntopic: hand.made\nowner: 'us'   # ask them\npartitions: {}   # enough\n"
        "replication_factor: 2\n\n# Why so often?\nconfig:\n  flush.ms: {} # tried 10\n"
        "---\n# Not there yet.\ntopic: hand.planned\npartitions: 1\nreplication_factor: 1\n"
    )
    (root / "hand.yaml").write_text(text.format(1, "10ms  "))
    assert run(["import", str(root), "--cluster", "lab", "--topic", "hand.*"]) == 0
    assert (root / "hand.yaml").read_text() == text.format(2, "5     ")
