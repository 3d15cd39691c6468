"""Modules with every name that a command may import. Each writes down that it was imported."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

NAMES = sorted(
    name
    for name in {*sys.stdlib_module_names, *metadata.packages_distributions(), "sitecustomize"}
    | {"usercustomize", "pip", "setuptools", "hatchling", "tomlkit", "trove_classifiers"}
    if name.isidentifier()
)
"""The standard library, each distribution installed here, and what only an installation needs."""

TEXT = """\
with open({imported!r}, "a") as file:
    file.write(__file__ + "\\n")
"""


class Planted:
    """Directories with these modules, and the file that each of them writes to."""

    def __init__(self, imported: Path, directories: Iterable[Path]) -> None:
        self._imported = imported
        for directory in directories:
            directory.mkdir(parents=True, exist_ok=True)
            for name in NAMES:
                (directory / f"{name}.py").write_text(TEXT.format(imported=str(imported)))

    def list_imported(self) -> list[str]:
        """Return the files that were imported since the last call."""
        if not self._imported.exists():
            return []
        found = sorted(set(self._imported.read_text().splitlines()))
        self._imported.unlink()
        return found


def list_user_sites(home: Path) -> list[Path]:
    """Return where Pythons of a home look for modules, without isolation."""
    minors = range(11, 16)
    return [home / ".local" / "lib" / f"python3.{n}" / "site-packages" for n in minors]
