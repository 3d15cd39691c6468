"""An approval: its rows are packed for a comment, and used if they give the approved plan again."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from shorthand import cluster, plan, rows, spec, topic

from reconciler.errors import PlanFileError
from reconciler.model.cluster import Assignment, ClusterState, TopicSpec
from reconciler.model.plan import Plan
from reconciler.planfile.approval import (
    MOST_BYTES,
    Approval,
    decode_approval,
    encode_approval,
    keep_approved,
    list_new_rows,
    pack_moved,
    pack_rows,
    unpack_moved,
    unpack_rows,
)
from reconciler.planfile.codec import fingerprint_plan

ORDERS = spec("orders", partitions=3, replication_factor=2)
EMPTY = cluster()
CYCLE, OTHER_CYCLE = "1,2 2,3 3,1", "1,3 3,2 2,1"


def approve(*wished: TopicSpec, state: ClusterState = EMPTY) -> Approval:
    made = plan(wished, state)
    return Approval(fingerprint_plan(made), list_new_rows(made))


def keep(approval: Approval, *wished: TopicSpec, state: ClusterState) -> tuple[Plan, str]:
    """Plan again with an approval. Returns the plan, and its note."""
    made = keep_approved(approval, lambda proposed: plan(wished, state, proposed=proposed))
    notes = [note.what for note in made.notes if note.rule == "approved-rows"]
    assert len(notes) <= 1
    return made, "".join(notes)


def with_next_leaders_as(made: Assignment) -> ClusterState:
    """Return a cluster with another topic of these rows: a plan now takes other next leaders."""
    return cluster(topic(made, "other"))


APPROVED = approve(ORDERS)
OVERTAKEN = with_next_leaders_as(APPROVED.rows["orders"])
USED = "the approved rows are used: leaders and replicas are as even as with new rows"


MOVED = {("shop.a", 0): ((1, 2), (2, 4)), ("shop.a", 11): ((1,), (3,))}


def test_rows_of_a_rebalance_are_packed_and_saved() -> None:
    assert unpack_moved(pack_moved(MOVED)) == MOVED
    assert pack_moved({}) == ""
    approval = Approval("a" * 64, moved=MOVED)
    assert decode_approval(encode_approval(approval)) == approval
    assert decode_approval(json.dumps({"fingerprint": "a" * 64, "rows": {}})).moved == {}


@pytest.mark.parametrize(
    "value", [{}, [["shop.a", -1, [1], [2]]], [["shop.a", 0, [1]]], [["a b", 0, [1], [2]]]]
)
def test_malformed_rows_of_a_rebalance_are_none(value: Any) -> None:
    assert unpack_moved(pack(value)) == {}
    assert unpack_moved("!") == {}


def test_rows_that_are_as_good_are_used_and_give_the_approved_plan() -> None:
    fresh = plan([ORDERS], OVERTAKEN)
    assert fingerprint_plan(fresh) != APPROVED.fingerprint
    kept, said = keep(APPROVED, ORDERS, state=OVERTAKEN)
    assert fingerprint_plan(kept) == APPROVED.fingerprint
    assert list_new_rows(kept) == APPROVED.rows
    assert said == USED
    assert kept.levels[:4] == fresh.levels[:4]
    assert kept.levels[4].reached > fresh.levels[4].reached
    assert kept.balance_after == fresh.balance_after


def test_a_new_plan_that_is_the_approved_one_needs_no_word() -> None:
    assert keep(APPROVED, ORDERS, state=EMPTY) == (plan([ORDERS], EMPTY), "")


def test_rows_of_an_expansion_are_used_below_those_that_are_there() -> None:
    grown = spec("orders", partitions=6, replication_factor=2)
    live = topic(CYCLE, "orders")
    approval = approve(grown, state=cluster(live))
    state = cluster(live, topic(approval.rows["orders"] * 2, "other"))
    assert fingerprint_plan(plan([grown], state)) != approval.fingerprint
    kept, said = keep(approval, grown, state=state)
    assert fingerprint_plan(kept) == approval.fingerprint
    assert said == USED
    (planned,) = kept.topics
    assert planned.after is not None
    assert planned.after.assignment == rows(CYCLE) + approval.rows["orders"]


def test_rows_of_a_spec_are_not_proposed() -> None:
    """They are in the comment, too, as the plan does not say who chose its rows."""
    manual = spec("manual", assignment=rows(CYCLE))
    approval = approve(ORDERS, manual)
    assert set(approval.rows) == {"manual", "orders"}
    state = with_next_leaders_as(approval.rows["orders"] * 2)
    assert fingerprint_plan(plan([ORDERS, manual], state)) != approval.fingerprint
    kept, said = keep(approval, ORDERS, manual, state=state)
    assert fingerprint_plan(kept) == approval.fingerprint
    assert said == USED
    other = spec("manual", assignment=rows(OTHER_CYCLE))
    assert refuse(approval, ORDERS, other, state=state) == (
        "the new plan is not the approved one, even with the approved rows"
    )


def refuse(approval: Approval, *wished: TopicSpec, state: ClusterState = OVERTAKEN) -> str:
    """Plan again with an approval that does not fit. Returns the note of the fresh plan."""
    kept, said = keep(approval, *wished, state=state)
    fresh = plan(wished, state)
    assert fingerprint_plan(kept) == fingerprint_plan(fresh)
    assert kept.topics == fresh.topics
    return said


def test_rows_that_are_worse_now_are_not_used() -> None:
    single = spec("orders", partitions=1, replication_factor=1)
    approval = approve(single)
    state = cluster(topic(approval.rows["orders"], "other"))
    assert refuse(approval, single, state=state) == (
        "the approved rows are not used: new rows spread the leaders of the cluster more evenly "
        "(max − min 1 instead of 2, sum of squares 50 % lower)"
    )


def test_an_approval_without_rows_is_only_compared() -> None:
    assert refuse(Approval(APPROVED.fingerprint), ORDERS) == (
        "the new plan is not the approved one, whose rows are unknown"
    )


def test_another_change_is_not_covered_by_the_rows() -> None:
    changed = spec("orders", partitions=3, replication_factor=2, config={"flush.ms": "1"})
    assert refuse(APPROVED, changed) == (
        "the new plan is not the approved one, even with the approved rows"
    )
    assert refuse(APPROVED, spec("orders", partitions=4, replication_factor=2)) == (
        "the approved rows are not used: orders: 3 rows for 4 new partitions"
    )
    more = spec("more", partitions=1, replication_factor=1)
    assert refuse(APPROVED, ORDERS, more) == (
        "the approved rows are not used: more: new partitions without rows"
    )
    assert refuse(APPROVED, more) == (
        "the approved rows are not used: more: new partitions without rows; "
        "orders: rows without new partitions"
    )


@pytest.mark.parametrize(
    ("forged", "said"),
    [
        ({"orders": rows("1,2 2,9 3,1")}, "orders partition 1: brokers [9] may take nothing new"),
        ({"orders": rows("1,2 2 3,1")}, "orders partition 1: 1 replicas instead of 2"),
        ({"orders": rows("1,2 2,3")}, "orders: 2 rows for 3 new partitions"),
        ({"orders": rows(CYCLE), "other": rows("1,2")}, "other: rows without new partitions"),
        ({"other": rows(CYCLE)}, "orders: new partitions without rows; other: rows without"),
        ({"orders": rows("1,2 1,2 1,2")}, "new rows spread the leaders of the topics more evenly"),
    ],
)
@pytest.mark.parametrize("fingerprint", [APPROVED.fingerprint, "0" * 64])
def test_forged_rows_change_nothing(
    forged: Mapping[str, Assignment], said: str, fingerprint: str
) -> None:
    found = refuse(Approval(fingerprint, forged), ORDERS)
    assert found.startswith(f"the approved rows are not used: {said}")


def test_forged_rows_that_are_as_good_need_the_hash_of_their_plan() -> None:
    other = {"orders": rows(next(c for c in (CYCLE, OTHER_CYCLE) if not _is_approved(c)))}
    assert refuse(Approval(APPROVED.fingerprint, other), ORDERS) == (
        "the new plan is not the approved one, even with the approved rows"
    )


def _is_approved(text: str) -> bool:
    return sorted(rows(text)) == sorted(APPROVED.rows["orders"])


def test_forged_rows_cannot_move_what_is_there() -> None:
    """Rows are appended, so a forger who repeats and changes the old ones has too many."""
    grown = spec("orders", partitions=4, replication_factor=2)
    state = cluster(topic(CYCLE, "orders"))
    forged = {"orders": rows("3,1 1,2 2,3 1,3")}
    assert refuse(Approval("0" * 64, forged), grown, state=state) == (
        "the approved rows are not used: orders: 4 rows for 1 new partitions"
    )


def test_many_objections_are_counted() -> None:
    wished = spec("orders", partitions=9, replication_factor=1)
    said = refuse(Approval("0" * 64, {"orders": rows("9 " * 9)}), wished)
    assert said.endswith("orders partition 2: brokers [9] may take nothing new; and 6 more")


def test_packed_rows_are_the_same_rows() -> None:
    rng = Random(1)
    many = {f"team.topic-{n}": tuple(_draw_row(rng) for _ in range(20)) for n in range(50)}
    packed = pack_rows(many)
    assert unpack_rows(packed) == many
    assert len(packed) < len(json.dumps(many))
    assert packed.isascii()
    assert "-" not in packed  # two of them would end an HTML comment
    assert pack_rows({}) == ""


def _draw_row(rng: Random) -> tuple[int, ...]:
    return tuple(rng.sample(range(100), 3))


def pack(value: Any) -> str:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return b64encode(zlib.compress(text)).decode()


@pytest.mark.parametrize(
    "packed",
    [
        "",
        "AAAA",
        "no Base64",
        "ümlaut",
        pack({"t": [[1, 2]]})[:-8],
        pack(b"\xff\xfe"),
        pack(b"[" * 100_000),
        pack(b'{"t": [[' + b"9" * 100_000 + b"]]}"),
        pack(b"0" * (MOST_BYTES + 1)),
        pack([[1, 2]]),
        pack({"t": [1, 2]}),
        pack({"t": [[]]}),
        pack({"t": [[1, "2"]]}),
        pack({"t": [[1, True]]}),
        pack({"t": [[1, 2.0]]}),
        pack({"t": [[1, -1]]}),
        pack({"t": [[1, 2**31]]}),
        pack({"t": [list(range(33))]}),
        pack({"a\nb": [[1]]}),
        pack({"x" * 250: [[1]]}),
        pack(None),
    ],
)
def test_what_is_malformed_holds_no_rows(packed: str) -> None:
    assert unpack_rows(packed) == {}


def test_a_bomb_is_not_unpacked() -> None:
    """What unpacks to more than the limit is dropped, although it is valid JSON."""
    filler = b" " * (MOST_BYTES * 50)
    bomb = pack(b'{"t": [[1]]}' + filler)
    assert len(bomb) < 100_000
    assert unpack_rows(bomb) == {}
    assert unpack_rows(pack(b'{"t": [[1]]}' + b" " * 1_000)) == {"t": ((1,),)}


def test_more_rows_than_can_be_unpacked_are_not_packed() -> None:
    many = {f"t{n}": ((1, 2, 3),) * 1_000 for n in range(200)}
    assert pack_rows(many) == ""


def test_an_approval_survives_its_file() -> None:
    assert decode_approval(encode_approval(APPROVED)) == APPROVED
    assert decode_approval(encode_approval(Approval("a" * 64))) == Approval("a" * 64, {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the document: "),
        ("[]", "the document: "),
        ('{"rows": {}}', "fingerprint: Field required"),
        ('{"fingerprint": "a", "rows": {}}', "fingerprint: String should match"),
        ('{"fingerprint": "' + "a" * 64 + '", "rows": {"t": [["1"]]}}', "rows.t.0.0: "),
    ],
)
def test_a_malformed_file_is_an_error(text: str, said: str) -> None:
    with pytest.raises(PlanFileError) as error:
        decode_approval(text, "approved.json")
    (finding,) = error.value.findings
    assert finding.what.startswith(f"approved.json is not an approval: {said}")
    assert str(finding).endswith("; write it with: reconciler report approved --out [plan-form]")
