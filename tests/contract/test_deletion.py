"""Deletion on real brokers: what is unused goes, and whatever is used, or may be, stays."""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    ElectionType,
    KafkaException,
    Producer,
    ShareConsumer,
    TopicPartition,
)
from confluent_kafka.admin import NewTopic, ResourceType
from lab import reassign, set_config, wait_for
from proxy import CREATE_TOPICS, DELETE_TOPICS, FailingNetwork, Loss, failing_network
from shorthand import HERE, said, spec
from workbench import Workbench, outcomes, texts

from reconciler import apply_plan, build_plan, load_estate, read_cluster
from reconciler.errors import StalePlanError
from reconciler.kafka import usage
from reconciler.model.cluster import Guards, TopicSpec, TopicUsage
from reconciler.model.plan import Plan
from reconciler.model.steps import steps_of
from reconciler.planfile.codec import decode_plan, encode_plan
from reconciler.run.events import StepAnswered
from reconciler.sandbox.cluster import Cluster
from reconciler.spec.estate import Estate

DAY_MS = 86_400_000
ALL_RISKS = frozenset({"data-loss", "ordering"})
GUARDS = Guards(max_deletes=3, unused_for_ms=7 * DAY_MS)
UNRAISABLE = "ignore::pytest.PytestUnraisableExceptionWarning"
LEAKS = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning", UNRAISABLE)
LOSSES = (Loss.SILENT_BEFORE, Loss.SILENT_AFTER, Loss.CUT_BEFORE, Loss.CUT_AFTER)


class Doomed:
    """A topic of two partitions that a spec wants gone, and what others do with it meanwhile."""

    def __init__(self, cluster: Cluster, name: str, servers: str | None = None) -> None:
        self.cluster = cluster
        self.bench = Workbench(cluster, servers)
        self.name = name
        self.create(name)

    def create(self, name: str) -> str:
        """Create a topic that keeps records for ever; wait until every broker shows it."""
        keep = {"retention.ms": "-1", "message.timestamp.before.max.ms": str(2**62)}
        new = NewTopic(name, num_partitions=2, replication_factor=2, config=keep)
        self.bench.others.create_topics([new])[name].result(15)
        views = self.bench.reader.read_views
        wait_for(lambda: all(name in view for view in views([name]).values()))
        return name

    def write(self, age_ms: int, partition: int = 0, topic: str = "") -> None:
        producer = Producer({"bootstrap.servers": self.cluster.bootstrap_servers, "log_level": 0})
        at_ms = int(time.time() * 1000) - age_ms
        producer.produce(topic or self.name, b"x", partition=partition, timestamp=at_ms)
        assert producer.flush(15) == 0

    def consumer(self, group: str, protocol: str = "classic") -> Consumer:
        """Return a consumer that has no topic yet."""
        return Consumer(
            {
                "bootstrap.servers": self.cluster.bootstrap_servers,
                "group.id": group,
                "group.protocol": protocol,
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )

    def join(self, consumer: Consumer, topic: str = "") -> None:
        """Have a consumer read a topic; wait until partitions of it are assigned."""
        consumer.subscribe([topic or self.name])
        wait_for(lambda: consumer.poll(0.1) is None and bool(consumer.assignment()))

    def commit(self, group: str) -> None:
        """Commit an offset of the topic as no member of the group, which ends up empty."""
        consumer = self.consumer(group)
        consumer.commit(offsets=[TopicPartition(self.name, 1, 1)], asynchronous=False)
        consumer.close()

    def usage(self) -> TopicUsage:
        return self.bench.reader.read_usage([self.name])[self.name]

    def plan(self, *others: TopicSpec, guards: Guards = GUARDS) -> Plan:
        return self.bench.plan(spec(self.name, absent=True), *others, guards=guards)

    def refusals(self, **more: Any) -> list[str]:
        (planned,) = self.plan(**more).topics
        assert steps_of(planned) == ()
        return [refusal.what for refusal in planned.refusals]

    def stale(self, plan: Plan) -> list[str]:
        """Apply a plan that has become stale. Returns what is said, the topic being there still."""
        with pytest.raises(StalePlanError) as caught:
            self.bench.apply(plan)
        assert self.exists()
        return said(caught.value.findings)

    def exists(self) -> bool:
        return self.name in self.bench.topics(self.name)

    def delete(self) -> None:
        self.bench.others.delete_topics([self.name])[self.name].result(15)
        views = self.bench.reader.read_views
        wait_for(lambda: all(self.name not in view for view in views([self.name]).values()))


@pytest.fixture
def doomed(cluster3: Cluster, topic_prefix: str) -> Doomed:
    return Doomed(cluster3, f"{topic_prefix}old")


def test_an_empty_topic_goes_and_is_gone_when_applied_again(doomed: Doomed) -> None:
    plan = decode_plan(encode_plan(doomed.plan()))
    assert outcomes(doomed.bench.apply(plan)) == {doomed.name: "done"}
    assert not doomed.exists()
    assert outcomes(doomed.bench.apply(plan)) == {doomed.name: "already done"}
    assert doomed.plan().topics == ()


def test_a_topic_of_old_records_goes(doomed: Doomed) -> None:
    doomed.write(8 * DAY_MS)
    doomed.write(9 * DAY_MS, partition=1)
    usage = doomed.usage()
    assert (usage.ends, usage.records, usage.groups, usage.unseen) == ((1, 1), 2, (), "")
    assert usage.newest_ms is not None
    assert 0 <= usage.seen_at_ms - usage.newest_ms - 8 * DAY_MS < 600_000
    assert outcomes(doomed.bench.apply(doomed.plan())) == {doomed.name: "done"}
    assert not doomed.exists()


def test_a_topic_with_a_young_record_stays(doomed: Doomed) -> None:
    doomed.write(9 * DAY_MS)
    doomed.write(3 * DAY_MS, partition=1)
    (refusal,) = doomed.refusals()
    assert refusal.startswith("its newest record is of ")
    assert refusal.endswith(" UTC, 3d ago, and unused_for is 7d")
    assert steps_of(doomed.plan(guards=replace(GUARDS, unused_for_ms=2 * DAY_MS)).topics[0])


def test_records_that_are_gone_leave_a_trace(doomed: Doomed) -> None:
    doomed.write(9 * DAY_MS)
    partition = TopicPartition(doomed.name, 0, 1)
    doomed.bench.others.delete_records([partition])[partition].result(15)
    assert (doomed.usage().records, doomed.usage().emptied) == (0, True)
    (refusal,) = doomed.refusals()
    assert refusal.endswith("so it is not known when it was last written to")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_that_reads_it_keeps_it_until_it_is_left(doomed: Doomed, protocol: str) -> None:
    group = f"{doomed.name}-{protocol}"
    with closing(doomed.consumer(group, protocol)) as consumer:
        doomed.join(consumer)
        wait_for(lambda: doomed.refusals() == [f"active consumer group {group} uses it"])
    assert steps_of(doomed.plan().topics[0])


def test_offsets_of_a_group_without_members_do_not_keep_it(doomed: Doomed) -> None:
    doomed.commit(f"{doomed.name}-left")
    assert outcomes(doomed.bench.apply(doomed.plan())) == {doomed.name: "done"}


def test_offsets_of_a_group_that_reads_something_else_by_now_keep_it(doomed: Doomed) -> None:
    group = f"{doomed.name}-moved-on"
    doomed.commit(group)
    with closing(doomed.consumer(group)) as consumer:
        doomed.join(consumer, doomed.create(f"{doomed.name}.v2"))
        wait_for(lambda: doomed.refusals() == [f"active consumer group {group} uses it"])


def test_a_share_group_may_read_anything(doomed: Doomed) -> None:
    """No client here tells which topics a share group reads, so none of them goes meanwhile."""
    group = f"{doomed.name}-share"
    servers = doomed.cluster.bootstrap_servers
    config = {"bootstrap.servers": servers, "group.id": group, "log_level": 0}
    expected = [f"share group {group} is active, and which topics it reads cannot be seen"]
    with closing(ShareConsumer(config)) as consumer:
        consumer.subscribe([doomed.name])
        wait_for(lambda: consumer.poll(0.1) is not None and bool(doomed.usage().unseen))
        assert doomed.refusals() == expected
    wait_for(lambda: bool(steps_of(doomed.plan().topics[0])))


def test_looking_does_not_create_what_is_not_there(doomed: Doomed, topic_prefix: str) -> None:
    missing = f"{topic_prefix}missing"
    assert doomed.bench.reader.read_usage([missing]) == {}
    assert missing not in doomed.bench.topics(missing)


def test_offsets_are_read_although_leaders_have_moved_and_come_back(
    doomed: Doomed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client keeps a leader's epoch from its last metadata, and is fenced with it for good."""
    doomed.write(age_ms=30 * DAY_MS)
    assert doomed.usage().records == 1

    def find_groups_and_move_leaders(*arguments: Any) -> usage.Groups:
        found = find_groups(*arguments)
        for row in (row_now[::-1], row_now):
            reassign(doomed.cluster, doomed.name, {0: row})
            wait_for(partial(lead, doomed, TopicPartition(doomed.name, 0), row[0]))
        return found

    (row_now, _) = doomed.bench.topics(doomed.name)[doomed.name].assignment
    find_groups = usage.find_groups
    monkeypatch.setattr(usage, "find_groups", find_groups_and_move_leaders)
    found = doomed.usage()
    assert (found.unseen, found.records) == ("", 1)


def lead(doomed: Doomed, partition: TopicPartition, broker: int) -> bool:
    """Elect the preferred leader; return whether it is this one."""
    answer = doomed.bench.others.elect_leaders(ElectionType.PREFERRED, [partition])
    with suppress(KafkaException):
        answer.result(15)
    return leaders(doomed)[partition.partition] == broker


def leaders(doomed: Doomed) -> list[int]:
    topic = doomed.bench.others.list_topics(doomed.name).topics[doomed.name]
    return [topic.partitions[number].leader for number in sorted(topic.partitions)]


def write_estate(directory: Path, name: str, guards: str = "") -> Estate:
    clusters = f"version: 1\nclusters: {{lab: {{{guards}}}}}\n"
    (directory / "clusters.yaml").write_text(clusters, encoding="utf-8")
    (directory / "old.yaml").write_text(f"topic: {name}\nstate: absent\n", encoding="utf-8")
    return load_estate(directory)


def test_an_estate_that_allows_no_deletion_asks_nobody_for_it(
    doomed: Doomed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("reconciler.kafka.reader.read_usage")
    estate = write_estate(tmp_path, doomed.name)
    servers = doomed.cluster.bootstrap_servers
    plan = build_plan(estate, "lab", read_cluster(estate, "lab", bootstrap_servers=servers))
    (planned,) = plan.topics
    assert [refusal.rule for refusal in planned.refusals] == ["deletion-budget"]
    assert str(planned.refusals[0].where).endswith("old.yaml:2:8")


def test_an_estate_that_allows_it_deletes(doomed: Doomed, tmp_path: Path) -> None:
    estate = write_estate(tmp_path, doomed.name, "guards: {max_deletes: 1}")
    servers = doomed.cluster.bootstrap_servers
    plan = build_plan(estate, "lab", read_cluster(estate, "lab", bootstrap_servers=servers))
    (note,) = plan.notes
    assert note.way_out.startswith(f"write cluster_id: {doomed.cluster.cluster_id} in ")
    applied = apply_plan(plan, estate, bootstrap_servers=servers)
    assert outcomes(applied) == {doomed.name: "done"}
    again = build_plan(estate, "lab", read_cluster(estate, "lab", bootstrap_servers=servers))
    assert (again.topics, again.unchanged) == ((), 1)


# Between plan and apply.


def test_a_write_since_the_plan_keeps_it_however_old_it_says_it_is(doomed: Doomed) -> None:
    doomed.write(9 * DAY_MS)
    plan = doomed.plan()
    doomed.write(30 * DAY_MS, partition=1)
    assert doomed.stale(plan) == [
        f"{HERE}: {doomed.name}: it was written to (partition 1) since the plan was made; "
        "plan again [plan-stale]"
    ]


def test_a_group_that_came_since_the_plan_keeps_it(doomed: Doomed) -> None:
    plan = doomed.plan()
    with closing(doomed.consumer(f"{doomed.name}-new")) as consumer:
        doomed.join(consumer)
        (finding,) = doomed.stale(plan)
    assert f"{doomed.name}: active consumer group {doomed.name}-new uses it; " in finding


def test_a_topic_that_was_created_again_is_another_one(doomed: Doomed) -> None:
    plan = doomed.plan()
    doomed.delete()
    doomed.create(doomed.name)
    (finding,) = doomed.stale(plan)
    assert "it was deleted and created again since the plan was made" in finding


def test_a_topic_that_somebody_else_deleted_is_done(doomed: Doomed) -> None:
    plan = doomed.plan()
    doomed.delete()
    assert outcomes(doomed.bench.apply(plan)) == {doomed.name: "already done"}


def test_everything_that_moved_is_said_at_once(doomed: Doomed, topic_prefix: str) -> None:
    other = doomed.create(f"{topic_prefix}other")
    plan = doomed.plan(spec(other, config={"flush.ms": "7"}, acknowledge=ALL_RISKS))
    doomed.write(30 * DAY_MS)
    set_config(doomed.cluster, ResourceType.TOPIC, other, flush_ms="8")
    wait_for(lambda: doomed.bench.topics(other)[other].config["flush.ms"] == "8")
    rests = " ".join(doomed.stale(plan))
    assert f"{other}: flush.ms: not set → 8 since the plan was made" in rests
    assert f"{doomed.name}: it was written to (partition 0)" in rests


def test_what_is_there_under_its_name_once_it_is_gone_is_left_alone(doomed: Doomed) -> None:
    """A producer that is still about may bring a topic back, where brokers create them."""
    plan = doomed.plan()
    old = doomed.bench.topics(doomed.name)[doomed.name].topic_id

    def bring_back(answered: StepAnswered) -> None:
        if answered.phase == "delete":
            wait_for(lambda: not doomed.exists())
            doomed.create(doomed.name)

    applied = doomed.bench.apply(plan, observe=bring_back)
    assert outcomes(applied) == {doomed.name: "done"}
    assert doomed.bench.topics(doomed.name)[doomed.name].topic_id not in (None, old)


def test_a_write_while_the_rest_is_done_holds_the_deletion_back(
    doomed: Doomed, topic_prefix: str
) -> None:
    new = f"{topic_prefix}new"
    plan = doomed.plan(spec(new, partitions=1, replication_factor=1))

    def write(answered: StepAnswered) -> None:
        if answered.phase == "create":
            doomed.write(30 * DAY_MS)

    applied = doomed.bench.apply(plan, observe=write)
    assert outcomes(applied) == {doomed.name: "not attempted", new: "done"}
    assert texts(applied)[doomed.name].endswith(
        "it was written to (partition 0) since the plan was made"
    )
    assert not applied.succeeded
    assert doomed.exists()


def test_a_refusal_that_is_skipped_holds_deletions_back(doomed: Doomed, topic_prefix: str) -> None:
    new = spec(f"{topic_prefix}new", partitions=1, replication_factor=9)
    applied = doomed.bench.apply(doomed.plan(new), skip_refused=True)
    assert outcomes(applied) == {new.name: "refused", doomed.name: "not attempted"}
    assert doomed.exists()


# A network that fails.


@pytest.fixture
def network(cluster3: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[FailingNetwork]:
    """A network before the shared brokers, and no patience with it."""
    monkeypatch.setattr("reconciler.kafka.writer.REQUEST_S", 1.0)
    monkeypatch.setattr("reconciler.kafka.second_client.TIMEOUT_MS", 1_000)
    # Captured, the second client's log would keep its cut sockets from the collector.
    monkeypatch.setattr(logging.getLogger("kafka"), "propagate", False)
    with failing_network(cluster3) as network:
        yield network
    gc.collect()


@pytest.fixture
def far(cluster3: Cluster, network: FailingNetwork, topic_prefix: str) -> Doomed:
    return Doomed(cluster3, f"{topic_prefix}old", network.bootstrap_servers)


@LEAKS
@pytest.mark.parametrize(
    "loss",
    [
        pytest.param(
            loss,
            id=loss.name.lower(),
            marks=() if loss is Loss.SILENT_BEFORE else pytest.mark.slow,
        )
        for loss in LOSSES
    ],
)
def test_a_lost_deletion_is_done_in_the_end(
    far: Doomed, network: FailingNetwork, loss: Loss
) -> None:
    plan = far.plan()
    fault = network.lose(DELETE_TOPICS, loss, skip=0)
    answers: list[StepAnswered] = []
    applied = far.bench.apply(plan, observe=answers.append)
    assert fault.struck.is_set()
    assert next(a.kind for a in answers if a.phase == "delete") == "lost"
    assert outcomes(applied) == {far.name: "done"}
    assert not far.exists()


@LEAKS
def test_nothing_is_deleted_once_something_else_failed(
    far: Doomed,
    network: FailingNetwork,
    topic_prefix: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reconciler.apply.engine.PAUSES_S", (0.1,))
    new = f"{topic_prefix}new"
    plan = far.plan(spec(new, partitions=1, replication_factor=1))
    network.lose(CREATE_TOPICS, Loss.CUT_BEFORE, times=2)
    applied = far.bench.apply(plan)
    assert outcomes(applied) == {new: "unknown", far.name: "not attempted"}
    assert far.exists()
    assert outcomes(far.bench.apply(plan)) == {new: "done", far.name: "done"}
    assert not far.exists()
