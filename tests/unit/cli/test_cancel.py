"""`moves cancel`: how it ends, and what it says of each partition."""

from __future__ import annotations

import pytest

from reconciler.cli.moves.cancel import _end, _report
from reconciler.model.outcomes import Outcome, OutcomeKind
from reconciler.moves.running.cancel import Cancelled
from reconciler.run.ending import Ended

PLACE = ("a", 0)
HERE = "topics --cluster prod"


@pytest.mark.parametrize(
    ("done", "kept", "ended", "outcomes"),
    [
        (
            Cancelled(cancelled=(PLACE,), ended=(("a", 1),)),
            {},
            Ended.DONE,
            [Outcome("a", OutcomeKind.DONE, "partition 0: taken back; partition 1: ended before")],
        ),
        (
            Cancelled(cancelled=(PLACE,), led_by_others=(PLACE,)),
            {},
            Ended.UNFINISHED,
            [
                Outcome(
                    "a",
                    OutcomeKind.WAITING,
                    "partition 0: taken back; partition 0: not led by its preferred leader",
                )
            ],
        ),
        (
            Cancelled(lowered=("b",)),
            {},
            Ended.UNFINISHED,
            [Outcome("b", OutcomeKind.WAITING, "min.insync.replicas is that of the moves")],
        ),
        (
            Cancelled(),
            {PLACE: "no replica from before is in sync"},
            Ended.UNFINISHED,
            [Outcome("a", OutcomeKind.IN_FLIGHT, "partition 0: no replica from before is in sync")],
        ),
        (
            Cancelled(failed={PLACE: "refused"}, led_by_others=(PLACE,)),
            {},
            Ended.FAILED,
            [
                Outcome(
                    "a",
                    OutcomeKind.FAILED,
                    "partition 0: refused; partition 0: not led by its preferred leader",
                )
            ],
        ),
        (
            Cancelled(failed={PLACE: "no answer"}, unknown=True),
            {},
            Ended.UNKNOWN,
            [Outcome("a", OutcomeKind.UNKNOWN, "partition 0: no answer")],
        ),
    ],
)
def test_a_cancel_ends_as_its_worst_partition(
    done: Cancelled, kept: dict[tuple[str, int], str], ended: Ended, outcomes: list[Outcome]
) -> None:
    ending = _end(done, kept)
    assert ending.ended is ended
    assert list(ending.outcomes) == outcomes


def test_it_says_what_is_not_as_before_and_how_to_fix_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    done = Cancelled(cancelled=(PLACE,), led_by_others=(PLACE,), lowered=("b",))
    _report(done, HERE)
    assert capsys.readouterr().out.splitlines() == [
        "1 move taken back, with the former order of replicas.",
        f"Preferred leaders do not lead; see `reconciler elect {HERE}`:",
        "  a partition 0",
        "min.insync.replicas is still that of the moves:",
        "  b",
        f"To remove the throttles: reconciler moves settle {HERE}",
    ]


def test_it_says_that_a_run_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    _report(Cancelled(cancelled=(PLACE,), run="a run on host-1 has the lock of moves"), HERE)
    assert capsys.readouterr().out.splitlines()[1:] == [
        "a run on host-1 has the lock of moves. That run continues with the other moves of its "
        "plan.",
        f"To stop it: reconciler moves pause {HERE}",
    ]
