"""The glossary: the words of reconciler.model, and the places where each appears."""

from __future__ import annotations

import enum
import inspect
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from reconciler import model
from reconciler.cli.schema import SCHEMAS
from reconciler.fleet.tables import FACTS, TABLES

HEAD = """\
# Glossary

Generated from the code: the nouns that every stage shares, and the values of their enums. A word
has the same meaning in YAML, in JSON, in the tables of the lake and in messages. "Appears as" lists
the keys of files, by schema ([JSON](json.md)), and the columns of the tables of
[a lake](lake.md)."""


def render_glossary() -> str:
    """Return the page: every noun, then the words of each enum."""
    modules = (import_module(f"{model.__name__}.{m.name}") for m in iter_modules(model.__path__))
    owned = (
        noun
        for module in modules
        for name, noun in inspect.getmembers(module, inspect.isclass)
        if noun.__module__ == module.__name__ and not name.startswith("_")
    )
    nouns = sorted(owned, key=lambda noun: noun.__name__)
    places = find_places()
    lines = [HEAD, "", "| word | means | appears as |", "|---|---|---|"]
    lines += [
        f"| {_spell(noun)} | {_explain(noun)} | {_say(places[_singular(_spell(noun))])} |"
        for noun in nouns
    ]
    for noun in (one for one in nouns if issubclass(one, enum.Enum)):
        lines += ["", f"## {_spell(noun).capitalize()}", "", _explain(noun)]
        lines += ["", "| word | key of a file |", "|---|---|"]
        found = {word: places[f"={word}"] for word in noun}
        counted = Counter(place for of_word in found.values() for place in of_word)
        shared = {place for place, words in counted.items() if words > 1}  # one may be chance
        lines += [f"| `{word}` | {_say(found[word] & shared)} |" for word in noun]
    return "\n".join(lines) + "\n"


def find_places() -> Mapping[str, set[str]]:
    """Return where words appear: keys and columns by their name, allowed values by `=value`."""
    places: dict[str, set[str]] = defaultdict(set)
    for name, build in SCHEMAS.items():
        schema = build()
        for key, held in _list_properties(schema):
            place = f"{name}: `{key}`"
            places[_singular(key)].add(place)
            for value in _list_values(held, schema.get("$defs", schema.get("definitions", {}))):
                places[f"={value}"].add(place)
    for table in (one for one in TABLES.values() if one is not FACTS):
        for word, place in (
            (table.name, table.name),
            *((c, f"{table.name}.{c}") for c in table.columns),
        ):
            places[_singular(word)].add(f"lake: `{place}`")
    return places


def _list_properties(schema: Any) -> Iterator[tuple[str, Any]]:
    """Yield every key of a schema, at any depth, with its own schema."""
    if isinstance(schema, list):
        for each in schema:
            yield from _list_properties(each)
    if isinstance(schema, dict):
        yield from schema.get("properties", {}).items()
        for each in schema.values():
            yield from _list_properties(each)


def _list_values(schema: Any, definitions: Mapping[str, Any]) -> Iterator[str]:
    """Yield the values that a key allows, its items' among them, but not those of its own keys."""
    if isinstance(schema, list):
        for each in schema:
            yield from _list_values(each, definitions)
    if isinstance(schema, dict):
        yield from map(str, schema.get("enum", ()))
        if "const" in schema:
            yield str(schema["const"])
        name = str(schema.get("$ref", "")).rpartition("/")[2]
        if "properties" not in definitions.get(name, {"properties": {}}):
            yield from _list_values(definitions[name], definitions)
        for key in ("items", "anyOf", "oneOf", "allOf"):
            yield from _list_values(schema.get(key), definitions)


def _spell(noun: type) -> str:
    """Return the name of a class as words: TopicSpec is a topic spec."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", noun.__name__).lower()


def _explain(noun: type) -> str:
    return (inspect.getdoc(noun) or "").partition("\n\n")[0].replace("\n", " ").replace("|", "\\|")


def _singular(key: str) -> str:
    return key.replace("_", " ").removesuffix("s")


def _say(places: set[str]) -> str:
    return ", ".join(sorted(places)) or "–"
