"""What services allow, as their public pages state it, and what of it validation says offline.

Each case names the page that states the fact, and when it was read.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from reconciler.errors import SpecError
from reconciler.model.rates import Rate, Rates
from reconciler.spec.estate import Estate, parse_estate
from reconciler.spec.services import APACHE, SERVICES, suggest_service

DOCS = Path(__file__).parents[3] / "docs"
OVERVIEW = (DOCS / "reference" / "services.md").read_text()
PAGES = DOCS / "reference" / "services"
SERVICE_PAGES = sorted({path.stem for path in PAGES.glob("*.md")} - {"event-hubs", "others"})
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


def test_racks_play_no_part_where_the_service_places() -> None:
    def list_keys(settings: str, topic: str) -> list[str]:
        found = load(settings, topic).findings
        return [str(note) for note in found if note.rule == "placement-keys"]

    uneven = "rack_aware: false"
    assert list_keys("service: confluent-cloud", uneven) == [
        "topics/a.yaml:2:13: rack_aware: false has no effect on it, since Confluent Cloud places "
        "the replicas of it itself; remove it, unless other clusters need it [placement-keys]"
    ]
    once = f"service: confluent-cloud, defaults: {{{uneven}}}"
    assert len(list_keys(once, "partitions: 3\n---\ntopic: b\npartitions: 3")) == 1
    assert list_keys("service: confluent-cloud", "rack_aware: true") == []
    assert list_keys("service: msk", uneven) == []


REBALANCING = f"{AWS}intelligent-rebalancing.html, 2026-11"
BALANCING = (
    "https://docs.redpanda.com/current/manage/cluster-maintenance/cluster-balancing/, 2026-08: "
    "'Set the partition_autobalancing_mode property to off. If Redpanda partition balancing is "
    "enabled, Redpanda may change partition assignments regardless'"
)
MOVES = "moves: {{allow: [drain], rate: {}{}}}"
OFF = ", balancer_off: true"


@pytest.mark.parametrize(
    ("service", "rate", "stated", "rules", "page"),
    [
        ("redpanda", "unlimited", "", ("service-balancer",), BALANCING),
        ("redpanda", "unlimited", ", balancer_off: false", ("service-balancer",), BALANCING),
        ("redpanda", "unlimited", OFF, (), BALANCING),
        ("redpanda", "30MiB", OFF, ("service-throttle",), BALANCING),
        ("msk-express", "unlimited", "", ("service-balancer",), REBALANCING),
        ("msk-express", "unlimited", OFF, (), REBALANCING),
        ("msk-express", "30MiB", OFF, ("service-throttle",), EXPRESS),
        ("automq", "30MiB", "", (), AUTOMQ),
        ("google", "30MiB", "", (), GOOGLE),
        ("strimzi", "30MiB", "", (), "its changelog, 1.2.0"),
        ("apache", "30MiB", OFF, (), ""),
    ],
)
def test_moves_that_a_service_refuses_or_undoes_need_a_statement(
    service: str, rate: str, stated: str, rules: tuple[str, ...], page: str
) -> None:
    assert list_rules(f"service: {service}, {MOVES.format(rate, stated)}") == rules, page


def test_the_way_out_names_the_condition_and_is_valid() -> None:
    with pytest.raises(SpecError) as refused:
        load(f"service: redpanda, {MOVES.format('30MiB', '')}")
    assert [(found.rule, found.what, found.way_out) for found in refused.value.findings] == [
        (
            "service-balancer",
            "not only reconciler moves replicas on it: its balancer does, and undoes other moves",
            "write balancer_off: true below moves, if partition_autobalancing_mode is off; or "
            "remove moves",
        ),
        (
            "service-throttle",
            "Redpanda has no throttles of moves, so it cannot have a rate",
            "write rate: unlimited; raft_learner_recovery_rate of the cluster limits copies",
        ),
    ]


@pytest.mark.parametrize("service", ["apache", "msk-express", "redpanda"])
def test_what_allows_a_drain_is_what_the_service_accepts(service: str) -> None:
    with pytest.raises(SpecError) as refused:
        load(f"service: {service}, drain_brokers: [4]")
    (found,) = refused.value.findings
    assert found.rule == "drain-allowed"
    said = re.search(r"write (moves: \{.*\}) below this cluster", found.way_out)
    assert said
    assert list_rules(f"service: {service}, drain_brokers: [4], {said[1]}") == ()
    assert SERVICES[service].mover_off in found.way_out


def list_notes(settings: str) -> list[str]:
    return [note.what for note in load(settings).findings if note.rule == "service-mover"]


def test_who_else_moves_replicas_is_a_note_that_can_be_muted() -> None:
    (note,) = list_notes(f"service: automq, {MOVES.format('30MiB', '')}, mute: [service-mover]")
    assert note == "not only reconciler moves replicas on it: its AutoBalancer does"


def test_the_note_repeats_what_clusters_yaml_states() -> None:
    moves = MOVES.format("unlimited", OFF)
    (note,) = list_notes(f"service: redpanda, {moves}")
    assert note.endswith("; clusters.yaml states that partition_autobalancing_mode is off")
    (note,) = list_notes(f"service: strimzi, {moves}")
    assert note.endswith("; clusters.yaml states that nobody else moves replicas")
    assert list_notes(f"service: apache, {moves}") == []


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


@pytest.mark.parametrize(
    ("settings", "topic", "expected"),
    [
        ("service: automq", "partitions: 3", {"min.insync.replicas": "1"}),
        ("service: automq", "config: {min.insync.replicas: null}", {"min.insync.replicas": "1"}),
        ("service: automq, known_configs: [retention.ms]", "partitions: 3", {}),
        ("service: msk-express", "partitions: 3", {}),
    ],
)
def test_what_a_service_sets_on_every_topic_is_in_every_spec(
    settings: str, topic: str, expected: dict[str, str]
) -> None:
    """Without it, each plan would unset what the service set when it created the topic."""
    estate = load(settings, topic)
    (spec,) = estate.topics_for("it")
    assert spec.config == expected
    assert estate.inherit("it", None, estate.clusters["it"].catalogue).config == expected
    for key in expected:
        assert spec.where(f"config.{key}") == estate.clusters["it"].where("service")


def test_rates_are_those_of_the_service_unless_they_are_written() -> None:
    """Serverless: "Maximum rate of partition creation and deletion", "of topic management APIs".

    docs.aws.amazon.com/msk/latest/developerguide/limits.html, 2026-11. Confluent Cloud limits them
    as well, and states no number: nothing is paced by a guess.
    """
    per_s, per_5min = Rate(2, 1), Rate(250, 300)
    for settings, rates in (
        ("service: msk-serverless", Rates(per_s, per_5min)),
        ("service: msk-serverless, rates: {partitions: 500/5 min}", None),
        ("service: msk-serverless, rates: {partitions: 500/5min}", Rates(per_s, Rate(500, 300))),
        ("rates: {requests: 1/500ms}", Rates(requests=Rate(1, 0.5))),
        ("service: confluent-cloud", Rates()),
    ):
        if rates is None:
            assert list_rules(settings) == ("value-form",)
        else:
            assert load(settings).clusters["it"].rates == rates


def test_a_finding_is_said_once_for_all_clusters_of_a_service() -> None:
    clusters = b"version: 1\nclusters: {a: {service: automq}, b: {service: automq}}\n"
    files = {"clusters.yaml": clusters, "a.yaml": b"topic: a\nreplication_factor: 3\n"}
    with pytest.raises(SpecError) as refused:
        parse_estate(files, "topics")
    assert len(refused.value.findings) == 1


BLOCK = re.compile(r"^```yaml\n(version: 1\n.*?)^```", re.DOTALL | re.MULTILINE)
NEEDED = [
    "What to write",
    "Rights",
    "What is refused, and why",
    "What was tried",
    "Where the facts are from",
]
SUGGESTED = {"msk-express": "msk", "redpanda": "", "automq": ""}
"""What the addresses of services suggest that have no form of their own."""


def read_page(name: str) -> Estate:
    """Read the one clusters.yaml of a page, with a topic, whose defaults many estates have."""
    (text,) = BLOCK.findall((PAGES / f"{name}.md").read_text())
    common = "defaults: {config: {min.insync.replicas: 2, retention.ms: 7d}}\n"
    files = {"clusters.yaml": f"{text}{common}".encode(), "a.yaml": b"topic: a\npartitions: 3\n"}
    return parse_estate(files, "topics")


@pytest.mark.parametrize("name", SERVICE_PAGES)
def test_the_clusters_of_a_page_are_valid_and_of_the_services_that_their_addresses_suggest(
    name: str,
) -> None:
    estate = read_page(name)
    assert [found for found in estate.findings if found.rule.startswith("service-")] == []
    for entry in map(estate.clusters.__getitem__, estate.declared):
        likely = suggest_service(entry.client["bootstrap.servers"])
        assert likely == SUGGESTED.get(entry.service, entry.service)


@pytest.mark.parametrize("name", SERVICE_PAGES)
def test_a_page_has_what_its_reader_looks_for(name: str) -> None:
    text = (PAGES / f"{name}.md").read_text()
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == NEEDED


def test_every_service_but_one_whose_topics_are_elsewhere_has_a_clusters_yaml() -> None:
    estates = map(read_page, SERVICE_PAGES)
    shown = [estate.clusters[name].service for estate in estates for name in estate.declared]
    assert sorted(shown) == sorted(
        name for name, service in SERVICES.items() if name != APACHE and not service.elsewhere
    )


def test_services_without_a_name_are_described_by_the_keys_that_a_name_presets() -> None:
    estate = read_page("others")
    assert set(estate.declared) == {"event-streams", "oci", "instaclustr"}
    assert {estate.clusters[name].service for name in estate.declared} == {APACHE}
    assert [str(found) for found in estate.findings if found.rule == "service-likely"] == []
    text = BLOCK.findall((PAGES / "others.md").read_text())[0]

    def list_broken(topic: str, cluster: str) -> tuple[str, ...]:
        file = f"topic: a\npartitions: 3\nclusters: [{cluster}]\n{topic}\n".encode()
        try:
            parse_estate({"clusters.yaml": text.encode(), "a.yaml": file}, "topics")
        except SpecError as error:
            return tuple(found.rule for found in error.findings)
        return ()

    assert list_broken("config: {segment.ms: 1h}", "event-streams") == ()
    assert list_broken("config: {retention.ms: 90d}", "event-streams") == ("policy-config-value",)
    assert list_broken("config: {flush.ms: 1s}", "event-streams") == ("config-not-offered",)
    assert list_broken("config: {retention.ms: 1d}", "oci") == ("config-not-offered",)
    assert list_broken("assignment: [[1], [2], [3]]", "oci") == ("placement-assignment",)


def test_the_overview_links_every_page() -> None:
    pages = sorted(path.stem for path in PAGES.glob("*.md"))
    assert pages == sorted([*SERVICE_PAGES, "event-hubs", "others"])
    assert set(re.findall(r"services/([a-z-]+)\.md", OVERVIEW)) == set(pages)
    for name in SERVICES:
        assert f"\n| `{name}` " in OVERVIEW
