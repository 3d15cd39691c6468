"""The comment: what is on it, in which order, and what goes when there is too much."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from shorthand import ONE, brokers, cluster, plan, spec, topic, unused_cluster

from reconciler.errors import Finding, Location, Severity
from reconciler.model import (
    AddPartitions,
    Commit,
    Guards,
    Plan,
    PlannedTopic,
    Risk,
    RiskNote,
    Scope,
    TopicImage,
)
from reconciler.plan import fingerprint_plan, steps_of
from reconciler.plan.markdown import COMMENT_LIMIT, render_markdown

if TYPE_CHECKING:
    from collections.abc import Iterable

GOLDEN = Path(__file__).parent / "small_plan.md"
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


def test_a_small_plan_as_it_is_kept() -> None:
    assert render_markdown(small_plan(), saved="plan.json") == GOLDEN.read_text(encoding="utf-8")


def test_it_begins_with_the_marker_of_its_cluster() -> None:
    made = Plan("a b-->|", None, (), ())
    first = render_markdown(made).splitlines()[0]
    assert first == "<!-- reconciler:plan cluster=a%20b--%3E%7C -->"


def test_no_changes_are_said_in_few_words() -> None:
    made = plan([spec()], cluster(topic()), files=1)
    assert render_markdown(made).splitlines()[1:] == [
        "### Kafka plan for `prod`: no changes",
        "",
        "cluster-1 · 3 brokers · 1 topic from 1 file · all as specified",
        "",
        "---",
        f"<sub>Fingerprint `{fingerprint_plan(made)}`</sub>",
    ]


def test_refusals_stand_before_risks_and_those_before_changes() -> None:
    text = render_markdown(small_plan())
    places = [text.index(part) for part in ("[!CAUTION]", "[!WARNING]", "| Topic |", "<details>")]
    assert places == sorted(places)


def test_deletions_are_the_first_danger() -> None:
    state = unused_cluster(topic("1,2 2,3", "old"), topic("1 2", "small"), records=9)
    made = plan([spec("old", absent=True), spec("small", partitions=1)], state, guards=ONE)
    text = render_markdown(made)
    alarm = "> [!CAUTION]\n> **1 topic is deleted for good**, with every record it holds."
    assert text.index(alarm) < text.index("**1 topic is refused.**")
    assert "| `old` | 2 partitions, 4 replicas | up to 9 | `topics/shop.yaml:3` |" in text
    assert "| &minus;&nbsp;delete | `old` | 2 partitions, 4 replicas | data-loss, ack" in text
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


def test_the_commit_of_the_specs_is_named_so_that_it_becomes_a_link() -> None:
    made = replace(small_plan(), commit=Commit("ab" * 20))
    assert "<sub>Specs of commit ababababab</sub>" in render_markdown(made)


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


def many(
    changes: int, refusals: int = 0, *, name: str = "team-{0:02}.domain.events-{1}"
) -> Iterable[PlannedTopic]:
    """Yield topics that grow, every third at the risk of losing data too, and refused ones."""
    before = TopicImage("id", ((1, 2, 3),) * 6, {"retention.ms": "604800000"})
    after = TopicImage("id", ((1, 2, 3),) * 9, {"retention.ms": "86400000"})
    for n in range(changes):
        risks = [RiskNote(Risk.ORDERING, "keys move to other partitions", acknowledged=n % 2 == 0)]
        if n % 3 == 0:
            risks.append(
                RiskNote(
                    Risk.DATA_LOSS,
                    f"records older than {n % 90 + 1}d are deleted",
                    acknowledged=True,
                )
            )
        where = Location(f"topics/team-{n % 60:02}.yaml", n + 1)
        named = name.format(n % 60, n)
        yield PlannedTopic(named, where, before, after, tuple(risks))
    for n in range(refusals):
        where = Location("topics/refused.yaml", n + 1)
        what = f"{n + 2} → {n + 1} partitions: Kafka cannot remove partitions"
        refusal = Finding("partitions-never-shrink", what, f"put {n + 2} back", where)
        yield PlannedTopic(f"refused-{n}", where, before, before, (), (refusal,))


def big_plan(changes: int, refusals: int, **more: str) -> Plan:
    topics = sorted(many(changes, refusals, **more), key=lambda planned: planned.name)
    return Plan("prod-eu", "5L6g3nShT-eMCtK--X86sw", SIX, tuple(topics), files=60)


def test_two_thousand_changes_keep_every_refusal_and_every_risk() -> None:
    made = big_plan(1_900, 100)
    text = render_markdown(made, saved="plan.json")
    assert len(text.encode()) <= COMMENT_LIMIT
    refused = {planned.name for planned in made.topics if planned.refusals}
    losing = {p.name for p in made.topics for n in p.risks if n.risk is Risk.DATA_LOSS}
    told = set(re.findall(r"`([^`]+)`", text))
    assert (len(refused), len(losing)) == (100, 634)
    assert refused | losing <= told
    assert "> - **data-loss**, acknowledged in 634 topics: for example " in text
    assert "> - **ordering, mind this** in 950 topics: keys move" in text
    assert "> - **ordering**, acknowledged in 950 topics: keys move" in text
    assert "<summary>1,900 changes in 60 files</summary>" in text
    assert "| `topics/team-00.yaml` | 0 | 32 | 32 |" in text
    assert "**Left out to fit:** most names of 1,900 topics at risk; the names of" in text
    assert "`reconciler show plan.json` tells all of it" in text


def test_names_that_alone_would_not_fit_are_counted() -> None:
    made = big_plan(1_900, 100, name="x" * 200 + "{0}-{1}")
    text = render_markdown(made)
    assert len(text.encode()) <= COMMENT_LIMIT
    assert "and 624 more" in text
    assert "most names of 1,900 topics at risk" in text


def test_many_of_a_kind_are_folded_below_a_line_that_counts_them() -> None:
    text = render_markdown(big_plan(60, 21))
    alert, _, rest = text.partition("<details>")
    assert "and 11 more" in alert
    assert "and 20 more" in rest.partition("<details>")[0]
    assert "<summary>21 refused topics</summary>" in text
    assert "<summary>60 changes</summary>" in text
    assert "Left out" not in render_markdown(big_plan(60, 21), limit=1 << 20)


def test_a_wider_limit_tells_more() -> None:
    made = big_plan(300, 0)
    assert len(render_markdown(made, limit=1 << 20)) > len(render_markdown(made))
    assert "Left out" not in render_markdown(made, limit=1 << 20)


def test_details_are_a_beginning_of_the_list_with_the_risky_first() -> None:
    calm = [
        PlannedTopic(p.name.replace("team", "calm"), p.location, p.before, p.after)
        for p in many(200)
    ]
    made = Plan("prod", None, SIX, (*calm, *many(60)))
    text = render_markdown(made)
    detailed = re.findall(r"<summary><code>([a-z]+)-", text)
    assert detailed.count("team") == 60
    assert 0 < detailed.count("calm") < 200


@pytest.mark.parametrize("severity", Severity)
def test_equal_notes_are_told_once(severity: Severity) -> None:
    note = Finding("not-managed", "odd.key is set", severity=severity)
    image = TopicImage(None, ((1,),), {})
    topics = [
        PlannedTopic(name, Location("t.yaml", 1), image, image, notes=(note,)) for name in "ab"
    ]
    text = render_markdown(Plan("prod", None, (), tuple(topics)))
    assert f"- {severity}: odd.key is set `not-managed` `a`, `b`" in text
    assert not any(isinstance(step, AddPartitions) for t in topics for step in steps_of(t))
