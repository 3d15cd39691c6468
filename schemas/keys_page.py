"""The page of keys: every key of the files of an estate, as it is declared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from reconciler.spec.declarations import Form, Forms, Key, list_keys
from reconciler.spec.forms import ClustersDocument, ExemptionForm, TopicDocument

HEAD = """\
# Keys

Generated from the code: every key of a topic, of clusters.yaml and of policy-baseline.yaml, its
value, and what it is for. [Specs](specs.md), [clusters.yaml](clusters.md) and
[policies and guards](policy.md) explain how to use them. NAME is a name that you choose."""


def render_keys() -> str:
    """Return the page: a section for each map, with a row for each of its keys."""
    places: dict[type[Any], list[str]] = {TopicDocument: ["A topic"]}
    _find_places(TopicDocument, "", places)
    places[ClustersDocument] = ["clusters.yaml"]
    _find_places(ClustersDocument, "", places)
    places[ExemptionForm] = ["policy-baseline.yaml"]
    lines = [HEAD]
    for declared, (first, *others) in places.items():
        also = f" Also {', '.join(f'`{path}`' for path in others)}." if others else ""
        lines += ["", f"## {first}", "", f"{declared.__doc__}{also}", ""]
        lines += ["| key | value | meaning |", "|---|---|---|"]
        lines += [
            f"| `{name}` | {_spell_value(key, places)} | {key.says} |"
            for name, (_, key) in list_keys(declared).items()
        ]
    return "\n".join(lines) + "\n"


def _find_places(declared: type[Any], path: str, places: dict[type[Any], list[str]]) -> None:
    """Add the path of each map below a form to `places`, in the order of the keys."""
    for below, form in _list_forms(declared, path):
        if form in places:
            places[form].append(below)
        else:
            places[form] = [below]
            _find_places(form, f"{below}.", places)


def _list_forms(declared: type[Any], path: str) -> Iterator[tuple[str, type[Any]]]:
    for name, (_, key) in list_keys(declared).items():
        match key.value:
            case Form(form):
                yield f"{path}{name}", form
            case Forms(_, form):
                yield f"{path}{name}.NAME", form


def _spell_value(key: Key, places: dict[type[Any], list[str]]) -> str:
    required = "; required" if key.required else ""
    match key.value:
        case Form(form):
            return f"[map](#{_spell_anchor(places[form][0])}){required}"
        case Forms(_, form):
            return f"map of names to [maps](#{_spell_anchor(places[form][0])})"
        case kind:
            return f"{kind.says}{required}"


def _spell_anchor(heading: str) -> str:
    """Return what hosts of code make of a heading for links."""
    return re.sub(r"[^a-z0-9_ -]", "", heading.lower()).replace(" ", "-")
