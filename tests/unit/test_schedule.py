"""The files that come first are there: one that was renamed would come last."""

from __future__ import annotations

from schedule import LONGEST, TESTS


def test_every_file_that_comes_first_exists() -> None:
    assert [file for file in LONGEST if not (TESTS / file).is_file()] == []
