"""A key is declared once: its reader, its messages and its schema follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.spec.declarations import (
    MOST_PROBLEMS,
    check_form,
    form,
    key,
    list_keys,
    table,
    tables,
)
from reconciler.spec.fields import FLAG, TEXT, choice, whole
from reconciler.spec.forms import AtOnceForm, ClustersDocument, TopicDocument
from reconciler.spec.json_schema import build_schema
from reconciler.spec.keys import KEY
from reconciler.spec.syntax import load_text
from reconciler.spec.values import YamlMap


@form
class Door:
    """A door."""

    width: int = key(whole(70, 200), "Width in centimetres.", default=90)
    opens: str = key(choice("in", "out"), "How it opens.", asks="out")


@form
class House:
    """A house."""

    says: str | None = key(TEXT, "What is written on it.")
    is_old: bool = key(FLAG, "Whether it is old.", default=False, name="old")


@form
class Street:
    """A street."""

    doors: Mapping[str, Door] = tables(KEY, Door, "Doors, by name.")
    house: House = table(House, "The house.")


def read(text: str, declared: type[Any] = Street) -> tuple[Any, list[str], YamlMap]:
    (document,) = load_text(text.encode(), "a.yaml").documents
    made, findings = check_form(declared, document)
    return made, [str(finding) for finding in findings], document


def test_a_document_is_read_with_the_defaults_of_what_it_omits() -> None:
    made, findings, _ = read("doors: {a: {opens: in}}\nhouse: {old: true}")
    assert findings == []
    assert made == Street(doors={"a": Door(opens="in")}, house=House(is_old=True))
    assert made.doors["a"].width == 90
    assert read("{}")[0] == Street()


def test_a_wrong_value_is_a_finding_and_has_its_default() -> None:
    made, findings, document = read("doors: {a: {opens: in, width: 69}, b: 3}\nhouses: 1")
    assert findings == [
        "a.yaml:1:31: width 69 is out of range; write a whole number from 70 to 200 [value-range]",
        "a.yaml:1:39: doors.b is 3, not a map; write 'key: value' lines below it [value-form]",
        "a.yaml:2:1: unknown key 'houses'; did you mean house? [key-unknown]",
    ]
    assert made.doors == {"a": Door(opens="in")}
    assert document == {"doors": {"a": {"opens": "in"}}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("doors: {a: {}}", "the key opens is missing; write opens: out [key-missing]"),
        ("doors: {a: {opens: up}}", "opens 'up' is unknown; write in or out [value-choice]"),
        ("doors: {'a b': {opens: in}}", "choose another name [key-form]"),
    ],
)
def test_without_a_required_value_or_a_name_there_is_no_document(text: str, said: str) -> None:
    made, (finding,), _ = read(text)
    assert made is None
    assert finding.endswith(said)


def test_a_document_has_a_limit_of_problems() -> None:
    _, findings, document = read("\n".join(f"k{number}: 1" for number in range(MOST_PROBLEMS + 9)))
    assert len(findings) == MOST_PROBLEMS
    assert document == {}


def test_the_schema_is_that_of_the_readers() -> None:
    schema = build_schema(Street, "A street")
    assert schema["$defs"]["Door"] == {
        "type": "object",
        "description": "A door.",
        "properties": {
            "width": {
                "description": "Width in centimetres. Default: 90.",
                "type": "integer",
                "minimum": 70,
                "maximum": 200,
                "default": 90,
            },
            "opens": {"description": "How it opens.", "type": "string", "enum": ["in", "out"]},
        },
        "required": ["opens"],
        "additionalProperties": False,
    }
    old = schema["$defs"]["House"]["properties"]["old"]
    assert old == {
        "description": "Whether it is old. Default: false.",
        "type": "boolean",
        "default": False,
    }


def test_a_new_key_of_clusters_yaml_is_one_declaration() -> None:
    """All that reads, checks and shows `moves.at_once` takes a further key from its form."""

    @form
    class Wider(AtOnceForm):
        """The replicas that are copied at one time."""

        rack: int = key(whole(1, 500), "Maximum number of replicas in flight to a rack.", default=9)

    made, findings, _ = read("rack: 501\nbroker: 2", Wider)
    assert (made.rack, made.broker) == (9, 2)
    assert findings == [
        "a.yaml:1:7: rack 501 is out of range; write a whole number from 1 to 500 [value-range]"
    ]
    assert build_schema(Wider, "")["properties"]["rack"] == {
        "description": "Maximum number of replicas in flight to a rack. Default: 9.",
        "type": "integer",
        "minimum": 1,
        "maximum": 500,
        "default": 9,
    }


@pytest.mark.parametrize("declared", [TopicDocument, ClustersDocument])
def test_every_key_says_in_a_sentence_what_it_is_for(declared: type[Any]) -> None:
    seen = {declared}
    waiting = [declared]
    while waiting:
        for name, (_, found) in list_keys(waiting.pop()).items():
            assert found.says.endswith("."), name
            below = getattr(found.value, "declared", None)
            if below is not None and below not in seen:
                seen.add(below)
                waiting.append(below)
    assert len(seen) > 1
