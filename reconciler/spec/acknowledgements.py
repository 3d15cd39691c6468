"""The entries of `acknowledge`: a risk of any change, or of a single one.

`data-loss` accepts the loss by any change. `data-loss: retention.ms 7d → 1h` accepts it by a change
of exactly this key between exactly these values.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from reconciler.errors import Finding, Location
from reconciler.model.cluster import RISKY_FIELDS, AcceptedChange, AcknowledgedEntry, Risk
from reconciler.spec import fields
from reconciler.spec.assignment import MOST_PARTITIONS
from reconciler.spec.configs import choose_catalogue
from reconciler.spec.fields import FieldError, field_error, suggest
from reconciler.spec.values import YamlList, YamlMap, YamlText, YamlValue, describe_yaml, quote

RISKS = tuple(risk.value for risk in Risk if risk is not Risk.NONE)
_UNSET = ("not set", "unset")
_ARROW = re.compile(r"\s*(?:→|->)\s*")
_COUNT = re.compile("[1-9][0-9]{0,5}")
_EXAMPLES = {
    Risk.ORDERING: "ordering: 6 → 12",
    Risk.TRAFFIC: "traffic: min.insync.replicas 1 → 2",
    Risk.DURABILITY: "durability: min.insync.replicas 2 → 1",
    Risk.DATA_LOSS: "data-loss: retention.ms 7d → 1h",
}


class Acknowledged(NamedTuple):
    """One entry: a risk, and where it is written. Without `change` it accepts any change."""

    risk: str
    where: Location
    change: AcceptedChange | None = None

    @property
    def entry(self) -> AcknowledgedEntry:
        """The entry without its location."""
        return (self.risk,) if self.change is None else self.change.entry


def read_acknowledged(value: YamlValue) -> tuple[Acknowledged, ...]:
    """Read a list of distinct entries. Errors: FieldError, with a finding for every bad entry."""
    if not isinstance(value, YamlList):
        fields.read_texts(value, "acknowledge")
        return ()
    read = fields.read_each(value, _read_entry)
    _refuse_repeats(read)
    return tuple(read)


def build_schema() -> dict[str, Any]:
    """Return the JSON Schema of the list."""
    changes: dict[str, Any] = {}
    for name in RISKS:
        written = "|".join(map(re.escape, RISKY_FIELDS[Risk(name)]))
        named = f"(({written}) +)?" if name == Risk.ORDERING else f"({written}) +"
        pattern = rf"^ *{named}[^→>]+(→|->)[^→>]+$"
        changes[name] = {"type": "string", "pattern": pattern}
    change = {
        "type": "object",
        "properties": changes,
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    }
    item = {"anyOf": [{"type": "string", "enum": list(RISKS)}, change]}
    return {"type": "array", "items": item, "uniqueItems": True}


def _read_entry(item: YamlValue) -> Acknowledged:
    if not isinstance(item, YamlMap):
        # Missing quotes, and a missing value, are findings of their own.
        if isinstance(item, YamlText) and item.tag != "null" and item.strip():
            _check_risk(item)
        text = fields.read_text(item, "acknowledge: item")
        return Acknowledged(str(text), text.where)
    if len(item) != 1:
        what = f"an entry of acknowledge names {len(item)} risks"
        way_out = f"write one per entry: - {_EXAMPLES[Risk.DATA_LOSS]}"
        raise field_error("acknowledge-form", item.where, what, way_out)
    ((risk, change),) = item.entries()
    _check_risk(risk)
    return Acknowledged(str(risk), item.where, _read_change(Risk(risk), change, item.where))


def _check_risk(word: YamlText) -> None:
    if word in RISKS:
        return
    way_out = suggest(word, RISKS) or f"the risks are {', '.join(RISKS)}"
    if word.partition(":")[0] in RISKS:
        way_out = f"write it without quotes around the colon: - {_EXAMPLES[Risk.DATA_LOSS]}"
    raise field_error("acknowledge-unknown", word.where, f"there is no risk {quote(word)}", way_out)


def _read_change(risk: Risk, text: YamlValue, entry: Location) -> AcceptedChange:
    """Read the one change that an entry accepts, such as `retention.ms 7d → 1h`."""
    example = f"write the change as the plan shows it, such as {_EXAMPLES[risk]}"
    if not isinstance(text, YamlText):
        what = f"the change of {risk} is {describe_yaml(text)}, not text"
        raise field_error("acknowledge-form", text.where, what, example)
    sides = _ARROW.split(text.strip())
    if len(sides) != 2 or not all(sides):
        what = f"the change of {risk} is {describe_yaml(text)}, not two values with → between them"
        raise field_error("acknowledge-form", text.where, what, example)
    key, _, before = sides[0].partition(" ")
    known = RISKY_FIELDS[risk]
    if risk is Risk.ORDERING and not before:  # only one field has this risk
        key, before = known[0], sides[0]
    if key not in known or not before.strip():
        what = f"no change of {quote(key)} has the risk {risk}"
        way_out = suggest(key, known) or f"name one of {', '.join(known)}: {_EXAMPLES[risk]}"
        raise field_error("acknowledge-form", text.where, what, way_out)
    sides = [before.strip(), sides[1]]
    found, desired = fields.read_each(sides, lambda side: _read_value(key, side, text.where))
    if found == desired:
        what = f"the change of {risk} has the same value on both sides: {quote(text)}"
        raise field_error("acknowledge-form", text.where, what, example)
    path = f"config.{key}" if "." in key else key
    return AcceptedChange(str(risk), path, found, desired, entry)


def _read_value(key: str, text: str, where: Location) -> str | None:
    """Read one side of a change, in the spelling of the brokers. None is not set."""
    if "." not in key:
        if not _COUNT.fullmatch(text) or int(text) > MOST_PARTITIONS:
            what = f"{key} {quote(text)} is not a whole number from 1 to {MOST_PARTITIONS}"
            raise field_error("acknowledge-form", where, what, "write one such as 6 → 12")
        return text
    if text in _UNSET:
        return None
    read = choose_catalogue().normalise(key, text.removeprefix("[").removesuffix("]"), where)
    if isinstance(read, str):
        return read
    raise FieldError(read)


def _refuse_repeats(entries: list[Acknowledged]) -> None:
    """Refuse an entry that is there twice, and one that accepts less than another of its risk."""
    findings = []
    seen: set[AcknowledgedEntry] = set()
    alone = {each.risk for each in entries if each.change is None}
    for each in entries:
        risk, where, change = each
        if each.entry in seen:
            what = f"acknowledge names {quote(risk)} twice"
            findings.append(Finding("value-repeated", what, "keep one of them", where))
        elif change is not None and risk in alone:
            what = f"acknowledge names {quote(risk)} for any change, and for one"
            findings.append(Finding("value-repeated", what, "keep one of them", where))
        seen.add(each.entry)
    if findings:
        raise FieldError(findings)
