"""Documents: what a class of the model is in JSON, and what a document says of the differences."""

from __future__ import annotations

from collections.abc import Mapping  # read where the documents are made
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated

import pytest
from pydantic import Field, ValidationError

from reconciler.planfile.documents import Derived, Document, Held, document_of


@dataclass(frozen=True)
class Leaf:
    name: str
    size: int


@dataclass(frozen=True)
class Tree:
    name: str
    leaves: tuple[Leaf, ...]
    best: Leaf | None
    place: str
    notes: Mapping[str, str]
    kinds: tuple[str, ...] = ()


@document_of(Leaf)
class LeafDocument(Document):
    size: Annotated[int, Field(ge=0)]


class PlaceDocument(Document):
    address: Annotated[str, Held("place")]
    length: Annotated[int, Derived(lambda tree: len(tree.place))]


@document_of(Tree)
class TreeDocument(Document):
    leaves: tuple[LeafDocument, ...]
    best: LeafDocument | None
    at: PlaceDocument


TREE = Tree("oak", (Leaf("a", 1), Leaf("b", 2)), None, "yard", MappingProxyType({"k": "v"}))
JSON = {
    "name": "oak",
    "leaves": [{"name": "a", "size": 1}, {"name": "b", "size": 2}],
    "best": None,
    "at": {"address": "yard", "length": 4},
    "notes": {"k": "v"},
    "kinds": [],
}


def test_a_value_is_written_and_read_as_the_document_says() -> None:
    assert TreeDocument.write(TREE).dump() == JSON
    assert TreeDocument.model_validate(JSON).read() == TREE


def test_what_is_derived_is_not_read() -> None:
    other = {**JSON, "at": {"address": "yard", "length": 9}}
    assert TreeDocument.model_validate(other).read() == TREE


@pytest.mark.parametrize(
    ("spoilt", "path"),
    [
        ({"leaves": [{"name": "a", "size": 1}, {"name": "b", "size": -1}]}, ("leaves", 1, "size")),
        ({"at": {"length": 4}}, ("at", "address")),
        ({"kinds": [1]}, ("kinds", 0)),
    ],
)
def test_an_error_names_its_path(spoilt: dict[str, object], path: tuple[object, ...]) -> None:
    with pytest.raises(ValidationError) as error:
        TreeDocument.model_validate({**JSON, **spoilt})
    assert [problem["loc"] for problem in error.value.errors()] == [path]


def test_a_key_without_a_default_of_its_own_is_required() -> None:
    """The class has one for `kinds`; a file that lacks it was cut."""
    assert set(TreeDocument.model_json_schema()["required"]) == JSON.keys()


def test_a_field_that_nothing_declares_has_its_type_in_the_schema() -> None:
    schema = TreeDocument.model_json_schema()["properties"]
    assert schema["kinds"] == {"items": {"type": "string"}, "title": "Kinds", "type": "array"}
    assert "place" not in schema
