"""A plan that rests on what is no more is refused by topic and field, before anything is written.

Each plan also creates a topic that has nothing to do with what moved: it must not appear.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from confluent_kafka.admin import NewPartitions, NewTopic, ResourceType
from lab import reassign, set_config, wait_for
from shorthand import HERE, said, spec
from workbench import Workbench, outcomes

from reconciler.errors import StalePlanError
from reconciler.kafka.reader import KafkaReader
from reconciler.model.cluster import Broker, TopicSpec, TopicState
from reconciler.model.plan import Plan
from reconciler.planfile.codec import decode_plan, encode_plan, fingerprint_plan
from reconciler.sandbox.cluster import Cluster, start_cluster

PLACED = ((1, 2), (2, 3), (3, 1))


class Stale:
    """A topic with a plan, and what happens to it before the plan is applied."""

    def __init__(self, cluster: Cluster, prefix: str) -> None:
        self.cluster = cluster
        self.bench = Workbench(cluster)
        self.name = f"{prefix}orders"
        self.bystander = f"{prefix}new"
        # A broker of its own for every question: what one of them shows later is no surprise.
        self.views = KafkaReader(self.bench.connection)

    def wish(self, *rows: tuple[int, ...], **config: str) -> TopicSpec:
        return spec(self.name, assignment=rows, config=config, acknowledge=frozenset({"data-loss"}))

    def plan(self, wished: TopicSpec) -> Plan:
        """Plan a change of the topic, and a creation beside it.

        The new topic names its broker: placement looks at the whole cluster, and so at the topics
        of other tests.
        """
        return self.bench.plan(wished, spec(self.bystander, assignment=((2,),)))

    def grow(self, count: int, *rows: tuple[int, ...]) -> None:
        more = NewPartitions(self.name, count, [list(row) for row in rows])
        self._finish(self.bench.others.create_partitions([more]))
        self.wait(lambda topic: topic is not None and len(topic.assignment) == count)

    def move(self, rows: dict[int, list[int]]) -> None:
        """Move replicas to other brokers, as another tool does."""
        reassign(self.cluster, self.name, dict(rows))
        wanted = {number: tuple(row) for number, row in rows.items()}
        self.wait(
            lambda topic: (
                topic is not None
                and all(topic.assignment[number] == row for number, row in wanted.items())
                and all(set(topic.in_sync[number]) == set(row) for number, row in wanted.items())
            )
        )

    def delete(self) -> None:
        self._finish(self.bench.others.delete_topics([self.name]))
        self.wait(lambda topic: topic is None)

    def create(self, *rows: tuple[int, ...], **config: str) -> None:
        rows_of_lists = [list(row) for row in rows]
        new = NewTopic(
            self.name,
            num_partitions=len(rows),
            replica_assignment=rows_of_lists,
            config=config,
        )
        self._finish(self.bench.others.create_topics([new]))
        self.wait(lambda topic: topic is not None and topic.assignment == rows)

    def wait(self, shown: Callable[[TopicState | None], bool]) -> None:
        """Wait until every broker shows what happened."""
        wait_for(
            lambda: all(
                shown(view.get(self.name))
                for view in self.views.read_views([self.name], [self.name]).values()
            )
        )

    def refusal(self, plan: Plan) -> list[str]:
        """Apply the plan. Returns what is said, once nothing is found to be written."""
        before = self.bench.topics(self.name)
        with pytest.raises(StalePlanError) as caught:
            self.bench.apply(plan)
        assert self.bench.topics(self.name) == before
        assert self.bystander not in self.bench.topics(self.bystander)
        return said(caught.value.findings)

    def says(self, what: str) -> list[str]:
        return [f"{HERE}: {self.name}: {what}; plan again [plan-stale]"]

    def _finish(self, asked: dict[str, object]) -> None:
        for answer in asked.values():
            answer.result(15)  # type: ignore[attr-defined]


@pytest.fixture
def stale(cluster3: Cluster, topic_prefix: str) -> Stale:
    return Stale(cluster3, topic_prefix)


@pytest.fixture
def expansion(stale: Stale) -> Plan:
    """Plan to grow a topic from two partitions to three."""
    stale.bench.bring(stale.wish(*PLACED[:2]))
    return stale.plan(stale.wish(*PLACED))


@pytest.fixture
def configuration(stale: Stale) -> Plan:
    """Plan to set one config and unset another."""
    stale.bench.bring(stale.wish(*PLACED, **{"segment.ms": "9000"}))
    return stale.plan(stale.wish(*PLACED, **{"retention.ms": "60000"}))


def test_a_topic_that_was_deleted(stale: Stale, expansion: Plan) -> None:
    stale.delete()
    assert stale.refusal(expansion) == stale.says("it was deleted since the plan was made")


def test_a_topic_that_was_created_anew_just_as_it_was(stale: Stale, expansion: Plan) -> None:
    stale.delete()
    stale.create(*PLACED[:2])
    assert stale.refusal(expansion) == stale.says(
        "it was deleted and created again since the plan was made"
    )


def test_a_topic_that_grew_beyond_the_plan(stale: Stale, expansion: Plan) -> None:
    stale.grow(4, (3, 1), (1, 2))
    assert stale.refusal(expansion) == stale.says(
        "partitions: 2 → 4 since the plan was made (planned: 3)"
    )


def test_a_topic_that_grew_otherwise(stale: Stale, expansion: Plan) -> None:
    stale.grow(3, (1, 3))
    assert stale.refusal(expansion) == stale.says("partition 2 is on brokers [1, 3], not [3, 1]")


def test_a_topic_that_grew_just_as_planned_is_no_trouble(stale: Stale, expansion: Plan) -> None:
    stale.grow(3, (3, 1))
    assert outcomes(stale.bench.apply(expansion)) == {
        stale.name: "already done",
        stale.bystander: "done",
    }


def test_replicas_that_were_moved_stay_where_they_are_now(stale: Stale, expansion: Plan) -> None:
    """An approved plan of changes stays valid while a drain goes on."""
    saved = encode_plan(expansion)
    stale.move({0: [3, 1], 1: [3, 2]})
    assert outcomes(stale.bench.apply(decode_plan(saved))) == {
        stale.name: "done",
        stale.bystander: "done",
    }
    grown = stale.bench.topics(stale.name)[stale.name].assignment
    assert grown == ((3, 1), (3, 2), PLACED[2])
    stale.move({0: [2, 1]})
    assert set(outcomes(stale.bench.apply(decode_plan(saved))).values()) == {"already done"}


def test_configs_are_set_while_replicas_move(stale: Stale, configuration: Plan) -> None:
    stale.move({0: [3, 1], 2: [3, 2]})
    again = stale.plan(stale.wish((3, 1), PLACED[1], (3, 2), **{"retention.ms": "60000"}))
    assert fingerprint_plan(again) == fingerprint_plan(configuration)
    assert set(outcomes(stale.bench.apply(configuration)).values()) == {"done"}
    assert stale.bench.topics(stale.name)[stale.name].assignment == ((3, 1), (2, 3), (3, 2))


def test_partitions_that_got_another_number_of_replicas(stale: Stale, expansion: Plan) -> None:
    stale.move({0: [1, 2, 3], 1: [2, 3, 1]})
    assert stale.refusal(expansion) == [
        f"{HERE}: {stale.name}: partition 0 has 3 replicas by now, and new partitions are planned "
        "with 2; apply again once its replicas have moved, or plan again [plan-stale]"
    ]


def test_a_config_that_was_set_by_somebody_else(stale: Stale, configuration: Plan) -> None:
    set_config(stale.cluster, ResourceType.TOPIC, stale.name, retention_ms="70000")
    stale.wait(lambda topic: topic is not None and topic.config.get("retention.ms") == "70000")
    assert stale.refusal(configuration) == stale.says(
        "retention.ms: not set → 70000 since the plan was made (planned: 60000)"
    )


def test_a_config_that_is_to_go_and_was_changed(stale: Stale, configuration: Plan) -> None:
    set_config(stale.cluster, ResourceType.TOPIC, stale.name, segment_ms="8000")
    stale.wait(lambda topic: topic is not None and topic.config.get("segment.ms") == "8000")
    assert stale.refusal(configuration) == stale.says(
        "segment.ms: 9000 → 8000 since the plan was made (planned: not set)"
    )


def test_a_config_that_the_plan_does_not_speak_of_may_change(
    stale: Stale, configuration: Plan
) -> None:
    set_config(stale.cluster, ResourceType.TOPIC, stale.name, flush_ms="7")
    stale.wait(lambda topic: topic is not None and "flush.ms" in topic.config)
    assert set(outcomes(stale.bench.apply(configuration)).values()) == {"done"}
    assert stale.bench.topics(stale.name)[stale.name].config == {
        "retention.ms": "60000",
        "flush.ms": "7",
    }


def test_a_new_topic_that_is_there_by_now_and_other(stale: Stale) -> None:
    plan = stale.plan(stale.wish(*PLACED, **{"retention.ms": "60000"}))
    stale.create(*PLACED, **{"retention.ms": "70000"})
    assert stale.refusal(plan) == stale.says(
        "it was created since the plan was made with retention.ms 70000 (planned: 60000)"
    )


@pytest.mark.parametrize("count", [1, 2])
def test_a_planned_create_does_not_grow_the_topic_of_another_admin(
    stale: Stale, count: int
) -> None:
    """The rows that are there are those of the plan: keys would move all the same."""
    plan = stale.plan(stale.wish(*PLACED))
    stale.create(*PLACED[:count])
    noun = "partition" if count == 1 else "partitions"
    assert stale.refusal(plan) == stale.says(
        f"it was created since the plan was made with {count} {noun} (planned: 3)"
    )


def test_a_new_topic_that_is_there_by_now_with_other_replicas(stale: Stale) -> None:
    plan = stale.plan(stale.wish(*PLACED))
    stale.create(PLACED[0], (3, 2), PLACED[2])
    assert stale.refusal(plan) == stale.says("partition 1 is on brokers [3, 2], not [2, 3]")


def test_a_new_topic_that_is_there_by_now_with_one_config_more(stale: Stale) -> None:
    plan = stale.plan(stale.wish(*PLACED))
    stale.create(*PLACED, **{"cleanup.policy": "compact"})
    assert stale.refusal(plan) == stale.says(
        "it was created since the plan was made with cleanup.policy compact (planned: not set)"
    )


def test_a_new_topic_that_is_there_by_now_just_as_planned_is_done(stale: Stale) -> None:
    plan = stale.plan(stale.wish(*PLACED, **{"retention.ms": "60000"}))
    stale.create(*PLACED, **{"retention.ms": "60000"})
    assert outcomes(stale.bench.apply(plan))[stale.name] == "already done"


def test_an_expansion_of_which_another_admin_did_a_part(stale: Stale) -> None:
    """2 → 4 is planned and 3 are found, in the rows of the plan."""
    stale.bench.bring(stale.wish(*PLACED[:2]))
    plan = stale.plan(stale.wish(*PLACED, (1, 3)))
    stale.grow(3, PLACED[2])
    assert stale.refusal(plan) == stale.says(
        "partitions: 2 → 3 since the plan was made (planned: 4)"
    )


def test_configs_of_which_another_admin_set_a_part(stale: Stale, configuration: Plan) -> None:
    """Apply sets and unsets the configs of a topic in one request, all of them or none."""
    set_config(stale.cluster, ResourceType.TOPIC, stale.name, retention_ms="60000")
    stale.wait(lambda topic: topic is not None and topic.config.get("retention.ms") == "60000")
    assert stale.refusal(configuration) == stale.says(
        "retention.ms: not set → 60000 since the plan was made (planned: 60000)"
    )


@pytest.mark.parametrize("before", [0, 1])
def test_what_a_killed_run_did_of_a_change_too_large_for_one_request_is_continued(
    stale: Stale, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """A request takes two partitions here: the first part is there, the second is not."""
    monkeypatch.setattr("reconciler.apply.kinds.MAX_RECORDS", 2)
    rows = (*PLACED, (1, 3), (2, 1), (3, 2))
    if before:
        stale.bench.bring(stale.wish(*rows[:before]))
    plan = stale.plan(stale.wish(*rows))
    if before:
        stale.grow(before + 2, *rows[before : before + 2])
    else:
        stale.create(*rows[:2])
    assert set(outcomes(stale.bench.apply(plan)).values()) == {"done"}
    assert stale.bench.topics(stale.name)[stale.name].assignment == rows


def test_a_part_that_ends_elsewhere_than_a_request_is_not_continued(
    stale: Stale, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.apply.kinds.MAX_RECORDS", 2)
    rows = (*PLACED, (1, 3), (2, 1))
    plan = stale.plan(stale.wish(*rows))
    stale.create(*rows[:3])
    assert stale.refusal(plan) == stale.says(
        "it was created since the plan was made with 3 partitions (planned: 5)"
    )


def test_another_cluster(stale: Stale, expansion: Plan) -> None:
    other = replace(expansion, cluster_id="another-cluster")
    assert stale.refusal(other) == [
        f"the plan is for cluster another-cluster, and this is cluster {stale.cluster.cluster_id}; "
        "apply it to lab, or plan for this cluster [plan-cluster]"
    ]


def test_a_broker_that_was_in_another_rack(stale: Stale, expansion: Plan) -> None:
    then = tuple(
        replace(broker, rack="rack9") if broker.id == 1 else broker for broker in expansion.brokers
    )
    (refusal,) = stale.refusal(replace(expansion, brokers=then))
    said = f"of {stale.name} and is in rack rack0, not in rack rack9; plan again [plan-stale]"
    assert said in refusal


def test_everything_that_moved_is_said_at_once(stale: Stale) -> None:
    stale.bench.bring(stale.wish(*PLACED[:2]))
    plan = stale.plan(stale.wish(*PLACED, **{"retention.ms": "60000"}))
    stale.grow(3, (1, 3))
    set_config(stale.cluster, ResourceType.TOPIC, stale.name, retention_ms="70000")
    stale.wait(lambda topic: topic is not None and "retention.ms" in topic.config)
    assert stale.refusal(plan) == [
        *stale.says("partition 2 is on brokers [1, 3], not [3, 1]"),
        *stale.says("retention.ms: not set → 70000 since the plan was made (planned: 60000)"),
    ]


@pytest.mark.cluster
@pytest.mark.slow
def test_a_broker_that_is_gone_is_in_the_way_of_what_needs_it_only() -> None:
    shape = [Broker(1, "a"), Broker(2, "b"), Broker(3, "c")]
    with start_cluster(shape=shape) as cluster:
        bench = Workbench(cluster)
        near = spec("near", assignment=((1, 2),))
        far = spec("far", assignment=((2, 3),))
        plan = bench.plan(near, far)
        bench.bring(near)
        cluster.stop_broker(3)
        with pytest.raises(StalePlanError) as caught:
            bench.apply(plan)
        assert said(caught.value.findings) == [
            "broker 3 is to take replicas of far and is not alive; bring it back, or plan again "
            "[plan-stale]"
        ]
        assert "far" not in bench.topics("far")
        cluster.start_broker(3)
        assert outcomes(bench.apply(plan)) == {"far": "done", "near": "already done"}
        cluster.stop_broker(3)
        assert outcomes(bench.apply(plan)) == {"far": "already done", "near": "already done"}
