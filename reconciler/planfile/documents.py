"""From the classes of the model to JSON and back: a document says only where the two differ.

`document_of` completes a document by the fields of its class. The document itself declares

| a key | in JSON it is |
|---|---|
| with a type of its own | the field, within limits that only a file needs |
| `Annotated[T, Held("location")]` | what is `location` in the class, under the name of the key |
| `Annotated[T, Derived(function)]` | computed from the value; what is read is not used |
| of another document | a value of that class, or a tuple of them |
| of a document without a class | an object that holds some of the fields |

A key without a default of its own is in every file. pydantic checks what is read, names the path of
every error, and makes the JSON Schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.fields import FieldInfo

OMIT_EMPTY = Field(exclude_if=lambda value: not value)
"""Marks a key that is not written if it is empty, false or null."""


@dataclass(frozen=True, slots=True)
class Held:
    """Marks a key that holds what has another name in the class; "a.b" is only written."""

    name: str


@dataclass(frozen=True, slots=True)
class Derived:
    """Marks a key that is computed from the value."""

    make: Callable[[Any], object]


class Document(BaseModel):
    """The JSON of a class of the model, or a part of it."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)

    made_of: ClassVar[type | None] = None

    @classmethod
    def write(cls, value: Any, **given: Any) -> Self:
        """Return the document of a valid value. In: keys that the value does not know."""
        for key in _list_keys(cls):
            if key.name not in given:
                given[key.name] = key.write(value)
        return cls.model_construct(**given)

    def dump(self) -> dict[str, Any]:
        """Return it as plain values of JSON."""
        # pydantic expects a dict where the model has a mapping that cannot change.
        return self.model_dump(mode="json", fallback=dict, warnings=False)

    def read(self) -> Any:
        """Return the value of this document."""
        assert self.made_of is not None  # noqa: S101  # a part is read with its document
        return self.made_of(**dict(self.list_fields()))

    def list_fields(self) -> Iterator[tuple[str, object]]:
        """Yield each field that it holds, with its value."""
        for key in _list_keys(type(self)):
            said = getattr(self, key.name)
            if key.is_part:
                yield from said.list_fields()
            elif key.make is None:
                yield key.held, _each(Document.read, said) if key.document else said


AnyDocument = TypeVar("AnyDocument", bound=Document)


def document_of(made_of: type) -> Callable[[type[AnyDocument]], type[AnyDocument]]:
    """Complete a document by the fields of a class that neither it nor a part of it declares."""

    def complete(document: type[AnyDocument]) -> type[AnyDocument]:
        types, declared = get_type_hints(made_of), set(_list_held(document))
        added: dict[str, Any] = {
            field.name: (types[field.name], ...)
            for field in fields(made_of)
            if field.name not in declared
        }
        completed = create_model(
            document.__name__,
            __base__=document,
            __doc__=document.__doc__,
            __module__=document.__module__,
            **added,
        )
        completed.made_of = made_of
        return completed

    return complete


def describe_error(error: ValidationError) -> str:
    """Return the path of the first error, and what is wrong there."""
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the document'}: {first['msg']}"


class _Key(NamedTuple):
    """A key of a document, and the field that it holds."""

    name: str
    held: str
    make: Callable[[Any], object] | None
    document: type[Document] | None

    @property
    def is_part(self) -> bool:
        return self.make is None and self.document is not None and self.document.made_of is None

    def write(self, value: Any) -> object:
        if self.make is not None:
            return self.make(value)
        if self.document is None:
            return attrgetter(self.held)(value)
        if self.is_part:
            return self.document.write(value)
        return _each(self.document.write, attrgetter(self.held)(value))


@cache
def _list_keys(document: type[Document]) -> tuple[_Key, ...]:
    document.model_rebuild()
    return tuple(_describe(name, field) for name, field in document.model_fields.items())


def _describe(name: str, field: FieldInfo) -> _Key:
    held = next((mark.name for mark in field.metadata if isinstance(mark, Held)), name)
    make = next((mark.make for mark in field.metadata if isinstance(mark, Derived)), None)
    return _Key(name, held, make, _find_document(field.annotation))


def _find_document(annotation: Any) -> type[Document] | None:
    """Return the document that a type names, by itself or in a tuple."""
    if isinstance(annotation, type) and issubclass(annotation, Document):
        return annotation
    return next(filter(None, map(_find_document, get_args(annotation))), None)


def _list_held(document: type[Document]) -> Iterator[str]:
    for name, field in document.model_fields.items():
        key = _describe(name, field)
        if key.is_part and key.document:
            yield from _list_held(key.document)
        else:
            yield key.held


def _each(convert: Callable[[Any], object], said: Any) -> object:
    if isinstance(said, tuple):
        return tuple(map(convert, said))
    return None if said is None else convert(said)
