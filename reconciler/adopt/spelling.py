"""Values of a spec as a person writes them: 7d, 1GiB, [compact, delete]."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from reconciler.spec.config_docs import Dimension
from reconciler.spec.configs import Catalogue
from reconciler.spec.scalars import split_list
from reconciler.units import format_duration, format_size

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9._/-]*|[0-9]+[A-Za-z]+")
_AMBIGUOUS = re.compile(r"(?i:null|true|false|yes|no|on|off|y|n|nan|inf|[0-9]+e[0-9]*|0[xob].*)")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:E-?[0-9]+)?")
_FORMATS = {Dimension.DURATION: format_duration, Dimension.SIZE: format_size}

ORDER = (
    *("topic", "owner", "description", "labels", "clusters", "partitions", "replication_factor"),
    *("rack_aware", "gradual", "profile", "config", "assignment", "state", "acknowledge"),
    *("expires", "idle_after", "overrides"),
)
"""The keys of a topic in their usual order."""

ConfigValue = str | list[str] | None


def humanise(catalogue: Catalogue, key: str, value: str) -> ConfigValue:
    """Spell a config value for people. It is read back as the same value.

    A unit is used if the value is then shorter: 604800000 is 7d, and 1234567 stays a number.
    """
    if catalogue.is_list(key) and "," in value:
        items = split_list(value)
        return [*items] if catalogue.normalise(key, [*items], None) == value else value
    formatted = _FORMATS.get(catalogue.dimension(key) or Dimension.COUNT)
    if formatted is None or not re.fullmatch(r"[1-9][0-9]*", value):
        return value
    shown = formatted(int(value))
    return value if shown in {f"{value}ms", f"{value}B"} else shown


def render_document(document: Mapping[str, object]) -> str:
    """Write a document as YAML: two spaces per level, rows and short lists on one line."""
    return "\n".join(_render_map(document, "", is_config=False)) + "\n"


def spell_modeline(path: str, schema: str) -> str:
    """Return the comment with the schema of a file for editors: in schemas/, next to the estate."""
    up = "../" * (path.count("/") + 1)
    return f"# yaml-language-server: $schema={up}schemas/{schema}.schema.json\n"


def render_topic(document: Mapping[str, object]) -> str:
    """Write a topic document, its keys in their usual order."""
    return render_document({key: document[key] for key in ORDER if key in document})


def spell_text(text: str, *, number: bool = False) -> str:
    """Spell a text as YAML, in quotes if another reader could take it for something else.

    `number`: a number or a flag is written without quotes.
    """
    # Ours is a reader of YAML 1.2. Readers of YAML 1.1 take yes and on for flags.
    if number and _NUMBER.fullmatch(text):
        return text
    if number and text in {"true", "false"}:
        return text
    if _PLAIN.fullmatch(text) and not _AMBIGUOUS.fullmatch(text):
        return text
    if text.isprintable() and re.fullmatch(r"[A-Za-z][^:#'\"\\{}\[\],&*!|>%@`]*", text):
        return text if text == text.strip() and not _AMBIGUOUS.fullmatch(text) else _quote(text)
    return _quote(text)


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _quote(text: str) -> str:
    return '"' + "".join(map(_escape, text)) + '"'


def _escape(character: str) -> str:
    if character in _ESCAPES or character.isprintable():
        return _ESCAPES.get(character, character)
    return f"\\U{ord(character):08x}"


def _render_map(table: Mapping[str, object], indent: str, *, is_config: bool) -> Iterator[str]:
    for key, value in table.items():
        name = f"{indent}{spell_text(key)}:"
        if isinstance(value, Mapping) and value:
            yield name
            yield from _render_map(value, f"{indent}  ", is_config=key == "config")
        elif key == "assignment" and isinstance(value, list):
            yield name
            yield from (f"{indent}  - {_render_list(row)}" for row in value)
        else:
            yield f"{name} {_render_value(value, number=is_config)}"


def _render_value(value: object, *, number: bool) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case list():
            return _render_list(value)
        case Mapping():
            return "{}"
        case _:
            return spell_text(str(value), number=number)


def _render_list(items: list[object]) -> str:
    return f"[{', '.join(_render_value(item, number=False) for item in items)}]"
