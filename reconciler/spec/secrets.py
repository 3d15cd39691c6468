"""References to secrets, `${env:NAME}` and `${file:/absolute/path}`: parsed, not resolved."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

_OPENED = re.compile(r"\$\{([^}]*)(\}?)")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class SecretKind(StrEnum):
    """Where a secret is kept."""

    ENV = "env"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class SecretRef:
    """Names the environment variable, or the absolute path of the file, that holds a secret."""

    kind: SecretKind
    name: str

    def __str__(self) -> str:
        return f"${{{self.kind}:{self.name}}}"


class MalformedReferenceError(ValueError):
    """A `${…}` that is no reference; says how it is written, and never what stands in it."""

    def __init__(self, way_out: str) -> None:
        self.way_out = way_out
        super().__init__(way_out)


def parse_references(text: str) -> tuple[str | SecretRef, ...]:
    """Split a client property into literal parts and references, in order.

    Returns: no empty parts, so one reference alone comes back as a tuple of one.
    Errors: MalformedReferenceError at the first `${` that starts no reference.
    """
    parts: list[str | SecretRef] = []
    end = 0
    for opened in _OPENED.finditer(text):
        parts.extend(filter(None, [text[end : opened.start()]]))
        if not opened.group(2):
            raise MalformedReferenceError("close it with a brace: ${env:NAME}")
        parts.append(_parse_reference(opened.group(1)))
        end = opened.end()
    parts.extend(filter(None, [text[end:]]))
    return tuple(parts)


def _parse_reference(inner: str) -> SecretRef:
    kind, colon, name = inner.partition(":")
    if kind == SecretKind.ENV and colon:
        if not _VARIABLE.fullmatch(name):
            raise MalformedReferenceError(
                "name a variable of letters, digits and underscores: ${env:NAME}"
            )
        return SecretRef(SecretKind.ENV, name)
    if kind == SecretKind.FILE and colon:
        if not name.startswith("/"):
            raise MalformedReferenceError("write the path from the root: ${file:/absolute/path}")
        return SecretRef(SecretKind.FILE, name)
    raise MalformedReferenceError("write ${env:NAME} or ${file:/absolute/path}")
