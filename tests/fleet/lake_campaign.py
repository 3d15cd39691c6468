"""Jobs on one lake at once, and kill -9 in the middle: what is published is complete.

    python -m lake_campaign --rounds 30 --seed 1        (make campaign-lake ROUNDS=30 SEED=1)

A round starts two or four jobs on one lake in the same moment, each in a process of its own, and
kills half of them at some moment: Python alone, whose JVM goes on for a while, or both. Then
DuckDB counts what the publications name, a job that lived reads it by the lake's own code, and one
more job has to leave nothing but what is published.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

CLUSTERS, TASKS = 12, 8
START = datetime(2026, 11, 1, tzinfo=UTC)
PATIENCE_S = 900.0
TABLES = ("partitions", "topics")

MOMENTS: Mapping[str, str] = MappingProxyType(
    {
        "begun": "running/{}",
        "writing": "*/attempt={}/_temporary",
        "one table written": f"{TABLES[0]}/attempt={{}}/_SUCCESS",
        "all tables written": f"{TABLES[1]}/attempt={{}}/_SUCCESS",
        "published": "collections/{}.json",
    }
)
"""When a job is killed: a little after such a path of its attempt is there."""


def count_rows(collection: str) -> int:
    """Return how many rows a job writes under a name, into each of its tables."""
    return 20_000 + int(collection[:8]) % 97 * 500 + int(collection[9:15]) % 89 * 100


def expect(collection: str) -> dict[str, int]:
    """Return the rows of each cluster."""
    rows = Counter(number % CLUSTERS for number in range(count_rows(collection)))
    return {f"c-{number:02}": count for number, count in rows.items()}


def work(root: str) -> None:
    """Run the jobs that arrive on stdin, one a line, until it ends."""
    from pyspark.sql import functions as F  # noqa: N812

    from reconciler.fleet import tables
    from reconciler.fleet.lake.lake import Lake
    from reconciler.fleet.session import Engine, open_session

    lake = Lake(open_session(Engine(master="local[2]", memory="700m")), root)
    print("ready", flush=True)
    for line in sys.stdin:
        verb, name = line.split()
        if verb == "read":
            found = [
                (attempt.id, table.name, row["cluster"], row["count"])
                for attempt in lake.list_attempts()
                for table in (tables.TABLES[name] for name in TABLES)
                for row in lake.read(table, attempt).groupBy("cluster").count().collect()
            ]
            print(json.dumps(found), flush=True)
            continue
        rows = lake.session.range(0, count_rows(name), 1, TASKS)
        cluster = F.format_string("c-%02d", F.col("id") % CLUSTERS)
        with lake.begin(name) as draft:
            print(draft.attempt.id, flush=True)
            for table in (tables.TABLES[name] for name in TABLES):
                named = {f.name: F.lit(None).cast(f.dataType) for f in table.schema}
                named |= {"cluster": cluster, "topic": F.col("id").cast("string")}
                draft.append(table, rows.select(*(c.alias(n) for n, c in named.items())))
            made = draft.publish(CLUSTERS)
        print(made.id, flush=True)


class Worker:
    """A process that runs jobs, in a process group of its own with its JVM."""

    def __init__(self, root: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--work", str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )
        self.is_ready = False

    def send(self, verb: str, name: str = "-") -> None:
        if not self.is_ready:
            assert self.hear() == "ready"
            self.is_ready = True
        assert self.process.stdin is not None
        self.process.stdin.write(f"{verb} {name}\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        """Return the next line that it prints."""
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], PATIENCE_S)[0]:
            raise TimeoutError(f"no answer in {PATIENCE_S:.0f} s")
        line = self.process.stdout.readline().strip()
        if not line:
            assert self.process.stderr is not None
            raise RuntimeError(self.process.stderr.read()[-3000:])
        return line

    def kill(self, *, with_jvm: bool) -> None:
        """End it as the kernel does that runs out of memory."""
        if with_jvm:
            os.killpg(self.process.pid, signal.SIGKILL)
        else:
            self.process.kill()
        self.process.wait()

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()


@dataclass
class Campaign:
    """The lake of a campaign, its workers, and what was seen."""

    root: Path
    dice: random.Random
    workers: list[Worker] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)

    def run_round(self, number: int) -> list[str]:
        """Run a round. Returns: its violations."""
        jobs = (2, 4)[number % 2]
        while len(self.workers) < jobs:
            self.workers.append(Worker(self.root))
        base = START + timedelta(days=number)
        same = self.dice.random() < 0.5
        names = [
            (base + timedelta(seconds=0 if same else 101 * job)).strftime("%Y%m%dT%H%M%SZ")
            for job in range(jobs)
        ]
        chosen = self.workers[:jobs]
        for worker in chosen:  # all of them are up before any begins
            if not worker.is_ready:
                assert worker.hear() == "ready"
                worker.is_ready = True
        for worker, name in zip(chosen, names, strict=True):
            worker.send("collect", name)
        started = [worker.hear() for worker in chosen]
        killed = self.dice.sample(range(jobs), jobs // 2)
        self.kill({started[job]: chosen[job] for job in killed})
        lived = [job for job in range(jobs) if job not in killed]
        ids = [chosen[job].hear() for job in lived]
        published = self.read_publications()
        self.seen["jobs"] += jobs
        self.seen["killed"] += len(killed)
        self.seen["had published"] += len(published) - len(ids)
        for job in killed:
            chosen[job].end()
            self.workers.remove(chosen[job])
        return [*self.check(ids, chosen[lived[0]]), *self.clean(chosen[lived[0]])]

    def kill(self, victims: Mapping[str, Worker]) -> None:
        """Kill each job at a moment of its own."""
        moments = {name: self.dice.choice(list(MOMENTS)) for name in victims}
        waiting, deadline = dict(victims), time.monotonic() + PATIENCE_S
        while waiting and time.monotonic() < deadline:
            for name, worker in list(waiting.items()):
                if any(self.root.glob(MOMENTS[moments[name]].format(name))):
                    time.sleep(self.dice.uniform(0, 0.3))
                    worker.kill(with_jvm=self.dice.random() < 0.5)
                    self.seen[f"killed: {moments[name]}"] += 1
                    self.seen["left rows behind"] += name in self.list_directories()
                    del waiting[name]
            time.sleep(0.005)
        assert not waiting, f"never came to {moments}"

    def check(self, ids: list[str], reader: Worker) -> list[str]:
        """Return what is wrong with what is published, and with what is read."""
        published = self.read_publications()
        wrong = [
            f"{name} was reported and is not published" for name in ids if name not in published
        ]
        for name, kept in published.items():
            for table in TABLES:
                for who, found in (
                    ("its publication", kept["rows"].get(table)),
                    ("DuckDB", self.count_by_cluster(table, name)),
                ):
                    if found != expect(kept["collection"]):
                        wrong.append(f"{who} counts {found} in {table} of {name}")
        reader.send("read")
        read: dict[tuple[str, str], dict[str, int]] = {}
        for name, table, cluster, count in json.loads(reader.hear()):
            read.setdefault((name, table), {})[cluster] = count
        if {name for name, _ in read} - set(published):
            wrong.append(f"read what is not published: {sorted(read)}")
        wrong += [
            f"the lake reads {found} in {table} of {name}"
            for (name, table), found in read.items()
            if found != expect(name[:16])
        ]
        if {name[:16] for name, _ in read} != {kept["collection"] for kept in published.values()}:
            wrong.append("not every published collection is read")
        return wrong

    def clean(self, worker: Worker) -> list[str]:
        """Return what is left when one more job has ended, and remove all collections."""
        from reconciler.fleet.lake.lake import remove_collections
        from reconciler.fleet.lake.stores import LocalStore

        worker.send("collect", "20261231T000000Z")
        for _ in ("begun", "published"):
            worker.hear()
        published = self.read_publications()
        wrong = [f"left over: {n}" for n in sorted(self.list_directories() - set(published))]
        for name in {kept["collection"] for kept in published.values()}:
            remove_collections(LocalStore(self.root), [name], str(self.root))
        if left := self.list_directories():
            wrong.append(f"not removed: {sorted(left)}")
        return wrong

    def read_publications(self) -> dict[str, Any]:
        found = map(json.loads, (p.read_text() for p in self.root.glob("collections/*.json")))
        return {kept["attempt"]: kept for kept in found}

    def list_directories(self) -> set[str]:
        return {p.name.partition("=")[2] for p in self.root.glob("*/attempt=*")}

    def count_by_cluster(self, table: str, name: str) -> dict[str, int]:
        import duckdb

        files = str(self.root / table / f"attempt={name}" / "*.parquet")
        return dict(duckdb.read_parquet(files).aggregate("cluster, count(*)").fetchall())


def run_campaign(rounds: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Run so many rounds. Returns: what was seen, and every violation."""
    place = Path(tempfile.mkdtemp(prefix="lake-campaign-"))
    campaign, wrong = Campaign(place / "lake", random.Random(seed)), []
    try:
        for number in range(rounds):
            found = campaign.run_round(number)
            wrong += [f"round {number}: {one}" for one in found]
            campaign.seen["rounds"] += 1
            print(f"round {number}: {len(found)} violations", flush=True)
    finally:
        for worker in campaign.workers:
            worker.end()
        if not wrong:
            shutil.rmtree(place)
    return campaign.seen, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", metavar="LAKE")
    asked = parser.parse_args()
    if asked.work:
        work(asked.work)
        return 0
    seen, wrong = run_campaign(asked.rounds, asked.seed)
    print(f"seed {asked.seed}: " + ", ".join(f"{count} {what}" for what, count in seen.items()))
    print("\n".join(wrong) or "0 violations")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
