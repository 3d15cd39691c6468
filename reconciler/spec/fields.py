"""Kinds of values: each has one reader, one JSON Schema and one line in the docs.

A reader takes the value and its name in messages. It raises FieldError with every finding. Nothing
is converted silently: an ambiguous value is refused, and the message shows how to write it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Generic, TypeVar

from reconciler.errors import Finding, Location
from reconciler.spec.values import (
    YamlList,
    YamlMap,
    YamlText,
    YamlValue,
    describe_yaml,
    quote,
    show,
)

S = TypeVar("S")
T = TypeVar("T")
U = TypeVar("U")
Schema = dict[str, Any]

_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_GROUPED = re.compile(r"[0-9]{1,3}(?:[_, ' ][0-9]{3})+")
_LEADING_ZERO = re.compile(r"[-+]?0+[0-9]+")
MOST_CHARACTERS = 2_000
"""The length limit of an expression or pattern: a longer one is a program."""

_REQUIRED = {"topic", "version", "kind", "apiVersion"}
_YES = {"yes", "on", "y", "true", "1"}
_NO = {"no", "off", "n", "false", "0"}


class FieldError(ValueError):
    """Findings about one field."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("; ".join(finding.what for finding in self.findings))


def field_error(rule: str, where: Location, what: str, way_out: str) -> FieldError:
    """Return an error of one finding."""
    return FieldError([Finding(rule, what, way_out, where)])


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """One kind of value, declared once: what reads it, describes it and checks it in an editor.

    `read` takes the value and the name of its key. `says` is its line in docs/reference/keys.md.
    `spell` returns a value as it is written; without it, the default of a key is not shown.
    `any_config`: the reader also takes the configs that the services of the estate's clusters have.
    """

    read: Callable[..., T]
    schema: Schema
    says: str
    spell: Callable[[T], bool | int | str] | None = None
    any_config: bool = False

    def then(self, make: Callable[[T], U], spell: Callable[[U], str] | None = None) -> Kind[U]:
        """Return the kind that is written alike, and read as something else."""
        read = self.read
        return Kind(lambda *given: make(read(*given)), self.schema, self.says, spell)


def or_null(kind: Kind[T]) -> Kind[T | None]:
    """Return the kind that also takes null, which removes an inherited value."""
    schema, read = kind.schema, kind.read
    if "type" in schema:
        schema = {**schema, "type": [schema["type"], "null"]}
    else:
        schema = {"anyOf": [*schema["anyOf"], {"type": "null"}]}

    def read_or_null(value: YamlValue, name: str) -> T | None:
        return None if isinstance(value, YamlText) and value.is_null else read(value, name)

    return Kind(read_or_null, schema, f"{kind.says}, or null")


def not_empty(
    kind: Kind[tuple[T, ...]], what: str, way_out: str, rule: str = "value-missing"
) -> Kind[tuple[T, ...]]:
    """Return the kind of lists that have an item."""

    def read(value: YamlValue, name: str) -> tuple[T, ...]:
        if items := kind.read(value, name):
            return items
        raise field_error(rule, value.where, f"{name} {what}", way_out)

    return replace(kind, read=read, schema={**kind.schema, "minItems": 1})


def whole(least: int, most: int) -> Kind[int]:
    """Return the kind of plain decimal numbers of a range."""
    schema = {"type": "integer", "minimum": least, "maximum": most}
    read = partial(read_count, least=least, most=most)
    return Kind(read, schema, f"whole number from {least:,} to {most:,}", int)


def choice(*words: str) -> Kind[str]:
    """Return the kind of a few words."""
    schema = {"type": "string", "enum": [*map(str, words)]}
    *others, last = (f"`{word}`" for word in words)
    says = f"{', '.join(others)} or {last}"
    return Kind(partial(read_choice, choices=words), schema, says, str)


def require_value(value: YamlValue, name: str) -> None:
    """Refuse `key:` without a value. Errors: FieldError."""
    if isinstance(value, YamlText) and value.tag == "null":
        stands = "no value" if value.is_missing else f"the value {value}"
        way_out = "write one" if name in _REQUIRED else "write one, or leave the key out"
        raise field_error("value-missing", value.where, f"{name} has {stands}", way_out)


def read_map(value: YamlValue, name: str, what: str, way_out: str) -> YamlMap:
    """Read a map of any keys; `what` says of which. Errors: FieldError."""
    require_value(value, name)
    if isinstance(value, YamlMap):
        return value
    raise refuse_form(value, name, what, way_out)


def read_list(value: YamlValue, name: str, what: str, way_out: str) -> YamlList:
    """Read a list of any items; `what` says of which. Errors: FieldError."""
    require_value(value, name)
    if isinstance(value, YamlList):
        return value
    raise refuse_form(value, name, what, way_out)


def refuse_form(value: YamlValue, name: str, what: str, way_out: str) -> FieldError:
    """Return the error of a value that is a text, a list or a map, and not `what`."""
    described = f"{name} is {describe_yaml(value)}, not {what}"
    return field_error("value-form", value.where, described, way_out)


def read_count(value: YamlValue, name: str, least: int, most: int) -> int:
    """Read a plain decimal whole number of a range. Errors: FieldError."""
    require_value(value, name)
    example = max(least, 3)
    if not isinstance(value, YamlText):
        raise refuse_form(value, name, "a number", f"write {name}: {example}")
    if value.tag != "int" or not _DECIMAL.fullmatch(value):
        raise field_error("value-count", value.where, *_teach_count(value, name, example))
    number = int(value)
    if not least <= number <= most:
        what = f"{name} {value} is out of range"
        way_out = f"write a whole number from {least} to {most}"
        raise field_error("value-range", value.where, what, way_out)
    return number


def _teach_count(value: YamlText, name: str, example: int) -> tuple[str, str]:
    """Return the problem with the spelling of a number, and the correct form."""
    shown = quote(value)
    if _DECIMAL.fullmatch(value):
        return f"{name} {shown} is quoted, which makes it text", f"write {value} without quotes"
    if _LEADING_ZERO.fullmatch(value) and len(value) < 20:
        octal = _read_octal(value)
        way_out = f"write {int(value)}" + (f", or {octal} if octal was meant" if octal else "")
        return f"{name} {value} has a leading zero, which some readers take for octal", way_out
    if value.tag == "int":
        if len(value) > 19:
            return f"{name} {shown} is too large a number", f"write one such as {example}"
        return f"{name} {value} is not plain decimal", f"write {int(value.lstrip('+'), 0)}"
    if value.tag == "float":
        return f"{name} {value} is not a whole number", _round_float(value, example)
    if _GROUPED.fullmatch(value):
        plain = re.sub("[^0-9]", "", value)
        return f"{name} {shown} groups its digits, which makes it text", f"write {plain}"
    return f"{name} {shown} is not a whole number", f"write one such as {example}"


def _read_octal(value: str) -> int | None:
    try:
        return int(value, 8)
    except ValueError:
        return None


def _round_float(value: str, example: int) -> str:
    """Return the way out for a float: the number it equals, if it equals one."""
    try:
        number = float(value)
    except ValueError:
        return f"write one such as {example}"
    whole = number.is_integer() and abs(number) < 10**15
    return f"write {int(number)}" if whole else f"write a whole number such as {example}"


def read_text(value: YamlValue, name: str, *, empty: bool = False) -> YamlText:
    """Read text, which may be empty only with `empty`. Errors: FieldError."""
    require_value(value, name)
    if not isinstance(value, YamlText):
        raise refuse_form(value, name, "text", f"write {name}: some text")
    if value.tag != "str":
        kind = "a flag" if value.tag == "bool" else "a number"
        what = f"{name} {quote(value)} without quotes is {kind} to YAML"
        raise field_error("value-text", value.where, what, f'write "{value[:40]}" in quotes')
    if not value.strip() and not empty:
        what = f"{name} is empty"
        raise field_error("value-missing", value.where, what, "write one, or leave the key out")
    return value


def read_flag(value: YamlValue, name: str) -> bool:
    """Read true or false. Errors: FieldError."""
    require_value(value, name)
    if isinstance(value, YamlText) and value.tag == "bool":
        return value.lower() == "true"
    where, shown = value.where, describe_yaml(value)
    if isinstance(value, YamlText) and value.lower() in _YES | _NO:
        word = "true" if value.lower() in _YES else "false"
        if value.quoted:
            what, way_out = f"{name} {shown} is quoted, which makes it text", "without quotes"
            raise field_error("value-flag", where, what, f"write {word} {way_out}")
        what = f"{name} {shown} is not a boolean in YAML 1.2"
        raise field_error("value-flag", where, what, f"write {word}")
    raise field_error(
        "value-flag", where, f"{name} {shown} is not a boolean", "write true or false"
    )


def read_choice(value: YamlValue, name: str, choices: tuple[str, ...]) -> str:
    """Read one of a few words. Errors: FieldError."""
    if isinstance(value, YamlText) and value.tag not in {"str", "null"}:
        what = f"{name} {show(value)} is unknown"  # in quotes it would be as well
        raise field_error("value-choice", value.where, what, f"write {' or '.join(choices)}")
    text = read_text(value, name)
    if text not in choices:
        way_out = suggest(text, choices) or f"write {' or '.join(choices)}"
        raise field_error("value-choice", text.where, f"{name} {quote(text)} is unknown", way_out)
    return str(text)


def read_texts(value: YamlValue, name: str) -> tuple[YamlText, ...]:
    """Read a list of distinct texts. Errors: FieldError, with a finding for every bad item."""
    items = show(value) if isinstance(value, YamlText) else "one, two"
    written = read_list(value, name, "a list", f"write {name}: [{items}]")
    read = read_each(written, lambda item: read_text(item, f"{name}: item"))
    _refuse_repeats(read, name)
    return tuple(read)


def read_short_text(value: YamlValue, name: str) -> YamlText:
    """Read a pattern or an expression, which has a length limit. Errors: FieldError."""
    text = read_text(value, name)
    if len(text) > MOST_CHARACTERS:
        what = f"{name} has {len(text):,} characters, more than {MOST_CHARACTERS:,}"
        raise field_error("value-form", text.where, what, "shorten it, or split it")
    return text


def read_patterns(value: YamlValue, name: str) -> tuple[YamlText, ...]:
    """Read a list of names and patterns of names. Errors: FieldError, for every bad item."""
    texts = read_texts(value, name)
    return tuple(read_each(texts, lambda item: read_short_text(item, f"{name}: item")))


def read_counts(value: YamlValue, name: str, least: int, most: int) -> tuple[int, ...]:
    """Read a list of distinct numbers. Errors: FieldError, with a finding for every bad item."""
    written = read_list(value, name, "a list", f"write {name}: [1, 2]")
    read = read_each(written, lambda item: read_count(item, f"{name}: item", least, most))
    _refuse_repeats([item for item in written if isinstance(item, YamlText)], name)
    return tuple(read)


def read_each(items: Iterable[S], read: Callable[[S], T]) -> list[T]:
    """Read every item. Errors: FieldError, with the findings of all of them at once."""
    done: list[T] = []
    findings: list[Finding] = []
    for item in items:
        try:
            done.append(read(item))
        except FieldError as error:
            findings.extend(error.findings)
    if findings:
        raise FieldError(findings)
    return done


def _refuse_repeats(items: Iterable[YamlText], name: str) -> None:
    if findings := list_repeats(items, name):
        raise FieldError(findings)


def list_repeats(items: Iterable[YamlText], name: str) -> list[Finding]:
    """Return a finding for each item that is there already."""
    seen: set[str] = set()
    findings = []
    for item in items:
        if item in seen:
            what = f"{name} names {quote(item)} twice"
            findings.append(Finding("value-repeated", what, "keep one of them", item.where))
        seen.add(item)
    return findings


def suggest(word: str, known: Iterable[str]) -> str:
    """Return the way out that names the nearest known word, or "" if none is near."""
    return _suggest(word[:100], tuple(known))


@lru_cache(maxsize=1_000)
def _suggest(word: str, candidates: tuple[str, ...]) -> str:
    from difflib import get_close_matches

    by_folded = {fold_spelling(name): name for name in candidates}
    if fold_spelling(word) in by_folded:
        return f"did you mean {by_folded[fold_spelling(word)]}?"
    near = get_close_matches(word, candidates, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else ""


def fold_spelling(word: str) -> str:
    """Normalise spellings that people mix up: case, blanks, dots, dashes and underscores."""
    return re.sub(r"[-_. ]", "", word).lower()


MOST_KEYS = 200


@dataclass(frozen=True, slots=True)
class WrittenConfigItem:
    """One config key and its raw value: text, a list of texts, or None for null."""

    key: str
    value: str | tuple[str, ...] | None
    key_where: Location
    where: Location


@dataclass(frozen=True, slots=True)
class WrittenConfig:
    """The config of one layer, in the order of the file."""

    items: tuple[WrittenConfigItem, ...] = ()


def read_settings(value: YamlValue) -> WrittenConfig:
    """Read a config map. Errors: FieldError, with every finding."""
    way_out = "write keys below it, one a line, without dashes: retention.ms: 7d"
    written = read_map(value, "config", "a map", way_out)
    if len(written) > MOST_KEYS:
        what = f"config has {len(written):,} keys, and Kafka has only a few dozen"
        raise field_error("value-form", value.where, what, "keep those that the topic needs")
    findings: list[Finding] = []
    items = []
    for key, item in written.entries():
        raw: str | tuple[str, ...] | None = None
        if isinstance(item, YamlMap):
            inner = next(iter(item), "…")
            what = f"{quote(key)} is a map, and no config value is a map"
            way_out = f"write dotted keys, each on a line: {show(key)}.{show(inner)}: …"
            findings.append(Finding("value-form", what, way_out, item.where))
        elif isinstance(item, YamlList):
            if all(isinstance(word, YamlText) and word.tag != "null" for word in item):
                raw = tuple(str(word) for word in item)
            else:
                what = f"the list of {quote(key)} holds more than plain values"
                way_out = "write plain values: [compact, delete]"
                findings.append(Finding("value-form", what, way_out, item.where))
        elif item.is_missing:  # `key:` can be a slip; only a written null removes a value
            what = f"{quote(key)} has no value"
            way_out = "write one, write null to remove an inherited value, or leave the key out"
            findings.append(Finding("value-missing", what, way_out, item.where))
        elif not item.is_null:
            raw = str(item)
        items.append(WrittenConfigItem(str(key), raw, key.where, item.where))
    if findings:
        raise FieldError(findings)
    return WrittenConfig(tuple(items))


_WORDS: Schema = {"type": "string", "minLength": 1, "pattern": r"\S"}
TEXT = Kind(read_text, _WORDS, "text")
FLAG = Kind(read_flag, {"type": "boolean"}, "`true` or `false`", bool)
TEXTS = Kind(
    read_texts, {"type": "array", "items": _WORDS, "uniqueItems": True}, "list of distinct names"
)
SHORT_TEXT = Kind(
    read_short_text,
    {"type": "string", "minLength": 1, "maxLength": MOST_CHARACTERS},
    f"text of at most {MOST_CHARACTERS:,} characters",
)
PATTERNS = Kind(
    read_patterns,
    {
        "type": "array",
        "items": {**_WORDS, "maxLength": MOST_CHARACTERS},
        "uniqueItems": True,
    },
    "list of names, and of patterns with `*` and `?`",
).then(lambda texts: tuple(map(str, texts)))
