"""Dangerous edits and states on real brokers: docs/explanation/dangers.md tells what happens."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from dangers import edits, losses, moved, trouble
from dangers.page import PAGE, act_out, list_dangers, name_danger, render_page

from reconciler.sandbox.cluster import Cluster

if TYPE_CHECKING:
    from dangers.page import Danger

ROW = re.compile(r"^\| ([^|`]+?) \| .* \|$", re.MULTILINE)


def told_rows() -> dict[str, str]:
    """Return the rows of the page, by the name of their danger."""
    page = PAGE.read_text(encoding="utf-8")
    return {row[1]: row[0] for row in ROW.finditer(page) if row[1] != "danger"}


LIKE_OTHERS = (
    edits.replication_down,  # replication_up
    edits.replication_of_all,
    edits.renamed,  # file_deleted
    losses.retention_lowered_knowingly,  # retention_lowered
    losses.default_lowered,
    losses.keyed_grows,  # compacted_grows
    moved.configured,  # configured_elsewhere
    moved.grown,  # created_meanwhile
)
"""Those that go the same way as another one, which stays in the gate."""


def each_danger() -> list[object]:
    return [
        pytest.param(
            danger,
            id=danger.__name__,
            marks=pytest.mark.slow if danger in (*trouble.SLOW, *LIKE_OTHERS) else (),
        )
        for danger in list_dangers()
    ]


@pytest.mark.parametrize("danger", each_danger())
def test_a_danger_goes_as_the_page_tells(danger: Danger, quiet3: Cluster) -> None:
    assert act_out(danger, quiet3) == told_rows()[name_danger(danger)]


def test_the_page_tells_of_these_dangers_and_no_others() -> None:
    assert render_page(told_rows()) == PAGE.read_text(encoding="utf-8")
    assert list(told_rows()) == [name_danger(danger) for danger in list_dangers()]
