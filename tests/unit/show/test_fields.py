"""The fields of two plans, compared: what differs, and why as far as the plans show it."""

from __future__ import annotations

import pytest
from shorthand import HERE, ONE, cluster, may_move, plan, rows, spec, topic, unused_cluster

from reconciler.model.cluster import ClusterState, TopicSpec
from reconciler.moves.plan import assemble_moves
from reconciler.planfile.approval import pack
from reconciler.show.fields import (
    Kept,
    compare_fields,
    keep_fields,
    list_fields,
    pack_fields,
    unpack_fields,
)
from reconciler.spec.entry import ClusterEntry

EMPTY = cluster()
SIX = cluster(topic("1 2 3 1 2 3", "a"))
EIGHT = cluster(topic("1 2 3 1 2 3 1 2", "a"))
NEW = spec("a", partitions=4, replication_factor=2, config={"flush.ms": "60000"})
GROWN = spec("a", partitions=9)

Planned = tuple["TopicSpec", "ClusterState"]


def differences(approved: Planned | None, now: Planned | None) -> list[tuple[str, str, str, str]]:
    plans = [plan([one[0]], one[1]) if one else plan([], EMPTY) for one in (approved, now)]
    found = list(compare_fields(*map(list_fields, plans)))
    assert {one.topic for one in found} <= {"a"}
    return [(one.field, one.approved, one.now, one.why) for one in found]


def test_a_topic_that_was_expanded_meanwhile() -> None:
    assert differences((GROWN, SIX), (GROWN, EIGHT)) == [
        ("partitions", "6 → 9", "8 → 9", "the topic was expanded meanwhile")
    ]


def test_a_config_that_was_changed_meanwhile_or_by_other_specs() -> None:
    def has(config: dict[str, str]) -> ClusterState:
        return cluster(topic("1", "a", config=config))

    wish = spec("a", config={"flush.ms": "60000"})
    other = spec("a", config={"flush.ms": "1000"})
    assert differences((wish, has({})), (wish, has({"flush.ms": "1"}))) == [
        ("flush.ms", "not set → 1min (60000)", "1 → 1min (60000)", "it was changed meanwhile")
    ]
    assert differences((wish, has({})), (other, has({}))) == [
        ("flush.ms", "not set → 1min (60000)", "not set → 1s (1000)", "the specs are different")
    ]


def test_a_topic_that_was_created_meanwhile_and_one_that_was_deleted() -> None:
    why = "the topic was created meanwhile"
    live = cluster(topic("1,2 2,3", "a", config={"flush.ms": "60000"}))
    assert differences((NEW, EMPTY), (NEW, live)) == [
        ("flush.ms", "not set → 1min (60000)", "no change", why),
        ("partitions", "4", "2 → 4", why),
        ("replication factor", "2", "no change", why),
    ]
    assert ("partitions", "2 → 4", "4", "the topic was deleted meanwhile") in differences(
        (NEW, live), (NEW, EMPTY)
    )


def test_what_only_one_of_the_plans_changes() -> None:
    done = "already done, or no longer specified"
    assert differences((GROWN, SIX), None) == [("partitions", "6 → 9", "no change", done)]
    assert differences(None, (GROWN, SIX)) == [
        ("partitions", "no change", "6 → 9", "the approved plan does not change the topic")
    ]
    both = spec("a", partitions=9, config={"flush.ms": "1"})
    assert differences((both, SIX), (GROWN, SIX)) == [
        ("flush.ms", "not set → 1", "no change", done)
    ]
    assert differences((GROWN, SIX), (both, SIX)) == [
        ("flush.ms", "no change", "not set → 1", "the approved plan does not change it")
    ]


def test_the_same_plan_has_no_difference() -> None:
    assert differences((NEW, EMPTY), (NEW, EMPTY)) == []


def test_a_deletion_and_moves_are_fields_too() -> None:
    gone = plan([spec("a", absent=True)], unused_cluster(topic("1", "a")), guards=ONE)
    assert list_fields(gone) == {"a": {"topic": ("exists", "deleted")}}
    moves = assemble_moves(
        ClusterEntry("prod", HERE, moves=may_move()),
        [spec("a", replication_factor=2)],
        cluster(topic("1", "a", in_sync=rows("1"))),
    )
    assert list_fields(moves) == {"a": {"move": (None, "1 partition, 1 → 2 replicas")}}


def test_packed_fields_are_the_same_unpacked() -> None:
    kept = keep_fields(plan([NEW], EMPTY))
    assert kept.changes
    kept = kept._replace(agreed=("b",))
    assert unpack_fields(pack_fields(kept)) == kept
    assert kept.topics == ("a", "b")
    assert unpack_fields(pack_fields(Kept({}, {}))) == ({}, {}, ())


def test_fields_packed_without_topics_that_agree_can_be_read() -> None:
    """As comments have them that were written before there were such topics."""
    assert unpack_fields(pack(b"[{}, {}]")) == Kept({}, {})


@pytest.mark.parametrize(
    "packed", ["", "AAAA", "?", pack(b"[1]"), pack(b'[{"a": {"x": ["1"]}}, {}]'), pack(b"[{}, {}")]
)
def test_malformed_fields_are_none(packed: str) -> None:
    assert unpack_fields(packed) is None
