"""Requests that the controller can take: batches of steps, and steps too large for one request.

The controller commits at most 10,000 metadata records an operation (QuorumController's
MAX_RECORDS_PER_USER_OP); before Kafka 4.4 a CreatePartitions over that was committed in part.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from reconciler.model import AddPartitions, AlterConfig, CreateTopic, DeleteTopic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from reconciler.model import Answer, Step
    from reconciler.ports import ClusterWriter

MAX_RECORDS = 5_000  # well under the limit: a create adds its own and its configs' records
MAX_TOPICS = 500


def count_records(step: Step) -> int:
    """Count the metadata records that a step costs."""
    match step:
        case CreateTopic(assignment=rows, config=config):
            return 1 + len(config) + len(rows)
        case AddPartitions(added=rows):
            return len(rows)
        case AlterConfig():
            return len(step.set) + len(step.unset)
        case DeleteTopic():
            return 1  # the controller writes one, and drops partitions and configs with it
        case _:
            assert_never(step)


def make_batches(steps: Iterable[Step]) -> list[list[Step]]:
    """Cut steps of one kind into requests, in order."""
    batches: list[list[Step]] = []
    room = 0
    for step in steps:
        records = count_records(step)
        if not batches or records > room or len(batches[-1]) == MAX_TOPICS:
            batches.append([])
            room = MAX_RECORDS
        batches[-1].append(step)
        room -= records
    return batches


def split_step(step: Step) -> tuple[Step, Step | None]:
    """Split a step into what one request can take and what has to follow it."""
    match step:
        case CreateTopic(topic=topic, assignment=rows):
            rest = AddPartitions(topic, MAX_RECORDS, rows[MAX_RECORDS:])
            return replace(step, assignment=rows[:MAX_RECORDS]), rest if rest.added else None
        case AddPartitions(topic=topic, first=first, added=rows):
            rest = AddPartitions(topic, first + MAX_RECORDS, rows[MAX_RECORDS:])
            return replace(step, added=rows[:MAX_RECORDS]), rest if rest.added else None
        case AlterConfig() | DeleteTopic():
            return step, None
        case _:
            assert_never(step)


def send_batch(
    writer: ClusterWriter, batch: Sequence[Step], *, validate_only: bool = False
) -> Mapping[str, Answer]:
    """Send steps of one kind as one request."""
    match batch[0]:
        case CreateTopic():
            creates = [step for step in batch if isinstance(step, CreateTopic)]
            return writer.create_topics(creates, validate_only=validate_only)
        case AddPartitions():
            expansions = [step for step in batch if isinstance(step, AddPartitions)]
            return writer.add_partitions(expansions, validate_only=validate_only)
        case AlterConfig():
            configs = [step for step in batch if isinstance(step, AlterConfig)]
            return writer.alter_configs(configs, validate_only=validate_only)
        case DeleteTopic():
            deletions = [step for step in batch if isinstance(step, DeleteTopic)]
            return writer.delete_topics(deletions, validate_only=validate_only)
        case _:
            assert_never(batch[0])
