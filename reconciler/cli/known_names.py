"""Names that a shell completes: clusters, topics, owners, labels and profiles of an estate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from reconciler.errors import ReconcilerError

if TYPE_CHECKING:
    from reconciler.spec.estate import Estate


def _list_owners(estate: Estate) -> Iterable[str]:
    named = (topic.document.owner for topic in estate.written)
    return (str(owner) for owner in named if owner is not None)


def _list_labels(estate: Estate) -> Iterable[str]:
    # Keys alone: bash takes what follows an equals sign for another word.
    for cluster in estate.declared:
        for spec in estate.topics_for(cluster):
            yield from spec.labels


_NAMES: Mapping[str, Callable[[Estate], Iterable[str]]] = MappingProxyType(
    {
        "--cluster": lambda estate: (*estate.declared, "sandbox"),
        "--topic": lambda estate: estate.topics,
        "--explain": lambda estate: estate.topics,
        "--owner": _list_owners,
        "--label": _list_labels,
        "--profile": lambda estate: estate.profiles,
    }
)
"""The names that an option takes, by the option: of each command that has it."""


def complete_names(ctx: click.Context, option: str, incomplete: str) -> list[CompletionItem]:
    """List the names of an option that begin as typed; none if the estate cannot be read."""
    from reconciler.api.planning import load_estate

    try:
        names = set(_NAMES[option](load_estate(_find_estate(ctx.params))))
    except (ReconcilerError, OSError):
        return []  # a shell shows no errors, and `validate` does
    # A line is a name for the shell, so a name that breaks lines, or has blanks, is none.
    fit = (name for name in names if name.startswith(incomplete) and name.isprintable())
    return [CompletionItem(name) for name in sorted(fit) if " " not in name]


def _find_estate(params: Mapping[str, Any]) -> Path:
    """Return the estate of a command that is not complete yet; a saved plan is none."""
    for name in ("estate", "source"):
        given = params.get(name)
        if given is not None and Path(given).is_dir():
            return Path(given)
    return Path("topics")
