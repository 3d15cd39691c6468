"""Steps follow from a topic's two images, and from nothing else."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest
from shorthand import HERE, rows
from sources import list_calls, parse_modules

from reconciler.errors import Finding
from reconciler.model.plan import Deletion, PlannedTopic, TopicImage
from reconciler.model.steps import ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic, steps_of

UNUSED = Deletion(604_800_000, (0,))


def image(assignment: str, **config: str) -> TopicImage:
    """Return an image; `flush_ms` is the config flush.ms."""
    keys = {key.replace("_", "."): value for key, value in config.items()}
    return TopicImage("id", rows(assignment), keys)


def planned(before: TopicImage | None, after: TopicImage | None, **more: Any) -> PlannedTopic:
    return PlannedTopic("t", HERE, before, after, **more)


def test_nothing_to_do_is_no_step() -> None:
    assert steps_of(planned(image("1,2", flush_ms="1"), image("1,2", flush_ms="1"))) == ()


def test_a_topic_that_does_not_exist_is_created_with_all_it_has() -> None:
    wished = image("1,2 2,1", flush_ms="1")
    assert steps_of(planned(None, wished)) == (
        CreateTopic("t", rows("1,2 2,1"), {"flush.ms": "1"}),
    )


def test_an_expansion_holds_only_the_new_rows() -> None:
    assert steps_of(planned(image("1 2"), image("1 2 3 1"))) == (ExpandTopic("t", 2, rows("3 1")),)


def test_configs_are_set_and_unset_in_one_step() -> None:
    before = image("1", flush_ms="1", retention_ms="2", segment_ms="3")
    after = image("1", flush_ms="9", segment_ms="3", max_message_bytes="4")
    assert steps_of(planned(before, after)) == (
        ConfigureTopic(
            "t", {"flush.ms": "9", "max.message.bytes": "4"}, frozenset({"retention.ms"})
        ),
    )


def test_partitions_come_before_configs() -> None:
    steps = steps_of(planned(image("1"), image("1 2", flush_ms="1")))
    assert [type(step) for step in steps] == [ExpandTopic, ConfigureTopic]


@pytest.mark.parametrize("before", [None, image("1")])
def test_a_refused_topic_has_no_steps(before: TopicImage | None) -> None:
    refusal = Finding("deletion-budget", "no")
    assert steps_of(planned(before, image("1 2", flush_ms="1"), refusals=(refusal,))) == ()


def test_a_topic_without_an_aim_has_no_steps() -> None:
    assert steps_of(planned(None, None)) == ()


def test_a_topic_that_is_to_go_is_deleted_by_its_id() -> None:
    assert steps_of(planned(image("1"), None, deletion=UNUSED)) == (DeleteTopic("t", "id"),)


def test_a_topic_that_nobody_saw_unused_is_not_deleted() -> None:
    assert steps_of(planned(image("1"), None)) == ()


def test_a_topic_whose_id_is_not_known_is_not_deleted() -> None:
    nameless = TopicImage(None, rows("1"), {})
    assert steps_of(planned(nameless, None, deletion=UNUSED)) == ()


def test_a_refused_deletion_is_no_step() -> None:
    refusal = Finding("deletion-in-use", "no")
    assert steps_of(planned(image("1"), None, deletion=UNUSED, refusals=(refusal,))) == ()


@pytest.mark.parametrize(
    ("maker", "modules"),
    [
        ("DeleteTopic", set()),  # its own class makes it, by `cls`, of a topic that is to go
        ("delete_by_id", {"kafka/writer.py"}),
    ],
)
def test_only_steps_of_a_plan_delete_and_only_by_id(maker: str, modules: set[str]) -> None:
    """No way leads to a deletion but the step, made in one place from `state: absent`."""
    calls = {path for path, _, call in list_calls(maker) if isinstance(call.func, ast.Name)}
    assert calls == modules


def test_only_one_place_sends_deletions() -> None:
    """Neither by a method of a client, nor by a request that is built by hand."""
    deletes = re.compile(r"delete_(topics|records|consumer_groups)|Delete\w+Request")
    tellers = [
        (path, node.name if isinstance(node, ast.alias) else node.attr)
        for path, module in parse_modules(deletes.pattern).items()
        for node in ast.walk(module)
        if isinstance(node, ast.Attribute | ast.alias)
        and deletes.fullmatch(node.name if isinstance(node, ast.alias) else node.attr)
    ]
    assert tellers == [("kafka/writer.py", "DeleteTopicsRequest")]  # by ids


def test_keys_are_set_in_one_order() -> None:
    after = {"b": "1", "a": "1", "c": "1"}
    (step,) = steps_of(planned(TopicImage("id", rows("1"), {}), TopicImage("id", rows("1"), after)))
    assert isinstance(step, ConfigureTopic)
    assert list(step.set) == ["a", "b", "c"]
