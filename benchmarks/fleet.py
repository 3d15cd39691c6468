"""A synthetic fleet of 1, 3 and 7 million partitions: seconds, memory, rows a second.

`make bench-fleet` runs it. Each stage is a process of its own on two cores and a fixed heap, and
sampled from outside. `workers` plans once more, on a Spark cluster of two workers, and has to give
the same bytes. Beside the plan stands the join it needs at least, specs against states, in DuckDB:
what one machine can do without Spark, and without a plan.
    python benchmarks/fleet.py [MILLIONS …]
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil

MASTER, MEMORY = "local[2]", "4g"
CLUSTERS, TOPICS_A_MILLION = 150, 57_143
WHEN = "20261121T030000Z"
STAGES = ("generate", "read", "plan", "workers", "audit", "duckdb")

_PLACE = "attempt=*-state-*/*.parquet"
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


def run_stage(stage: str, place: Path, millions: float) -> dict[str, Any]:
    """Run one stage in this process. Returns: what it found, and `seconds` without start-up."""
    if stage == "duckdb":
        return join_in_duckdb(place)
    if stage == "workers":
        from reconciler.fleet.standalone import start_spark

        with start_spark() as url:
            return run_on_spark("plan", place, millions, url)
    return run_on_spark(stage, place, millions, MASTER)


def run_on_spark(stage: str, place: Path, millions: float, master: str) -> dict[str, Any]:
    from reconciler.fleet.lake import Lake
    from reconciler.fleet.session import Engine, open_session

    began = time.perf_counter()
    session = open_session(Engine(master=master, large=True, memory=MEMORY))
    started = time.perf_counter()
    lake = Lake(session, str(place / "lake"))
    found = SPARK_STAGES[stage](lake, place, millions)
    ended = time.perf_counter()
    if stage == "plan":
        found |= digest(lake)
    session.stop()
    return {"seconds": ended - started, "start": started - began, **found}


def generate(lake: Any, place: Path, millions: float) -> dict[str, Any]:
    from reconciler.fleet.generator.job import generate_fleet, write_estate
    from reconciler.fleet.generator.shapes import FleetSize

    topics = round(TOPICS_A_MILLION * millions)
    size = FleetSize(CLUSTERS, topics, round(millions * 1_000_000), 1)
    write_estate(size, place / "estate")
    generate_fleet(lake, size, WHEN)
    return {}


def read(lake: Any, place: Path, millions: float) -> dict[str, Any]:
    from reconciler.fleet import tables

    attempt = lake.find_attempt()
    for table in (*tables.STATE, tables.SPECS):
        lake.read(table, attempt).write.format("noop").mode("overwrite").save()
    return {}


def plan(lake: Any, place: Path, millions: float) -> dict[str, Any]:
    from reconciler.api import load_estate
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


def audit(lake: Any, place: Path, millions: float) -> dict[str, Any]:
    from reconciler.api import load_estate
    from reconciler.fleet import tables
    from reconciler.fleet.jobs import audit_collection

    made = audit_collection(lake, load_estate(place / "estate"))
    return {"findings": lake.read(tables.FINDINGS, made).count()}


SPARK_STAGES = {"generate": generate, "read": read, "plan": plan, "audit": audit}


def join_in_duckdb(place: Path) -> dict[str, Any]:
    """Classify every topic by one join, on two threads and in the same memory."""
    import duckdb

    files = {name: f"{place}/lake/{name}/{_PLACE}" for name in _TABLES}
    connection = duckdb.connect(config={"threads": 2, "memory_limit": MEMORY.upper() + "B"})
    started = time.perf_counter()
    found = connection.sql(_JOIN.format(**files)).fetchall()
    return {"seconds": time.perf_counter() - started, "start": 0.0, **dict(found)}


_TABLES = ("specs", "partitions", "configs")


def measure(stage: str, place: Path, millions: float) -> dict[str, Any]:
    """Run a stage in a process of its own, and sample the memory of its whole family."""
    command = [sys.executable, __file__, "--stage", stage, str(place), str(millions)]
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, text=True)
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


def compare(sizes: list[float]) -> None:
    """Print a row for every stage of every size, and how stages grow with the fleet."""
    load = os.getloadavg()[0]
    print(f"{CLUSTERS} clusters, {MASTER}, a heap of {MEMORY}; load of this machine {load:.1f}\n")
    print(f"{'':>5} {'stage':<9} {'seconds':>8} {'rows/s':>10} {'JVMs':>8} {'Python':>8}")
    seconds: dict[str, list[float]] = {stage: [] for stage in STAGES}
    for millions in sizes:
        with tempfile.TemporaryDirectory(prefix="bench-fleet-") as directory:
            found = {}
            for stage in STAGES:
                found[stage] = measure(stage, Path(directory), millions)
                seconds[stage].append(found[stage]["seconds"])
                print(describe(stage, millions, found[stage]), flush=True)
        if found["plan"]["sha256"] != found["workers"]["sha256"]:
            raise SystemExit("two workers plan something else than one process")
    print()
    for stage in STAGES:
        print(describe_growth(stage, sizes, seconds[stage]))
    print(f"plan to DuckDB's join: {', '.join(map(ratio, seconds['plan'], seconds['duckdb']))}")


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


def describe(stage: str, millions: float, found: dict[str, Any]) -> str:
    taken = found["seconds"]
    line = f"{millions:>3g} M {stage:<9} {taken:>8.1f} {millions * 1e6 / taken:>10,.0f}"
    line += f" {found['java'] / 2**30:>5.2f} GB {found['python'] / 2**30:>5.2f} GB"
    counts = {k: v for k, v in found.items() if k not in ("seconds", "start", "java", "python")}
    said = (f"{v:,} {k}" if isinstance(v, int) else f"{k} {v}" for k, v in counts.items())
    return line + "  " + ", ".join(said)


def ratio(ours: float, other: float) -> str:
    return f"{ours / other:.1f}"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--stage"]:
        _, _, name, where, much = sys.argv
        print(json.dumps(run_stage(name, Path(where), float(much))))
        sys.stdout.flush()
    else:
        compare([float(n) for n in sys.argv[1:]] or [1, 3, 7])
