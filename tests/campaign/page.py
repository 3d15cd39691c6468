"""docs/explanation/reliability.md, and the counts of every run that it sums: runs.json here."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from campaign.faults import Kind
from campaign.network import Stage

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "reliability.md"
RUNS = Path(__file__).with_name("runs.json")
HEAD = """\
# Reliability: apply under faults

`make campaign MINUTES=n SEED=s` runs `apply` on real clusters, injects faults, and compares the
reports of `apply` with the state of the cluster. It writes this page. Each cluster has three
brokers and three controllers, each in its own process. Several clusters run at a time.

A round has six steps:

1. Random topics are created, and a random estate is written for them: new topics, expansions,
   changed configs, deletions, and topics that the plan must refuse.
2. `apply` runs as a child process with `--journal` and an `audit_topic`. One round in four applies
   a saved plan. All requests go through a proxy that identifies each of them.
3. One fault is injected at a random request: most often while apply changes the cluster, otherwise
   while it reads, takes the lock, validates, verifies or writes the audit record. It lasts at most
   20 s.
4. Everything is repaired. All brokers are asked, one by one and without reconciler's code, until
   they agree on every topic id, every replica of every partition and every config.
5. The report, the exit code, the journal and the audit record are compared with the cluster and
   with each other.
6. The same command is repeated until the plan is empty. Each repetition is checked as well.

Each of these is a **violation**:

- a topic that is reported as done and is not done;
- a topic that is reported as failed, half done or not attempted, and is done;
- a change that no run reported;
- a lost topic or partition;
- a replica of an existing partition that moved;
- records that contradict each other;
- a traceback, a crash, or a run that does not end;
- a repeated command that does not finish the work.

'Unknown' is not a violation: apply reports it if a request got no answer and may still be carried
out. The table counts how many of these topics ended as planned, partly changed, or unchanged.

In nine rounds of ten, apply gives up a request after 8 s instead of 45 s, and sends at most 3
topics and 10 partitions per request. This gives more requests for faults.
"""
COLUMNS = (
    "fault",
    "rounds",
    "struck",
    "while writing",
    "unknown: done",
    "in part",
    "not done",
    "violations",
)


def find_release() -> dict[str, str]:
    """Say which code is tested: the commit, and the tree of the product as it is on disk."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.strip()

    product = git("rev-parse", "HEAD:reconciler")
    if git("status", "--porcelain", "reconciler"):
        product += " with changes"
    return {"commit": git("rev-parse", "--short=12", "HEAD"), "product": product}


def count_run(begun: Mapping[str, Any], results: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Count the rounds of a run by kind of fault: what is kept of it."""
    counts: dict[str, Counter[str]] = {}
    for result in results:
        counts.setdefault(result["kind"], Counter()).update(_count(result))
    return {**begun, "counts": {kind: dict(+count) for kind, count in sorted(counts.items())}}


def keep_runs(runs: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Add runs to those kept, and return all; an equal commit and seed replaces the run."""
    kept = json.loads(RUNS.read_text(encoding="utf-8")) if RUNS.exists() else []
    by_run = {(run["commit"], run["seed"]): run for run in [*kept, *runs]}
    RUNS.write_text(json.dumps(list(by_run.values()), indent=1) + "\n", encoding="utf-8")
    return list(by_run.values())


def render_page(runs: Sequence[Mapping[str, Any]]) -> str:
    """Render the sum of several runs, and a line for each of them."""
    counts = {kind.value: sum_counts(runs, kind.value) for kind in Kind}
    total = sum(counts.values(), Counter[str]())
    void = f" {total['void']} more rounds are void: their cluster did not start or settle."
    said = (
        f"{total['rounds']:,} rounds in {len(runs)} runs, {total['violations']} violations."
        f"{void if total['void'] else ''}"
    )
    table = [
        f"| {' | '.join(COLUMNS)} |",
        "|:--" + "|--:" * (len(COLUMNS) - 1) + "|",
        *(_render_row(kind, count) for kind, count in counts.items()),
        _render_row("**all**", total),
    ]
    listed = ["| commit | seed | rounds | violations |", "|:--|--:|--:|--:|"]
    for run in runs:
        of_run = sum((Counter(count) for count in run["counts"].values()), Counter[str]())
        cells = (f"`{run['commit']}`", run["seed"], of_run["rounds"], of_run["violations"])
        listed.append(f"| {' | '.join(map(str, cells))} |")
    causes = [f"- Seed {run['seed']}: {run['cause']}" for run in runs if "cause" in run]
    found = ["", "The violations, each with its cause:", "", *causes] if causes else []
    return "\n".join([HEAD, "## Results", "", said, "", *table, "", *listed, *found, "", NOTE])


def sum_counts(runs: Iterable[Mapping[str, Any]], kind: str) -> Counter[str]:
    """Sum what the runs counted for one kind of fault."""
    return sum((Counter(run["counts"].get(kind, {})) for run in runs), Counter[str]())


NOTE = """\
`struck` counts the rounds in which the fault occurred. In the others, apply never sent the request
that the fault waited for. Round k of a seed always generates the same cluster, estate and fault.
`build/campaign/` contains everything about a round: the estate, what the brokers showed before and
after, and what apply printed and wrote. `python -m campaign apply --seed s --rounds k` repeats
single rounds (with `PYTHONPATH=tests`). `tests/campaign/runs.json` contains the counts of every
run, with the tested commit, and the cause of each violation, which a person adds. A commit that git
does not have was combined with others before it was merged.
"""


def _count(result: Mapping[str, Any]) -> Counter[str]:
    if result["trouble"] and not result["violations"]:
        return Counter(void=1)
    unknown = result["unknown"]
    return Counter(
        {
            "rounds": 1,
            "struck": int(result["struck"]),
            "writing": int(result["struck"] and result["stage"] == Stage.WRITE),
            "full": unknown.get("full", 0),
            "partial": unknown.get("partial", 0),
            "none": unknown.get("none", 0),
            "violations": len(result["violations"]),
        }
    )


def _render_row(name: str, count: Counter[str]) -> str:
    keys = ("rounds", "struck", "writing", "full", "partial", "none", "violations")
    return f"| {' | '.join([name, *(f'{count[key]:,}' for key in keys)])} |"
