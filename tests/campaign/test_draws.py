"""What a round is depends on its seed and number, and on nothing else."""

from __future__ import annotations

import json
import random
import struct
from collections import Counter

import pytest

from campaign.faults import Kind, draw_fault
from campaign.network import Stage, Trap, tell_stage
from campaign.page import PAGE, RUNS, count_run, render_page
from campaign.world import draw_world, write_estate
from reconciler.api.planning import load_estate


def draw(seed: int, number: int) -> object:
    rng = random.Random(f"{seed}/{number}")
    world = draw_world(rng, "p-")
    return world, draw_fault(rng, Kind.KILL, world.writes)


def test_a_round_is_drawn_again_as_it_was() -> None:
    assert draw(3, 7) == draw(3, 7)
    assert draw(3, 7) != draw(3, 8)
    assert draw(3, 7) != draw(4, 7)


def test_most_faults_strike_while_apply_writes() -> None:
    rng = random.Random(1)
    stages = Counter(draw_fault(rng, Kind.KILL, 5).stage for _ in range(1_000))
    assert stages[Stage.WRITE] > 600
    assert set(stages) == set(Stage) - {Stage.OTHER}


def test_every_world_is_an_estate_without_mistakes(tmp_path) -> None:
    for number in range(50):
        world = draw_world(random.Random(number), "p-")
        write_estate(world, tmp_path, "audit")
        estate = load_estate(tmp_path / "topics")
        assert len(estate.topics) == len(world.wishes)


@pytest.mark.parametrize(
    ("api", "end", "writing", "stage"),
    [
        (3, b"", False, Stage.READ),
        (3, b"", True, Stage.VERIFY),
        (11, b"", False, Stage.LOCK),
        (19, b"\x00\x00\x1f\x40\x01", False, Stage.VALIDATE),
        (19, b"\x00\x00\x1f\x40\x00", False, Stage.WRITE),
        (44, b"\x01\x00", False, Stage.VALIDATE),
        (44, b"\x00\x00", False, Stage.WRITE),
        (20, b"", False, Stage.WRITE),
        (0, b"", False, Stage.RECORD),
        (18, b"", False, Stage.OTHER),
    ],
)
def test_a_request_tells_what_apply_is_about(
    api: int, end: bytes, writing: bool, stage: Stage
) -> None:
    frame = struct.pack(">hhi", api, 4, 1) + b"topic" + end
    assert tell_stage(api, frame, writing=writing) is stage


def test_a_trap_waits_for_its_request_and_takes_as_many_as_it_is_told() -> None:
    trap = Trap(Stage.WRITE, 2, times=2)
    met = [trap.meets(Stage.WRITE, seen, 19) for seen in (1, 2, 3, 4)]
    assert met == [False, True, True, False]
    assert not trap.meets(Stage.READ, 2, 3)


def test_the_page_sums_runs_and_leaves_void_rounds_out() -> None:
    result = {
        "kind": Kind.SLOW.value,
        "struck": True,
        "stage": Stage.WRITE.value,
        "runs": [{}, {}],
        "violations": ["one"],
        "unknown": {"full": 2},
        "trouble": "",
    }
    void = {**result, "trouble": "no cluster", "violations": []}
    first = count_run({"commit": "aaa", "seed": 1}, [result, void])
    page = render_page([first, count_run({"commit": "bbb", "seed": 2}, [result])])
    assert "2 rounds in 2 runs, 2 violations." in page
    assert "| slow network | 2 | 2 | 2 | 4 | 0 | 0 | 2 |" in page
    assert "| `aaa` | 1 | 1 | 1 |\n| `bbb` | 2 | 1 | 1 |" in page
    assert "1 more rounds are void" in page


def test_the_page_is_what_its_runs_give() -> None:
    kept = json.loads(RUNS.read_text(encoding="utf-8"))
    assert PAGE.read_text(encoding="utf-8") == render_page(kept)
