"""A second read of the facts behind a plan: rows that may be under reassignment, and overrides.

For moments after a move has ended, a broker still shows old and new replicas together. A broker
that was restarted may show configs of a deleted topic of the same name until they are set anew
(seen on Kafka 3.9 to 4.4). So one broker's answer is not enough for either.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from reconciler.diff.fields import managed_overrides
from reconciler.errors import ClusterError, Finding, Severity
from reconciler.kafka.configs import read_configs
from reconciler.kafka.connection import Connection
from reconciler.kafka.errors import UntranslatableError
from reconciler.kafka.views import Views, is_uneven
from reconciler.model.cluster import Reassignment, Replicas, TopicState

TopicStates = dict[str, "TopicState"]

_LAG_S = (0.5, 1.0, 3.0)  # for brokers to learn what the controller has done


def settle_rows(
    connection: Connection,
    views: Views,
    topics: Mapping[str, TopicState],
    doubtful: Collection[str],
    odd: Iterable[str],
) -> tuple[TopicStates, list[Finding]]:
    """Set the target rows of topics.

    `doubtful`: topics that may be under reassignment; `odd`: those whose rows look like old and new
    replicas together. If no reassignment explains these, all brokers are asked.
    Returns: the topics that differ from those handed in; a warning if no one could be asked.
    """
    # The list first: it is one request. Asking all brokers takes half a second at least.
    moving, notes = read_reassignments(connection, doubtful)
    settled = {name: _follow(topics[name], moving[name]) for name in moving if name in topics}
    unexplained = [n for n in odd if n not in settled or is_uneven(settled[n].assignment)]
    shown = _ask_all(views, unexplained, lambda topic: topic.assignment)
    for name in unexplained:
        # If brokers still disagree, what most of them show is taken.
        rows = Counter(topic.assignment for topic in shown.get(name, {}).values())
        for assignment, _ in rows.most_common(1):
            read = replace(topics[name], assignment=assignment)
            settled[name] = _follow(read, moving.get(name, {}))
    return settled, notes


def settle_overrides(
    connection: Connection,
    views: Views,
    topics: Mapping[str, TopicState],
    answered_by: Mapping[str, int],
    brokers: Sequence[int],
) -> TopicStates:
    """Keep the overrides that a second broker shows as well.

    `answered_by`: the broker that returned each topic's configs; `brokers`: the live ones. If a
    cluster has one broker, its answer counts. Returns: the topics that differ from those handed in.
    """
    # Only a topic whose two answers differ is asked of everyone. The second answer comes from the
    # next broker in the order of ids, so that the questions spread over all of them.
    doubted = [
        name
        for first in brokers
        for name in _find_denied(
            connection,
            {name: topic for name, topic in topics.items() if answered_by.get(name) == first},
            [broker for broker in brokers if broker > first] + [b for b in brokers if b < first],
        )
    ]
    shown = _ask_all(views, doubted, _list_overrides, with_config=True)
    return {name: _agree(topics[name], seen) for name, seen in shown.items() if seen}


def _find_denied(
    connection: Connection, topics: Mapping[str, TopicState], others: Sequence[int]
) -> list[str]:
    """Return the topics for which the next broker shows other overrides."""
    if not topics or not others:
        return []
    what = f"reading {connection.entry.name} a second time"
    second = connection.ask(lambda client: read_configs(client, topics, others), what).overrides
    return [
        name
        for name, topic in topics.items()
        if name in second
        and _list_overrides(replace(topic, config=second[name])) != _list_overrides(topic)
    ]


def _ask_all(
    views: Views,
    names: Collection[str],
    of: Callable[[TopicState], object],
    *,
    with_config: bool = False,
) -> dict[str, Mapping[int, TopicState]]:
    """Ask all brokers about topics until they agree or time is up. Returns each broker's view."""
    shown: dict[str, Mapping[int, TopicState]] = {}
    waiting = list(names)
    for pause in _LAG_S:
        if waiting:
            time.sleep(pause)
            found = views.read(waiting, waiting if with_config else ())
            for name in waiting:
                shown[name] = {b: view[name] for b, view in found.items() if name in view}
            waiting = [name for name in waiting if len(set(map(of, shown[name].values()))) > 1]
    return shown


def _agree(topic: TopicState, shown: Mapping[int, TopicState]) -> TopicState:
    """Keep the overrides that all brokers show, and note each broker's value of the others."""
    told = {broker: managed_overrides(seen) for broker, seen in shown.items()}
    keys = {key for overrides in told.values() for key in overrides}
    said = {key: {b: overrides.get(key) for b, overrides in told.items()} for key in sorted(keys)}
    disputed = {key: by_broker for key, by_broker in said.items() if len({*by_broker.values()}) > 1}
    kept = {
        key: value for key, value in topic.config.items() if key not in managed_overrides(topic)
    }
    agreed = {key: next(iter(said[key].values())) for key in said.keys() - disputed.keys()}
    return replace(topic, config=kept | agreed, disputed=disputed)


def _list_overrides(topic: TopicState) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(managed_overrides(topic).items()))


def _follow(topic: TopicState, targets: Mapping[int, Replicas]) -> TopicState:
    """Set the target rows of a topic's partitions under reassignment."""
    rows = tuple(targets.get(number, row) for number, row in enumerate(topic.assignment))
    return replace(topic, assignment=rows, reassigning=frozenset(targets))


TIMEOUT_MS = 10_000

Moving = dict[str, dict[int, "Replicas"]]


def read_reassignments(
    connection: Connection, doubtful: Collection[str]
) -> tuple[Moving, list[Finding]]:
    """Return the target replicas of every partition under reassignment, by topic and partition.

    `doubtful`: the topics possibly under reassignment; without any, nothing is asked.
    Returns: also a warning, if no one could be asked. Errors: ClusterError for a lack of rights.
    Cost: 0.2 s, most of it the import and the first connection.
    """
    in_flight, notes = read_in_flight(connection, dict.fromkeys(doubtful))
    moving: Moving = {}
    for each in in_flight:
        moving.setdefault(each.topic, {})[each.partition] = each.target
    return moving, notes


def read_in_flight(
    connection: Connection, topics: Mapping[str, TopicState | None]
) -> tuple[tuple[Reassignment, ...], list[Finding]]:
    """Return every reassignment that has not ended, whatever its topic, by topic and partition.

    `topics` says who leads and what is in sync. Without any, nothing is asked.
    Returns, errors and cost: as `read_reassignments`.
    """
    if not topics:
        return (), []
    from kafka.errors import (
        ClusterAuthorizationFailedError,
        IncompatibleBrokerVersion,
        KafkaError,
    )

    from reconciler.kafka.second_client import (
        NoAnswerError,
        ask_second_client,
        describe_error,
    )

    try:
        listed = ask_second_client(connection, _list_all)
    except ClusterAuthorizationFailedError:
        what = f"replicas of {_name(topics)} may be in flight, and the account may not see that"
        way_out = "grant it Describe on the cluster"
        raise ClusterError([Finding("cluster-rights", what, way_out)]) from None
    except UntranslatableError as error:  # `moves status` needs the same client
        return (), [_warn(str(error), topics, "kafka-reassign-partitions --list")]
    except NoAnswerError as error:
        return (), [_warn(str(error), topics)]
    except IncompatibleBrokerVersion as error:  # it stays so: a note, and no command shows more
        what = f"{describe_error(error)}, so it is unknown whether reassignments are in flight"
        way_out = (
            "before applying, check with the tools of the service that no reassignment is in flight"
        )
        return (), [Finding("reassignments-unseen", what, way_out, severity=Severity.NOTE)]
    except KafkaError as error:
        return (), [_warn(describe_error(error), topics)]
    found = []
    for (name, number), lists in sorted(listed.items()):
        shown = topics.get(name)
        found.append(
            Reassignment(
                name,
                number,
                tuple(lists["replicas"]),
                tuple(lists["adding_replicas"]),
                tuple(lists["removing_replicas"]),
                shown.leaders[number] if shown and number < len(shown.leaders) else None,
                shown.in_sync[number] if shown and number < len(shown.in_sync) else (),
            )
        )
    return tuple(found), []


def _list_all(client: Any) -> Mapping[tuple[str, int], Mapping[str, list[int]]]:
    listed: Mapping[tuple[str, int], Mapping[str, list[int]]]
    listed = client.list_partition_reassignments(timeout_ms=TIMEOUT_MS)
    return listed


def _name(topics: Collection[str]) -> str:
    return min(topics) + (f" and {len(topics) - 1} more" if len(topics) > 1 else "")


def _warn(
    reason: str, doubtful: Collection[str], command: str = "reconciler moves status"
) -> Finding:
    what = f"replicas of {_name(doubtful)} may be in flight, and that cannot be seen: {reason}"
    way_out = f"before applying, check that no reassignment is in flight: {command}"
    return Finding("reassignments-unseen", what, way_out, severity=Severity.WARNING)
