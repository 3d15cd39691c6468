"""A few rounds of the campaign that `make campaign-lake` runs for longer."""

from __future__ import annotations

import pytest
from lake_campaign import run_campaign


@pytest.mark.fleet
@pytest.mark.slow
def test_published_collections_are_complete_whoever_is_killed() -> None:
    """Two jobs at once, then four, and half of them killed."""
    seen, wrong = run_campaign(rounds=4, seed=7)
    assert wrong == []
    assert seen["jobs"] == 12
    assert seen["killed"] == 6
