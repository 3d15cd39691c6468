"""Synthetic clusters whose balance by load has a proven bound, and the best rows known for each.

The bounds come from linear and integer programs, the best rows from all methods tried together.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from reconciler.placement.loads.problem import NOBODY, LoadProblem

LoadCase = Mapping[str, Any]
"""`partitions`: topic, row, size, write rate, rate that its leader sends. `band`, by resource: the
lowest and highest load of each broker. `bound`: proven; `best`, `least`: by any method known."""


@cache
def read_cases() -> Mapping[str, LoadCase]:
    """Read all cases, by id."""
    content = gzip.decompress(Path(__file__).with_name("load_cases.json.gz").read_bytes())
    return {case["id"]: case for case in json.loads(content)}


def build_problem(case: LoadCase) -> LoadProblem:
    """Build the problem of a case, with its band."""
    brokers, partitions = case["brokers"], case["partitions"]
    numbers = {broker["id"]: number for number, broker in enumerate(brokers)}
    names = sorted({str(broker["rack"]) for broker in brokers})
    racks = [names.index(str(broker["rack"])) for broker in brokers]
    width = max(len(row) for _, row, *_ in partitions)
    rows = np.array(
        [[*(numbers[b] for b in row), *[NOBODY] * (width - len(row))] for _, row, *_ in partitions]
    )
    topics, sizes, written, sent = (np.array([p[i] for p in partitions]) for i in (0, 2, 3, 4))
    loads = {"disk": sizes, "in": written, "out": sent, "lin": written}
    by, leads = case["resources"], case["mode"] == "leaders"
    excluded = case.get("excluded_topics") or ()
    low, high = (np.array([[pair[i] for pair in case["band"][key]] for key in by]) for i in (0, 1))
    return LoadProblem(
        rows=rows[:, :1] if leads else rows,
        loads=np.array([loads[key] for key in by]),
        fixed=np.zeros((len(by), len(brokers)), dtype=np.int64),
        cost=np.ones(len(partitions), dtype=np.int64) if leads else sizes,
        low=low,
        high=high,
        scale=np.array([case["scale"][key] for key in by]),
        racks=np.array(racks) * (case["mode"] != "dirs"),
        receivers=np.ones(len(brokers), dtype=bool),
        movable=~np.isin(topics, excluded),
        topics=topics,
        spread=None if leads else case["topic_spread"],
        within=rows if leads else None,
    )
