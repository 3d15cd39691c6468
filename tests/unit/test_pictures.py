"""The pictures of docs/images show what the code prints today, and load nothing."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
PICTURED = runpy.run_path(str(ROOT / "docs" / "pictured.py"))
TEXTS, SHOWN = PICTURED["TEXTS"], PICTURED["read_shown"]()
SLOW = {"plan-comment-large"}  # plans 2,000 topics
SVGS = sorted(IMAGES.glob("*.svg"))


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in sorted(TEXTS)],
)
def test_a_picture_shows_what_is_printed_today(name: str, tmp_path: Path) -> None:
    text = TEXTS[name](tmp_path)
    assert "error" not in text.partition("\n")[0], text
    assert PICTURED["hash_text"](text) == SHOWN[name], f"run: make pictures, and look at {name}"


def test_every_picture_exists_in_light_and_in_dark() -> None:
    assert SHOWN.keys() == TEXTS.keys()
    assert [path.name for path in PICTURED["list_files"]() if not path.exists()] == []


@pytest.mark.parametrize("path", SVGS, ids=lambda path: path.name)
def test_a_picture_has_no_script_and_loads_nothing(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    names = {each.tag.rpartition("}")[2] for each in ET.fromstring(text).iter()}
    assert "title" in names
    assert not names & {"script", "image", "use", "foreignObject", "a"}
    addresses = re.findall(r"[a-z]+://[^\s\"')]+", text)
    assert set(addresses) <= {"http://www.w3.org/2000/svg"}
    assert "@font-face" not in text
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)


@pytest.mark.parametrize("path", SVGS, ids=lambda path: path.name)
def test_a_picture_names_no_directory_of_a_machine(path: Path) -> None:
    assert not re.search(r"/(home|root|work|Users)/", path.read_text(encoding="utf-8"))


def test_a_terminal_picture_begins_with_its_command() -> None:
    for name, terminal in PICTURED["TERMINALS"].items():
        for theme in ("light", "dark"):
            root = ET.parse(IMAGES / f"{name}-{theme}.svg").getroot()
            title = root.find("{http://www.w3.org/2000/svg}title")
            assert title is not None
            assert title.text == f"reconciler {terminal.command}"
