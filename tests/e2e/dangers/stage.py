"""The stage: an estate, the command line, a cluster and somebody at it; and what was said there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TypeVar

from by_hand import ByHand
from command import run_here

from reconciler.model.cluster import TopicState
from reconciler.sandbox.cluster import Cluster

T = TypeVar("T")

PLAN = ("plan", "--cluster", "lab")
APPLY = ("apply", "--cluster", "lab", "--auto-approve")
SAVED = ("apply", "plan.json", "--auto-approve")
OUTCOME = re.compile(
    r"(already done|done|half done|failed|unknown|not attempted|refused) |"
    r"(\w[\w ]*\. )?Applied: |No changes\. "
)
COUNTS = re.compile(r"\d+ (to |refused)")
UNTOLD = re.compile(
    r"Unhealthy: |size: |cluster: |placement: |next leaders: |fingerprint | +placement |saved to |"
    r"waiting up to |No changes\. 0 "
)
"""What has no place on the page: how even it all lies, and what follows from the rest.

How many partitions are unhealthy depends on what other tests left in internal topics.
"""

HOLDER = "ana@desk (process 4711) since 2026-03-01T12:00:00Z, plan 0123456789ab"


def clusters(lab: str = "{}", defaults: str = "partitions: 6, replication_factor: 2") -> str:
    """Return the text of a clusters.yaml."""
    return f"version: 1\ndefaults: {{{defaults}}}\nclusters:\n  lab: {lab}\n"


class Stage:
    """One danger being acted out. `planned`, `applied` and `afterwards` are what the page tells."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.directory = directory
        self.planned: list[str] = []
        self.applied: list[str] = []
        self.afterwards = ""
        self._before: list[str] | None = None
        self._ids: dict[str, str] = {}
        self._entered = ExitStack()
        self._home = ByHand(cluster)
        (directory / "topics").mkdir()
        self.write("clusters.yaml", clusters())
        self.move_to(cluster)

    def enter(self, context: AbstractContextManager[T]) -> T:
        """Enter what is to last until the end."""
        return self._entered.enter_context(context)

    def close(self) -> None:
        """End what was entered, and leave no topic behind."""
        self._entered.close()
        for topic in _list_topics(self._home):
            self._home.delete(topic.name)

    def move_to(self, cluster: Cluster, servers: str = "") -> None:
        """Go on before another cluster, or take another way to it."""
        self._ids = {**dict.fromkeys(self._ids, "(another's id)"), cluster.cluster_id: "(its id)"}
        self.cluster = cluster
        self.servers = servers or cluster.bootstrap_servers
        self.hand = ByHand(cluster)

    def write(self, name: str, text: str) -> None:
        """Write a file of the estate."""
        (self.directory / "topics" / name).write_text(text, encoding="utf-8")

    def wish(self, topic: str, **keys: object) -> None:
        """Write a topic's spec: of 6 partitions and 2 replicas, unless its keys say otherwise."""
        lines = [f"{key}: {json.dumps(value)}\n" for key, value in {"topic": topic, **keys}.items()]
        self.write(f"{topic}.yaml", "".join(lines))

    def have(self, topic: str, **keys: object) -> None:
        """Have a topic on the cluster as a spec says, and the spec in the estate."""
        self.wish(topic, **keys)
        code, out, err = self.run(*APPLY)
        assert code == 0, out + err

    def take_out(self, topic: str) -> None:
        """Delete a topic's file."""
        (self.directory / "topics" / f"{topic}.yaml").unlink()

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run the command line here. Returns its exit code, stdout and stderr."""
        ran = run_here(self.directory, self.servers, *arguments)
        return ran.code, ran.out, ran.err

    def plan(self, *more: str) -> None:
        """Plan, and note what is said below the line that names the cluster."""
        code, out, err = self.run(*PLAN, *more)
        self.planned.append(self._tell(code, [*out.splitlines()[1:], *err.splitlines()]))

    def save(self) -> None:
        """Plan, keep the plan, and note its counts."""
        code, out, _ = self.run(*PLAN, "--out", "plan.json")
        self.planned.append(self._tell(code, filter(COUNTS.match, out.splitlines())))

    def fingerprint(self) -> str:
        """Return the fingerprint of the plan that was kept."""
        return str(json.loads((self.directory / "plan.json").read_text())["fingerprint"])

    def apply(self, *arguments: str) -> None:
        """Apply, and note what is said below the plan."""
        self._before = self._look()
        self.note_apply(*self.run(*(arguments or APPLY)))

    def note_apply(self, code: int, out: str, err: str) -> None:
        """Note what an apply said."""
        said = self._tell(code, [*err.splitlines(), *filter(OUTCOME.match, out.splitlines())])
        if rules := _find_repeated(self.planned[-1], said):
            said = f"exit **{code}**<br>the same on stderr [{', '.join(rules)}]"
        self.applied.append(said)

    def apply_saved(self) -> None:
        self.apply(*SAVED)

    def plan_and_apply(self) -> None:
        self.plan()
        self.apply()

    def look(self) -> None:
        """Note what the cluster has now, and whether that is what it had before the apply."""
        found = self._look()
        told = "<br>".join(found) or "no topic"
        self.afterwards = f"as before: {told}" if found == self._before else told

    def _look(self) -> list[str]:
        return [describe_topic(topic) for topic in _list_topics(self.hand)]

    def _tell(self, code: int, lines: Iterable[str]) -> str:
        """Return lines as a cell tells them, without what is different each time."""
        told = [self._settle(line) for line in lines if line.strip() and not UNTOLD.match(line)]
        return "<br>".join([f"exit **{code}**", *told])

    def _settle(self, line: str) -> str:
        line = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:9092", " ".join(line.split()))
        line = re.sub(r"\b[0-9a-f]{64}\b", "(fingerprint)", line)
        line = re.sub(r"\S+ \(process \d+\) since \S+, plan [0-9a-f]+", HOLDER, line)
        line = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC, \S+ ago", "(time), a moment ago", line)
        for cluster_id, name in self._ids.items():
            line = line.replace(cluster_id, name)
        return re.sub(r"([|<*])", r"\\\1", line)


def _list_topics(hand: ByHand) -> list[TopicState]:
    return [topic for _, topic in sorted(hand.all().items()) if not topic.internal]


def _find_repeated(planned: str, applied: str) -> list[str]:
    """Return the rules that a plan named, if apply repeats every one of them with its way out."""
    found = re.findall(r"([^>]+?)\.? \[([a-z-]+)\](?=<br>|$)", planned)
    repeated = all(f"{way_out} [{rule}]".lower() in applied.lower() for way_out, rule in found)
    return sorted({rule for _, rule in found}) if repeated else []


def describe_topic(topic: TopicState) -> str:
    """Say in a few words what a topic is."""
    (factor,) = topic.replication_factors
    config = "".join(f", {key}={value}" for key, value in sorted(topic.config.items()))
    return f"{topic.name} {len(topic.assignment)} × {factor}{config}"
