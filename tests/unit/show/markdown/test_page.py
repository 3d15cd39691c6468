"""The comment: what is on it, and in which order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from shorthand import ONE, brokers, cluster, plan, spec, topic, unused_cluster

from reconciler.errors import Finding, Location, Severity
from reconciler.model.cluster import Guards
from reconciler.model.plan import Plan, PlannedTopic, Scope, TopicImage
from reconciler.model.steps import ExpandTopic, steps_of
from reconciler.planfile.codec import fingerprint_plan
from reconciler.show.markdown.page import COMMENT_LIMIT, render_markdown

SIX = brokers("a", "a", "b", "b", "c", "c")
BOTH = frozenset({"data-loss", "ordering"})


def small_plan() -> Plan:
    """Return a plan with one of everything."""
    live = [
        topic("1,3 2,4 3,5", "audit_log"),
        topic("1,3 2,4 3,5", "grown"),
        topic("1,3 2,4", "kept", config={"odd.key": None}),
        topic("1,3 2,4", "shop.clicks", config={"retention.ms": "604800000", "flush.ms": "1"}),
        topic("1,3", "legacy"),
    ]
    wished = [
        spec("audit_log", partitions=2),
        spec("grown", partitions=5),
        spec("kept"),
        spec("new", partitions=6, replication_factor=3, config={"compression.type": "zstd"}),
        spec("shop.clicks", config={"retention.ms": "1000"}, acknowledge=BOTH),
    ]
    return plan(wished, cluster(*live, nodes=SIX), files=1)


STAGES = (("dev",), ("staging", "prod"), ("prod_2",))


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        ("dev", "Stage 1 of 3, the first"),
        ("prod", "Stage 2 of 3, after dev"),
        ("prod_2", "Stage 3 of 3, after dev, staging, prod"),
        ("sandbox", ""),
    ],
)
def test_the_stage_of_a_cluster_is_below_the_title(cluster: str, said: str) -> None:
    made = Plan(cluster, None, (), (), stages=STAGES)
    plain = replace(made, stages=())
    assert fingerprint_plan(made) == fingerprint_plan(plain)
    without = render_markdown(plain)
    assert "Stage" not in without
    expected = without.replace("\n\n---", f"\n\n{said}\n\n---") if said else without
    assert render_markdown(made) == expected


def test_many_clusters_before_a_stage_are_counted() -> None:
    stages = (tuple(f"dev-{number}" for number in range(22)), ("prod",))
    made = render_markdown(Plan("prod", None, (), (), stages=stages))
    assert ", dev-19 and 2 more" in made
    assert "dev-20" not in made


def test_it_begins_with_the_marker_of_its_cluster() -> None:
    made = Plan("a b-->|", None, (), ())
    first = render_markdown(made).splitlines()[0]
    assert first == "<!-- reconciler:plan cluster=a%20b--%3E%7C -->"


def alert(what: str, way_out: str) -> Finding:
    where = Location("topics/clusters.yaml", 7)
    return Finding("guard-loosened", what, way_out, where, Severity.WARNING)


def test_alerts_come_before_every_danger() -> None:
    alerts = (alert("the one", "do this"), alert("the other", "do this"), alert("a_b", "do that"))
    text = render_markdown(replace(small_plan(), alerts=alerts))
    said = (
        "> [!CAUTION]\n"
        "> - **The one.** `guard-loosened` `topics/clusters.yaml:7`\n"
        "> - **The other.** `guard-loosened` `topics/clusters.yaml:7`\n>\n> Do this.\n>\n"
        "> - **a_b.** `guard-loosened` `topics/clusters.yaml:7`\n>\n> Do that.\n"
    )
    assert text.index(said) < text.index("[!CAUTION]\n> **1 topic is refused")


def test_alerts_that_do_not_fit_are_counted() -> None:
    alerts = tuple(alert(f"loosened {n} {'x' * 90}", "do this") for n in range(900))
    text = render_markdown(replace(small_plan(), alerts=alerts))
    assert len(text.encode()) <= COMMENT_LIMIT
    assert "> [!CAUTION]\n> **900 alerts**: 900 `guard-loosened`\n" in text
    assert "the words of 900 alerts" in text


def test_deletions_are_the_first_danger() -> None:
    state = unused_cluster(topic("1,2 2,3", "old"), topic("1 2", "small"), records=9)
    made = plan([spec("old", absent=True), spec("small", partitions=1)], state, guards=ONE)
    text = render_markdown(made)
    alarm = "> [!CAUTION]\n> **1 topic is deleted for good**, with every record it holds."
    assert text.index(alarm) < text.index("**1 topic is refused.**")
    assert "| `old` | 2 partitions, 4 replicas | up to 9 | `topics/shop.yaml:3` |" in text
    assert text.count("`old`") == 1
    assert "[!WARNING]" not in text
    assert "Risk: **data-loss** in 1 topic" in text


def test_a_thousand_deletions_are_counted_and_some_are_named() -> None:
    names = [f"{'x' * 150}-{n:04}" for n in range(1_000)]
    state = unused_cluster(*(topic("1", name) for name in names))
    made = plan([spec(n, absent=True) for n in names], state, guards=Guards(max_deletes=1_000))
    text = render_markdown(made)
    assert len(text.encode()) <= COMMENT_LIMIT
    assert "**1,000 topics are deleted for good**" in text
    assert names[0] in text
    assert " and 990 more" in text
    assert "most names of 1,000 topics to delete" in text


def test_a_plan_of_refusals_alone_has_nothing_to_apply() -> None:
    text = render_markdown(plan([spec(partitions=1)], cluster(topic())))
    assert "There is nothing else to apply." in text
    assert "reconciler apply" not in text


def test_a_plan_that_is_not_saved_is_applied_by_its_fingerprint() -> None:
    made = small_plan()
    hint = f"reconciler apply --cluster prod --expect {fingerprint_plan(made)}"
    assert hint in render_markdown(made)


def test_the_command_limits_itself_to_what_the_plan_was_limited_to() -> None:
    made = replace(small_plan(), scope=Scope("shop.*", "origin/main"))
    limits = "--cluster prod --topic 'shop.*' --changed-since origin/main"
    assert f"reconciler apply {limits} --expect {fingerprint_plan(made)}" in render_markdown(made)
    assert fingerprint_plan(made) == fingerprint_plan(small_plan())


def test_a_long_value_is_in_the_details_only() -> None:
    value = ",".join(f"key{n}" for n in range(50))
    live = topic(config={"follower.replication.throttled.replicas": "0:1"})
    made = plan([spec(config={"compression.type": "zstd"})], cluster(live))
    (changed,) = made.topics
    assert changed.after is not None
    image = TopicImage(changed.after.topic_id, changed.after.assignment, {"listed": value})
    long = Plan("prod", None, (), (PlannedTopic("t", changed.location, changed.before, image),))
    row, details = render_markdown(long).split("<details>")
    assert f"not set → ({len(value)} characters)" in row
    assert value not in row
    assert f"+ listed  {value}" in details


@pytest.mark.parametrize("severity", Severity)
def test_equal_notes_are_told_once(severity: Severity) -> None:
    note = Finding("not-managed", "odd.key is set", severity=severity)
    image = TopicImage(None, ((1,),), {})
    topics = [
        PlannedTopic(name, Location("t.yaml", 1), image, image, notes=(note,)) for name in "ab"
    ]
    text = render_markdown(Plan("prod", None, (), tuple(topics)))
    assert f"- {severity}: odd.key is set `not-managed` `a`, `b`" in text
    assert not any(isinstance(step, ExpandTopic) for t in topics for step in steps_of(t))


def owned_plan(*owners: str | None) -> Plan:
    """Return a plan that makes a topic for each owner, and leaves one of another owner as it is."""
    size = {"partitions": 2, "replication_factor": 2}
    wished = [
        *(spec(f"new-{n:02}", owner=owner, **size) for n, owner in enumerate(owners)),
        spec("tuned", config={"flush.ms": "1"}, owner=owners[0]),
        spec("kept", owner="idle"),
    ]
    return plan(wished, cluster(topic("1,2", "kept"), topic("1,2", "tuned")))


def test_several_owners_see_what_each_of_them_gets() -> None:
    lines = render_markdown(owned_plan("shop", None, "a|b")).splitlines()
    start = lines.index("| Owner | Changes | Topics | Partitions | Replicas |")
    assert lines[start + 1 : start + 6] == [
        "|:--|--:|--:|--:|--:|",
        "| <code>a&#124;b</code> | 1 | +1 | +2 | +4 |",
        "| `shop` | 2 | +1 | +2 | +4 |",
        "| no owner | 1 | +1 | +2 | +4 |",
        "",
    ]


def test_refused_and_deleted_topics_are_listed_with_their_owner() -> None:
    state = unused_cluster(topic("1,2 2,3", "old"), topic("1 2", "small"))
    wished = [spec("old", absent=True, owner="shop"), spec("small", partitions=1, owner="a|b")]
    text = render_markdown(plan(wished, state, guards=ONE))
    assert "| Deleted | Owner | Size |" in text
    assert "| `old` | `shop` | 2 partitions, 4 replicas |" in text
    assert "| Refused | Owner | Change |" in text
    assert "| `small` | <code>a&#124;b</code> | `partitions` 2 → 1" in text


def test_an_owner_whose_configs_change_is_named_too() -> None:
    wished = [
        spec("made", owner="audit", partitions=1, replication_factor=1),
        spec("tuned", config={"flush.ms": "1"}, owner="shop"),
    ]
    made = plan(wished, cluster(topic("1,2", "tuned")))
    assert "| `shop` | 1 | – | – | – |" in render_markdown(made)


def test_many_owners_are_folded_and_named_if_they_do_not_fit() -> None:
    made = owned_plan(*(f"team-{n:02}" for n in range(11)))
    assert "<summary>Changes by 11 owners</summary>" in render_markdown(made)
    short = render_markdown(made, limit=1500)
    assert "Changes by 11 owners" not in short
    assert "the changes of 11 owners" in short.partition("**Left out to fit:**")[2]


def test_the_details_of_a_new_topic_begin_with_its_description() -> None:
    wished = spec("new", partitions=1, replication_factor=1, description="What <b>is</b>\nin it.")
    made = plan([wished], cluster())
    summary = "<details><summary><code>new</code> + create</summary>"
    assert f"{summary}\n\nWhat &#60;b&#62;is&#60;/b&#62; in it.\n\n" in render_markdown(made)
