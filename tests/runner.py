"""A runner of a CI as it reads an output: which lines of it are commands.

Written after the parsers of GitHub's runner (ActionCommand.cs), of Azure's agent, and of GitLab's
log. It is stricter than they are: every word counts as the name of a command.
"""

from __future__ import annotations

import re
from unicodedata import category

_IGNORED = {"Cc", "Cf", "Cn", "Co", "Cs", "Mn", "Me"}
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_SECTION = re.compile(r"section_(?:start|end):\d+:[^\r\n]*\r\x1b\[0K")
_INSIDE = re.compile(r"##(\w*)\[([^\]]*)")


def find_commands(output: str) -> list[str]:
    """Return the name of each command in an output."""
    found = [section[0] for section in _SECTION.finditer(output)]
    # .NET ends a line at a carriage return as well.
    for line in re.split(r"\r\n|\r|\n", output):
        for seen in {line, _COLOURS.sub("", line), _as_compared(line)}:
            found += _read(seen)
    return found


def _as_compared(line: str) -> str:
    """Return a line as the rules of a language compare it: without what is not seen."""
    return "".join(c for c in line if c.isspace() or category(c) not in _IGNORED)


def _read(line: str) -> list[str]:
    """Return the command that a line is: of the newer form at its start, else of the older one."""
    said = line.strip()
    name, ends, _ = said[2:].partition("::")
    if said.startswith("::") and ends:
        return [name.partition(" ")[0]]
    return [" ".join(inside.groups()) for inside in _INSIDE.finditer(line)]
