"""docs/reliability.md: what campaigns found, by kind of fault."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from campaign.faults import Kind
from campaign.network import Stage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reliability.md"
HEAD = """\
# Reliability: apply under faults

`make campaign MINUTES=n SEED=s` runs `apply` on real clusters while things break, and compares what
it says with what is there. It writes this page. Each cluster has three brokers and three
controllers, a process each; several clusters run at a time.

A round has six steps:

1. Random topics are created, and a random estate is written for them: new topics, expansions,
   changed configs, deletions, and topics that the plan must refuse.
2. `apply` runs as a child process with `--journal` and an `audit_topic`. One round in four applies
   a saved plan. All its requests go through a proxy, which recognises each of them.
3. One fault strikes at a random request: most often while apply changes the cluster, else while it
   reads, takes the lock, validates, verifies or writes the audit record. It lasts up to 20 s.
4. Everything is healed. All brokers are asked, one by one and without reconciler's code, until they
   agree on every topic id, every replica of every partition and every config.
5. The report, the exit code, the journal and the audit record are compared with the cluster and
   with each other.
6. The same command is repeated until the plan is empty. Each repetition is judged as well.

A **violation** is any of these: a topic that is said to be done and is not; one that is said to be
failed, half done or not attempted and is done; a change that nobody claimed; a lost topic or
partition; a replica of an existing partition that moved; records that disagree; a traceback, a
crash, a run that does not end; a repeated command that does not finish the work.

'Unknown' is no violation: apply says it where a request got no answer, and the request may still be
carried out. The table counts how many of these topics turned out as planned, in part, or unchanged.

In nine rounds of ten, apply gives a request up after 8 s instead of 45 s, and sends at most 3
topics and 10 partitions in a request, so that there are more requests to strike at.
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


def render_page(runs: Sequence[Mapping[str, Any]], results: Iterable[Mapping[str, Any]]) -> str:
    """Render the sum of several runs."""
    counts: dict[str, Counter[str]] = {kind.value: Counter() for kind in Kind}
    for result in results:
        counts[result["kind"]].update(_count(result))
    total = sum(counts.values(), Counter[str]())
    rows = [_render_row(kind, count) for kind, count in counts.items()]
    table = [
        f"| {' | '.join(COLUMNS)} |",
        "|:--" + "|--:" * (len(COLUMNS) - 1) + "|",
        *rows,
        _render_row("**all**", total),
    ]
    listed = "; ".join(f"seed {run['seed']} for {run['minutes']:g} min" for run in runs)
    void = f" {total['void']} more rounds are void: their cluster did not start or settle."
    told = (
        f"{total['rounds']:,} rounds in {len(runs)} runs ({listed}), {total['runs']:,} times apply,"
        f" {total['violations']} violations.{void if total['void'] else ''}"
    )
    return "\n".join([HEAD, "## Results", "", told, "", *table, "", NOTE])


NOTE = """\
`struck` counts the rounds whose fault came true; in the others apply never sent the request that
the fault waited for. Round k of a seed always draws the same world and the same fault. Everything
about a round is kept in `build/campaign/`: the estate, what the brokers showed before and after,
and what apply printed and wrote. `python -m campaign --seed s --rounds k` drives single rounds
again, and `--write-docs FILES` sums the given runs (with `PYTHONPATH=tests`).
"""


def _count(result: Mapping[str, Any]) -> Counter[str]:
    if result["trouble"] and not result["violations"]:
        return Counter(void=1)
    unknown = result["unknown"]
    return Counter(
        {
            "rounds": 1,
            "runs": len(result["runs"]),
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
