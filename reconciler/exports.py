"""Exports that load on first use: a package hands out many names, and imports what is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def export_lazily(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a package. `homes`: names by the module that has them.

    A package without it would import its clients, numpy or Spark for any small name.
    """
    modules = {name: module for module, names in homes.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    return find
