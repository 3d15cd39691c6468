"""The text of a plan: whole blocks as people see them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from shorthand import (
    CATALOGUE,
    HERE,
    NOW_MS,
    ONE,
    brokers,
    cluster,
    may_move,
    plan,
    rows,
    spec,
    topic,
    unused_cluster,
)

from reconciler.changes.build import assemble_plan
from reconciler.changes.topics import diff_topics
from reconciler.errors import Finding, Severity
from reconciler.model.cluster import Broker
from reconciler.model.plan import Commit, Level, LevelResult
from reconciler.planfile.codec import fingerprint_plan
from reconciler.show.markdown.page import render_markdown
from reconciler.show.text import render_text

if TYPE_CHECKING:
    from reconciler.model.cluster import ClusterState, TopicSpec
    from reconciler.model.plan import Plan

SIX = brokers("a", "a", "b", "b", "c", "c")


def lines(made: Plan) -> list[str]:
    return render_text(made).splitlines()


def block(wished: TopicSpec, state: ClusterState) -> list[str]:
    """Return the block of the one topic of a plan."""
    return render_text(plan([wished], state)).split("\n\n")[1].splitlines()


def test_the_headline_tells_the_cluster_and_the_estate() -> None:
    made = plan([spec()], cluster(topic(), nodes=SIX), files=61)
    assert lines(made)[0] == ("prod · cluster-1 · 6 brokers in 3 racks · 1 topic from 61 files")


@pytest.mark.parametrize("wished", [[], [spec(partitions=5)], [spec(partitions=1)]])
@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([Broker(1)], []),
        ([Broker(1), Broker(2, alive=False)], ["Broker 2 is dead and takes nothing new."]),
        (
            [Broker(1), Broker(2, cordoned=True), Broker(3, cordoned=True)],
            ["Brokers 2, 3 are cordoned and take nothing new."],
        ),
        (
            [Broker(1), Broker(2, cordoned=True), Broker(3, alive=False)],
            [
                "Broker 3 is dead and takes nothing new.",
                "Broker 2 is cordoned and takes nothing new.",
            ],
        ),
        (
            [Broker(number, alive=number < 2) for number in range(1, 26)],
            [
                f"Brokers {', '.join(map(str, range(2, 22)))} and 4 more are dead "
                "and take nothing new."
            ],
        ),
    ],
)
def test_every_plan_names_dead_and_cordoned_brokers(
    nodes: list[Broker], said: list[str], wished: list[TopicSpec]
) -> None:
    """Be it one without changes, with a change, or with a refusal."""
    made = plan(wished, cluster(topic("1 1 1"), nodes=nodes))
    assert render_text(made).split("\n\n")[0].splitlines()[1:] == said
    told = [part for part in render_markdown(made).split("\n\n") if "nothing new.**" in part]
    assert told == [f"**{line}**" for line in said]


def test_racks_that_are_not_there_are_not_counted() -> None:
    assert lines(plan([], cluster(), files=1))[0] == (
        "prod · cluster-1 · 3 brokers · 0 topics from 1 file"
    )


def test_nothing_to_do_is_no_changes() -> None:
    assert lines(plan([spec()], cluster(topic())))[2:] == ["No changes. 1 topic as specified"]


def test_unmanaged_topics_are_counted_after_no_changes() -> None:
    state = cluster(topic(), topic(name="x"), topic(name="y"))
    assert lines(plan([spec()], state))[-1] == (
        "No changes. 1 topic as specified · 2 live topics are unmanaged"
    )


@pytest.mark.parametrize(
    ("found", "records"),
    [
        ({}, "none"),
        ({"ends": (7, 0)}, "none any more"),
        (
            {"ends": (7, 0), "records": 1234, "newest_ms": NOW_MS - 8 * 86_400_000},
            "up to 1,234, the newest of 2027-01-07 08:00 UTC",
        ),
    ],
)
def test_a_deletion(found: dict[str, Any], records: str) -> None:
    made = plan([spec(absent=True)], unused_cluster(topic("1,2 2,3"), **found), guards=ONE)
    assert render_text(made).split("\n\n")[1].splitlines() == [
        "- delete    shop.orders                      2 partitions, 4 replicas       "
        "topics/shop.yaml:3",
        f"            records                          {records}",
        "            risk  data-loss                  the topic is deleted permanently, with its "
        "2 partitions and every record in them; acknowledged",
    ]
    assert "1 to delete" in lines(made)


def test_strangers_are_named_where_that_is_asked_for() -> None:
    state = cluster(topic(), topic(name="y"), topic(name="x"))
    assert render_text(plan([spec()], state), unmanaged=True).splitlines()[2:5] == [
        "2 live topics are unmanaged:",
        "            x",
        "            y",
    ]
    none = render_text(plan([spec()], cluster(topic())), unmanaged=True)
    assert "No live topic is unmanaged." in none


def test_a_new_topic() -> None:
    config = {"retention.ms": "604800000", "compression.type": "zstd"}
    wished = spec(partitions=12, replication_factor=3, config=config)
    assert block(wished, cluster(nodes=SIX)) == [
        "+ create    shop.orders                      12 partitions × 3 replicas    "
        " topics/shop.yaml:3",
        "            compression.type                 zstd",
        "            retention.ms                     7d (604800000)",
        "            placement                        leaders 2, replicas 6 per broker, racks even",
    ]


@pytest.mark.parametrize(
    ("racks", "placed", "said"),
    [
        ("aabb", "1,3 2,4 3,1 4,2", "replicas 2 per broker, racks even"),
        ("aab", "1,3 2,3 3,1 3,2", "replicas 2..4 per broker, racks even (4 each)"),
        ("abb", "1,2 3,1 2,3 3,2", "replicas 2..3 per broker, racks 2..6"),
        ("aaa", "1,2 2,3 3,1", "replicas 2 per broker"),
    ],
)
def test_racks_are_told_where_there_are_some(racks: str, placed: str, said: str) -> None:
    state = cluster(nodes=brokers(*racks))
    placement = block(spec(assignment=rows(placed)), state)[1]
    assert placement.endswith(said)


def test_what_a_dead_broker_holds_is_still_in_its_rack() -> None:
    nodes = (*brokers("a", "b"), Broker(3, "b", alive=False))
    wished = spec(assignment=rows("1,2 3,1 2,1"))
    placement = block(wished, cluster(topic("1,2 3,1"), nodes=nodes))[1]
    assert "replicas 2..3 per broker, racks even (before:" in placement


def test_an_expansion_with_its_risk() -> None:
    assert block(spec(partitions=5), cluster(topic("1 2 3"))) == [
        "~ expand    shop.orders                      3 → 5 partitions              "
        " topics/shop.yaml:3",
        "            placement                        leaders 1..2, replicas 1..2 per broker "
        "(before: leaders 1, replicas 1)",
        "            risk  ordering                   keys move to other partitions; "
        "not acknowledged",
    ]


def test_a_config_with_its_risk() -> None:
    live = topic(config={"retention.ms": "604800000", "flush.ms": "1"})
    wished = spec(
        config={"retention.ms": "86400000", "segment.ms": "90000"},
        acknowledge=frozenset({"data-loss"}),
    )
    assert block(wished, cluster(live)) == [
        "~ configure shop.orders                                                    "
        " topics/shop.yaml:3",
        "            flush.ms                         1 → unset",
        "            retention.ms                     7d (604800000) → 1d (86400000)",
        "            segment.ms                       not set → 90s (90000)",
        "            risk  data-loss                  records older than 1d (86400000) are "
        "deleted; acknowledged",
    ]


def test_a_topic_that_grows_and_is_configured_is_one_block_of_two_steps() -> None:
    wished = spec(partitions=4, config={"flush.ms": "1"})
    titles = [line for line in block(wished, cluster(topic())) if not line.startswith(" ")]
    assert titles == [
        "~ expand    shop.orders                      3 → 4 partitions              "
        " topics/shop.yaml:3",
        "~ configure shop.orders",
    ]


def test_a_refusal_tells_what_and_the_way_out() -> None:
    assert block(spec(partitions=8), cluster(topic("1 " * 12))) == [
        "x refuse    shop.orders                                                    "
        " topics/shop.yaml:3",
        "            partitions                       12 → 8                        "
        " topics/shop.yaml:3",
        "            12 → 8 partitions: Kafka cannot remove partitions.",
        "            Put 12 back, or create a new topic and move its producers and consumers. "
        "[partitions-never-shrink]",
    ]


def test_a_refusal_that_begins_with_a_field_keeps_its_spelling() -> None:
    text = render_text(plan([spec(partitions=1, replication_factor=9)], cluster()))
    assert "\n            replication_factor 9 exceeds the 3 brokers" in text


def test_a_topic_with_a_note_alone_is_kept() -> None:
    live = topic(config={"odd.key": None})
    assert block(spec(), cluster(live)) == [
        "= keep      shop.orders                                                    "
        " topics/shop.yaml:3",
        "            note: odd.key is set on the topic, though the brokers do not know that key; "
        "kafka-configs --delete-config removes it [not-managed]",
    ]


@pytest.mark.parametrize(
    ("wished", "head"),
    [
        (spec(partitions=3, config={"flush.ms": "1"}, owner="shop\x1b"), "~ expand    shop.orders"),
        (spec(partitions=1, owner="shop\x1b"), "x refuse    shop.orders"),
        (spec(owner="shop\x1b"), "= keep      shop.orders"),
    ],
)
def test_the_first_line_of_a_topic_names_its_owner(wished: TopicSpec, head: str) -> None:
    shown = block(wished, cluster(topic("1 2", config={"odd.key": None})))
    assert shown[0].startswith(head)
    assert shown[0].endswith(r"topics/shop.yaml:3 · shop\x1b")
    assert [line for line in shown if r"shop\x1b" in line] == shown[:1]


def test_a_refused_topic_tells_no_risks() -> None:
    live = topic("1,2 2", config={"cleanup.policy": "compact"})
    wished = spec(partitions=3, config={"cleanup.policy": "compact"})
    assert "risk  " not in render_text(plan([wished], cluster(live)))


def test_the_closing_counts_sum_up_and_names_the_plan() -> None:
    wished = [
        spec("new", partitions=3, replication_factor=1),
        spec("grown", partitions=3),
        spec("tuned", config={"flush.ms": "1"}),
        spec("shrunk", partitions=1),
        spec("same"),
    ]
    live = [topic("1 2", name) for name in ("grown", "tuned", "shrunk", "same", "stranger")]
    made = plan(wished, cluster(*live))
    assert lines(made)[-5:] == [
        "1 to create, 1 to expand, 1 to configure, 1 refused, 1 unchanged "
        "· 1 live topic is unmanaged",
        "size: 1 topic, 4 partitions, 4 replicas added",
        "cluster: leaders 0..5 → 2..6, replicas 0..5 → 2..6 per broker",
        "placement: as even as possible",
        f"fingerprint {fingerprint_plan(made)}",
    ]


def test_a_balance_that_does_not_change_is_not_told() -> None:
    nodes = brokers(None, None)
    config_only = plan([spec(config={"flush.ms": "1"})], cluster(topic("1 2"), nodes=nodes))
    assert lines(config_only)[-2:] == [
        "1 to configure",
        f"fingerprint {fingerprint_plan(config_only)}",
    ]
    assert "leaders" not in render_markdown(config_only)
    assert "unchanged" not in render_markdown(config_only)


def test_a_topic_that_lies_as_evenly_as_before_does_not_repeat_it() -> None:
    wished = spec(assignment=rows("1,2 2,1 1,2"))
    live = topic("1,2 2,1", in_sync=rows("1,2 2,1"))
    (placement,) = (line for line in block(wished, cluster(live)) if " placement " in line)
    assert "(before: " in placement
    same = plan([spec(partitions=3)], cluster(topic("1 2"), nodes=brokers(None, None)))
    topics = tuple(replace(t, balance_before=t.balance_after) for t in same.topics)
    assert "(before: " not in render_text(replace(same, topics=topics))


def test_notes_of_the_plan_have_a_block() -> None:
    note = Finding("estate-empty", "no topics", "write one", HERE, Severity.WARNING)
    text = render_text(plan([], cluster(), notes=[note]))
    assert text.split("\n\n")[1] == "warning: no topics; write one [estate-empty]"


def test_colour_adds_codes_and_nothing_else() -> None:
    live = [topic("1 2", "a"), topic("1", "b"), topic("1", "c", config={"odd.key": None})]
    wished = [
        spec("a", partitions=1),
        spec("b", partitions=2, config={"flush.ms": "1"}),
        spec("c"),
        spec("d", assignment=rows("1,2")),
    ]
    made = plan(wished, cluster(*live))
    coloured = render_text(made, colour=True)
    assert coloured != render_text(made)
    assert re.sub(r"\x1b\[\d+m", "", coloured) == render_text(made)


@pytest.mark.parametrize("specs", [[], [spec(partitions=1, replication_factor=1)]])
def test_the_text_ends_in_one_newline(specs: list[TopicSpec]) -> None:
    text = render_text(plan(specs, cluster()))
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_no_line_ends_in_blanks() -> None:
    wished = [spec("a", partitions=2, replication_factor=1), spec("b", config={"flush.ms": "1"})]
    text = render_text(plan(wished, cluster(topic("1", "b"))))
    assert [line for line in text.splitlines() if line != line.rstrip()] == []


def test_a_level_that_may_not_be_the_best_is_named() -> None:
    made = plan([spec("made", partitions=3, replication_factor=1)], cluster())
    open_end = LevelResult(Level.CLUSTER_REPLICAS, reached=1020, bound=1000, skew=1)
    said = lines(replace(made, levels=(*made.levels[:3], open_end)))[-2]
    assert said == "placement: nearly as even as possible (replicas of the cluster)"


@pytest.mark.parametrize(
    ("dirty", "beyond"), [(False, ""), (True, ", and changes that are not committed")]
)
@pytest.mark.parametrize("partitions", [1, 2])
def test_the_commit_of_the_specs_is_said(dirty: bool, beyond: str, partitions: int) -> None:
    made = plan([spec(partitions=partitions)], cluster(topic("1")))
    made = replace(made, commit=Commit("ab" * 20, dirty))
    assert f"specs of commit ababababab{beyond}" in lines(made)


def test_topics_whose_moves_are_pending_are_not_said_to_be_as_specified() -> None:
    state = cluster(topic("1 2"), topic("1,2 2,1", name="shop.other"))
    wished = [spec(replication_factor=2), spec("shop.other", replication_factor=2)]
    diffs = diff_topics(wished, state, CATALOGUE, moves=may_move())
    text = render_text(assemble_plan("prod", diffs, state))
    assert "No changes. 1 topic as specified · moves of 1 topic are pending" in text


def test_the_description_of_a_new_topic_is_one_line_below_its_title() -> None:
    wished = spec(partitions=1, replication_factor=1, description="Orders,\n  once \x1b[1m paid.\n")
    assert block(wished, cluster())[1] == f"{'':12}{'description':<32} Orders, once \\x1b[1m paid."


def test_a_long_description_is_cut() -> None:
    wished = spec(partitions=1, replication_factor=1, description="words " * 30_000)
    made = plan([wished], cluster())
    for shown in (render_text(made), render_markdown(made)):
        assert len(shown) < 5_000
        assert "words words" in shown
        assert re.search(r"words words( \w*)?…", shown)
    assert made.topics[0].description == wished.description


def test_an_empty_value_is_shown_as_one() -> None:
    state = cluster(topic(config={"cleanup.policy": ""}))
    text = render_text(plan([spec(config={"cleanup.policy": "delete"})], state))
    assert "'' → delete" in text


def test_the_description_of_a_topic_that_exists_is_not_shown() -> None:
    made = plan([spec(partitions=4, description="Known.")], cluster(topic()))
    assert "Known." not in render_text(made)
    assert made.topics[0].description is None
