"""Folding: fullest first, never over the room, floors always."""

from __future__ import annotations

from reconciler.show.markdown.folding import Passage, Section, fold


def section(floor: str, *stages: str) -> Section:
    return Section(Passage(floor), [lambda text=text: Passage(text) for text in stages])


def texts(room: int, *sections: Section) -> list[str]:
    return [passage.text for passage in fold(sections, room)[0]]


def test_everything_where_there_is_room() -> None:
    assert texts(100, section("a", "a" * 20), section("b", "b" * 20)) == ["a" * 20, "b" * 20]


def test_the_first_sections_come_first() -> None:
    told = texts(28, section("a", "a" * 20), section("b", "b" * 20, "b" * 5))
    assert told == ["a" * 20, "b"]


def test_details_wait_for_what_every_section_must_say() -> None:
    detailed = section("a", "a" * 20, "a" * 5)._replace(details=1)
    assert texts(40, detailed, section("b", "b" * 20)) == ["a" * 5, "b" * 20]
    assert texts(50, detailed, section("b", "b" * 20)) == ["a" * 20, "b" * 20]
    assert texts(27, detailed, section("b", "b" * 20)) == ["a" * 20, "b"]


def test_the_fullest_stage_that_fits() -> None:
    assert texts(10, section("a", "a" * 20, "a" * 8, "a" * 2)) == ["a" * 8]


def test_floors_are_told_whatever_the_room() -> None:
    told, left = fold([section("aaa", "a" * 20)], 0)
    assert (told[0].text, left) == ("aaa", -5)


def test_what_is_left_out_takes_room_too() -> None:
    fuller = Section(Passage("a"), [lambda: Passage("aa", "w" * 20)])
    assert texts(20, fuller) == ["a"]
    assert texts(26, fuller) == ["aa"]


def test_room_counts_bytes() -> None:
    assert texts(10, section("a", "→" * 3)) == ["a"]
    assert texts(11, section("a", "→" * 3)) == ["→" * 3]
