"""The package as Python reads it: only those modules that can hold what a test looks for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import reconciler

PACKAGE = Path(reconciler.__file__).parent


@cache
def read_modules() -> dict[str, str]:
    """Return the text of the modules of the package, by their path inside it."""
    return {
        path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def parse_modules(pattern: str) -> dict[str, ast.Module]:
    """Return the modules whose text matches: to parse all of them costs a second of CPU."""
    matches = re.compile(pattern).search
    return {path: ast.parse(text) for path, text in read_modules().items() if matches(text)}


def list_calls(*names: str) -> Iterator[tuple[str, str, ast.Call]]:
    """Yield every call of functions and methods of these names: its module, its name, the call."""
    for path, module in parse_modules(rf"\b(?:{'|'.join(names)})\b").items():
        for node in ast.walk(module):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if name in names:
                    yield path, name, node
