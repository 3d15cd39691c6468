"""Written values that are in force by default are set, so that they stay in force."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from shorthand import cluster, spec, topic

from reconciler.changes.plan import plan_cluster
from reconciler.errors import Location
from reconciler.model.cluster import ClusterState, Guards, TopicSpec
from reconciler.model.plan import Plan
from reconciler.model.steps import ConfigureTopic, steps_of
from reconciler.planfile.codec import decode_plan, encode_plan
from reconciler.show.markdown.page import render_markdown
from reconciler.show.text import render_text
from reconciler.spec.entry import ClusterEntry

PROD = ClusterEntry("prod", Location("topics/clusters.yaml", 3, 3))
WEEK, HOUR = "604800000", "3600000"
DEFAULTS = {"retention.ms": WEEK, "cleanup.policy": "delete", "min.insync.replicas": "2"}


def make_plan(
    *wished: TopicSpec, state: ClusterState | None = None, entry: ClusterEntry = PROD
) -> Plan:
    return plan_cluster(entry, wished, state or cluster(topic(), defaults=DEFAULTS))


def set_by(made: Plan) -> list[dict[str, str]]:
    steps = (step for planned in made.topics for step in steps_of(planned))
    return [dict(step.set) for step in steps if isinstance(step, ConfigureTopic)]


def apply(made: Plan, state: ClusterState, defaults: dict[str, str]) -> ClusterState:
    """Return the state after a plan of configs, on brokers with these defaults."""
    after = {t.name: t.after.config for t in made.topics if t.after}
    topics = {n: replace(t, config=after.get(n, t.config)) for n, t in state.topics.items()}
    return replace(state, topics=topics, config_defaults=defaults)


def test_a_value_is_set_where_the_default_is_the_same() -> None:
    made = make_plan(spec(config={"retention.ms": WEEK}))
    assert set_by(made) == [{"retention.ms": WEEK}]
    (planned,) = made.topics
    assert (planned.risks, planned.refusals, planned.notes) == ((), (), ())
    assert planned.explicit == ("retention.ms",)


def test_the_value_holds_when_the_default_changes_and_the_second_plan_is_empty() -> None:
    state = cluster(topic(), defaults=DEFAULTS)
    wished = spec(config={"retention.ms": WEEK})
    after = apply(make_plan(wished, state=state), state, {**DEFAULTS, "retention.ms": HOUR})
    assert after.topics["shop.orders"].config == {"retention.ms": WEEK}
    assert make_plan(wished, state=after).topics == ()


def test_a_config_that_no_file_names_is_not_touched() -> None:
    assert make_plan(spec()).topics == ()
    assert make_plan(spec(config={"retention.ms": WEEK})).topics[0].explicit == ("retention.ms",)


def test_a_value_with_another_default_is_a_change_as_before() -> None:
    made = make_plan(spec(config={"retention.ms": HOUR}))
    assert [refusal.rule for refusal in made.topics[0].refusals] == ["risk-not-acknowledged"]
    assert made.topics[0].explicit == ()


def test_a_service_that_keeps_no_defaults_gets_none() -> None:
    entry = replace(PROD, keeps_defaults=False)
    assert make_plan(spec(config={"retention.ms": WEEK}), entry=entry).topics == ()
    named = {"retention.ms": WEEK, "compression.type": "zstd"}
    assert set_by(make_plan(spec(config=named), entry=entry)) == [{"compression.type": "zstd"}]


def test_min_insync_above_the_replicas_of_a_topic_is_refused_only_as_a_change() -> None:
    """Where it is the default, it is in force already, and nothing changes."""
    state = cluster(topic("1"), defaults=DEFAULTS)
    made = make_plan(spec(config={"min.insync.replicas": "2"}), state=state)
    assert set_by(made) == [{"min.insync.replicas": "2"}]
    other = make_plan(spec(config={"min.insync.replicas": "3"}), state=state)
    assert [refusal.rule for refusal in other.topics[0].refusals] == ["min-insync-le-replication"]


def test_only_a_freeze_counts_it_as_a_change() -> None:
    names = [f"shop.{n}" for n in range(10)]
    state = cluster(*(topic(name=name) for name in names), defaults=DEFAULTS)
    wished = [spec(name, config={"retention.ms": WEEK}) for name in names]
    for percent, refused in ((10, []), (0, ["guard-max-changed"])):
        entry = replace(PROD, guards=Guards(max_changed_percent=percent))
        made = make_plan(*wished, state=state, entry=entry)
        assert [refusal.rule for refusal in made.refusals] == refused
    more = [spec(name, config={"compression.type": "zstd"}) for name in names[:6]]
    entry = replace(PROD, guards=Guards(max_changed_percent=10))
    made = make_plan(*more, *wished[6:], state=state, entry=entry)
    assert "the plan changes 6 of 10 live topics" in made.refusals[0].what


def test_the_plan_file_keeps_what_becomes_explicit() -> None:
    made = make_plan(spec(config={"retention.ms": WEEK, "compression.type": "zstd"}))
    assert decode_plan(encode_plan(made)).topics[0].explicit == ("retention.ms",)


def many(names: Iterable[str], changed: Iterable[str] = ()) -> Plan:
    state = cluster(*(topic(name=name) for name in [*names, *changed]), defaults=DEFAULTS)
    wished = [spec(name, config={"retention.ms": WEEK}) for name in names]
    other = {"retention.ms": WEEK, "compression.type": "zstd"}
    return make_plan(*wished, *(spec(name, config=other) for name in changed), state=state)


def test_a_few_are_shown_one_by_one() -> None:
    text = render_text(many(["a", "b"], ["c"]))
    assert text.count("7d (604800000) by default → set") == 3
    assert "\n1 to configure, 2 to make explicit\n" in text
    assert "on 2 topics" not in text


def test_many_are_shown_together_by_value() -> None:
    made = many([f"shop.{n}" for n in range(40)], ["changed"])
    text = render_text(made)
    assert text.count("by default → set") == 2  # the topic that changes, and the others together
    assert (
        "~ configure on 40 topics, values of the specs are in force by the brokers' defaults, and "
        "are set explicitly so that they stay in force:\n"
        "            retention.ms                     7d (604800000) by default → set on shop.0, "
        "shop.1, shop.10 and 37 more topics\n"
    ) in text
    assert "1 to configure, 40 to make explicit" in text
    comment = render_markdown(made)
    assert "### Kafka plan for `prod`: 1 to configure, 40 to make explicit" in comment
    assert comment.count("by default → set") == 3  # with the names behind them, folded
    assert "- `retention.ms` 7d by default → set: 40 topics\n" in comment
    assert "<summary>The names of 40 topics</summary>" in comment
    assert "Details of 41 topics" not in comment


def test_the_names_are_left_out_of_a_comment_that_is_too_long() -> None:
    names = [f"{n * 7919 % 99991:05}-{'long' * 45}-{n:05}" for n in range(400)]
    comment = render_markdown(many(names))
    assert len(comment.encode()) <= 65_536
    assert "- `retention.ms` 7d by default → set: 400 topics" in comment
