"""Plans that elect: who can lead, who cannot and why, and what such a file holds."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from shorthand import HERE, cluster, plan, rows, spec, topic

from reconciler.errors import Location, UsageError
from reconciler.model.cluster import Broker, LogDirectory, TopicState
from reconciler.model.plan import Plan
from reconciler.model.steps import ElectLeaders, steps_of
from reconciler.moves.elections import assemble_elections
from reconciler.planfile.codec import decode_plan, encode_plan, fingerprint_plan
from reconciler.show.text import render_text
from reconciler.spec.entry import ClusterEntry

ENTRY = ClusterEntry("lab", Location("topics/clusters.yaml", 2))
BROKERS = (Broker(1), Broker(2), Broker(3, alive=False))


def live(leaders: str, in_sync: str, name: str = "shop.orders", **more: bool) -> TopicState:
    led = tuple(int(leader) for leader in leaders.split())
    return topic("1,2 2,1 3,1", name=name, leaders=led, in_sync=rows(in_sync), **more)


def elect(*topics: TopicState, glob: str = "*") -> Plan:
    state = cluster(*topics, nodes=BROKERS)
    return assemble_elections(ENTRY, [spec(owner="shop")], state, topics=glob)


def test_who_can_lead_is_elected_and_who_cannot_is_named() -> None:
    made = elect(live("2 1 1", "1,2 1 1"))
    (planned,) = made.topics
    assert steps_of(planned) == (ElectLeaders("shop.orders", {0: 1}),)
    assert (planned.location, planned.owner) == (HERE, "shop")
    assert {note.rule for note in planned.notes} == {"election-unable"}
    assert [note.what for note in planned.notes] == [
        "broker 2 is not in sync, so it cannot lead 1 partition",
        "broker 3 is dead, so it cannot lead 1 partition",
    ]


def test_a_preferred_leader_on_a_failed_disk_is_named_with_what_moves_it() -> None:
    disks = LogDirectory("/data", 10**9, 10**8, 0), LogDirectory("/other", None, None, online=False)
    state = cluster(live("2 1 1", "1,2 1 1"), nodes=BROKERS)
    state = replace(state, directories={1: disks[:1], 2: disks})
    made = assemble_elections(ENTRY, [], state)
    failed, _ = made.topics[0].notes
    assert failed.what == (
        "broker 2 is not in sync, and has a failed log directory, so it cannot lead 1 partition"
    )
    assert "reconciler rebalance --offline-replicas" in failed.way_out
    assert [note.rule for note in made.notes] == ["directory-offline"]


def test_leaders_that_lead_are_no_change() -> None:
    made = elect(topic("1,2 2,1", leaders=(1, 2), in_sync=rows("1,2 2,1")))
    assert (made.topics, made.unchanged) == ((), 1)


def test_a_partition_without_a_leader_gets_one() -> None:
    (planned,) = elect(topic("1,2", leaders=(-1,), in_sync=rows("1"))).topics
    assert steps_of(planned) == (ElectLeaders("shop.orders", {0: 1}),)


def test_topics_in_no_file_count_and_internal_ones_do_not() -> None:
    away = live("2 2 1", "1,2 2,1 1", "other")
    inside = live("2 2 1", "1,2 2,1 1", "__consumer_offsets", internal=True)
    (planned,) = elect(away, inside).topics
    assert (planned.name, planned.location, planned.owner) == ("other", ENTRY.location, None)


def test_globs_choose_topics() -> None:
    some = [live("2 2 1", "1,2 2,1 1", name) for name in ("shop.a", "shop.b", "web.a")]
    assert [t.name for t in elect(*some, glob="shop.*").topics] == ["shop.a", "shop.b"]
    assert [t.name for t in elect(*some, glob="*.b,web.*").topics] == ["shop.b", "web.a"]
    with pytest.raises(UsageError, match="no live topic of lab matches --topic 'x'"):
        elect(*some, glob="web.*,x")


def test_the_plan_tells_who_leads_instead_of_whom() -> None:
    text = render_text(elect(live("2 2 1", "1,2 2,1 1")))
    assert "~ elect     shop.orders" in text
    assert "preferred leader of 1 partition" in text
    assert "broker 2 → broker 1 (1 partition)" in text
    assert "1 to elect" in text
    assert "cluster: leaders 1..2 → 1..2" not in text
    assert "from 0 files" not in text


def test_it_is_kept_and_read_again() -> None:
    made = elect(live("2 1 1", "1,2 2,1 1"))
    text = encode_plan(made)
    assert decode_plan(text) == made
    (resource,) = json.loads(text)["resource_changes"]
    assert resource["steps"] == ["elect"]
    assert (resource["change"]["before"]["leaders"], resource["change"]["after"]["leaders"]) == (
        [2, 1, 1],
        [1, 2, 1],
    )


def test_the_fingerprint_covers_who_is_elected() -> None:
    first, second = (elect(live(leaders, "1,2 2,1 1")) for leaders in ("2 1 1", "2 2 1"))
    assert fingerprint_plan(first) != fingerprint_plan(second)


def test_plans_that_elect_nobody_do_not_mention_leaders() -> None:
    made = plan([spec(partitions=3)], cluster(topic("1 2", leaders=(1, 2))))
    (resource,) = json.loads(encode_plan(made))["resource_changes"]
    assert "leaders" not in resource["change"]["before"]
