"""The bar of an apply: each step counts once, however often it is sent."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from reconciler.apply import StepAnswered
from reconciler.cli.journal import Journal
from reconciler.model import AnswerKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LOST, ACCEPTED = AnswerKind.LOST, AnswerKind.ACCEPTED


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Journal]:
    """Return a journal that a person is looking at."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with Journal(None) as journal:
        yield journal


def tell(journal: Journal, phase: str, names: Sequence[str], kind: AnswerKind = ACCEPTED) -> None:
    """Tell the answers of one round of a phase."""
    for name in names:
        journal.observe(StepAnswered(phase, name, len(names), kind))


def shown(journal: Journal) -> list[tuple[float, float | None]]:
    assert journal._bars is not None
    return [(task.completed, task.total) for task in journal._bars.tasks]


def test_a_step_that_is_lost_and_sent_again_counts_once(journal: Journal) -> None:
    tell(journal, "create", ["a", "b", "c"], LOST)
    tell(journal, "create", ["b", "c"], LOST)
    tell(journal, "create", ["c"])
    assert shown(journal) == [(3, 3)]


def test_a_phase_under_way_shows_what_is_answered(journal: Journal) -> None:
    for name in ("a", "b"):
        journal.observe(StepAnswered("create", name, 5, ACCEPTED))
    assert shown(journal) == [(2, 5)]


def test_every_phase_has_a_bar(journal: Journal) -> None:
    tell(journal, "create", ["a", "b"])
    tell(journal, "verify", ["a", "b"])
    assert shown(journal) == [(2, 2), (2, 2)]


def test_a_topic_with_several_steps_to_ask_about_fills_the_bar(journal: Journal) -> None:
    tell(journal, "validate", ["a", "b", "a"])
    assert shown(journal) == [(3, 3)]
    tell(journal, "validate", ["a", "a"])
    assert shown(journal) == [(3, 3)]
