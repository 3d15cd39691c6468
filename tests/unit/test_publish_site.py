"""Where a version of the site goes, and what the menu of versions lists."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / ".ci" / "publish_site.py"


@pytest.fixture
def publish(tmp_path: Path) -> Callable[[str], Path]:
    """Publish a page that says its version; returns the published branch."""
    run = runpy.run_path(str(SCRIPT))["publish"]
    site, pages = tmp_path / "site", tmp_path / "pages"
    site.mkdir()
    pages.mkdir()

    def publish_version(version: str) -> Path:
        (site / "index.html").write_text(version)
        run(site, pages, version)
        return pages

    return publish_version


def read_menu(pages: Path) -> list[tuple[str, list[str]]]:
    return [
        (each["version"], each["aliases"])
        for each in json.loads((pages / "versions.json").read_text())
    ]


def test_before_the_first_release_latest_is_that_of_main(publish: Callable[[str], Path]) -> None:
    pages = publish("dev")
    assert (pages / "latest" / "index.html").read_text() == "dev"
    assert read_menu(pages) == [("dev", ["latest"])]
    assert "latest/" in (pages / "index.html").read_text()


def test_latest_is_the_newest_release_also_after_one_of_an_older_line(
    publish: Callable[[str], Path],
) -> None:
    for version in ("dev", "1.9.0", "1.10.0", "1.9.1", "dev"):
        pages = publish(version)
    assert (pages / "latest" / "index.html").read_text() == "1.10.0"
    assert (pages / "1.9.0" / "index.html").read_text() == "1.9.0"
    assert read_menu(pages) == [("1.10.0", ["latest"]), ("1.9.1", []), ("1.9.0", []), ("dev", [])]


def test_pages_that_a_version_lost_go_from_latest(publish: Callable[[str], Path]) -> None:
    pages = publish("1.0.0")
    (pages / "latest" / "old.html").touch()
    publish("1.0.1")
    assert not (pages / "latest" / "old.html").exists()


@pytest.mark.parametrize("version", ["../main", "1.0", "latest", "v1.0.0", ""])
def test_nothing_else_is_a_version(version: str, publish: Callable[[str], Path]) -> None:
    with pytest.raises(SystemExit, match="is no version"):
        publish(version)


@pytest.mark.parametrize(
    ("tag", "is_published"), [("v1.10.0", True), ("v1.2.0rc1", False), ("v1.2", False)]
)
def test_the_workflow_publishes_the_tags_that_have_a_directory(
    tag: str, is_published: bool, publish: Callable[[str], Path]
) -> None:
    text = (ROOT / ".github" / "workflows" / "site.yml").read_text()
    (pattern,) = yaml.load(text, yaml.BaseLoader)["on"]["push"]["tags"]
    assert bool(re.fullmatch(pattern.replace(".", r"\."), tag)) is is_published
    if is_published:
        assert (publish(tag.removeprefix("v")) / tag.removeprefix("v")).is_dir()
