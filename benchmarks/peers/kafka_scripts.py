"""Kafka's own scripts: what a person types by hand for the same edit."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence

from confluent_kafka.admin import AdminClient
from tool import Missing, Place, Step, Topic, find


class KafkaScripts:
    """They have neither files nor a plan: every step is an apply.

    kafka-topics for topics, kafka-configs for configs, kafka-reassign-partitions for replicas.
    """

    name = "Kafka's scripts"

    def version(self) -> str:
        """Return what `kafka-topics --version` says."""
        said = subprocess.run(
            [find_script("topics"), "--version"], capture_output=True, text=True, check=True
        )
        return said.stdout.split()[0]

    def environment(self, place: Place) -> dict[str, str]:
        """Return nothing: what they need is on the command line."""
        return {}

    def steps(
        self, before: Sequence[Topic], wanted: Sequence[Topic], place: Place
    ) -> Sequence[Step]:
        """Return a command for each difference; for a topic that is not wanted any more, none."""
        live = {topic.name: topic for topic in before}
        commands = (c for topic in wanted for c in _commands(live.get(topic.name), topic, place))
        return tuple(Step("apply", command) for command in commands)


def _commands(live: Topic | None, wanted: Topic, place: Place) -> Iterable[tuple[str, ...]]:
    server = ("--bootstrap-server", place.servers)
    topic = (find_script("topics"), *server, "--topic", wanted.name)
    partitions = ("--partitions", str(wanted.partitions))
    if live is None:
        replication = ("--replication-factor", str(wanted.replication))
        pairs = (word for key, value in wanted.config for word in ("--config", f"{key}={value}"))
        yield (*topic, "--create", *partitions, *replication, *pairs)
        return
    if live.partitions != wanted.partitions:
        yield (*topic, "--alter", *partitions)
    if live.replication != wanted.replication:
        moves = ("--reassignment-json-file", _write_moves(wanted, place))
        yield (find_script("reassign-partitions"), *server, *moves, "--execute")
    changed = ",".join(f"{k}={v}" for k, v in wanted.config if (k, v) not in live.config)
    if changed:
        configs = (find_script("configs"), *server, "--topic", wanted.name)
        yield (*configs, "--alter", "--add-config", changed)


def _write_moves(wanted: Topic, place: Place) -> str:
    return write_rows(place, {wanted.name: wanted.replication})


def write_rows(place: Place, replication: Mapping[str, int]) -> str:
    """Write what a person would: the last replicas go, or the lowest unused brokers come."""
    seen = AdminClient({"bootstrap.servers": place.servers}).list_topics(timeout=30)
    rows = [
        {
            "topic": topic,
            "partition": number,
            "replicas": list(dict.fromkeys([*row.replicas, *sorted(seen.brokers)]))[:count],
        }
        for topic, count in replication.items()
        for number, row in sorted(seen.topics[topic].partitions.items())
    ]
    path = place.directory / "moves.json"
    path.write_text(json.dumps({"version": 1, "partitions": rows}))
    return str(path)


def find_script(noun: str) -> str:
    """Return the path of kafka-NOUN. Errors: Missing."""
    variable = f"KAFKA_{noun.upper().replace('-', '_')}"
    try:
        return find(f"kafka-{noun}.sh", variable)
    except Missing:
        return find(f"kafka-{noun}", variable)
