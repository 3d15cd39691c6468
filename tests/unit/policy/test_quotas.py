"""The quotas of owners: what counts, what is refused, and what is said."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest
from shorthand import said, spec

from reconciler.errors import Location
from reconciler.model.cluster import TopicSpec
from reconciler.policy.policy import Policy
from reconciler.policy.quotas import check_quotas


def place(name: str, line: int, **wished: Any) -> TopicSpec:
    where = {"partitions": Location("topics/shop.yaml", line + 1, 13)}
    location = Location("topics/shop.yaml", line, 8)
    return spec(name, location=location, fields=where, owner="shop", **wished)


def check(specs: list[TopicSpec], exempt: tuple[str, ...] = (), **most: int) -> list[str]:
    policy = Policy(
        per_owner=MappingProxyType(most),
        exempt=MappingProxyType({"quota-per-owner": exempt}),
    )
    return said(breach.finding for breach in check_quotas(specs, policy, "prod"))


SHOP = [
    place("orders", 1, partitions=12, replication_factor=3),
    place("refunds", 5, partitions=20, replication_factor=1),
    place("unmanaged", 9),
]


@pytest.mark.parametrize(("noun", "asked"), [("topics", 3), ("partitions", 32), ("replicas", 56)])
def test_a_quota_is_the_most_that_the_topics_of_an_owner_ask_for_together(
    noun: str, asked: int
) -> None:
    assert check(SHOP, **{noun: asked}) == []
    (found,) = check(SHOP, **{noun: asked - 1})
    assert (
        f"the topics of 'shop' ask for {asked} {noun} on prod, 1 more than the {asked - 1} of the "
        "quota per owner, "
    ) in found


def test_the_topics_that_ask_for_most_are_named_first_with_their_lines() -> None:
    assert check(SHOP, partitions=30) == [
        "topics/shop.yaml:6:13: the topics of 'shop' ask for 32 partitions on prod, 2 more than "
        "the 30 of the quota per owner, most of them for refunds (20, topics/shop.yaml:6), "
        "orders (12, topics/shop.yaml:2); ask for 2 fewer in new topics, or write policy: "
        "{per_owner: {partitions: 32}} for prod in clusters.yaml, or exempt topics from "
        "quota-per-owner [quota-per-owner]"
    ]
    (found,) = check(SHOP, replicas=30)
    assert "most of them for orders (36, topics/shop.yaml:2), refunds (20, topics/" in found


def test_the_last_topics_in_the_files_are_named_if_there_are_too_many() -> None:
    (found,) = check([place(f"topic-{n}", n) for n in range(1, 9)], topics=3)
    assert found.startswith("topics/shop.yaml:8:8: the topics of 'shop' ask for 8 topics on prod, ")
    assert "the last in the files are topic-8 (topics/shop.yaml:8), topic-7 " in found
    assert ", topic-4 (topics/shop.yaml:4), 3 more; ask for 5 fewer" in found


def test_an_inherited_number_is_shown_at_its_topic() -> None:
    where = {"partitions": Location("topics/clusters.yaml", 2)}
    wished = spec("a", partitions=6, owner="shop", fields=where)
    (found,) = check([wished], partitions=5)
    assert found.startswith(f"{wished.location}: ")


def test_every_owner_has_a_quota_and_every_exceeded_one_is_named() -> None:
    topics = [
        *(spec(f"a-{n}", partitions=3, owner="audit") for n in range(2)),
        *(spec(f"s-{n}", partitions=3, owner="shop") for n in range(3)),
    ]
    assert check(topics, topics=3, partitions=9) == []
    assert len(check(topics, topics=2, partitions=6)) == 2
    assert len(check(topics, topics=2, partitions=5)) == 3


def test_topics_without_an_owner_have_one_quota_together() -> None:
    topics = [spec(f"free-{n}", partitions=3) for n in range(2)]
    assert check([*topics, spec("own", partitions=3, owner="shop")], partitions=6) == []
    (found,) = check(topics, partitions=5)
    assert "the topics without an owner ask for 6 partitions on prod" in found
    assert "; write the owner of each, or ask for 1 fewer in new topics, or " in found


def test_exempt_topics_and_topics_to_be_deleted_do_not_count() -> None:
    topics = [
        spec("legacy.orders", partitions=90, owner="shop"),
        spec("gone", partitions=90, owner="shop", absent=True),
        spec("orders", partitions=3, owner="shop"),
    ]
    assert check(topics, exempt=("legacy.*",), partitions=3) == []
    (found,) = check(topics, partitions=3)
    assert "ask for 93 partitions" in found


def test_no_quota_refuses_nothing() -> None:
    assert check(SHOP) == []
