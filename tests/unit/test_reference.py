"""The generated reference pages: each command, option and format stands there."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from markdown_it import MarkdownIt
from verbs import COMMANDS

from reconciler.cli.app import VERBS, group
from reconciler.cli.examples import EXAMPLES
from reconciler.cli.schema import SCHEMAS

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
PAGES = [REFERENCE / name for name in ("commands.md", "environment.md", "json.md")]
COMMANDS_PAGE = (REFERENCE / "commands.md").read_text(encoding="utf-8")
JSON_PAGE = (REFERENCE / "json.md").read_text(encoding="utf-8")
SHARED = ("Options of every command", "Options of Spark")
PARSER = MarkdownIt("commonmark").enable("table")


def read_section(page: str, heading: str) -> str:
    """Return what is below a heading, up to the next one."""
    (below,) = re.findall(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", page, re.M | re.S)
    return str(below)


def list_names(section: str) -> set[str]:
    """List the names in the first column of a section's table."""
    cells = re.findall(r"^\| (`[^|]+`) \|", section, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def list_paths(command: click.Command, path: str = "") -> Iterator[str]:
    """List every command and group below a command."""
    if path:
        yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from list_paths(below, f"{path} {name}".strip())


def test_every_command_and_every_group_has_one_heading_and_stands_in_the_index() -> None:
    headings = re.findall(r"^(#+) reconciler (.*)$", COMMANDS_PAGE, re.MULTILINE)
    paths = set(list_paths(group))
    assert {path for _, path in headings} == paths
    assert len(headings) == len(paths) > len(COMMANDS)
    assert all(len(level) == 2 + path.count(" ") for level, path in headings)
    for path in paths:
        assert f"| [`{path}`](#reconciler-{path.replace(' ', '-')}) |" in COMMANDS_PAGE
    for verb, line in VERBS.items():
        assert f"(#reconciler-{verb}) | {line} |" in COMMANDS_PAGE


@pytest.mark.parametrize("path", COMMANDS)
def test_every_option_of_a_command_is_in_its_table_or_is_shared(path: str) -> None:
    section = read_section(COMMANDS_PAGE, f"reconciler {path}")
    names = list_names(section)
    every, spark = (list_names(read_section(COMMANDS_PAGE, title)) for title in SHARED)
    own = {
        name
        for each in COMMANDS[path].params
        if isinstance(each, click.Option)
        for name in each.opts
    }
    options = {name for name in names if name.startswith("-")}
    assert options == own - every - spark
    assert every <= own
    assert (spark <= own) == ("[options of Spark](#options-of-spark)" in section)
    arguments = [each for each in COMMANDS[path].params if isinstance(each, click.Argument)]
    assert len(names - options) >= len(arguments)


@pytest.mark.parametrize("path", COMMANDS)
def test_the_choices_defaults_and_needs_of_an_option_are_in_its_row(path: str) -> None:
    page = read_section(COMMANDS_PAGE, f"reconciler {path}")
    page += "".join(read_section(COMMANDS_PAGE, title) for title in SHARED)
    for each in (one for one in COMMANDS[path].params if isinstance(one, click.Option)):
        (row,) = re.findall(rf"^\|[^|]*`{each.opts[0]}`[^|]* \|.*$", page, re.MULTILINE)
        _, _, value, default, meaning, _, _ = (cell.strip() for cell in row.split("|"))
        assert each.help is not None
        words = each.help.split("  [")[0].replace("`", "")
        assert meaning.replace("`", "").replace("\\", "") == words
        assert (default == "required") == each.required
        if isinstance(each.type, click.Choice):
            assert value == ", ".join(f"`{choice}`" for choice in each.type.choices)
        if each.show_default is True:
            assert default == f"`{each.default}`"


@pytest.mark.parametrize("path", EXAMPLES)
def test_the_examples_of_a_command_are_below_it(path: str) -> None:
    section = read_section(COMMANDS_PAGE, f"reconciler {path}")
    (block,) = re.findall(r"^```\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert block.splitlines() == list(EXAMPLES[path])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_rendered_as_it_is_meant(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    html = PARSER.render(text)
    rows = re.findall(r"^\|.*\|$", text, re.MULTILINE)
    assert html.count("<tr>") == len([row for row in rows if not row.startswith("|---")])
    for table in re.findall(r"<table>.*?</table>", html, re.DOTALL):
        widths = Counter(row.count("<td") + row.count("<th>") for row in table.split("</tr>")[:-1])
        assert len(widths) == 1
    assert not [each for row in rows for each in re.findall(r"`[^`]*`", row) if "|" in each]
    prose = re.sub(r"<code>.*?</code>", "", html, flags=re.DOTALL)
    assert not re.search(r"(?<![\w-])--\w|`|<em>", prose)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_anchors_of_a_page_are_unique(page: Path) -> None:
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    anchors = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
    assert len(anchors) == len(set(anchors))


def test_every_command_that_prints_json_stands_on_the_page_of_json() -> None:
    printing = {
        path
        for path, command in COMMANDS.items()
        for each in command.params
        if "--format" in each.opts and isinstance(each.type, click.Choice)
        if "json" in each.type.choices
    }
    rows = re.findall(r"^\| `([a-z -]+)` \| \[([a-z-]+)\]", JSON_PAGE, re.MULTILINE)
    # A webhook gets the document of `report notify`. A snapshot is a file.
    assert printing - {"report notify"} == {path for path, _ in rows} - {
        "rebalance --compare",
        "snapshot",
    }
    assert {name for _, name in rows} == SCHEMAS.keys() - {"topic", "clusters", "baseline"}


@pytest.mark.parametrize("name", sorted(SCHEMAS.keys() - {"topic", "clusters", "baseline"}))
def test_every_field_of_a_format_is_in_its_table(name: str) -> None:
    schema = json.loads((ROOT / "schemas" / f"{name}.schema.json").read_text())
    whole = JSON_PAGE.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    several = schema.get("anyOf", [schema["items"]] if "items" in schema else [])
    documents = [schema["$defs"][each["$ref"].rpartition("/")[2]] for each in several] or [schema]
    assert documents
    for each in documents:
        for field in each["properties"]:
            assert re.search(rf"^\| `{re.escape(field)}` \| \S.* \| \S.* \|$", whole, re.MULTILINE)
