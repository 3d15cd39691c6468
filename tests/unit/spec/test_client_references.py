"""References to secrets."""

from __future__ import annotations

import pytest

from reconciler.spec.client import (
    MalformedReferenceError,
    SecretKind,
    SecretRef,
    parse_references,
)

USER = SecretRef(SecretKind.ENV, "KAFKA_USER")
PASSWORD = SecretRef(SecretKind.FILE, "/run/secrets/kafka")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("${env:KAFKA_USER}", (USER,)),
        ("${file:/run/secrets/kafka}", (PASSWORD,)),
        ("a:9092", ("a:9092",)),
        ("principal=${env:KAFKA_USER} scope=x", ("principal=", USER, " scope=x")),
        ("${env:KAFKA_USER}${file:/run/secrets/kafka}", (USER, PASSWORD)),
        ("costs $5", ("costs $5",)),
        ("", ()),
    ],
)
def test_text_is_split_into_literals_and_references(
    text: str, parts: tuple[str | SecretRef, ...]
) -> None:
    assert parse_references(text) == parts
    assert "".join(map(str, parts)) == text


@pytest.mark.parametrize(
    "text",
    [
        "${env:A",
        "${A}",
        "${}",
        "${env:}",
        "${env:A-B}",
        "${file:a}",
        "${vault:/a}",
        "x${",
        "${ENV:A}",
    ],
)
def test_what_looks_like_a_reference_must_be_one(text: str) -> None:
    with pytest.raises(MalformedReferenceError, match=r"\$\{"):
        parse_references(text)
