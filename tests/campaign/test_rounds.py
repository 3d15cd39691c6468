"""Rounds on a real cluster: the fault comes true, and apply tells the truth about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaign.faults import Kind
from campaign.lane import KINDS, open_lane
from reconciler.sandbox.request import BrokerState

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def test_a_lane_heals_and_goes_on_after_every_kind_of_fault(tmp_path: Path) -> None:
    with open_lane(0, tmp_path) as lane:
        results = [lane.drive(seed=5, number=number) for number in range(len(KINDS))]
        nodes = (*lane.cluster.statuses(), *lane.cluster.controller_statuses())
    assert not [result.trouble for result in results if result.trouble]
    assert not [result.violations for result in results if result.violations]
    assert [result.kind for result in results] == [kind.value for kind in Kind]
    assert sum(result.struck for result in results) > len(results) / 2
    assert {result.runs[-1]["ended"] for result in results} == {"nothing to do"}
    assert {node.state for node in nodes} == {BrokerState.RUNNING}
