"""The text of a plan: whole blocks as people see them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from shorthand import (
    NOW_MS,
    ONE,
    brokers,
    cluster,
    plan,
    rows,
    spec,
    topic,
    unused_cluster,
)

from reconciler.model.cluster import Broker, ClusterState, TopicSpec
from reconciler.planfile.codec import decode_plan, encode_plan, fingerprint_plan
from reconciler.show.markdown.page import render_markdown
from reconciler.show.text import render_text

SIX = brokers("a", "a", "b", "b", "c", "c")


def block(wished: TopicSpec, state: ClusterState) -> list[str]:
    """Return the block of the one topic of a plan."""
    return render_text(plan([wished], state)).split("\n\n")[1].splitlines()


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
    assert "1 to delete" in render_text(made).splitlines()


def test_unmanaged_topics_are_named_on_request() -> None:
    state = cluster(topic(), topic(name="y"), topic(name="x"))
    assert render_text(plan([spec()], state), unmanaged=True).splitlines()[2:5] == [
        "2 live topics are unmanaged:",
        "            x",
        "            y",
    ]
    none = render_text(plan([spec()], cluster(topic())), unmanaged=True)
    assert "No live topic is unmanaged." in none


def test_what_a_dead_broker_holds_is_still_in_its_rack() -> None:
    nodes = (*brokers("a", "b"), Broker(3, "b", alive=False))
    wished = spec(assignment=rows("1,2 3,1 2,1"))
    placement = block(wished, cluster(topic("1,2 3,1"), nodes=nodes))[1]
    assert "replicas 2..3 per broker, racks even (before:" in placement


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


def test_a_topic_that_lies_as_evenly_as_before_does_not_repeat_it() -> None:
    wished = spec(assignment=rows("1,2 2,1 1,2"))
    live = topic("1,2 2,1", in_sync=rows("1,2 2,1"))
    (placement,) = (line for line in block(wished, cluster(live)) if " placement " in line)
    assert "(before: " in placement
    same = plan([spec(partitions=3)], cluster(topic("1 2"), nodes=brokers(None, None)))
    topics = tuple(replace(t, balance_before=t.balance_after) for t in same.topics)
    assert "(before: " not in render_text(replace(same, topics=topics))


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


def test_the_description_of_a_new_topic_is_one_line_below_its_title() -> None:
    wished = spec(partitions=1, replication_factor=1, description="Orders,\n  once \x1b[1m paid.\n")
    assert block(wished, cluster())[1] == f"{'':12}{'description':<32} Orders, once \\x1b[1m paid."


def test_labels_are_below_the_title_and_with_the_owner_in_a_comment() -> None:
    wished = spec(
        partitions=1, replication_factor=1, owner="shop", labels={"pii": "true", "seen": ""}
    )
    made = plan([wished], cluster())
    assert block(wished, cluster())[1] == f"{'':12}{'labels':<32} pii: true, seen:"
    assert "| `shop`<br>pii: true<br>seen: |" in render_markdown(made)
    refused = spec(partitions=2, labels={"pii": "true"})
    assert f"{'':12}{'labels':<32} pii: true" in block(refused, cluster(topic()))


def test_labels_change_no_plan_and_no_fingerprint() -> None:
    wished = spec(partitions=4, labels={"tier": "gold"})
    made, bare = (plan([s], cluster(topic())) for s in (wished, replace(wished, labels={})))
    assert fingerprint_plan(made) == fingerprint_plan(bare)
    assert decode_plan(encode_plan(made)) == made
    assert '"labels":{"tier":"gold"}' in encode_plan(made)
    assert '"labels"' not in encode_plan(bare)


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
