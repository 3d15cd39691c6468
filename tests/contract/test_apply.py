"""Apply on real brokers: what is planned is done, once, and nothing else."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest
from confluent_kafka.admin import NewTopic
from shorthand import spec
from workbench import Workbench, assert_landed, outcomes, texts

from reconciler.errors import RefusedPlanError
from reconciler.model.cluster import TopicSpec, TopicState
from reconciler.model.outcomes import AnswerKind
from reconciler.model.steps import has_steps
from reconciler.run.events import StepAnswered
from reconciler.sandbox.cluster import Cluster

Views = Mapping[int, Mapping[str, TopicState]]


@pytest.fixture
def bench(cluster3: Cluster) -> Workbench:
    return Workbench(cluster3)


def orders(prefix: str, partitions: int = 3, **config: str) -> TopicSpec:
    """Return a spec of two replicas; config keys are spelled with underscores."""
    spelled = {key.replace("_", "."): value for key, value in config.items()}
    return spec(
        f"{prefix}orders",
        partitions=partitions,
        replication_factor=2,
        config=spelled,
        acknowledge=frozenset({"data-loss", "ordering"}),
    )


CHANGES = {
    "expand": ({}, {"partitions": 5}),
    "set": ({}, {"retention_ms": "60000"}),
    "change": ({"retention_ms": "60000"}, {"retention_ms": "70000"}),
    "unset": ({"retention_ms": "60000", "segment_ms": "9000"}, {"segment_ms": "9000"}),
    "mixed": (
        {"retention_ms": "60000", "segment_ms": "9000"},
        {"partitions": 7, "segment_ms": "8000", "cleanup_policy": "compact,delete"},
    ),
}


def test_a_topic_is_created_as_planned_and_then_there_is_nothing_to_do(
    bench: Workbench, topic_prefix: str
) -> None:
    wished = orders(topic_prefix, retention_ms="60000", cleanup_policy="compact")
    plan = bench.plan(wished)
    assert outcomes(bench.apply(plan)) == {wished.name: "done"}
    assert_landed(bench, plan)
    assert not has_steps(bench.plan(wished))


def test_many_topics_are_looked_at_by_a_sample_until_that_is_shown(
    bench: Workbench, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic outside the sample is missing at first: it is waited for as well."""
    monkeypatch.setattr("reconciler.apply.engine.MOST_SAMPLED", 2)
    plan = bench.plan(
        *(spec(f"{topic_prefix}{n}", partitions=1, replication_factor=1) for n in range(5))
    )
    late = f"{topic_prefix}2"
    asked: list[set[str]] = []
    read_views = bench.reader.read_views

    def read_late(names: Collection[str], configured: Collection[str] = ()) -> Views:
        asked.append(set(names))
        views = read_views(names, configured)
        is_late = sum(late in each for each in asked) == 2  # 1: before anything is created
        shown = {late} if is_late else set()
        return {b: {n: t for n, t in v.items() if n not in shown} for b, v in views.items()}

    monkeypatch.setattr(bench.reader, "read_views", read_late)
    assert set(outcomes(bench.apply(plan)).values()) == {"done"}
    assert {f"{topic_prefix}4", f"{topic_prefix}1"} in asked
    assert [names for names in asked if late in names][-1] == {late}


@pytest.mark.parametrize("change", CHANGES)
def test_a_topic_is_changed_as_planned_and_then_there_is_nothing_to_do(
    bench: Workbench, topic_prefix: str, change: str
) -> None:
    before, after = CHANGES[change]
    bench.bring(orders(topic_prefix, **before))  # type: ignore[arg-type]
    wished = orders(topic_prefix, **after)  # type: ignore[arg-type]
    plan = bench.plan(wished)
    assert outcomes(bench.apply(plan)) == {wished.name: "done"}
    assert_landed(bench, plan)
    assert not has_steps(bench.plan(wished))


def test_a_plan_that_is_applied_again_finds_everything_done(
    bench: Workbench, topic_prefix: str
) -> None:
    bench.bring(orders(topic_prefix))
    new = spec(f"{topic_prefix}new", partitions=2, replication_factor=3)
    plan = bench.plan(orders(topic_prefix, 4, retention_ms="60000"), new)
    assert set(outcomes(bench.apply(plan)).values()) == {"done"}
    before = bench.topics(new.name, f"{topic_prefix}orders")
    again = bench.apply(plan)
    assert outcomes(again) == dict.fromkeys(before, "already done")
    assert again.succeeded
    assert bench.topics(*before) == before


def test_what_was_done_by_half_is_finished(bench: Workbench, topic_prefix: str) -> None:
    bench.bring(orders(topic_prefix))
    wished = orders(topic_prefix, 6, retention_ms="60000")
    plan = bench.plan(wished)
    bench.bring(orders(topic_prefix, 6))  # the first step only
    assert outcomes(bench.apply(plan)) == {wished.name: "done"}
    assert_landed(bench, plan)


def test_nothing_but_the_plan_is_touched(bench: Workbench, topic_prefix: str) -> None:
    others = [spec(f"{topic_prefix}other{n}", partitions=2, replication_factor=1) for n in range(3)]
    bench.bring(*others, orders(topic_prefix))
    plan = bench.plan(orders(topic_prefix, 6))
    names = [other.name for other in others]
    before = bench.topics(*names)
    bench.apply(plan)
    assert bench.topics(*names) == before


def test_a_refused_topic_stops_the_others_unless_it_is_to_be_skipped(
    bench: Workbench, topic_prefix: str
) -> None:
    bench.bring(orders(topic_prefix))
    good = spec(f"{topic_prefix}new", partitions=1, replication_factor=1)
    plan = bench.plan(orders(topic_prefix, 1), good)
    with pytest.raises(RefusedPlanError, match="3 → 1 partition:"):
        bench.apply(plan)
    assert good.name not in bench.topics(good.name)
    applied = bench.apply(plan, skip_refused=True)
    assert outcomes(applied) == {f"{topic_prefix}orders": "refused", good.name: "done"}
    assert not applied.succeeded


def test_what_the_brokers_refuse_when_asked_is_not_begun_and_stops_nothing_else(
    bench: Workbench, topic_prefix: str
) -> None:
    bench.bring(orders(topic_prefix))
    tiered = orders(topic_prefix, 6, remote_storage_enable="true")
    others = [
        spec(f"{topic_prefix}a", partitions=1, replication_factor=1),
        spec(f"{topic_prefix}z", partitions=1, replication_factor=1),
    ]
    # A plan of somebody who may not read the brokers' own settings.
    applied = bench.apply(bench.plan(tiered, *others, broker_settings={}))
    assert outcomes(applied) == {
        tiered.name: "failed",
        others[0].name: "done",
        others[1].name: "done",
    }
    assert texts(applied)[tiered.name] == (
        "the brokers refuse it: Tiered Storage functionality is disabled in the broker. "
        "Topic cannot be configured with remote log storage."
    )
    assert not applied.succeeded
    assert len(bench.topics(tiered.name)[tiered.name].assignment) == 3


class AfterValidation:
    """Does something once the brokers have accepted what they were asked about."""

    def __init__(self, bench: Workbench, *topics: NewTopic) -> None:
        self.bench = bench
        self.topics = list(topics)

    def __call__(self, answered: StepAnswered) -> None:
        if answered.phase == "validate" and self.topics:
            assert answered.kind is AnswerKind.ACCEPTED
            for answer in self.bench.others.create_topics(self.topics).values():
                answer.result(15)
            self.topics = []


def test_a_topic_that_somebody_creates_otherwise_meanwhile_fails_alone(
    bench: Workbench, topic_prefix: str
) -> None:
    wished = orders(topic_prefix)
    other = spec(f"{topic_prefix}other", partitions=1, replication_factor=1)
    meanwhile = AfterValidation(bench, NewTopic(wished.name, 1, 1))
    applied = bench.apply(bench.plan(wished, other), observe=meanwhile)
    assert outcomes(applied) == {wished.name: "failed", other.name: "done"}
    assert texts(applied)[wished.name] == (
        f"{wished.name}: it was created since the plan was made with 1 partition (planned: 3)"
    )
    assert not applied.succeeded


def test_a_topic_that_somebody_creates_smaller_meanwhile_is_not_expanded(
    bench: Workbench, topic_prefix: str
) -> None:
    wished = orders(topic_prefix)
    plan = bench.plan(wished)
    assert plan.topics[0].after is not None
    rows = [list(row) for row in plan.topics[0].after.assignment[:2]]
    smaller = NewTopic(wished.name, num_partitions=2, replica_assignment=rows)
    applied = bench.apply(plan, observe=AfterValidation(bench, smaller))
    assert outcomes(applied) == {wished.name: "failed"}
    assert len(bench.topics(wished.name)[wished.name].assignment) == 2


def test_a_topic_that_somebody_creates_just_so_meanwhile_is_done(
    bench: Workbench, topic_prefix: str
) -> None:
    wished = orders(topic_prefix)
    plan = bench.plan(wished)
    assert plan.topics[0].after is not None
    rows = [list(row) for row in plan.topics[0].after.assignment]
    same = NewTopic(wished.name, num_partitions=len(rows), replica_assignment=rows)
    applied = bench.apply(plan, observe=AfterValidation(bench, same))
    assert outcomes(applied) == {wished.name: "done"}


def test_an_empty_plan_asks_for_nothing(bench: Workbench, topic_prefix: str) -> None:
    bench.bring(orders(topic_prefix))
    steps: list[StepAnswered] = []
    applied = bench.apply(bench.plan(orders(topic_prefix)), observe=steps.append)
    assert (applied.outcomes, steps, applied.succeeded) == ((), [], True)


def test_every_step_is_told_of(bench: Workbench, topic_prefix: str) -> None:
    bench.bring(orders(topic_prefix))
    new = spec(f"{topic_prefix}new", partitions=2, replication_factor=3)
    steps: list[StepAnswered] = []
    bench.apply(
        bench.plan(orders(topic_prefix, 4, retention_ms="60000"), new), observe=steps.append
    )
    told = [(step.phase, step.topic.removeprefix(topic_prefix)) for step in steps]
    assert sorted(told[:3]) == [("validate", "new"), ("validate", "orders"), ("validate", "orders")]
    assert told[3:6] == [("create", "new"), ("expand", "orders"), ("configure", "orders")]
    assert sorted(told[6:]) == [("verify", "new"), ("verify", "orders")]
    assert {step.kind for step in steps} == {AnswerKind.ACCEPTED}
