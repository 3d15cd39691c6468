"""Retention in steps on real brokers: an apply each, drift until the last, then none."""

from __future__ import annotations

from pathlib import Path

import pytest
from shorthand import spec
from workbench import Workbench

from reconciler.cli.app import run
from reconciler.model.cluster import TopicSpec
from reconciler.model.steps import has_steps
from reconciler.sandbox.cluster import Cluster
from reconciler.units import DAY


def write_topic(estate: Path, name: str, retention: str) -> None:
    """Write the one topic of an estate, which is gradual by its profile."""
    estate.mkdir(exist_ok=True)
    (estate / "clusters.yaml").write_text(
        "version: 1\nprofiles: {kept: {gradual: true}}\nclusters: {lab: {}}\n"
    )
    (estate / "topic.yaml").write_text(
        f"topic: {name}\npartitions: 2\nreplication_factor: 1\nprofile: kept\n"
        f"config: {{retention.ms: {retention}}}\nacknowledge: [data-loss]\n"
    )


def test_three_applies_land_on_the_target_and_drift_is_told_until_then(
    cluster3: Cluster, topic_prefix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, estate = f"{topic_prefix}clicks", tmp_path / "topics"
    reach = ["--cluster", "lab", "--bootstrap-servers", cluster3.bootstrap_servers]
    write_topic(estate, name, "7d")
    assert run(["apply", str(estate), *reach, "--auto-approve"]) == 0
    write_topic(estate, name, "1d")
    bench, found = Workbench(cluster3), []
    while run(["plan", str(estate), *reach, "--detailed-exitcode"]) == 2:
        assert run(["apply", str(estate), *reach, "--auto-approve"]) == 0
        found.append(bench.topics(name)[name].config["retention.ms"])
    assert found == [str(days * DAY) for days in (4, 2, 1)]
    said = capsys.readouterr().out
    assert "retention.ms goes from 7d to 1d in 3 steps: 4d now, then 2d, then 1d" in said
    assert "retention.ms goes from 4d to 1d in 2 steps: 2d now, then 1d" in said


def test_the_default_of_the_brokers_is_gone_down_from(cluster3: Cluster, topic_prefix: str) -> None:
    def wish(**config: str) -> TopicSpec:
        spelled = {key.replace("_", "."): value for key, value in config.items()}
        accepted = frozenset({"data-loss"})
        return spec(
            f"{topic_prefix}clicks",
            partitions=1,
            replication_factor=1,
            config=spelled,
            gradual=3,
            acknowledge=accepted,
        )

    bench = Workbench(cluster3)
    bench.bring(wish())
    bench.bring(wish(retention_ms=str(DAY)))
    name = f"{topic_prefix}clicks"
    assert bench.topics(name)[name].config == {"retention.ms": str(3 * DAY)}
    bench.bring(wish(retention_ms=str(DAY)))
    assert bench.topics(name)[name].config == {"retention.ms": str(DAY)}
    assert not has_steps(bench.plan(wish(retention_ms=str(DAY))))
