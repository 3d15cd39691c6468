"""Files by the first parts of names."""

from __future__ import annotations

from reconciler.adopt.new_topics import OTHER, choose_files, find_neighbours


def test_topics_of_one_first_part_share_a_file() -> None:
    files = choose_files(["orders.events", "orders-commands", "Orders_dlq", "shop.clicks"])
    assert files == {
        "orders.events": "orders.yaml",
        "orders-commands": "orders.yaml",
        "Orders_dlq": "orders.yaml",
        "shop.clicks": "shop.yaml",
    }


def test_a_large_group_is_split_by_the_second_part() -> None:
    names = [f"prod.{team}.t{n}" for team in ("orders", "shop") for n in range(30)]
    assert set(choose_files(names).values()) == {"prod/orders.yaml", "prod/shop.yaml"}


def test_a_large_group_of_lonely_second_parts_stays_whole() -> None:
    assert set(choose_files(f"t.{n}" for n in range(90)).values()) == {"t.yaml"}


def test_many_topics_that_share_nothing_share_a_file() -> None:
    files = choose_files([*(f"t{n}" for n in range(13)), "orders.a", "orders.b"])
    assert files["t3"] == OTHER
    assert files["orders.a"] == "orders.yaml"


def test_names_that_files_cannot_have_are_replaced() -> None:
    files = choose_files(["clusters", ".hidden", "_", "..x", "con"])
    assert files == {
        "clusters": "clusters-topics.yaml",
        ".hidden": "hidden.yaml",
        "_": "other.yaml",
        "..x": "x.yaml",
        "con": "con-topics.yaml",
    }


def test_a_new_topic_goes_to_those_whose_names_begin_alike() -> None:
    written = {"orders.eu.a": "eu/orders.yaml", "orders.us.a": "us/orders.yaml"}
    assert find_neighbours("orders.us.b", written) == "us/orders.yaml"
    assert find_neighbours("shop.clicks", written) is None
