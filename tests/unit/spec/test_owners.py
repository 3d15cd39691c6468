"""Owners: which names there are, and that two names are never one owner to people."""

from __future__ import annotations

import json
import re
from itertools import count
from pathlib import Path

import pytest

from reconciler.cli.app import run
from reconciler.errors import SpecError
from reconciler.spec.estate import parse_estate
from reconciler.spec.names import check_owner

SCHEMAS = Path(__file__).parents[3] / "schemas"
NUMBERS = count()


def refuse(clusters: str = "version: 1\n", **files: str) -> list[str]:
    """Return what is wrong with the owners of an estate."""
    texts = {f"{name}.yaml": text.encode() for name, text in files.items()}
    try:
        parse_estate({"clusters.yaml": clusters.encode(), **texts}, "topics")
    except SpecError as error:
        return [f"{f.where} {f.rule}" for f in error.findings]
    return []


def own(*owners: str) -> str:
    """Return a file with a topic of each owner."""
    topics = (f"topic: t{next(NUMBERS)}\nowner: {json.dumps(owner)}\n" for owner in owners)
    return "---\n".join(topics)


@pytest.mark.parametrize(
    "owner",
    [
        *("orders-team", "Orders", "a", "7", "The Orders Team", "R&D", "web_2.0"),
        *("@acme/shop", "@acme/eu/shop", "@dev.ops", "first.last+kafka@acme.example"),
        "group:default/payments",
    ],
)
def test_names_of_teams_accounts_and_addresses(owner: str) -> None:
    assert refuse(a=own(owner)) == []


@pytest.mark.parametrize(
    ("owner", "named"),
    [
        ("orders\u2010team", "'\u2010' (U+2010 HYPHEN)"),
        ("orders\u2011team", "'\u2011' (U+2011 NON-BREAKING HYPHEN)"),
        ("orders\u2212team", "'\u2212' (U+2212 MINUS SIGN)"),
        ("\u043erders-team", "'\u043e' (U+043E CYRILLIC SMALL LETTER O)"),
        ("\uff4frders-team", "'\uff4f' (U+FF4F FULLWIDTH LATIN SMALL LETTER O)"),
        ("orders\u00a0team", "'\\xa0' (U+00A0 NO-BREAK SPACE)"),
        ("orders\u200bteam", "'\\u200b' (U+200B ZERO WIDTH SPACE)"),
        ("orders-team\u00ad", "'\\xad' (U+00AD SOFT HYPHEN)"),
        ("\u202eorders-team", "'\\u202e' (U+202E RIGHT-TO-LEFT OVERRIDE)"),
        ("orde\u0301rs", "(U+0301 COMBINING ACUTE ACCENT)"),
        ("orders-team\u0000", "'\\x00'"),
        ("orders\nteam", "a line end"),
        ("orders-team ", "begins or ends with a blank"),
        (" orders-team", "begins or ends with a blank"),
        ("orders  team", "two blanks in a row"),
        ("-orders", "begins with a punctuation mark"),
        ("@", "begins with a punctuation mark"),
        ("#orders", "'#'"),
    ],
)
def test_a_name_that_looks_like_another_is_refused_by_what_is_in_it(owner: str, named: str) -> None:
    (finding,) = check_owner(owner, None)
    assert (finding.rule, named in finding.what) == ("owner-form", True)
    for schema in ("topic", "clusters"):
        text = (SCHEMAS / f"{schema}.schema.json").read_text(encoding="utf-8")
        key = "owner" if schema == "topic" else "owners"
        found = json.loads(text)["properties"][key]
        assert not re.search(found.get("items", found)["pattern"].replace("$", r"\Z"), owner)


def test_each_spelling_of_an_owner_is_named_with_the_place_of_the_usual_one() -> None:
    files = {"a": own("Orders-team", "shop"), "b": own("orders-team", "orders-team", "orders.team")}
    texts = {f"{name}.yaml": text.encode() for name, text in files.items()}
    with pytest.raises(SpecError) as error:
        parse_estate({"clusters.yaml": b"version: 1", **texts}, "topics")
    assert [(str(f.where), f.rule, f.what) for f in error.value.findings] == [
        (
            "topics/a.yaml:2:8",
            "owner-spelling",
            "the owner 'Orders-team' is spelled 'orders-team' at topics/b.yaml:2:8",
        ),
        (
            "topics/b.yaml:8:8",
            "owner-spelling",
            "the owner 'orders.team' is spelled 'orders-team' at topics/b.yaml:2:8",
        ),
    ]


@pytest.mark.parametrize(
    "other",
    ["Orders-team", "orders_team", "orders.team", "orders team", "ORDERSTEAM", "orders-team-"],
)
def test_no_spelling_of_an_owner_has_a_quota_of_its_own(other: str) -> None:
    quota = "version: 1\npolicy: {per_owner: {topics: 1}}\nclusters: {prod: {}}\n"
    assert refuse(quota, a=own("orders-team"), b=own(other)) == ["topics/b.yaml:2:8 owner-spelling"]
    assert refuse(quota, a=own("orders-team"), b=own("order-team")) == []


@pytest.mark.parametrize("other", ["pIatform-1O", "p1atform-10", "Platform-lo", "PLATFORM_IO"])
def test_no_look_alike_of_an_owner_has_a_quota_of_its_own(other: str) -> None:
    named = own("platform-10", "platform-10")
    assert refuse(a=named, b=own(other)) == ["topics/b.yaml:2:8 owner-spelling"]


def test_owners_that_differ_in_more_are_two() -> None:
    assert refuse(a=own("team-1.1", "team-11", "web_2.0", "web-20", "Mail", "mall", "Iris")) == []
    assert refuse(a=own("team-1.1", "team-1.1"), b=own("team 1_1")) == [
        "topics/b.yaml:2:8 owner-spelling"
    ]
    texts = {"a.yaml": own("platform", "pIatform").encode()}
    with pytest.raises(SpecError) as error:
        parse_estate({"clusters.yaml": b"version: 1", **texts}, "topics")
    (finding,) = error.value.findings
    assert finding.what == "the owner 'pIatform' looks like 'platform' at topics/a.yaml:2:8"


DECLARED = "version: 1\nowners: [orders-team, '@acme/shop']\nclusters: {prod: {}, lab: {}}\n"


def test_a_declared_owner_is_exactly_one_of_the_list() -> None:
    assert refuse(DECLARED, a=own("orders-team", "@acme/shop"), b="topic: nobodys\n") == []
    assert refuse(DECLARED, a=own("Orders-Team", "orders", "@Acme/shop")) == [
        "topics/a.yaml:2:8 owner-unknown",
        "topics/a.yaml:5:8 owner-unknown",
        "topics/a.yaml:8:8 owner-unknown",
    ]


def test_a_topic_that_is_to_go_has_a_declared_owner() -> None:
    gone = "topic: theirs\nowner: me\nstate: absent\n"
    assert refuse(DECLARED, a=gone) == ["topics/a.yaml:2:8 owner-unknown"]


def test_names_in_the_list_have_the_same_form_and_one_spelling() -> None:
    wrong = "version: 1\nowners: [orders\u2010team, ' shop']\n"
    assert refuse(wrong, a="topic: a\n") == [
        "topics/clusters.yaml:2:10 owner-form",
        "topics/clusters.yaml:2:23 owner-form",
    ]
    twice = "version: 1\nowners: [shop, Shop]\n"
    assert refuse(twice, a="topic: a\n") == ["topics/clusters.yaml:2:16 owner-spelling"]


def test_validate_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("topics").mkdir()
    Path("topics/clusters.yaml").write_text("version: 1\n")
    Path("topics/a.yaml").write_text(own("orders-team"), encoding="utf-8")
    assert run(["validate"]) == 0
    Path("topics/b.yaml").write_text(own("orders\u2010team"), encoding="utf-8")
    assert run(["validate"]) == 1
    assert "(U+2010 HYPHEN)" in capsys.readouterr().out
