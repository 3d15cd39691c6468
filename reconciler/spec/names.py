"""Valid names: of topics, by the broker's rules, and of owners, which people must not confuse.

A quota, a review and a rule in CEL find an owner by the text of the name. So two names that people
take for one must not be two owners, just as two names that metrics take for one are not two topics.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from reconciler.errors import Finding, Location
from reconciler.model.cluster import INTERNAL_TOPICS
from reconciler.spec.fields import suggest
from reconciler.spec.values import YamlText, quote

MAX_LENGTH = 249
"""Units: characters. A log directory is named after topic and partition, and file names end at
255 bytes. Source: org.apache.kafka.common.internals.Topic."""

NAME_PATTERN = r"^[a-zA-Z0-9._-]{1,249}$"
"""The part of the rules that a JSON Schema can express; `.` and `..` are refused as well."""

_UNPRINTED = {" ": "a blank", "\t": "a tab", "\n": "a line end"}


def check_name(name: str, where: Location | None) -> list[Finding]:
    """Return every error in a topic's name."""
    if name == "":
        return [Finding("name-empty", "the topic has no name", "give it one", where)]
    if name in {".", ".."}:
        what = f"a topic cannot be called '{name}', which names a directory"
        return [Finding("name-dots", what, "choose another name", where)]
    if name in INTERNAL_TOPICS:
        what = f"'{name}' {INTERNAL_TOPICS[name]}; Kafka creates and configures it by itself"
        return [Finding("name-internal", what, "remove it from the specs", where)]
    findings = check_length(name, where)
    if wrong := dict.fromkeys(re.findall(r"[^a-zA-Z0-9._-]", name)):
        shown = [_UNPRINTED.get(character) or quote(character) for character in wrong]
        listed = ", ".join(shown[:5]) + (" and more" if len(shown) > 5 else "")
        what = f"topic {quote(name)} has characters that Kafka does not accept: {listed}"
        way_out = "use only ASCII letters, digits, '.', '_' and '-'"
        findings.append(Finding("name-characters", what, way_out, where))
    return findings


def find_collisions(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Group the names that are equal if '.' becomes '_', as in the names of metrics.

    Returns groups of two or more names, sorted. Kafka refuses such a topic if the other exists, but
    it creates both if they are in one request.
    """
    groups: defaultdict[str, set[str]] = defaultdict(set)
    for name in names:
        groups[name.replace(".", "_")].add(name)
    return sorted(tuple(sorted(group)) for group in groups.values() if len(group) > 1)


def check_length(name: str, where: Location | None) -> list[Finding]:
    """Return an error if a name is too long; otherwise nothing."""
    length = len(name.encode("utf-16-le", "surrogatepass")) // 2  # Java counts UTF-16 units
    if length <= MAX_LENGTH:
        return []
    what = f"topic {quote(name)} has a name of {length} characters"
    return [Finding("name-length", what, f"use at most {MAX_LENGTH}", where)]


_MARKS = "._/@:+&-"
"""What accounts of code hosts, addresses and names of teams need."""

OWNER_PATTERN = rf"^@?[A-Za-z0-9][A-Za-z0-9{_MARKS}]*( [A-Za-z0-9{_MARKS}]+)*$"

_BLANKS = re.compile(r"[-_. ]")
_BETWEEN_DIGITS = re.compile(r"(?<=[0-9])[-_. ]+(?=[0-9])")
_SHAPES = str.maketrans("I10", "llO")
"""Characters of one shape in many fonts. Look-alikes beyond ASCII are refused by themselves."""

OWNERS_NAMED = 5


def check_owner(name: str, where: Location | None) -> list[Finding]:
    """Return the error in the form of a name, if there is one."""
    if re.fullmatch(OWNER_PATTERN, name):
        return []
    wrong = dict.fromkeys(re.findall(rf"[^A-Za-z0-9 {_MARKS}]", name))
    plain = " ".join(name.split())
    if wrong:
        listed = ", ".join(map(_name_character, list(wrong)[:5])) + (" and more" * (len(wrong) > 5))
        what = f"has characters that are not allowed in names of owners: {listed}"
        marks = ", ".join(f"'{mark}'" for mark in _MARKS)
        way_out = f"use only ASCII letters, digits, single blanks and {marks}"
    elif plain != name:
        what = "has two blanks in a row" if name == name.strip() else "begins or ends with a blank"
        way_out = f"write {quote(plain)}"
    else:
        what, way_out = "begins with a punctuation mark", "begin it with a letter or a digit, or @"
    return [Finding("owner-form", f"the owner {quote(name)} {what}", way_out, where)]


def _name_character(character: str) -> str:
    """Name a character. One that looks like another has its code and its name in Unicode."""
    if character.isascii():
        return _UNPRINTED.get(character) or quote(character)
    code = f"U+{ord(character):04X} {unicodedata.name(character, '')}"
    return f"{quote(character)} ({code.rstrip()})"


def check_spellings(owners: Sequence[YamlText]) -> Iterator[Finding]:
    """Check that an owner is spelled in one way: the one of most topics, or else the first."""
    spelled: defaultdict[str, Counter[str]] = defaultdict(Counter)
    alike: defaultdict[str, Counter[str]] = defaultdict(Counter)
    first: dict[str, Location] = {}
    for owner in owners:
        spelled[_fold(owner)][str(owner)] += 1
        alike[_fold_shapes(owner)][str(owner)] += 1
        first.setdefault(str(owner), owner.where)
    for owner in owners:
        ((usual, _),) = spelled[_fold(owner)].most_common(1)
        ((model, _),) = alike[_fold_shapes(owner)].most_common(1)
        if owner != usual:
            what = f"the owner {quote(owner)} is spelled {quote(usual)} at {first[usual]}"
            way_out = (
                f"write {quote(usual)}; another owner needs a name that differs in more than "
                "case, blanks, '.', '_' and '-'"
            )
            yield Finding("owner-spelling", what, way_out, owner.where)
        elif owner != model and _fold(model) != _fold(owner):
            what = f"the owner {quote(owner)} looks like {quote(model)} at {first[model]}"
            way_out = (
                f"write {quote(model)}; another owner needs a name that differs in more than "
                "'I', 'l' and '1', or 'O' and '0'"
            )
            yield Finding("owner-spelling", what, way_out, owner.where)


def _fold(owner: str) -> str:
    """Normalise what people mix up. A mark between digits counts: 1.1 is not 11."""
    return _BLANKS.sub("", _BETWEEN_DIGITS.sub(":", owner)).lower()


def _fold_shapes(owner: str) -> str:
    """Normalise what looks the same as well."""
    return _BLANKS.sub("", _BETWEEN_DIGITS.sub(":", owner)).translate(_SHAPES).lower()


def check_declared(owners: Iterable[YamlText], declared: Sequence[str]) -> Iterator[Finding]:
    """Check that each owner is one of those that clusters.yaml declares, if it declares any."""
    known, more = frozenset(declared), len(declared) - OWNERS_NAMED
    for owner in owners if declared else ():
        if owner not in known:
            shown = ", ".join(map(quote, declared[:OWNERS_NAMED]))
            shown += f" and {more:,} more" if more > 0 else ""
            way_out = suggest(owner, declared) or f"write one of them: {shown}"
            what = f"the owner {quote(owner)} is not among the owners of clusters.yaml"
            yield Finding("owner-unknown", what, way_out, owner.where)
