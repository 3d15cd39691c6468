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
    describe_bands,
    draw_axis,
    draw_bands,
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


RACKS = [("a", BROKERS[:2]), ("b", BROKERS[2:3]), ("no rack", BROKERS[3:])]


def find_shapes(drawn: str, kind: str) -> list[dict[str, str]]:
    return [dict(one.attrib) for one in ET.fromstring(drawn).findall(kind)]


def test_a_bar_outside_a_band_that_is_aimed_at_is_hatched() -> None:
    disks, writes = (find_shapes(draw_bands(RACKS, load), "rect") for load in ("disk", "write"))
    bars = [[one for one in shapes if one["class"] != "band"] for shapes in (disks, writes)]
    assert [one["class"] for one in bars[0]] == ["bar no", "bar no", "followers", "bar"]
    assert [one["class"] for one in bars[1]] == ["bar", "bar", "bar"]


def test_a_band_is_drawn_once_for_neighbours_and_around_the_share() -> None:
    bands = [s for s in find_shapes(draw_bands(RACKS, "disk"), "rect") if s["class"] == "band"]
    lines = [s for s in find_shapes(draw_bands(RACKS, "disk"), "line") if s["class"] == "even"]
    assert len(bands) == len(lines) == 2
    for band, line in zip(bands, lines, strict=True):
        assert float(band["y"]) < float(line["y1"]) < float(band["y"]) + float(band["height"])
    assert float(bands[0]["width"].rstrip("%")) == pytest.approx(
        2 * float(bands[1]["width"].rstrip("%")), rel=1e-3
    )


def test_a_bar_says_its_load_and_how_far_off_it_is() -> None:
    titles = [one.text for one in ET.fromstring(draw_bands(RACKS, "disk")).iter("title")]
    assert titles == [
        "1: 1.0 TiB +28 %",
        "4: 700.0 GiB -12 %",
        "2: 60.0 GiB",
        "3: 790.0 GiB -1 %",
    ]


@pytest.mark.parametrize(("brokers", "named"), [(9, True), (60, False)])
def test_brokers_are_named_below_their_bars_where_there_is_room(brokers: int, named: bool) -> None:
    racks = [("a", [replace(BROKERS[0], id=number) for number in range(100, 100 + brokers)])]
    drawn = draw_bands(racks, "disk")
    assert (">100</text>" in drawn) == named
    assert ">a</text>" in drawn


def test_many_brokers_outside_are_counted() -> None:
    racks = [("a", [replace(BROKERS[0], id=number) for number in range(14)])]
    said = describe_bands(racks, "disk")
    assert said == "14 of 14 brokers are outside: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 2 more"
    assert describe_bands([("b", BROKERS[3:])], "disk") == "every broker is inside its band"
