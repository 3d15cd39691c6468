"""Batches: far under the controller's limit of 10,000 records, nothing lost or reordered."""

from __future__ import annotations

import pytest

from reconciler.apply.kinds import (
    MAX_ALONE,
    MAX_RECORDS,
    MAX_TOPICS,
    kind_of,
    make_batches,
    split_step,
)
from reconciler.model.steps import ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic, Step

CONTROLLER_LIMIT = 10_000


def create(partitions: int, name: str = "t", configs: int = 0) -> CreateTopic:
    config = {f"k{number}": "v" for number in range(configs)}
    return CreateTopic(name, ((1,),) * partitions, config)


def add(partitions: int, first: int = 1) -> ExpandTopic:
    return ExpandTopic("t", first, tuple((number,) for number in range(partitions)))


@pytest.mark.parametrize(
    ("step", "records"),
    [
        (create(4), 5),
        (create(4, configs=2), 7),
        (add(6), 6),
        (ConfigureTopic("t", {"a": "1", "b": "2"}, frozenset({"c"})), 3),
        (DeleteTopic("t", "id"), 1),
    ],
)
def test_a_step_costs_a_record_for_each_thing_it_writes(step: Step, records: int) -> None:
    assert kind_of(step).count_records(step) == records


def test_no_steps_are_no_request() -> None:
    assert make_batches([]) == []


def test_steps_that_fit_share_the_only_request() -> None:
    steps = [create(3, f"t{number}") for number in range(MAX_ALONE)]
    assert make_batches(steps) == [steps]


@pytest.mark.parametrize(
    ("partitions", "topics"), [(1, MAX_ALONE + 1), (8, MAX_RECORDS // 9 + 1), (3, 5_000)]
)
def test_more_steps_are_sent_in_small_requests(partitions: int, topics: int) -> None:
    steps = [create(partitions, f"t{number}") for number in range(topics)]
    assert {len(batch) for batch in make_batches(steps)[:-1]} == {MAX_TOPICS}


def test_a_request_has_a_limited_number_of_records() -> None:
    steps = [create(MAX_RECORDS // 2, f"t{number}") for number in range(3)]
    assert [len(batch) for batch in make_batches(steps)] == [1, 1, 1]


def test_a_request_may_be_filled_to_the_last_record() -> None:
    steps = [create(MAX_RECORDS // 2 - 1, f"t{number}") for number in range(3)]
    assert [len(batch) for batch in make_batches(steps)] == [2, 1]


def test_batches_keep_every_step_in_order() -> None:
    steps = [create(number * 37 % 2_000, f"t{number}") for number in range(300)]
    assert [step for batch in make_batches(steps) for step in batch] == steps


@pytest.mark.parametrize("partitions", [1, MAX_RECORDS - 1, MAX_RECORDS, MAX_RECORDS + 1, 40_000])
def test_parts_of_a_step_stay_under_the_controllers_limit(partitions: int) -> None:
    for step in (create(partitions, configs=40), add(partitions)):
        rest: Step | None = step
        while rest is not None:
            part, rest = split_step(rest)
            (batch,) = make_batches([part])
            assert sum(kind_of(step).count_records(step) for step in batch) < CONTROLLER_LIMIT


@pytest.mark.parametrize("step", [create(MAX_RECORDS), add(MAX_RECORDS)])
def test_a_step_that_fits_is_not_split(step: Step) -> None:
    assert split_step(step) == (step, None)


@pytest.mark.parametrize(
    "step", [ConfigureTopic("t", {"a": "1"}, frozenset()), DeleteTopic("t", "id")]
)
def test_configs_and_deletions_are_not_split(step: Step) -> None:
    assert split_step(step) == (step, None)


def test_a_creation_that_is_too_large_goes_on_as_an_expansion() -> None:
    whole = CreateTopic("t", tuple((n,) for n in range(MAX_RECORDS + 2)), {"a": "1"})
    assert split_step(whole) == (
        CreateTopic("t", whole.assignment[:MAX_RECORDS], {"a": "1"}),
        ExpandTopic("t", MAX_RECORDS, ((MAX_RECORDS,), (MAX_RECORDS + 1,))),
    )


def test_an_expansion_that_is_too_large_goes_on_where_it_stopped() -> None:
    whole = add(MAX_RECORDS + 2, first=7)
    assert split_step(whole) == (
        ExpandTopic("t", 7, whole.added[:MAX_RECORDS]),
        ExpandTopic("t", 7 + MAX_RECORDS, whole.added[MAX_RECORDS:]),
    )
