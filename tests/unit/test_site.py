"""The site: it builds without a finding, shows every page, and loads nothing from another host."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted(
    str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md") if ".site" not in page.parts
)
NO_PAGES = {"SKILL.md"}
MOST_WORDS = 1500
MOST_CLICKS = 3
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+\.md)")
LOADED = {"script": "src", "img": "src", "source": "srcset", "iframe": "src", "link": "href"}
NAMED = {"canonical", "prev", "next", "alternate"}  # links of a head that no browser loads


class Loads(HTMLParser):
    """The addresses that a browser loads by itself when it shows a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        address = found.get(LOADED.get(tag, ""))
        if address and not (tag == "link" and found.get("rel") in NAMED):
            self.addresses.append(address)


def list_entries(nav: Any) -> Iterator[str]:
    """Yield the pages of a navigation, in its order."""
    for entry in nav if isinstance(nav, list) else [nav]:
        if isinstance(entry, str):
            yield entry
        else:
            for below in entry.values():
                yield from list_entries(below)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site, from a copy of the pages."""
    docs = tmp_path_factory.mktemp("site") / "docs"
    shutil.copytree(DOCS, docs, ignore=shutil.ignore_patterns(".site", ".cache"))
    zensical = Path(sys.executable).with_name("zensical")
    command = [zensical, "build", "--strict", "--config-file", docs / "zensical.toml"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return docs / ".site"


def test_every_page_is_in_the_navigation_once() -> None:
    config = tomllib.loads((DOCS / "zensical.toml").read_text(encoding="utf-8"))
    shown = Counter(list_entries(config["project"]["nav"]))
    assert max(shown.values()) == 1
    assert set(shown) == {*PAGES} - NO_PAGES


def test_a_strict_build_has_every_page_and_loads_nothing_from_elsewhere(site: Path) -> None:
    built = sorted(str(path.relative_to(site).with_suffix(".md")) for path in site.rglob("*.html"))
    assert built == sorted([*PAGES, "404.md"])
    for path in site.rglob("*.html"):
        loads = Loads()
        loads.feed(path.read_text(encoding="utf-8"))
        assert loads.addresses
        for (
            address
        ) in loads.addresses:  # those of 404.html begin at the root, as its place is unknown
            place = site if address.startswith("/") else path.parent
            assert (place / address.lstrip("/")).exists(), f"{path.name}: {address}"


@pytest.mark.parametrize("page", [p for p in PAGES if p.startswith(("tutorial/", "how-to/"))])
def test_a_page_for_doing_something_is_short(page: str) -> None:
    assert len((DOCS / page).read_text(encoding="utf-8").split()) <= MOST_WORDS


def test_every_page_is_three_clicks_from_the_start() -> None:
    """Through the links of the pages alone, without the navigation and the search."""
    clicks = {"index.md": 0}
    reached = ["index.md"]
    for page in reached:
        for link in LINK.findall((DOCS / page).read_text(encoding="utf-8")):
            target = str((DOCS / page).parent.joinpath(link).resolve().relative_to(DOCS))
            if target not in clicks:
                clicks[target] = clicks[page] + 1
                reached.append(target)
    far = {page for page in PAGES if clicks.get(page, MOST_CLICKS + 1) > MOST_CLICKS}
    assert far == NO_PAGES - set(clicks)
