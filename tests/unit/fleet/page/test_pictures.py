"""Pictures: what stands where, and what is said to who cannot see it."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from sample_page import BROKERS, SAMPLE

from reconciler.fleet.health import Health
from reconciler.fleet.page.contents import ClusterLine, DriftPoint, Standing
from reconciler.fleet.page.pictures import (
    MARKS,
    Axis,
    draw_axis,
    draw_broker,
    draw_drift,
    draw_dumbbell,
    draw_sparkline,
    draw_tile,
    round_step,
)

SICK = (Health.OFFLINE, Health.UNWRITABLE, Health.DEGRADED)


@pytest.mark.parametrize("health", SICK)
def test_a_cluster_with_a_fault_is_never_green(health: Health) -> None:
    calm = SAMPLE.clusters.rows[-1]
    assert 'class="tile settled"' in draw_tile(calm, 5_600, 5)
    assert 'class="tile settled"' not in draw_tile(replace(calm, health=health), 5_600, 5)


def test_a_tile_shows_its_standing_without_colour() -> None:
    healthy = (replace(c, health=Health.HEALTHY) for c in SAMPLE.clusters.rows)
    sick = (replace(SAMPLE.clusters.rows[-1], health=health) for health in SICK)
    marks = {c.state: draw_tile(c, 5_600, 5) for c in (*healthy, *sick)}
    assert set(marks) == {*Standing, *SICK}
    assert len({MARKS[state] for state in marks}) == len(marks)
    for standing, drawn in marks.items():
        assert f">{MARKS[standing]}</text>" in drawn


def test_the_area_of_a_tile_grows_with_its_partitions() -> None:
    sizes = [float(ET.fromstring(draw_tile(c, 5_600, 5)).attrib["width"]) for c in _by_size()]
    assert sizes == sorted(sizes)
    assert sizes[0] == 26
    assert sizes[-1] == 112


def _by_size() -> list[ClusterLine]:
    return sorted(SAMPLE.clusters.rows, key=lambda cluster: cluster.partitions)


def test_tiles_shrink_where_there_are_many() -> None:
    largest = _by_size()[-1]
    sizes = [ET.fromstring(draw_tile(largest, 5_600, n)).attrib["width"] for n in (24, 72, 150)]
    assert sizes == ["112", "76", "52"]


@pytest.mark.parametrize(
    ("before", "after", "style"), [(9, 2, "better"), (2, 9, "worse"), (3, 3, "same")]
)
def test_a_dumbbell_runs_from_before_to_after(before: int, after: int, style: str) -> None:
    ring, dot = ET.fromstring(draw_dumbbell(before, after, Axis(10))).findall("circle")
    assert ring.attrib["class"] == f"ring {style}"
    places = [float(circle.attrib["cx"].rstrip("%")) for circle in (ring, dot)]
    assert (places[0] < places[1]) == (before < after)


def test_an_axis_of_far_numbers_grows_by_powers() -> None:
    assert re.findall(r">([\d,]+)<", draw_axis(Axis(2_500))) == ["0", "10", "100", "1,000"]
    assert re.findall(r">([\d,]+)<", draw_axis(Axis(12))) == ["0", "5", "10"]


@pytest.mark.parametrize("most", [0, 1, 7, 60, 61, 10**6])
def test_no_number_is_off_the_scale(most: int) -> None:
    scale = Axis(most)
    assert 0 < scale.place(0) <= scale.place(most) < 1


@pytest.mark.parametrize(("most", "step"), [(0, 1), (4, 1), (9, 5), (21, 10), (1_000, 500)])
def test_steps_are_round(most: int, step: int) -> None:
    assert round_step(most, 4) == step


def test_a_sparkline_has_a_gap_where_there_was_no_plan() -> None:
    assert draw_sparkline([1, 2, None, 4, 5]).count("<polyline") == 2
    assert draw_sparkline([1, 2, 3]).count("<polyline") == 1


def test_bars_of_drift_stand_upon_each_other() -> None:
    chart = ET.fromstring(draw_drift([DriftPoint("20261121T030000Z", 3, 0, 30, 10, 60)]))
    pending, refused = (float(box.attrib["height"]) for box in chart.findall("rect"))
    assert pending == pytest.approx(3 * refused)
    tops = [float(box.attrib["y"]) for box in chart.findall("rect")]
    assert tops[1] == pytest.approx(tops[0] - refused)


def test_dates_tell_the_hour_only_where_days_are_shared() -> None:
    days = [DriftPoint(f"202611{day}T030000Z", 1, 0, 1, 0, 1) for day in (20, 21)]
    hours = [DriftPoint(f"20261121T{hour}0000Z", 1, 0, 1, 0, 1) for hour in ("03", "15")]
    assert ">11-20<" in draw_drift(days)
    assert ">11-21 15:00<" in draw_drift(hours)


def test_the_chart_says_what_it_shows() -> None:
    label = ET.fromstring(draw_drift(SAMPLE.drift)).attrib["aria-label"]
    assert label == (
        "5 topics not as specified at the last of 3 collections;"
        " 9 at the first, 12 at most (2026-11-20 03:00 UTC)"
    )


def test_a_brokers_leaders_are_the_dark_part_of_its_replicas() -> None:
    boxes = ET.fromstring(draw_broker(BROKERS[0], 120, 75.75)).findall("rect")
    heights = {box.attrib["class"]: float(box.attrib["height"]) for box in boxes}
    assert heights["leaders"] == pytest.approx(heights["followers"] / 3)
