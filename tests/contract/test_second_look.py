"""What a plan rests on is read twice: brokers that kept old configs, and rows of a move."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic, ResourceType
from lab import connect_to, create, reassign, set_config, wait_for
from moving import BROKER
from workbench import Workbench, outcomes, remove

from reconciler import apply_plan, build_plan, load_estate, read_cluster
from reconciler.kafka.metadata import read_metadata, read_topic
from reconciler.kafka.reader import KafkaReader
from reconciler.kafka.second_look import settle_rows
from reconciler.kafka.views import Views
from reconciler.model.cluster import ThrottleSide, TopicState
from reconciler.model.plan import Plan
from reconciler.model.steps import CreateTopic, steps_of
from reconciler.sandbox.cluster import Cluster, start_cluster
from reconciler.spec.estate import Estate

if TYPE_CHECKING:
    from moving import Moving

OLD = {"retention.ms": "-1", "flush.ms": "77"}


def write_estate(directory: Path, **texts: str) -> Estate:
    """Write an estate of one topic a file, and load it."""
    (directory / "clusters.yaml").write_text("version: 1\nclusters: {lab: {}}\n")
    for name, text in texts.items():
        (directory / f"{name}.yaml").write_text(f"topic: {name}\n{text}")
    return load_estate(directory)


def plan_on(cluster: Cluster, estate: Estate) -> Plan:
    servers = cluster.bootstrap_servers
    return build_plan(estate, "lab", read_cluster(estate, "lab", bootstrap_servers=servers))


def said(plan: Plan) -> dict[str, list[str]]:
    """Return the rules of what is said of each topic, refusals and notes."""
    return {t.name: [f.rule for f in (*t.refusals, *t.notes)] for t in plan.topics}


class Haunted:
    """A cluster whose broker 1 shows configs of topics that were deleted.

    Each name was created with configs and deleted, twice, before the broker was restarted. It is
    the broker that is asked first.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})

    def create(self, name: str, config: dict[str, str]) -> None:
        # A client of its own: an older one may send it to the broker that has just been stopped.
        servers = {"bootstrap.servers": self.cluster.bootstrap_servers, "log_level": 0}
        client = AdminClient(servers)
        client.create_topics([NewTopic(name, 1, 2, config=config)])[name].result(60)
        wait_for(lambda: all(name in view for view in self.look(name).values()))

    def bury(self, *names: str) -> None:
        for _ in range(2):
            for name in names:
                self.create(name, OLD)
                self.admin.delete_topics([name])[name].result(15)
            wait_for(lambda: not any(view for n in names for view in self.look(n).values()))

    def restart(self) -> None:
        self.cluster.start_broker(1)
        wait_for(lambda: sorted(self.look("any")) == [1, 2, 3], 60)

    def look(self, name: str) -> dict[int, dict[str, TopicState]]:
        reader = KafkaReader(connect_to(self.cluster))
        return {b: dict(view) for b, view in reader.read_views([name], [name]).items()}

    def overrides(self, name: str) -> list[dict[str, str | None]]:
        return [dict(view[name].config) for view in self.look(name).values()]


@pytest.fixture(scope="module")
def haunted() -> Iterator[Haunted]:
    with start_cluster(brokers=3, racks=3) as cluster:
        stage = Haunted(cluster)
        stage.bury("kept", "gone", "planned", "settled")
        cluster.stop_broker(1)
        yield stage


@pytest.fixture(scope="module")
def early(haunted: Haunted, tmp_path_factory: pytest.TempPathFactory) -> tuple[Estate, Plan]:
    """Return a plan that was made before broker 1 came back, as it does now."""
    haunted.create("planned", {})
    estate = write_estate(tmp_path_factory.mktemp("early"), planned="config: {flush.ms: 9}\n")
    plan = plan_on(haunted.cluster, estate)
    assert [set(topic.after.config) for topic in plan.topics if topic.after] == [{"flush.ms"}]
    haunted.restart()
    haunted.create("kept", {})
    haunted.create("gone", {"retention.ms": "3600000"})
    assert haunted.overrides("kept") == [OLD, {}, {}]
    return estate, plan


@pytest.mark.cluster
@pytest.mark.usefixtures("early")
class TestOverrides:
    def test_what_one_broker_alone_shows_is_reported_and_left_alone(
        self, haunted: Haunted, tmp_path: Path
    ) -> None:
        estate = write_estate(tmp_path, kept="partitions: 1\nconfig: {segment.ms: 5h}\n")
        plan = plan_on(haunted.cluster, estate)
        assert said(plan) == {"kept": ["config-disputed", "config-disputed"]}
        (topic,) = plan.topics
        assert topic.after is not None
        assert dict(topic.after.config) == {"segment.ms": "18000000"}
        flush, retention = (note.what for note in topic.notes)
        assert flush == (
            "brokers disagree on flush.ms, so it is left as it is: "
            "77 on broker 1, not set on broker 2 and 3"
        )
        assert "-1 on broker 1, not set on broker 2 and 3" in retention

    @pytest.mark.slow
    def test_what_all_brokers_show_is_changed(self, haunted: Haunted, tmp_path: Path) -> None:
        """Beside a key on which they disagree; with a value that the spec asks for as well."""
        text = "partitions: 1\nconfig: {retention.ms: 2h, flush.ms: 78}\n"
        plan = plan_on(haunted.cluster, write_estate(tmp_path, gone=text))
        (topic,) = plan.topics
        assert said(plan) == {"gone": ["config-disputed"]}
        assert topic.after is not None
        assert dict(topic.after.config) == {"retention.ms": "7200000"}

    @pytest.mark.slow
    def test_the_way_out_settles_it(self, haunted: Haunted, tmp_path: Path) -> None:
        haunted.create("settled", {})
        wait_for(lambda: haunted.overrides("settled") == [OLD, {}, {}])
        set_config(haunted.cluster, ResourceType.TOPIC, "settled", flush_ms="5")
        wait_for(lambda: {each.get("flush.ms") for each in haunted.overrides("settled")} == {"5"})
        text = "partitions: 1\nconfig: {flush.ms: 6}\n"
        (topic,) = plan_on(haunted.cluster, write_estate(tmp_path, settled=text)).topics
        assert [note.what.split(",")[0] for note in topic.notes] == [
            "brokers disagree on retention.ms"
        ]
        assert topic.after is not None
        assert dict(topic.after.config) == {"flush.ms": "6"}

    def test_apply_is_not_stopped_by_what_one_broker_alone_shows(
        self, haunted: Haunted, early: tuple[Estate, Plan]
    ) -> None:
        estate, plan = early
        assert haunted.overrides("planned") == [OLD, {}, {}]
        servers = haunted.cluster.bootstrap_servers
        applied = apply_plan(plan, estate, bootstrap_servers=servers)
        assert outcomes(applied) == {"planned": "done"}
        assert [each["flush.ms"] for each in haunted.overrides("planned")] == ["9"] * 3


@pytest.mark.cluster
class TestAsking:
    def test_nothing_is_read_twice_where_nothing_differs(
        self,
        cluster3: Cluster,
        topic_prefix: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        name = f"{topic_prefix}same"
        create(connect_to(cluster3), CreateTopic(name, ((1, 2),), {"flush.ms": "5"}))
        estate = write_estate(tmp_path, **{name: "partitions: 1\nconfig: {flush.ms: 5}\n"})
        monkeypatch.setattr("reconciler.kafka.second_look.read_configs", None)
        assert plan_on(cluster3, estate).topics == ()

    def test_a_change_by_another_admin_is_found_by_apply(
        self, cluster3: Cluster, topic_prefix: str, tmp_path: Path
    ) -> None:
        name = f"{topic_prefix}changed"
        create(connect_to(cluster3), CreateTopic(name, ((1, 2),), {"flush.ms": "5"}))
        estate = write_estate(tmp_path, **{name: "partitions: 1\nconfig: {flush.ms: 6}\n"})
        plan = plan_on(cluster3, estate)
        assert [len(steps_of(topic)) for topic in plan.topics] == [1]
        set_config(cluster3, ResourceType.TOPIC, name, flush_ms="8")
        reader = KafkaReader(connect_to(cluster3))
        wait_for(
            lambda: (
                {v[name].config["flush.ms"] for v in reader.read_views([name], [name]).values()}
                == {"8"}
            )
        )
        with pytest.raises(Exception, match=r"flush.ms: 5 → 8 since the plan was made"):
            apply_plan(plan, estate, bootstrap_servers=cluster3.bootstrap_servers)

    @pytest.mark.slow
    def test_the_only_broker_is_believed(self, tmp_path: Path) -> None:
        with start_cluster(brokers=1) as cluster:
            create(connect_to(cluster), CreateTopic("one", ((1,),), {"flush.ms": "5"}))
            estate = write_estate(tmp_path, one="partitions: 1\n")
            (topic,) = plan_on(cluster, estate).topics
        assert (topic.notes, len(steps_of(topic))) == ((), 1)


@pytest.fixture
def cluster4(moving: Moving) -> Iterator[Cluster]:
    """Return brokers that hold replicas back by a rate, and remove it afterwards."""
    yield moving.cluster
    moving.set(BROKER, "1", ThrottleSide.LEADER.rate_key, None)
    bench = Workbench(moving.cluster)
    remove(bench, ("back", "moved", "uneven"))


@pytest.mark.cluster
class TestRows:
    def set_rate(self, cluster: Cluster, rate: str) -> None:
        set_config(cluster, ResourceType.BROKER, "1", leader_replication_throttled_rate=rate)

    def begin_move(self, cluster: Cluster, name: str) -> None:
        """Begin to move a topic of one partition from broker 1 to 4, and hold it back."""
        throttled = {"leader.replication.throttled.replicas": "0:1"}
        create(connect_to(cluster), CreateTopic(name, ((1, 2, 3),), throttled))
        self.set_rate(cluster, "1")
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
        for _ in range(200):
            producer.produce(name, value=b"x" * 10_000, partition=0)
        assert producer.flush(30) == 0
        reassign(cluster, name, {0: [4, 2, 3]})
        wait_for(lambda: len(self.read(cluster, name).assignment[0]) == 4)

    def read(self, cluster: Cluster, name: str) -> TopicState:
        """Read a topic as a broker shows it, old and new replicas together."""
        client = connect_to(cluster).client()
        return read_topic(name, read_metadata(client).topics[name], {})

    def test_a_move_that_was_set_back_and_never_ends_is_seen(
        self, cluster4: Cluster, tmp_path: Path
    ) -> None:
        """From Kafka 4.3 on it stays, though all its replicas are in sync."""
        self.begin_move(cluster4, "back")
        reassign(cluster4, "back", {0: [1, 2, 3]})
        self.set_rate(cluster4, "100000000")
        wait_for(lambda: len(self.read(cluster4, "back").in_sync[0]) == 4, 60)
        estate = write_estate(tmp_path, back="replication_factor: 3\n")
        try:
            plan = plan_on(cluster4, estate)
        finally:
            reassign(cluster4, "back", {0: None})
        assert said(plan) == {"back": ["not-managed"]}  # its throttle

    def test_a_row_of_a_move_that_has_ended_is_read_again(self, cluster4: Cluster) -> None:
        self.begin_move(cluster4, "moved")
        before = {"moved": self.read(cluster4, "moved")}
        self.set_rate(cluster4, "100000000")
        wait_for(lambda: self.read(cluster4, "moved").assignment == ((4, 2, 3),), 60)
        connection = connect_to(cluster4)
        settled, notes = settle_rows(connection, Views(connection), before, before, before)
        assert (settled["moved"].assignment, notes) == (((4, 2, 3),), [])

    def test_uneven_rows_are_told_from_a_move(self, cluster4: Cluster) -> None:
        create(connect_to(cluster4), CreateTopic("uneven", ((1, 2), (2, 3)), {}))
        reassign(cluster4, "uneven", {0: [1, 2, 4]})
        wait_for(lambda: self.read(cluster4, "uneven").in_sync[0] == (1, 2, 4))
        time.sleep(0.2)
        state = KafkaReader(connect_to(cluster4)).read_cluster(["uneven"])
        assert state.topics["uneven"].assignment == ((1, 2, 4), (2, 3))
        assert state.topics["uneven"].reassigning == frozenset()
