"""Synthetic fleets, small and of 1, 3 and 7 million partitions: seconds, memory, Spark's work.

`make bench-fleet` runs it. Each stage is a process of its own on two cores and a fixed heap, and
sampled from outside. `workers` plans once more, on a Spark cluster of two workers, and has to give
the same bytes. Beside the plan stands the join it needs at least, specs against states, in DuckDB:
what one machine can do without Spark, and without a plan. `small` is 20 clusters of 200 topics:
`night` does in one session what `fleet run` does after the collection. `--against COMMIT` measures
every stage on that commit as well, in a worktree of git.
    python benchmarks/fleet.py [small | MILLIONS …] [--against COMMIT]
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil

MASTER, MEMORY = "local[2]", "4g"
TOPICS_A_MILLION = 57_143
NIGHTS = ("20261120T030000Z", "20261121T030000Z")
STAGES = ("generate", "read", "plan", "workers", "audit", "duckdb")
SMALL_STAGES = ("generate", "plan", "night", "duckdb")
ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Scale:
    """The size of a fleet, and how it is run: `nights` collections of the same rows."""

    name: str
    clusters: int
    topics: int
    partitions: int
    large: bool = True
    nights: int = 1

    @property
    def stages(self) -> tuple[str, ...]:
        return STAGES if self.large else SMALL_STAGES


def choose_scale(word: str) -> Scale:
    """Return `small`, or a fleet of so many million partitions."""
    if word == "small":
        return Scale("small", 20, 4_000, 40_000, large=False, nights=2)
    millions = float(word)
    return Scale(f"{millions:g} M", 150, round(TOPICS_A_MILLION * millions), round(millions * 1e6))


_PLACE = f"attempt={NIGHTS[-1]}-state-*/*.parquet"
_JOIN = """
with wished as (
    select cluster, topic, partitions, replication_factor,
           list_sort([k || '=' || config[k] for k in map_keys(config)]) as config
    from read_parquet('{specs}')
), placed as (
    select cluster, topic, count(*) as partitions,
           min(len(replicas)) as fewest, max(len(replicas)) as most
    from read_parquet('{partitions}') group by all
), configured as (
    select cluster, topic, list_sort(list(config || '=' || value)) as config
    from read_parquet('{configs}') group by all
), live as (select * from placed left join configured using (cluster, topic))
select case when w.topic is null then 'unmanaged' when l.topic is null then 'missing'
            when w.partitions = l.partitions and w.replication_factor = l.fewest
                 and l.fewest = l.most and w.config = l.config then 'unchanged'
            else 'changed' end as verdict, count(*) as topics
from wished w full outer join live l on w.cluster = l.cluster and w.topic = l.topic
group by all order by all
"""


def run_stage(stage: str, place: Path, scale: Scale) -> dict[str, Any]:
    """Run one stage in this process. Returns: what it found, and `seconds` without start-up."""
    if stage == "duckdb":
        return join_in_duckdb(place)
    if stage == "workers":
        from reconciler.fleet.standalone import start_spark

        with start_spark() as url:
            return run_on_spark("plan", place, scale, url)
    return run_on_spark(stage, place, scale, MASTER)


def run_on_spark(stage: str, place: Path, scale: Scale, master: str) -> dict[str, Any]:
    from reconciler.fleet.lake.lake import Lake
    from reconciler.fleet.session import Engine, open_session

    began = time.perf_counter()
    session = open_session(Engine(master=master, large=scale.large, memory=MEMORY))
    started = time.perf_counter()
    # As the command line opens it; older commits count at every read.
    once = {"counts_once": True} if "counts_once" in Lake.__dataclass_fields__ else {}
    lake, files = Lake(session, str(place / "lake"), **once), count_files(place)
    found = SPARK_STAGES[stage](lake, place, scale)
    ended = time.perf_counter()
    found |= {**count_work(session), "files": count_files(place) - files}
    if stage == "plan":
        found |= digest(lake)
    session.stop()
    return {"seconds": ended - started, "start": started - began, **found}


def count_work(session: Any) -> dict[str, int]:
    """Count the jobs, stages and tasks that a session has completed."""
    context = session.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    listed = context.statusStore().jobsList(None)
    jobs = [listed.apply(number) for number in range(listed.size())]
    return {
        "jobs": len(jobs),
        "stages": sum(job.numCompletedStages() for job in jobs),
        "tasks": sum(job.numCompletedTasks() for job in jobs),
    }


def count_files(place: Path) -> int:
    return sum(1 for _ in (place / "lake").rglob("*.parquet"))


def generate(lake: Any, place: Path, scale: Scale) -> dict[str, Any]:
    from reconciler.fleet.generator.job import generate_fleet, write_estate
    from reconciler.fleet.generator.shapes import FleetSize

    size = FleetSize(scale.clusters, scale.topics, scale.partitions, 1)
    write_estate(size, place / "estate")
    for when in NIGHTS[-scale.nights :]:
        generate_fleet(lake, size, when)
    return {}


def read(lake: Any, place: Path, scale: Scale) -> dict[str, Any]:
    from reconciler.fleet import tables

    attempt = lake.find_attempt()
    for table in (*tables.STATE, tables.SPECS):
        lake.read(table, attempt).write.format("noop").mode("overwrite").save()
    return {}


def plan(lake: Any, place: Path, scale: Scale) -> dict[str, Any]:
    from reconciler.api.planning import load_estate
    from reconciler.fleet import tables
    from reconciler.fleet.jobs import plan_collection

    made = plan_collection(lake, load_estate(place / "estate"))
    rows = lake.read(tables.PLANS, made).collect()
    names = ("changed", "refused", "unchanged", "unmanaged")
    return {name: sum(row[name] or 0 for row in rows) for name in names}


def digest(lake: Any) -> dict[str, Any]:
    """Return a digest of the latest plans and changes, every byte of them, in sorted order."""
    from reconciler.fleet import tables

    made, seen = lake.find_attempt(what="plan"), hashlib.sha256()
    for table in (tables.PLANS, tables.CHANGES):
        for row in sorted(map(str, lake.read(table, made).toArrow().to_pylist())):
            seen.update(row.encode())
    return {"sha256": seen.hexdigest()[:16]}


def audit(lake: Any, place: Path, scale: Scale) -> dict[str, Any]:
    from reconciler.api.planning import load_estate
    from reconciler.fleet import tables
    from reconciler.fleet.jobs import audit_collection

    made = audit_collection(lake, load_estate(place / "estate"))
    return {"findings": lake.read(tables.FINDINGS, made).count()}


def night(lake: Any, place: Path, scale: Scale) -> dict[str, Any]:
    """Plan, audit, compare and show the latest collection in one session."""
    from reconciler.api.planning import load_estate
    from reconciler.cli.fleet.page import write_page
    from reconciler.fleet.jobs import audit_collection, plan_collection
    from reconciler.fleet.tracing import trace_collections

    estate, found = load_estate(place / "estate"), {}
    parts = {
        "plan": lambda: plan_collection(lake, estate),
        "audit": lambda: audit_collection(lake, estate),
        "history": lambda: trace_collections(lake),
        "page": lambda: write_page(lake, None, place / "fleet.html", lambda _: None),
    }
    for name, run in parts.items():
        began = time.perf_counter()
        run()
        found[name] = f"{time.perf_counter() - began:.1f} s"
    return found


SPARK_STAGES = {"generate": generate, "read": read, "plan": plan, "audit": audit, "night": night}


def join_in_duckdb(place: Path) -> dict[str, Any]:
    """Classify every topic by one join, on two threads and in the same memory."""
    import duckdb

    files = {name: f"{place}/lake/{name}/{_PLACE}" for name in _TABLES}
    connection = duckdb.connect(config={"threads": 2, "memory_limit": MEMORY.upper() + "B"})
    started = time.perf_counter()
    found = connection.sql(_JOIN.format(**files)).fetchall()
    return {"seconds": time.perf_counter() - started, "start": 0.0, **dict(found)}


_TABLES = ("specs", "partitions", "configs")


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """Yield a worktree of a commit, and remove it."""
    with tempfile.TemporaryDirectory(prefix="bench-against-") as directory:
        git = ["git", "-C", str(ROOT), "worktree"]
        tree = Path(directory) / "tree"
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), commit], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def measure(stage: str, place: Path, word: str, tree: Path) -> dict[str, Any]:
    """Run a stage of a tree in a process of its own, and sample the memory of its whole family."""
    command = [sys.executable, __file__, "--stage", stage, str(place), word]
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONPATH": str(tree)},
        )
        root, most = psutil.Process(process.pid), {"java": 0, "python": 0}
        while process.poll() is None:
            now = sample(root)
            most = max(most, now, key=lambda sizes: sum(sizes.values()))
            time.sleep(0.2)
        output.seek(0)
        said = output.read().strip()
    if process.returncode:
        raise SystemExit(f"{stage}: exit {process.returncode}\n{said[-3000:]}")
    return {**json.loads(said.splitlines()[-1]), **most}


def sample(root: psutil.Process) -> dict[str, int]:
    """Return the resident bytes of the JVM, and of all Python processes together."""
    held = {"java": 0, "python": 0}
    try:
        family = [root, *root.children(recursive=True)]
    except psutil.Error:
        return held
    for process in family:
        try:
            name, parent = process.name(), process.parent()
            if name.startswith("python"):
                held["python"] += process.memory_info().rss
            elif name == "java" and (parent is None or parent.cmdline() != process.cmdline()):
                held["java"] += process.memory_info().rss  # one that forks is the same for a moment
        except psutil.Error:
            continue
    return held


def compare(words: list[str], trees: dict[str, Path]) -> None:
    """Print a row for every stage of every size and tree, and how stages grow with the fleet."""
    load = os.getloadavg()[0]
    print(f"{MASTER}, a heap of {MEMORY}; load of this machine {load:.1f}\n")
    for label, tree in trees.items():
        print(f"{label:>11} {'stage':<9} {'seconds':>8} {'rows/s':>10} {'JVMs':>8} {'Python':>8}")
        seconds: dict[str, list[float]] = {stage: [] for stage in STAGES}
        for word in words:
            for stage, found in measure_stages(word, tree).items():
                if stage in seconds and choose_scale(word).large:
                    seconds[stage].append(found["seconds"])
        print()
        sizes = [float(word) for word in words if choose_scale(word).large]
        for stage in STAGES if sizes else ():
            print(describe_growth(stage, sizes, seconds[stage]))
        if sizes:
            ratios = map(ratio, seconds["plan"], seconds["duckdb"])
            print(f"plan to DuckDB's join: {', '.join(ratios)}")


def measure_stages(word: str, tree: Path) -> dict[str, dict[str, Any]]:
    """Measure and print every stage of a size. Errors: SystemExit if workers plan other bytes."""
    scale, found = choose_scale(word), {}
    with tempfile.TemporaryDirectory(prefix="bench-fleet-") as directory:
        for stage in scale.stages:
            found[stage] = measure(stage, Path(directory), word, tree)
            print(describe(stage, scale, found[stage]), flush=True)
    if "workers" in found and found["plan"]["sha256"] != found["workers"]["sha256"]:
        raise SystemExit("two workers plan something else than one process")
    return found


def describe_growth(stage: str, sizes: list[float], seconds: list[float]) -> str:
    """Say what each further million takes, from one size to the next, and what none would."""
    if len(sizes) == 1:
        return f"{stage:<9} {seconds[0] / sizes[0]:.1f} s a million partitions"
    sides = zip(pairwise(seconds), pairwise(sizes), strict=True)
    steps = [(after - before) / (more - less) for (before, after), (less, more) in sides]
    start = seconds[0] - steps[0] * sizes[0]
    grown = ", ".join(f"{step / steps[0]:.2f}" for step in steps)
    costs = ", ".join(f"{step:.1f}" for step in steps)
    return f"{stage:<9} {start:.1f} s, and {costs} s a further million; to the first: {grown}"


def describe(stage: str, scale: Scale, found: dict[str, Any]) -> str:
    taken = found["seconds"]
    line = f"{scale.name:>11} {stage:<9} {taken:>8.1f} {scale.partitions / taken:>10,.0f}"
    line += f" {found['java'] / 2**30:>5.2f} GB {found['python'] / 2**30:>5.2f} GB"
    line += f"  start {found['start']:.1f} s"
    counts = {k: v for k, v in found.items() if k not in ("seconds", "start", "java", "python")}
    said = (f"{v:,} {k}" if isinstance(v, int) else f"{k} {v}" for k, v in counts.items())
    return ", ".join([line, *said])


def ratio(ours: float, other: float) -> str:
    return f"{ours / other:.1f}"


def main(words: list[str]) -> None:
    """Measure the sizes of the command line, before and after where a commit is named."""
    commit = None
    if "--against" in words:
        at = words.index("--against")
        commit = words[at + 1]
        del words[at : at + 2]
    with checked_out(commit) if commit else nullcontext() as before:
        trees = {**({"before": before} if before else {}), "after": ROOT}
        compare(words or ["small", "1", "3", "7"], trees)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--stage"]:
        _, _, name, where, size = sys.argv
        print(json.dumps(run_stage(name, Path(where), choose_scale(size))))
        sys.stdout.flush()
    else:
        main(sys.argv[1:])
