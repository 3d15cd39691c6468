"""How each tool moves replicas: what a careful user writes and runs, from first to last."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kafka_scripts import find_script, write_rows
from ours import PROGRAM, Reconciler
from topicctl import Topicctl, find_topicctl

if TYPE_CHECKING:
    from campaign.moves.world import World
    from tool import Place

    Run = Callable[..., str]

RATE = 1_000_000  # bytes per second and broker; topicctl takes whole megabytes
POLL_S = 1


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be done: leave a broker, have another replication factor, or only be even."""

    drained: int | None = None
    replication: int | None = None


class Mover(Protocol):
    """A tool that moves replicas."""

    name: str

    def version(self) -> str:
        """Return the tool's version. Errors: Missing where it is not installed."""
        ...

    def move(self, work: Work, place: Place, world: World, run: Run) -> None:
        """Write files, plan, and move until the tool says that all is done."""
        ...

    def resume(self, work: Work, place: Place, world: World, run: Run) -> None:
        """Do what the tool's documentation says after a run that ended in the middle."""
        ...


class ReconcilerMoves(Reconciler):
    """A saved plan of moves, and the apply of that plan."""

    def move(self, work: Work, place: Place, world: World, run: Run) -> None:
        """A drain is in clusters.yaml, a replication factor in the topic files."""
        kind = "drain" if work.drained else "replication" if work.replication else "rebalance"
        world.moves = {"allow": [kind], "rate": f"{RATE}B", "keep_free": "1%"}
        world.drained = [work.drained] if work.drained else []
        for spec in world.topics.values():
            spec["replication_factor"] = work.replication or spec["replication_factor"]
        world.write_estate()
        verb = ("rebalance",) if kind == "rebalance" else ("plan", "--moves")
        servers = ("--bootstrap-servers", place.servers)
        run(PROGRAM, *verb, "topics", "--cluster", "lab", *servers, "--out", "moves.json")
        if (place.directory / "moves.json").exists():  # an empty rebalance saves no plan
            self.resume(work, place, world, run)

    def resume(self, work: Work, place: Place, world: World, run: Run) -> None:
        """The same plan again."""
        servers = ("--bootstrap-servers", place.servers)
        run(PROGRAM, "apply", "moves.json", "--estate", "topics", "--auto-approve", *servers)


class ReassignPartitions:
    """--generate for all topics, --execute with a throttle, --verify until it removes that."""

    name = "kafka-reassign-partitions"

    def version(self) -> str:
        """Return what `--version` says."""
        command = [find_script("reassign-partitions"), "--version"]
        said = subprocess.run(command, capture_output=True, text=True, check=True)
        return said.stdout.split()[0]

    def move(self, work: Work, place: Place, world: World, run: Run) -> None:
        """--generate keeps the number of replicas, so another one is written by hand."""
        if work.replication:
            write_rows(place, dict.fromkeys(sorted(world.topics), work.replication))
        else:
            self._generate(work, place, world, run)
        run(*_script(place, "--execute"), "--throttle", str(RATE))
        self.resume(work, place, world, run)

    def _generate(self, work: Work, place: Place, world: World, run: Run) -> None:
        topics = [{"topic": name} for name in [*sorted(world.topics), "__consumer_offsets"]]
        (place.directory / "all.json").write_text(json.dumps({"version": 1, "topics": topics}))
        brokers = [str(s.id) for s in world.cluster.statuses() if s.id != work.drained]
        said = run(
            find_script("reassign-partitions"),
            *("--bootstrap-server", place.servers, "--generate"),
            *("--topics-to-move-json-file", "all.json", "--broker-list", ",".join(brokers)),
        )
        rows = said.split("Proposed partition reassignment configuration")[1].strip()
        (place.directory / "moves.json").write_text(rows)

    def resume(self, work: Work, place: Place, world: World, run: Run) -> None:
        """--verify also removes throttles, once nothing is in flight."""
        while "is still in progress" in run(*_script(place, "--verify")):
            time.sleep(POLL_S)


def _script(place: Place, verb: str) -> tuple[str, ...]:
    return (
        find_script("reassign-partitions"),
        *("--bootstrap-server", place.servers),
        *("--reassignment-json-file", "moves.json", verb),
    )


class TopicctlMoves(Topicctl):
    """Files by `bootstrap`; then `rebalance`, or `apply` for a replication factor, topic by topic.

    Larger batches and shorter waits than its defaults, which are 1 partition and 10 s.
    """

    def move(self, work: Work, place: Place, world: World, run: Run) -> None:
        """Have it write the files of what exists, and change them."""
        self.environment(place)
        (place.directory / "topics").mkdir(exist_ok=True)
        files = ("--output", "topics", "--overwrite", "--allow-internal-topics")
        run(find_topicctl(), "bootstrap", "--cluster-config", "cluster.yaml", *files)
        for name in world.topics if work.replication else ():
            (path,) = (place.directory / "topics").glob(f"{name}.*")
            text = path.read_text()
            wanted = f"replicationFactor: {work.replication}"
            path.write_text(re.sub(r"replicationFactor: \d+", wanted, text))
        self.resume(work, place, world, run)

    def resume(self, work: Work, place: Place, world: World, run: Run) -> None:
        """The same command again."""
        leaving = ("--to-remove", str(work.drained)) if work.drained else ()
        files = [f"topics/{name}.yaml" for name in sorted(world.topics)]
        run(
            find_topicctl(),
            *(("apply", "--skip-confirm") if work.replication else ("rebalance", *leaving)),
            *("--cluster-config", "cluster.yaml"),
            *("--broker-throttle-mb", str(RATE // 1_000_000)),
            *("--partition-batch-size", "5", "--sleep-loop-duration", f"{POLL_S}s"),
            *(files if work.replication else ("--path-prefix", "topics")),
        )


MOVERS: tuple[Mover, ...] = (ReconcilerMoves(), ReassignPartitions(), TopicctlMoves())
