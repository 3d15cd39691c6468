"""Settings of brokers that decide what a topic may be: the plan refuses what they would."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic
from lab import connect_to, create

from reconciler import build_plan, load_estate, read_cluster, take_snapshot
from reconciler.kafka.configs import find_settings
from reconciler.model.steps import CreateTopic
from reconciler.planfile.snapshot import decode_snapshot, encode_snapshot
from reconciler.sandbox.cluster import Cluster, start_cluster
from reconciler.sandbox.request import choose_controller_ids, spread_brokers
from reconciler.spec.estate import Estate

TIER = "remote.log.storage.system.enable"
SETTINGS = {"log.cleaner.max.compaction.lag.ms": "60000", "delete.topic.enable": "false"}
TIERED = {"remote.storage.enable": "true"}
LAGGING = {"cleanup.policy": "compact", "min.compaction.lag.ms": "120000"}


@pytest.fixture(scope="module")
def strict() -> Iterator[Cluster]:
    """Return two brokers with settings of their own, and a controller that has them as well."""
    nodes = (1, 2, *choose_controller_ids(spread_brokers(2, 1)))
    with start_cluster(brokers=2, broker_properties=dict.fromkeys(nodes, SETTINGS)) as cluster:
        create(connect_to(cluster), CreateTopic("there", ((1,),), {}))
        yield cluster


def write_estate(directory: Path, text: str) -> Estate:
    guards = "{max_deletes: 1}"
    clusters = f"version: 1\nclusters: {{lab: {{guards: {guards}}}}}\n"
    (directory / "clusters.yaml").write_text(clusters)
    (directory / "topic.yaml").write_text(text)
    return load_estate(directory)


def say_config(config: dict[str, str]) -> str:
    return "config: {" + ", ".join(f"{key}: {value}" for key, value in config.items()) + "}"


@pytest.mark.cluster
@pytest.mark.parametrize("name", ["new", "there"])
@pytest.mark.parametrize(
    ("config", "rule"), [(TIERED, "tiered-storage-off"), (LAGGING, "config-lag-pair")]
)
def test_what_the_brokers_refuse_is_refused_in_the_plan(
    strict: Cluster, tmp_path: Path, name: str, config: dict[str, str], rule: str
) -> None:
    client = connect_to(strict).client()
    asked = client.create_topics([NewTopic("asked", 1, 1, config=config)], validate_only=True)
    with pytest.raises(KafkaException, match=r"Tiered Storage|conflict topic config"):
        asked["asked"].result(15)
    counts = "partitions: 1\nreplication_factor: 1"
    text = f"topic: {name}\n{counts}\n{say_config(config)}\nacknowledge: [data-loss]\n"
    estate = write_estate(tmp_path, text)
    servers = strict.bootstrap_servers
    (topic,) = build_plan(
        estate, "lab", read_cluster(estate, "lab", bootstrap_servers=servers)
    ).topics
    assert [finding.rule for finding in topic.refusals] == [rule]
    assert topic.refusals[0].where is not None
    assert topic.refusals[0].where.line == 4
    kept = decode_snapshot(encode_snapshot(take_snapshot(estate, "lab", bootstrap_servers=servers)))
    (again,) = build_plan(estate, "lab", kept).topics
    assert again.refusals == topic.refusals


@pytest.mark.cluster
def test_brokers_that_delete_nothing_are_not_asked_to(strict: Cluster, tmp_path: Path) -> None:
    estate = write_estate(tmp_path, "topic: there\nstate: absent\n")
    state = read_cluster(estate, "lab", bootstrap_servers=strict.bootstrap_servers)
    (topic,) = build_plan(estate, "lab", state).topics
    assert [finding.rule for finding in topic.refusals] == ["deletion-disabled"]


def test_a_flag_is_on_where_all_brokers_that_tell_have_it() -> None:
    """No broker of the sandbox has a tier: that takes a storage to keep it in."""
    on, off, silent = {TIER: "true"}, {TIER: "false"}, {TIER: None}
    assert find_settings({1: on, 2: on}) == {TIER: "true"}
    assert find_settings({1: on, 2: off}) == {TIER: "false"}
    assert find_settings({1: on, 2: silent, 3: {}}) == {TIER: "true"}
    assert find_settings({}) == {}
