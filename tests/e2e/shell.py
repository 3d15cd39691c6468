"""The command line on an estate of its own, for tests that watch an apply while it runs."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

from command import RECONCILER, run_here
from confluent_kafka.admin import AdminClient

APPLY = ("apply", "--cluster", "lab", "--auto-approve")
VALIDATIONS = 2  # of CreateTopics, before the first real one: for rights, and of the plan


class Shell:
    """A directory with an estate, and the command line in it."""

    def __init__(self, directory: Path, servers: str) -> None:
        self.directory = directory
        self.servers = servers
        self.journal = directory / "journal.jsonl"
        self.printed = directory / "printed.txt"
        (directory / "topics").mkdir()
        self.write("clusters.yaml", "version: 1\nclusters: {lab: {}}\n")

    def write(self, name: str, text: str) -> None:
        (self.directory / "topics" / name).write_text(text)

    def start(self, *arguments: str, servers: str = "") -> subprocess.Popen[str]:
        program = [*RECONCILER, *arguments, "--bootstrap-servers", servers or self.servers]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(program, text=True, cwd=self.directory, **pipes)

    def run(self, *arguments: str) -> tuple[int, str, str]:
        ran = run_here(self.directory, self.servers, *arguments)
        return ran.code, ran.out, ran.err

    def start_apply(self, servers: str = "", *more: str) -> subprocess.Popen[str]:
        return self.start(*APPLY, *more, "--journal", str(self.journal), servers=servers)

    def apply(self, *more: str) -> tuple[int, str, str]:
        return self.run(*APPLY, *more, "--journal", str(self.journal))

    def start_saved(self, *more: str) -> subprocess.Popen[bytes]:
        """Apply plan.json, with a journal of its own; what is printed goes to a file."""
        self.journal.unlink(missing_ok=True)
        saved = ("apply", "plan.json", "--auto-approve", "--journal", str(self.journal))
        program = [*RECONCILER, *saved, *more, "--bootstrap-servers", self.servers]
        with self.printed.open("wb") as out:
            return subprocess.Popen(program, stdout=out, stderr=out, cwd=self.directory)

    def await_phase(self, process: subprocess.Popen[bytes], phase: str) -> None:
        """Wait until the journal tells of a phase."""
        while not (self.journal.exists() and f'"phase": "{phase}"' in self.journal.read_text()):
            assert process.poll() is None, self.printed.read_text()[-500:]
            time.sleep(0.01)

    def await_topics(self, count: int) -> int:
        """Return how many topics a broker shows, once it shows as many, or no more appear."""
        client = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        for _ in range(100):
            shown = self.count_topics(client)
            if shown >= count:
                time.sleep(1)  # for any that nobody told of
                break
            time.sleep(0.3)
        return self.count_topics(client)

    @staticmethod
    def count_topics(client: AdminClient) -> int:
        """Count the topics but those of Kafka itself, which come with the first lock."""
        return sum(not name.startswith("__") for name in client.list_topics(timeout=15).topics)

    def lines(self) -> list[dict[str, str]]:
        """Return the journal: every line of it whole."""
        text = self.journal.read_text(encoding="utf-8")
        assert text.endswith("\n")
        return [json.loads(line) for line in text.splitlines()]


def told(out: str) -> dict[str, str]:
    """Return the outcomes that were printed below the plan, by the last part of the name."""
    kinds = ("already done", "done", "half done", "failed", "unknown", "not attempted", "refused")
    found = {}
    for line in out.splitlines():
        kind = next((kind for kind in kinds if line.startswith(f"{kind:<13} ")), None)
        if kind:
            topic = line[14:].split()[0]
            found[topic.partition("-")[2]] = kind
    return found
