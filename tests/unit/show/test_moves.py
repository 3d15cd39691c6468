"""Plans of moves: the text at several widths, and what the golden plans do not have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from shorthand import HERE, brokers, cluster, rows, topic

from reconciler.errors import Finding, Location, Severity
from reconciler.model.cluster import ClusterState, LogDirectory, Risk
from reconciler.model.moves import Forecast, MoveKind, MovePolicy, PlannedMoves
from reconciler.model.plan import Plan, PlannedTopic, RiskNote, TopicImage
from reconciler.moves.forecast import forecast_moves
from reconciler.show.explain.matrix import build_matrix
from reconciler.show.explain.text import render_matrix
from reconciler.show.markdown.page import mark_cluster, render_markdown
from reconciler.show.text import render_text
from reconciler.show.view import view_plan
from reconciler.styling import strip_colours

GIB = 1 << 30
NODES = brokers("a", "a", "b", "b", "c", "c")
POLICY = MovePolicy(
    frozenset({MoveKind.REPLICATION, MoveKind.ASSIGNMENT}), 30 << 20, 50, 5, 15, 2 << 40
)
MANY = 14
LIVE: ClusterState = replace(
    cluster(
        topic("1,3 3,5 5,1", "grown", size_bytes=(40 * GIB, 36 * GIB, 38 * GIB)),
        topic([(1, 3, 5)] * MANY, "placed", size_bytes=tuple(n * GIB for n in range(MANY))),
        topic("1,3,5 3,5,1", "shrunk", size_bytes=(GIB, GIB)),
        topic("1,3,5 1,5,3", "turned", size_bytes=(GIB, GIB)),
        topic("1,3", "refused", size_bytes=(GIB,)),
        nodes=NODES,
    ),
    directories={
        broker.id: (LogDirectory("/data1", 600 * GIB, (500 - 20 * broker.id) * GIB, 40),)
        for broker in NODES
    },
)
LIVE = replace(
    LIVE,
    topics={
        name: replace(live, write_bytes_per_s=tuple(1 << 18 for _ in live.assignment))
        for name, live in LIVE.topics.items()
    },
)
LOWERED = {"min.insync.replicas": "2"}


def planned(name: str, after: str, line: int, **more: object) -> PlannedTopic:
    """Plan these rows for a topic of `LIVE`."""
    config = LOWERED if name == "grown" else {}
    before = TopicImage(f"id-{name}", LIVE.topics[name].assignment, config)
    where = Location("topics/shop.yaml", line)
    return PlannedTopic(name, where, before, replace(before, assignment=rows(after)), **more)  # type: ignore[arg-type]


def make_plan() -> Plan:
    """Return a plan with every kind of change of rows, a long one, a refused one, and a note."""
    refusal = Finding("replicas-stay", "broker 7 is not there", "write another one")
    topics = (
        planned("grown", "1,3,6 3,5,2 5,1,4", 4, risks=(RISK,)),
        planned("placed", " ".join(["2,4,6"] * (MANY - 1) + ["1,3,5"]), 9),
        planned("refused", "1,3", 30, refusals=(refusal,)),
        planned("shrunk", "1,3 3,5", 14),
        planned("turned", "5,3,1 1,5,3", 20),
    )
    note = Finding("sizes-unseen", "a note", severity=Severity.NOTE, where=HERE)
    moves = PlannedMoves(POLICY, 42, 42, 14, {"grown": 1})
    made = Plan(
        "prod",
        "id-prod",
        NODES,
        topics,
        unchanged=2,
        files=1,
        live_topics=7,
        notes=(note,),
        moves=moves,
    )
    return replace(made, moves=replace(moves, forecast=forecast_moves(made, LIVE)))


RISK = RiskNote(Risk.TRAFFIC, "114.0 GiB are copied", acknowledged=True)
BIG = make_plan()

KEPT = Path(__file__).parent / "moves"
WIDTHS = [80, 120]


def answers() -> dict[str, str]:
    """Return every kept file by its name."""
    texts = {f"{width}.txt": render_text(BIG, width=width) for width in WIDTHS}
    return {**texts, "matrix.txt": render_matrix(build_matrix("grown", BIG, LIVE))}


@pytest.mark.parametrize("name", sorted(path.name for path in KEPT.iterdir()))
def test_it_is_shown_as_it_is_kept(name: str) -> None:
    assert answers()[name] == (KEPT / name).read_text("utf-8")


def test_every_form_is_kept() -> None:
    assert {path.name for path in KEPT.iterdir()} == answers().keys()


def test_colours_change_no_word() -> None:
    assert strip_colours(render_text(BIG, colour=True)) == render_text(BIG)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert max(map(len, render_text(BIG, width=width).splitlines())) <= width


def forecast(**changes: object) -> Forecast:
    assert BIG.moves is not None
    assert BIG.moves.forecast is not None
    return replace(BIG.moves.forecast, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("label", "changes", "words"),
    [
        ("moves", {"least_replicas": 40}, "348.0 GiB · at least 40 needed"),
        ("moves", {"forecast": None}, "42 replicas of 16 partitions are copied, of unknown size"),
        ("elections", {"leader_changes": 1}, "at the end, 1 partition gets another preferred"),
    ],
)
def test_the_cost_in_words(label: str, changes: dict[str, object], words: str) -> None:
    assert BIG.moves is not None
    made = replace(BIG, moves=replace(BIG.moves, **changes))  # type: ignore[arg-type]
    assert words in dict(view_plan(made).moves)[label]


def test_a_config_that_is_no_override_is_unset_afterwards() -> None:
    topic = planned("placed", " ".join(["2,4,6"] * 14), 1)
    moves = PlannedMoves(POLICY, 1, 1, 1, {"placed": 1})
    text = render_text(replace(BIG, topics=(topic,), moves=moves))
    assert "before the copies                min.insync.replicas not set → 1\n" in text
    assert "after the copies                 min.insync.replicas 1 → unset\n" in text


def test_sizes_of_a_topic_that_are_unknown_are_not_zero() -> None:
    assert BIG.moves is not None
    moves = replace(BIG.moves, forecast=forecast(sizes={"grown": (1, -1, 1)}))
    text = render_text(replace(BIG, moves=moves))
    assert "copies                           3 replicas, of unknown size\n" in text


def test_a_comment_of_moves_replaces_no_other() -> None:
    assert render_markdown(BIG).startswith(mark_cluster("prod", moves=True))
    assert mark_cluster("prod", moves=True) != mark_cluster("prod")


def test_the_cost_is_in_a_comment_whatever_has_no_room() -> None:
    small = render_markdown(BIG, limit=3_500)
    assert "| **Time** | about 2 h 44 min" in small
    assert "**Left out to fit:**" in small
    assert "reconciler plan --cluster prod --moves" in small


def test_moves_are_applied_from_a_saved_plan() -> None:
    saved = "To apply exactly this: `reconciler apply moves/prod.json`"
    assert saved in render_markdown(BIG, saved="moves/prod.json")
    fresh = view_plan(BIG).fingerprint
    assert (
        "`reconciler plan --cluster prod --moves --out moves.json && "
        f"reconciler apply moves.json --expect {fresh}`"
    ) in render_markdown(BIG)


def test_a_topic_whose_rows_change_says_how_many() -> None:
    matrix = build_matrix("shrunk", BIG, LIVE)
    assert matrix.reasons[0] == ("Rows of 2 partitions change: 0 new replicas, 2 removed.")
    blocks = matrix.blocks(10)
    assert [sorted(matrix.lost(block)) for block in blocks] == [[5], [1]]
    assert not any(map(matrix.gained, blocks))


def write_answers() -> None:
    """Write the answers as they are now."""
    KEPT.mkdir(exist_ok=True)
    for name, text in answers().items():
        (KEPT / name).write_text(text, "utf-8")


if __name__ == "__main__":
    write_answers()
