"""Run a campaign and write its page: `make campaign MINUTES=n SEED=s`."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from campaign.page import PAGE, count_run, keep_runs, render_page
from campaign.run import run_campaign

BUILD = Path("build/campaign")
LANES = 5


def main(arguments: Sequence[str]) -> int:
    """Run, write the page, and return 1 where anything was violated."""
    parser = argparse.ArgumentParser(prog="campaign apply", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lanes", type=int, default=LANES, help="clusters at a time")
    parser.add_argument("--rounds", type=int, nargs="+", help="these rounds only, and no page")
    parser.add_argument("--write-docs", type=Path, nargs="+", metavar="FILE", help="add these runs")
    asked = parser.parse_args(arguments)
    if asked.write_docs:
        return write_docs(asked.write_docs)
    directory = BUILD / "again" if asked.rounds else BUILD
    file = directory / f"{time.strftime('%Y%m%dT%H%M%S')}-seed{asked.seed}.jsonl"
    run_campaign(file, asked.seed, asked.minutes, asked.lanes, asked.rounds)
    if not asked.rounds:
        write_docs([file])
    return int(any(result["violations"] for result in read_run(file)[1]))


def write_docs(files: Sequence[Path]) -> int:
    """Keep the counts of runs, write the page, and return 1 where anything was violated."""
    read = [read_run(file) for file in files]
    runs = keep_runs(count_run(begun, results) for begun, results in read)
    PAGE.write_text(render_page(runs), encoding="utf-8")
    print(f"{PAGE}: {len(runs)} runs")
    return int(any(result["violations"] for _, results in read for result in results))


def read_run(file: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Read how a run began, and the result of each of its rounds."""
    begun, *results = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return begun, results
