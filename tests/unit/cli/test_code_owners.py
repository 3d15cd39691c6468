"""Whom a file CODEOWNERS names for clusters.yaml."""

from __future__ import annotations

import pytest

from reconciler.cli.owners import find_code_owners

PATH = "topics/clusters.yaml"


@pytest.mark.parametrize(
    ("text", "owners"),
    [
        ("", ()),
        ("* @acme/all\n", ("@acme/all",)),
        ("* @acme/all\n/topics/ @acme/topics a@b.example # why\n", ("@acme/topics", "a@b.example")),
        ("/topics/clusters.yaml @acme/platform\n/topics/orders.yaml @bob\n", ("@acme/platform",)),
        ("clusters.yaml @carol\n", ("@carol",)),
        ("/clusters.yaml @carol\n*.yml @bob\n", ()),
        ("topics/*.yaml @bob\n# * @nobody\n[Section] @nobody\n", ("@bob",)),
        ("* @acme/all\n/topics/clusters.yaml\n", ()),
        ("/topics\\ x/ @bob\n", ()),
    ],
)
def test_the_last_line_that_matches_decides(text: str, owners: tuple[str, ...]) -> None:
    assert find_code_owners(text, PATH) == owners
