"""Topics of other software: which names are known, and by which patterns."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

from reconciler.adopt.desired import OWNERS, suggest_ignores


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        ("Schema Registry", "_schemas"),
        ("Kafka Connect", "connect-configs"),
        ("Kafka Connect", "connect-cluster-status"),
        ("Kafka Connect", "docker-connect-offsets"),
        ("Kafka Streams", "app-KSTREAM-AGGREGATE-STATE-STORE-0000000003-changelog"),
        ("Kafka Streams", "app-by-customer-repartition"),
        ("Kafka Streams", "a-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000016-topic"),
        ("MirrorMaker 2", "heartbeats"),
        ("MirrorMaker 2", "us-west.heartbeats"),
        ("MirrorMaker 2", "us-west.checkpoints.internal"),
        ("MirrorMaker 2", "mm2-offset-syncs.us-west.internal"),
        ("MirrorMaker 2", "mm2-configs.us-west.internal"),
        ("Confluent Platform", "_confluent-metrics"),
        ("Cruise Control", "__CruiseControlMetrics"),
        ("Strimzi", "__strimzi_store_topic"),
        ("ksqlDB", "default_ksql_processing_log"),
    ],
)
def test_the_software_and_its_pattern_are_named(owner: str, name: str) -> None:
    (finding,) = suggest_ignores([name])
    assert finding.what.startswith("1 new topic looks like one that other software creates")
    assert finding.what.endswith(f": {owner} ({name})")
    _, pattern, _ = finding.way_out.split("'")
    assert pattern in OWNERS[owner]
    assert fnmatchcase(name, pattern)


@pytest.mark.parametrize(
    "name",
    [
        "orders",
        "connect-events",
        "changelog",
        "disconnect-status",
        "shop.heartbeats-raw",
        "schemas",
    ],
)
def test_a_team_s_own_topics_are_not_suspected(name: str) -> None:
    assert suggest_ignores([name]) == []


def test_of_many_a_few_are_named_and_each_pattern_once() -> None:
    (finding,) = suggest_ignores([*(f"app-{n}-changelog" for n in range(5)), "_schemas"])
    assert "Kafka Streams (app-0-changelog, app-1-changelog, app-2-changelog and 2 more)" in (
        finding.what
    )
    assert finding.way_out.endswith("import again with --ignore '*-changelog' --ignore '_schemas'")
