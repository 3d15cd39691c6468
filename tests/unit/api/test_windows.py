"""Windows of moves: how long a plan may begin, or when the next one opens."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from simulated.scenario import plan_moves

from reconciler.api.applying import check_hours
from reconciler.errors import RefusedPlanError
from reconciler.spec.estate import Estate, parse_estate

PLAN = plan_moves({"t": (((1, 2), (1, 3)),)})


def estate(begins_in_h: int, hours: int) -> Estate:
    begins = datetime.now(UTC) + timedelta(hours=begins_in_h)
    window = f"{{from: '{begins:%H:%M}', to: '{begins + timedelta(hours=hours):%H:%M}', zone: UTC}}"
    text = "version: 1\nclusters:\n  prod:\n    moves:\n      allow: [drain]\n      rate: 1MiB\n"
    text += f"      windows: {{night: {window}}}\n"
    return parse_estate({"clusters.yaml": text.encode()}, "topics")


def test_within_a_window_a_run_may_begin_copies_until_its_end() -> None:
    left_s = check_hours(PLAN, estate(-1, 3))
    assert left_s is not None
    assert 2 * 3600 - 90 < left_s <= 2 * 3600


def test_outside_a_window_nothing_begins_and_the_refusal_says_when_it_may() -> None:
    opens = datetime.now(UTC) + timedelta(hours=2)
    with pytest.raises(RefusedPlanError) as refused:
        check_hours(PLAN, estate(2, 3))
    (found,) = refused.value.findings
    assert found.rule == "moves-window"
    assert found.what.endswith(f"the next one opens {opens:%A %Y-%m-%d %H:%M} UTC")
    assert (str(found.where), refused.value.exit_code) == ("topics/clusters.yaml:7:7", 1)


def test_what_moves_nothing_needs_no_window() -> None:
    assert check_hours(replace(PLAN, moves=None), estate(2, 3)) is None
    always = parse_estate({"clusters.yaml": b"version: 1\nclusters: {prod: {}}\n"}, "topics")
    assert check_hours(PLAN, always) is None
