"""What identifies a cluster: its id, or its address where it reports none."""

from __future__ import annotations

import pytest

from reconciler.model.identity import find_address, identify_cluster, name_cluster, say_identity

ID = "5L6g3nShT-eMCtK--X86sw"
ADDRESS = "boot-1a2b3.c1.kafka-serverless.eu-west-1.amazonaws.com:9098"


def identify(servers: str, reported: str | None = None, *, is_secret: bool = False) -> str:
    return identify_cluster(reported, servers.split(","), is_secret=is_secret)


def test_an_id_that_is_reported_identifies_it_wherever_it_is() -> None:
    assert identify("a:9092", ID) == identify("b:9092", ID, is_secret=True) == ID


@pytest.mark.parametrize("nothing", [None, ""])
def test_without_an_id_it_is_the_address(nothing: str | None) -> None:
    assert identify(ADDRESS, nothing) == f"bootstrap:{ADDRESS}"


@pytest.mark.parametrize(
    ("servers", "spelled"),
    [
        ("b:9092,a:9093", "a:9093,b:9092"),
        ("a:9092,a:9092", "a:9092"),
        ("A.Example.com", "a.example.com:9092"),
        ("SASL_SSL://a:9098", "a:9098"),
        ("[::1]:9093", "[::1]:9093"),
        ("[::1]", "[::1]:9092"),
        ("::1", "::1:9092"),
    ],
)
def test_other_spellings_of_an_address_are_the_same(servers: str, spelled: str) -> None:
    assert identify(servers) == f"bootstrap:{spelled}"


def test_a_secret_address_is_not_shown_and_still_told_apart() -> None:
    ours, theirs = (identify(f"{name}.acme:9098", is_secret=True) for name in ("ours", "theirs"))
    assert ours != theirs
    assert "acme" not in ours
    assert ours.startswith("bootstrap:sha256-")


def test_both_are_named_in_sentences_and_in_heads() -> None:
    found = identify(ADDRESS)
    assert (find_address(ID), find_address(None), find_address(found)) == (None, None, ADDRESS)
    assert name_cluster(ID) == f"cluster {ID}"
    assert name_cluster(found) == f"the cluster without an id at {ADDRESS}"
    said = (say_identity(ID), say_identity(None), say_identity(found))
    assert said == (ID, "", f"no cluster id, at {ADDRESS}")
