"""The picture of a matrix, read as XML: what is drawn, where, and for whom."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from shorthand import brokers, matrix

from reconciler.model.cluster import Broker
from reconciler.show.explain.matrix import Matrix
from reconciler.show.explain.picture import draw_matrix

SVG = "{http://www.w3.org/2000/svg}"
SIX = brokers("a", "b", "c", "a", "b", "c")
GROWN = matrix("1,2,3 2,3,4", "4,5,6 5,6,1", SIX)


def draw(drawn: Matrix) -> ET.Element:
    return ET.fromstring(draw_matrix(drawn))


def shapes(root: ET.Element, style: str) -> list[ET.Element]:
    return [rect for rect in root.iter(f"{SVG}rect") if rect.get("class") == style]


def replicas(root: ET.Element, style: str) -> list[tuple[str | None, str | None]]:
    """List the replicas drawn in a style: partition and broker."""
    found = [rect for rect in shapes(root, style) if rect.get("data-broker")]
    return [(rect.get("data-partition"), rect.get("data-broker")) for rect in found]


def texts(root: ET.Element) -> list[str | None]:
    return [text.text for text in root.iter(f"{SVG}text")]


def left(rect: ET.Element) -> float:
    return float(rect.get("x", "nan"))


def test_leaders_and_followers_old_and_new_each_have_their_style() -> None:
    root = draw(GROWN)
    assert replicas(root, "l") == [("0", "1"), ("1", "2")]
    assert replicas(root, "f") == [("0", "2"), ("0", "3"), ("1", "3"), ("1", "4")]
    assert replicas(root, "l n") == [("2", "4"), ("3", "5")]
    assert replicas(root, "f n") == [("2", "5"), ("2", "6"), ("3", "1"), ("3", "6")]


def test_a_rack_is_a_panel_with_its_brokers_on_it() -> None:
    root = draw(GROWN)
    panels = shapes(root, "p")
    cells = {rect.get("data-broker"): rect for rect in root.iter(f"{SVG}rect")}
    assert len(panels) == 3
    for panel, ids in zip(panels, (("1", "4"), ("2", "5"), ("3", "6")), strict=True):
        right = left(panel) + float(panel.get("width", "nan"))
        assert all(left(panel) < left(cells[broker]) < right for broker in ids)


def test_partitions_go_down_and_new_ones_have_a_band() -> None:
    root = draw(GROWN)
    rows = {
        rect.get("data-partition"): float(rect.get("y", "nan")) for rect in root.iter(f"{SVG}rect")
    }
    assert rows["0"] < rows["1"] < rows["2"] < rows["3"]
    assert len(shapes(root, "band")) == 2
    assert {"0", "1", "2 new", "3 new"} <= set(texts(root))


def test_a_new_topic_needs_no_band_and_no_old_colours() -> None:
    root = draw(matrix("", "1,2 2,1", brokers(None, None)))
    assert shapes(root, "band") == shapes(root, "l") == shapes(root, "f") == []
    assert {"0", "1", "new leader", "new follower"} <= set(texts(root))
    assert "leader" not in texts(root)


def test_bars_grow_by_what_is_new() -> None:
    root = draw(GROWN)
    old, added = shapes(root, "old"), shapes(root, "add")
    base = {float(r.get("y", "0")) + float(r.get("height", "0")) for r in old if left(r) < 200}
    assert len([r for r in old if r.get("height") != "8"]) == 2 + 4  # brokers that held something
    assert len([r for r in added if r.get("height") != "8"]) == 2 + 4
    assert len(base) >= 2


def test_the_totals_are_written_below() -> None:
    said = texts(draw(GROWN))
    assert said.count("2 → 4") == 3  # replicas of each rack
    assert {"leaders", "replicas", "by rack", "0..1", "2 each"} <= set(said)


def test_what_kafka_risks_and_the_reasons_are_written() -> None:
    said = " ".join(filter(None, texts(draw(GROWN))))
    assert "planned 1" in said
    assert "Kafka" in said
    assert "at worst" in said
    assert GROWN.reasons[0] in said


def test_a_picture_has_a_text_for_screen_readers() -> None:
    root = draw(GROWN)
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert description is not None
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
    assert title.text == "shop.orders · 2 → 4 partitions × 3 replicas"
    assert description.text is not None
    assert description.text.startswith(
        "Partitions by brokers in 3 racks, leaders 0..1, replicas 2 per broker. "
        "Max minus min: leaders 1, by Kafka itself "
    )


def test_a_picture_is_standalone_and_has_a_dark_style() -> None:
    text = draw_matrix(GROWN)
    assert "prefers-color-scheme:dark" in text
    for foreign in ("<script", "href", "url(", "@import", "foreignObject", "on" + "load"):
        assert foreign not in text
    assert text.count("http") == 1  # the name of the format


def test_an_idle_broker_is_in_brackets_on_grey() -> None:
    nodes = (*brokers("a", "b"), Broker(3, "c", alive=False))
    root = draw(matrix("1,3 2,3", "1,2", nodes))
    assert len(shapes(root, "x")) == 1
    assert "(3)" in texts(root)


def test_names_cannot_break_out_of_it() -> None:
    root = draw(matrix("", "1,2", brokers('<script>"&', "b\x1b\x00")))
    assert '<script>"&' in texts(root)
    assert r"b\x1b\x00" in texts(root)
    assert root.find(f".//{SVG}script") is None


@pytest.mark.parametrize("count", [1, 30, 100])
def test_everything_is_on_the_card(count: int) -> None:
    nodes = tuple(Broker(n, f"zone-{n % 5}") for n in range(1, count + 1))
    root = draw(matrix("1 " * 40, " ".join(str(n) for n in range(1, count + 1)), nodes))
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    for rect in root.iter(f"{SVG}rect"):
        assert 0 <= left(rect) <= left(rect) + float(rect.get("width", "nan")) <= width
        bottom = float(rect.get("y", "nan")) + float(rect.get("height", "nan"))
        assert 0 <= bottom <= height


def test_very_many_partitions_are_folded_with_their_counts() -> None:
    root = draw(matrix("1,2 2,1 " * 250, "1,2", brokers("a", "b")))
    counted: Counter[str] = Counter()
    for rect in root.iter(f"{SVG}rect"):
        if rect.get("data-broker"):
            counted[rect.get("class", "")] += int(rect.get("data-count", "1"))
    assert counted == {"l": 500, "f": 500, "l n": 1, "f n": 1}
    assert len(list(root.iter())) < 1000


def test_the_same_matrix_gives_the_same_bytes() -> None:
    again = matrix("1,2,3 2,3,4", "4,5,6 5,6,1", SIX[::-1])
    assert draw_matrix(again) == draw_matrix(GROWN)


def test_what_turns_a_name_around_is_shown() -> None:
    """A matrix from elsewhere, such as a page of ours, may hold any text."""
    drawn = replace(GROWN, topic="shop.\u202estnemyap", reasons=("so \u200bit is",))
    text = draw_matrix(drawn)
    assert {c for c in text if not c.isprintable()} <= {"\n"}
    assert "shop.\\u202estnemyap" in text
    assert "so \\u200bit is" in text
