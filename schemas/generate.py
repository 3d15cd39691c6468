"""Generate files from the code: schemas/*.schema.json, and pages in docs/.

python schemas/generate.py            writes them
python schemas/generate.py --check    exits 1 and names the files that are out of date
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from commands_page import render_commands
from environment_page import render_environment
from glossary import render_glossary
from json_page import render_json
from keys_page import render_keys

from reconciler.cli.schema import SCHEMAS, render_schema
from reconciler.fleet.tables import FACTS, TABLES
from reconciler.rulebook import STAGES, Rule

ROOT = Path(__file__).parent.parent


def render_files() -> dict[Path, str]:
    """Return the text of every generated file, by path."""
    files = {ROOT / "schemas" / f"{name}.schema.json": render_schema(name) for name in SCHEMAS}
    pages = {"rules.md": render_rules(), "lake.md": render_tables()}
    pages |= {"glossary.md": render_glossary(), "keys.md": render_keys()}
    pages |= {"commands.md": render_commands(), "environment.md": render_environment()}
    pages |= {"json.md": render_json()}
    return files | {ROOT / "docs" / "reference" / name: text for name, text in pages.items()}


def render_rules() -> str:
    """Return the page that lists every rule by the stage that checks it.

    An anchor has the id of its rule: GitHub and the site take such links.
    """
    sections = find_sections()
    lines = [
        "# Rules",
        "",
        "Every finding ends with the id of its rule. *What to do* leads to a real message, its",
        "cause and the fix. In a terminal that shows links, such an id is a link to this page.",
        "Generated from the code.",
    ]
    for stage, rules in STAGES.items():
        lines += ["", f"## {stage.capitalize()}", "", "| rule | requires |", "|---|---|"]
        lines += [_row(rule, sections.get(rule.id)) for rule in rules]
    return "\n".join(lines) + "\n"


def find_sections() -> Mapping[str, str]:
    """Find the rules that are headings of the pages on troubleshooting. Returns: page by rule."""
    pages = sorted((ROOT / "docs" / "how-to").glob("troubleshoot-*.md"))
    return {
        title: page.name
        for page in pages
        for title in re.findall(r"^### ([a-z-]+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    }


def _row(rule: Rule, page: str | None) -> str:
    says = rule.says.replace("|", "\\|")
    way_out = f" [What to do](../how-to/{page}#{rule.id})" if page else ""
    return f'| <a id="{rule.id}"></a>`{rule.id}` | {says}{way_out} |'


def render_tables() -> str:
    """Return the page that lists every table of the lake with its grain, key and columns."""
    lines = [
        "# The lake's tables",
        "",
        "Generated from the code. Layout of a lake: [lake-layout.md](lake-layout.md).",
    ]
    for table in TABLES.values():
        if table is FACTS:  # rows of a source, only until they are published
            continue
        lines += ["", f"## {table.name}", "", f"A row is {table.grain}. Key:"]
        lines[-1] += " " + ", ".join(f"`{column}`" for column in table.key) + "."
        lines += ["", "| column | type |", "|---|---|"]
        lines += [f"| `{f.name}` | `{f.dataType.simpleString()}` |" for f in table.schema]
    return "\n".join(lines) + "\n"


def find_outdated() -> list[Path]:
    """List the generated files that are out of date."""
    return [
        path
        for path, text in render_files().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]


def main() -> None:
    """Write the files, or with --check only list those that are out of date."""
    outdated = find_outdated()
    if "--check" not in sys.argv:
        for path, text in render_files().items():
            path.write_text(text, encoding="utf-8")
    for path in outdated:
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
    sys.exit(1 if outdated and "--check" in sys.argv else 0)


if __name__ == "__main__":
    main()
