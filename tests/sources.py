"""The package as Python reads it, parsed once for all tests that look for calls in it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import reconciler

PACKAGE = Path(reconciler.__file__).parent


@cache
def list_calls() -> tuple[tuple[str, ast.Call], ...]:
    """Return every call of the package, each with the path of its module inside it."""
    return tuple(
        (path.relative_to(PACKAGE).as_posix(), node)
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    )
