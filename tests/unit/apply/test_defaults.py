"""The brokers' defaults count when a plan is applied: they may be others than when it was made."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from shorthand import HERE, cluster, plan, spec, topic

from reconciler.apply.engine import run_plan
from reconciler.errors import StalePlanError
from reconciler.model.cluster import EMPTY, ClusterState, TopicState, TopicUsage
from reconciler.model.outcomes import Answer, AnswerKind
from reconciler.model.plan import Plan
from reconciler.model.steps import ConfigureTopic, Step

MIN_INSYNC = "min.insync.replicas"
WEEK = {"retention.ms": "604800000"}
MONTH = {"retention.ms": "2592000000"}


@dataclass
class Live:
    """A cluster of one view that takes configs, and a clock for it.

    As brokers do, it shows `defaults` only with the configs of a topic.
    """

    topics: dict[str, TopicState]
    defaults: dict[str, str] = field(default_factory=dict)

    def state(self) -> ClusterState:
        return cluster(*self.topics.values(), defaults=self.defaults)

    def apply(self, made: Plan) -> list[str]:
        return [str(outcome.kind) for outcome in run_plan(made, self, self, self).outcomes]

    def read_cluster(self, config_of: Collection[str] | None = None) -> ClusterState:
        shown = config_of is None or not self.topics.keys().isdisjoint(config_of)
        return replace(self.state(), config_defaults=self.defaults if shown else EMPTY)

    def read_topic_ids(self, names: Collection[str]) -> Mapping[str, str]:
        return {name: str(self.topics[name].topic_id) for name in names}

    def read_views(
        self, names: Collection[str], with_config: Collection[str] = ()
    ) -> Mapping[int, Mapping[str, TopicState]]:
        del with_config
        return {1: {name: self.topics[name] for name in names}}

    def read_usage(self, names: Collection[str]) -> Mapping[str, TopicUsage]:
        del names
        return {}

    def send(self, steps: Sequence[Step], *, validate_only: bool = False) -> Mapping[str, Answer]:
        for step in steps:
            assert isinstance(step, ConfigureTopic)
            live = self.topics[step.topic]
            config = {key: value for key, value in live.config.items() if key not in step.unset}
            if not validate_only:
                self.topics[step.topic] = replace(live, config={**config, **step.set})
        return {step.topic: Answer(AnswerKind.ACCEPTED) for step in steps}

    def monotonic(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        raise AssertionError(f"nothing to wait for, and it waits for {seconds} s")


def test_a_default_that_becomes_explicit_does_not_rise_while_replicas_are_out_of_sync() -> None:
    live = Live({"a": topic("1,2", "a", in_sync=((1, 2),))}, {MIN_INSYNC: "2"})
    made = plan([spec("a", config={MIN_INSYNC: "2"})], live.state())
    live.topics["a"] = replace(live.topics["a"], in_sync=((1,),))
    assert live.apply(made) == ["done"]


def test_an_override_below_the_default_is_not_removed_while_replicas_are_out_of_sync() -> None:
    low = topic("1,2", "a", in_sync=((1, 2),), config={MIN_INSYNC: "1"})
    live = Live({"a": low}, {MIN_INSYNC: "2"})
    made = plan([spec("a")], live.state())
    live.topics["a"] = replace(low, in_sync=((1,),))
    with pytest.raises(StalePlanError) as caught:
        live.apply(made)
    assert [found.what for found in caught.value.findings] == [
        "a: partition 0 has fewer than 2 replicas in sync, so every acks=all write to it would "
        "fail with min.insync.replicas 2"
    ]
    assert live.topics["a"].config == {MIN_INSYNC: "1"}


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (MONTH, "it is 30d (2592000000) now"),
        ({"retention.ms": "3600000"}, "it is 1h (3600000) now"),
        ({}, "brokers differ in it now"),
    ],
)
def test_a_default_that_is_another_by_now_does_not_become_explicit(
    now: dict[str, str], said: str
) -> None:
    """The plan says that nothing changes. By now it would delete three weeks of records."""
    names = "abcde"
    live = Live({name: topic("1,2", name) for name in names}, WEEK)
    wished = [spec(name, config={**WEEK, "cleanup.policy": "delete"}) for name in names]
    live.defaults |= {"cleanup.policy": "delete"}
    made = plan(wished, live.state())
    live.defaults = {"cleanup.policy": "delete", **now}
    with pytest.raises(StalePlanError) as caught:
        live.apply(made)
    assert [str(found) for found in caught.value.findings] == [
        f"{HERE}: a, b, c and 2 more: the brokers' default of retention.ms was 7d (604800000) "
        f"when the plan was made, and {said}; plan again [plan-stale]"
    ]
    assert all(each.config == {} for each in live.topics.values())


def test_a_default_may_change_where_it_is_explicit_already() -> None:
    live = Live({"a": topic("1,2", "a"), "b": topic("1,2", "b")}, WEEK)
    made = plan([spec("a", config=WEEK), spec("b", config=MONTH)], live.state())
    live.topics["a"] = replace(live.topics["a"], config=WEEK)
    live.defaults = MONTH
    assert live.apply(made) == ["already done", "done"]


def test_a_default_may_be_spelled_otherwise() -> None:
    live = Live({"a": topic("1,2", "a")}, {"cleanup.policy": "compact,delete"})
    made = plan([spec("a", config={"cleanup.policy": "delete,compact"})], live.state())
    assert made.topics[0].explicit
    assert live.apply(made) == ["done"]
