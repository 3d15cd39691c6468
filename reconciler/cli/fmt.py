"""`reconciler fmt`: specs in the usual form."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from reconciler.api.adoption import find_estate, format_specs
from reconciler.api.estate_files import write_texts
from reconciler.cli.changes import show_changes
from reconciler.cli.findings import render_findings
from reconciler.cli.options import Command
from reconciler.cli.terminal import choose_paint, print_note
from reconciler.errors import show_path
from reconciler.units import count


@click.command(cls=Command)
@click.argument(
    "paths",
    nargs=-1,
    type=click.Path(exists=True, path_type=Path),
    metavar="[ESTATE | FILE …]",
)
@click.option("--check", is_flag=True, help="Write nothing; exit 2 if a file would change.")
@click.option("--diff", is_flag=True, help="Write nothing; show what would change.")
def command(paths: tuple[Path, ...], check: bool, diff: bool) -> int:
    """Write specs in the usual form: indents, blank lines, quotes, units of configs.

    Comments stay, and so does the order of keys and documents. No file is written whose
    new form would mean something else. PATHS are files or directories of one estate or of
    several; the default is topics.
    """
    changed = 0
    for estate, chosen in _group(paths or (Path("topics"),)).items():
        formatted = format_specs(estate, chosen)
        if formatted.notes:
            print_note(render_findings(formatted.notes, choose_paint(sys.stderr)))
        if diff:
            click.echo(show_changes(estate, formatted.texts), nl=False)
        elif check:
            for name in sorted(formatted.texts):
                click.echo(show_path(str(estate), name))
        if not (check or diff):
            write_texts(estate, formatted.texts)
        changed += len(formatted.texts)
    would = "would be " if check or diff else ""
    said = (
        f"{count(changed, 'file')} {would}changed" if changed else "every file has the usual form"
    )
    print_note(said)
    return 2 if check and changed else 0


def _group(paths: tuple[Path, ...]) -> dict[Path, list[Path]]:
    """Group files and directories by their estate."""
    groups: dict[Path, list[Path]] = {}
    for path in paths:
        groups.setdefault(find_estate(path), []).append(path)
    return groups
