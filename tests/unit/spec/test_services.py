"""What services allow, as their public pages state it, and what of it validation says offline.

Each case names the page that states the fact, and when it was read.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from reconciler.errors import SpecError
from reconciler.spec.estate import Estate, parse_estate
from reconciler.spec.services import suggest_service

PAGE = (Path(__file__).parents[3] / "docs" / "services.md").read_text()
AWS = "https://docs.aws.amazon.com/msk/latest/developerguide/"
EXPRESS = f"{AWS}msk-configuration-express-read-write.html, 2026-11"
SERVERLESS = f"{AWS}serverless-config.html, 2026-11"
CONFLUENT = (
    "https://github.com/confluentinc/kcp, topic.go, which quotes the documentation of 2026-05"
)
EVENT_HUBS = "https://learn.microsoft.com/azure/event-hubs/apache-kafka-configurations, 2025-12"
GOOGLE = "https://cloud.google.com/managed-service-for-apache-kafka/docs/limitations, 2026-11"
REDPANDA = "https://docs.redpanda.com/current/reference/properties/topic-properties/, 2026-08"
AUTOMQ = "https://github.com/AutoMQ/automq, ReplicationControlManager.java, f1ce98e"


class Case(NamedTuple):
    """A topic on a service, the rules that it breaks there, and the page that says so."""

    service: str
    topic: str
    rules: tuple[str, ...]
    page: str


CASES = (
    Case("msk-express", "replication_factor: 2", ("service-replication",), EXPRESS),
    Case("msk-express", "replication_factor: 3", (), EXPRESS),
    Case("msk-express", "assignment: [[1, 2]]", ("service-replication",), EXPRESS),
    Case("msk-express", "config: {segment.bytes: 1GiB}", ("service-config",), EXPRESS),
    Case("msk-express", "config: {min.insync.replicas: 2}", ("service-config",), EXPRESS),
    Case("msk-express", "config: {max.compaction.lag.ms: 9d}", (), EXPRESS),
    Case("msk-serverless", "config: {segment.bytes: 1GiB}", ("service-config",), SERVERLESS),
    Case("msk-serverless", "config: {max.message.bytes: 8MiB}", (), SERVERLESS),
    Case("msk-serverless", "config: {max.message.bytes: 8388609}", ("service-value",), SERVERLESS),
    Case("confluent-cloud", "replication_factor: 4", ("service-replication",), CONFLUENT),
    Case("confluent-cloud", "config: {compression.type: gzip}", ("service-config",), CONFLUENT),
    Case("confluent-cloud", "config: {confluent.value.schema.validation: true}", (), CONFLUENT),
    Case("google", "config: {compression.type: zstd}", ("service-value",), GOOGLE),
    Case("google", "config: {compression.type: lz4}", (), GOOGLE),
    Case(
        "redpanda", "config: {unclean.leader.election.enable: true}", ("service-config",), REDPANDA
    ),
    Case("redpanda", "config: {redpanda.remote.read: true, segment.ms: 1h}", (), REDPANDA),
    Case("automq", "replication_factor: 3", ("service-replication",), AUTOMQ),
    Case("automq", "config: {min.insync.replicas: 2}", ("service-value",), AUTOMQ),
    Case("automq", "replication_factor: 1\nconfig: {min.insync.replicas: 1}", (), AUTOMQ),
    Case("event-hubs", "partitions: 3", ("service-elsewhere",), EVENT_HUBS),
    Case("msk", "replication_factor: 2\nconfig: {segment.bytes: 1GiB}", (), f"{AWS}limits.html"),
    Case("apache", "config: {redpanda.remote.read: true}", ("config-unknown",), ""),
)


def load(settings: str, topic: str = "partitions: 3") -> Estate:
    clusters = f"version: 1\nclusters: {{it: {{{settings}}}}}\n"
    files = {"clusters.yaml": clusters.encode(), "a.yaml": f"topic: a\n{topic}\n".encode()}
    return parse_estate(files, "topics")


def list_rules(settings: str, topic: str = "partitions: 3") -> tuple[str, ...]:
    try:
        load(settings, topic)
    except SpecError as error:
        return tuple(found.rule for found in error.findings)
    return ()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.service}: {case.topic[:40]}")
def test_what_a_service_refuses_or_replaces_is_an_error_offline(case: Case) -> None:
    assert list_rules(f"service: {case.service}", case.topic) == case.rules


@pytest.mark.parametrize("service", ["confluent-cloud", "msk-serverless", "warpstream"])
def test_a_service_that_takes_no_reassignments_allows_no_moves(service: str) -> None:
    """WarpStream names the requests without a meaning there: docs.warpstream.com, protocol support.

    The other two have no brokers that a customer could name.
    """
    moves = "moves: {allow: [drain], rate: 30MiB}"
    assert list_rules(f"service: {service}, {moves}") == ("placement-keys",)


def test_who_else_moves_replicas_is_a_note_that_can_be_muted() -> None:
    estate = load("service: redpanda, moves: {allow: [drain], rate: 30MiB}, mute: [service-mover]")
    (note,) = (found for found in estate.findings if found.rule == "service-mover")
    assert "partition_autobalancing_mode" in note.what


@pytest.mark.parametrize(
    ("address", "service"),
    [
        ("pkc-1a2b3.eu-west-1.aws.confluent.cloud:9092", "confluent-cloud"),
        ("boot-1a2b3.c1.kafka-serverless.eu-west-1.amazonaws.com:9098", "msk-serverless"),
        ("b-1.shop.1a2b3.c1.kafka.eu-west-1.amazonaws.com:9096", "msk"),
        ("shop-acme.aivencloud.com:12345", "aiven"),
        ("shop.servicebus.windows.net:9093", "event-hubs"),
        ("bootstrap.shop.europe-west1.managedkafka.acme.cloud.goog:9092", "google"),
        ("seed-1.1a2b3.byoc.prd.cloud.redpanda.com:9092", "redpanda-cloud"),
        ("serverless.warpstream.com:9092", "warpstream"),
        ("shop-kafka-bootstrap.kafka.svc:9093", "strimzi"),
        ("broker-1.shop.example:9093", ""),
    ],
)
def test_an_address_suggests_a_service(address: str, service: str) -> None:
    client = f"client: {{bootstrap.servers: '{address}'}}"
    likely = [found for found in load(client).findings if found.rule == "service-likely"]
    assert [found.way_out for found in likely] == (
        [f"write service: {service}, or mute: [service-likely]"] if service else []
    )
    named = f"service: {service or 'apache'}, {client}"
    if service != "event-hubs":
        assert not [found for found in load(named).findings if found.rule == "service-likely"]


def test_what_clusters_yaml_writes_wins_over_the_service() -> None:
    settings = "service: confluent-cloud, known_configs: [compression.type]"
    assert list_rules(settings, "config: {compression.type: gzip}") == ()
    assert list_rules(settings, "config: {retention.ms: 1d}") == ("config-not-offered",)


def test_a_finding_is_said_once_for_all_clusters_of_a_service() -> None:
    clusters = b"version: 1\nclusters: {a: {service: automq}, b: {service: automq}}\n"
    files = {"clusters.yaml": clusters, "a.yaml": b"topic: a\nreplication_factor: 3\n"}
    with pytest.raises(SpecError) as refused:
        parse_estate(files, "topics")
    assert len(refused.value.findings) == 1


def test_the_clusters_of_the_page_are_valid_and_of_the_services_that_their_addresses_suggest() -> (
    None
):
    (page,) = re.findall(r"^```yaml\n(version: 1\n.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    topic = b"topic: a\npartitions: 3\n"
    estate = parse_estate({"clusters.yaml": page.encode(), "a.yaml": topic}, "topics")
    assert len(estate.declared) == 7
    for name in estate.declared:
        servers = estate.clusters[name].client["bootstrap.servers"]
        assert suggest_service(servers) == estate.clusters[name].service
