"""The demonstration: specs become topics on a real Kafka of six brokers in three racks.

`make demo` runs it. It works in a directory of its own, on a sandbox of its own, and leaves
neither behind, whether it ends or is interrupted.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient, NewTopic

import reconciler

if TYPE_CHECKING:
    from collections.abc import Mapping

ESTATE = Path(__file__).resolve().parents[1] / "topics"
COMMAND = Path(sys.executable).with_name("reconciler")

HISTORY = (
    NewTopic(
        "payments.captured",  # its spec has grown to 9 partitions since
        num_partitions=6,
        replication_factor=3,
        config={
            "compression.type": "zstd",
            "min.insync.replicas": "2",
            "retention.ms": "3024000000",
            "unclean.leader.election.enable": "false",
        },
    ),
    NewTopic(
        "orders.events",  # somebody has turned its configs by hand
        num_partitions=12,
        replication_factor=3,
        config={
            "compression.type": "zstd",
            "min.insync.replicas": "1",
            "retention.ms": "604800000",
            "flush.ms": "1000",
        },
    ),
    NewTopic("legacy.clickstream", num_partitions=4, replication_factor=3),  # in no file
    NewTopic(
        "shop.prices",  # its spec asks for 6 partitions, and Kafka cannot take two away
        num_partitions=8,
        replication_factor=3,
        config={
            "cleanup.policy": "compact",
            "max.compaction.lag.ms": "3600000",
            "min.cleanable.dirty.ratio": "0.2",
            "min.insync.replicas": "2",
        },
    ),
)


class Stage:
    """The directory, the environment and the screen of one demonstration."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        shutil.copytree(ESTATE, directory / "topics")
        self.environment = {**os.environ, "XDG_STATE_HOME": str(directory / "state")}
        if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
            self.environment["FORCE_COLOR"] = "1"

    def say(self, text: str) -> None:
        """Tell the audience what comes next."""
        bold = ("\x1b[1m", "\x1b[0m") if "FORCE_COLOR" in self.environment else ("", "")
        print(f"\n{bold[0]}# {text}{bold[1]}", flush=True)

    def run(self, *words: str, expect: int = 0) -> None:
        """Run a command as a person would. Errors: SystemExit if it ends otherwise than told."""
        print(f"$ reconciler {' '.join(words)}", flush=True)
        code = subprocess.run(
            [COMMAND, *words], cwd=self.directory, env=self.environment, check=False
        ).returncode
        if code != expect:
            raise SystemExit(f"reconciler {words[0]} exited {code}, not {expect}")

    def admin(self) -> AdminClient:
        """Return a client of the sandbox, for what happened before reconciler came."""
        return AdminClient({"bootstrap.servers": self.servers(), "log_level": 0})

    def servers(self) -> str:
        """Return the sandbox's bootstrap servers."""
        os.environ["XDG_STATE_HOME"] = self.environment["XDG_STATE_HOME"]
        from reconciler.sandbox.record import running_sandbox

        record = running_sandbox()
        if record is None:
            raise SystemExit("the sandbox has gone")
        return record.bootstrap_servers

    def count_leaders(self) -> Mapping[int, int]:
        """Count preferred leaders by broker."""
        estate = reconciler.load_estate(self.directory / "topics")
        state = reconciler.read_cluster(estate, "sandbox", bootstrap_servers=self.servers())
        leaders = Counter(row[0] for topic in state.topics.values() for row in topic.assignment)
        return {broker.id: leaders[broker.id] for broker in state.brokers}


def play(stage: Stage) -> None:
    """Play the demonstration from the first act to the last."""
    stage.say("A real Kafka cluster: six brokers in three racks, on this machine only")
    stage.run("sandbox", "up", "--brokers", "6", "--racks", "3")
    stage.say("It has a history: a topic too small, one turned by hand, one in no file, …")
    admin = stage.admin()  # kept while its answers are awaited
    for future in admin.create_topics(list(HISTORY)).values():
        future.result()
    before = stage.count_leaders()

    stage.say("The specs of a shop, checked without any cluster")
    stage.run("validate", "topics")
    stage.say("What would change? One spec asks for the impossible, so this exits 1")
    stage.run("plan", "topics", "--cluster", "sandbox", expect=1)

    stage.say("The plan says the way out: topics/shop.yaml puts 8 partitions back")
    _put_partitions_back(stage.directory / "topics" / "shop.yaml")
    stage.run("apply", "topics", "--cluster", "sandbox", "--auto-approve")
    stage.say("And again: there is nothing left to do")
    stage.run("plan", "topics", "--cluster", "sandbox", "--detailed-exitcode")

    stage.say("Preferred leaders on each broker, before and after")
    _draw(before, stage.count_leaders())


def _put_partitions_back(file: Path) -> None:
    head, found, tail = file.read_text().partition("topic: shop.prices\n")
    file.write_text(head + found + tail.replace("partitions: 6", "partitions: 8", 1))


def _draw(before: Mapping[int, int], after: Mapping[int, int]) -> None:
    for broker, leaders in after.items():
        had = before.get(broker, 0)
        print(f"  broker {broker}  {'█' * had:<12} {had:>2}   →   {'█' * leaders} {leaders}")


def main() -> None:
    """Play, and clean up whatever happens."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="reconciler-demo-") as directory:
        stage = Stage(Path(directory))
        try:
            play(stage)
        except KeyboardInterrupt:
            print("\ninterrupted; cleaning up", file=sys.stderr)
            raise SystemExit(130) from None
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            stage.say("Cleaning up")
            stage.run("sandbox", "down")


if __name__ == "__main__":
    main()
