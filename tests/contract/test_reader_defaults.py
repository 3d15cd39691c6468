"""What topics get without overrides: as a plain topic shows it, and known without one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest
from lab import HERE, connect_to, create, wait_for
from test_rights import PLAN, Grants, can_read

from reconciler.kafka.connection import connect
from reconciler.kafka.reader import KafkaReader
from reconciler.model.steps import CreateTopic
from reconciler.sandbox.cluster import Cluster, start_cluster
from reconciler.sandbox.jars import known_releases
from reconciler.spec.configs import choose_catalogue
from reconciler.spec.entry import ClusterEntry

if TYPE_CHECKING:
    from security import Secured

pytestmark = pytest.mark.cluster

THROTTLED = ("follower.replication.throttled.replicas", "leader.replication.throttled.replicas")
NOT_TOLD = {  # by brokers up to 3.9, whose other configs have a say in them
    "message.format.version",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
}

# Every config that one of a topic falls back to over several names or in another unit.
PROPERTIES: dict[str, dict[str, str]] = {
    "retention in hours": {"log.retention.hours": "24"},
    "minutes before hours": {"log.retention.hours": "24", "log.retention.minutes": "90"},
    "ms before minutes": {"log.retention.minutes": "90", "log.retention.ms": "77777"},
    "kept for ever": {"log.retention.hours": "-1"},
    "kept for ever, oddly": {"log.retention.ms": "-7"},
    "rolled in hours": {"log.roll.hours": "5", "log.roll.jitter.hours": "2"},
    "rolled in ms": {"log.roll.ms": "700000", "log.roll.hours": "5", "log.roll.jitter.ms": "9"},
    "flushed by the scheduler": {"log.flush.scheduler.interval.ms": "5000"},
    "flushed by itself": {
        "log.flush.scheduler.interval.ms": "5000",
        "log.flush.interval.ms": "4000",
    },
    "spelt otherwise": {
        "log.cleanup.policy": "compact , delete",
        "log.cleaner.min.cleanable.ratio": ".50",
        "log.preallocate": "TRUE",
    },
}


def read_defaults(cluster: Cluster, *names: str) -> Mapping[str, str]:
    return KafkaReader(connect_to(cluster)).read_cluster(names).config_defaults


def create_both(cluster: Cluster, version: str) -> dict[str, str]:
    """Create a plain topic and one that overrides every key; return the latter's overrides."""
    known = choose_catalogue(version)
    overrides = {name: known.default(name) or "" for name in (*known.settable, *THROTTLED)}
    steps = [CreateTopic("plain", ((1,),), {}), CreateTopic("tuned", ((1,),), overrides)]
    create(connect_to(cluster), *steps)
    return overrides


@pytest.mark.slow
@pytest.mark.parametrize("release", known_releases())
def test_a_topic_that_overrides_everything_hides_no_default(release: str) -> None:
    with start_cluster(brokers=2, kafka_version=release) as cluster:
        overrides = create_both(cluster, release)
        state = KafkaReader(connect_to(cluster)).read_cluster(["tuned"])
        plain = read_defaults(cluster, "plain")
    assert state.topics["tuned"].config.keys() == overrides.keys() == plain.keys()
    left_out = NOT_TOLD if release.startswith("3.") else set()
    assert state.config_defaults == {k: v for k, v in plain.items() if k not in left_out}


@pytest.mark.slow
@pytest.mark.parametrize("properties", PROPERTIES.values(), ids=PROPERTIES)
def test_defaults_follow_the_brokers_own_configs(properties: dict[str, str]) -> None:
    with start_cluster(brokers=1, properties=properties) as cluster:
        create_both(cluster, cluster.kafka_version)
        tuned, plain = read_defaults(cluster, "tuned"), read_defaults(cluster, "plain")
    assert tuned == plain
    stock = choose_catalogue(cluster.kafka_version)
    assert any(value != stock.default(key) for key, value in tuned.items())


@pytest.mark.slow
def test_a_key_on_which_one_broker_differs_has_no_default() -> None:
    """Whichever broker a topic is asked of, and whether or not the topic overrides the key."""
    only_1 = {1: {"log.retention.hours": "24", "log.roll.ms": str(168 * 3_600_000)}}
    with start_cluster(brokers=3, broker_properties=only_1) as cluster:
        create_both(cluster, cluster.kafka_version)
        tuned, plain = read_defaults(cluster, "tuned"), read_defaults(cluster, "plain")
    assert tuned == plain
    assert "retention.ms" not in tuned
    assert tuned["segment.ms"] == "604800000"  # written otherwise, and the same
    assert tuned["segment.bytes"] == "1073741824"


def test_without_the_right_to_ask_brokers_the_default_is_unknown(
    secured: Secured, topic_prefix: str
) -> None:
    """Only what a topic shows is known then, and nothing is said of it."""
    name = topic_prefix + "tuned"
    everybody = connect(ClusterEntry("lab", HERE), bootstrap_servers=secured.address("PLAINTEXT"))
    create(everybody, CreateTopic(name, ((1,),), {"retention.ms": "5000"}))
    planner = Grants(secured, "planner")
    planner.give(PLAN)
    try:
        wait_for(lambda: can_read(planner, name))
        state = KafkaReader(planner.connect()).read_cluster([name])
    finally:
        planner.take_all()
    known = KafkaReader(everybody).read_cluster([name]).config_defaults
    assert known["retention.ms"] == "604800000"
    assert dict(state.config_defaults) == {k: v for k, v in known.items() if k != "retention.ms"}
    assert state.notes == ()
