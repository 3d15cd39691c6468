"""The pages for people who come from another tool: what they run prints what they show."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

from reconciler.adopt.convert import TOOLS
from reconciler.cli.app import run

HOW_TO = Path(__file__).resolve().parents[3] / "docs" / "how-to"
PAGES = sorted(page for page in HOW_TO.glob("from-*.md") if "import --from" in page.read_text())
EDITOR = re.compile(r"^# yaml-language-server: .*\n", re.MULTILINE)


def read_blocks(page: Path) -> list[str]:
    return re.findall(r"^```\w*\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def read_files(blocks: list[str], folder: str) -> dict[str, str]:
    """Return the files below a folder that blocks show. The first line of a file names it."""
    named = [(re.match(rf"# ({folder}/\S+)\n", block), block) for block in blocks]
    return {found[1]: block for found, block in named if found}


def test_every_tool_whose_files_are_converted_has_a_page() -> None:
    assert {page.stem for page in PAGES} == {f"from-{tool}" for tool in TOOLS}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_import_of_the_page_prints_and_writes_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = read_blocks(page)
    (shown,) = (block for block in blocks if block.startswith("$ reconciler import --from "))
    command, output = shown.split("\n", 1)
    for path, text in read_files(blocks, "old").items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        assert run(shlex.split(command)[2:]) == 0
    assert printed.getvalue() == output
    specs = read_files(blocks, "topics")
    assert specs
    for path, text in specs.items():
        assert f"# {path}\n{EDITOR.sub('', Path(path).read_text())}" == text
