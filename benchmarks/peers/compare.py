"""Ten edits by five tools on the same real cluster. `make compare-peers` runs it.

Each tool that is installed plans and applies each edit on a cluster that holds nothing else; what
it said and what the brokers then show is recorded as JSON, and told in
docs/explanation/comparison.md. A tool that is not installed is left out by name.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from edits import EDITS, Edit
from jikkou import Jikkou
from kafka_scripts import KafkaScripts
from observe import Observer, Picture
from opentofu import OpenTofu
from ours import Reconciler
from table import render, write_between_markers
from tool import Missing, Place, Step, Tool
from topicctl import Topicctl

from reconciler.sandbox.cluster import Cluster, start_cluster

TOOLS: tuple[Tool, ...] = (Reconciler(), OpenTofu(), Topicctl(), Jikkou(), KafkaScripts())
PROPERTIES = {"log.retention.check.interval.ms": "1000"}  # the default of 5 min is long to watch
COMMAND_S = 600
OUTPUT_CHARACTERS = 6_000


def main() -> None:
    """Run what was asked for, keep the record, and show the table."""
    arguments = _arguments()
    record = _read(arguments.record)
    versions = {t: v for t in TOOLS if t.name in arguments.tools and (v := _version(t))}
    record["versions"].update({tool.name: version for tool, version in versions.items()})
    for brokers in sorted({EDITS[n - 1].brokers for n in arguments.edits}):
        numbers = [n for n in arguments.edits if EDITS[n - 1].brokers == brokers]
        with start_cluster(brokers=brokers, racks=3, properties=PROPERTIES) as cluster:
            record["kafka"] = cluster.kafka_version
            for cell in _run_cells(cluster, numbers, tuple(versions)):
                record["cells"][f"{cell['edit']} {cell['tool']}"] = cell
                _write(arguments.record, record)
    table = render(record, [tool.name for tool in TOOLS])
    if arguments.table:
        write_between_markers(arguments.table, "compare-peers", table)
    else:
        print(table)


def _arguments() -> argparse.Namespace:
    numbers = range(1, len(EDITS) + 1)
    names = [tool.name for tool in TOOLS]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edits", type=int, nargs="+", choices=numbers, default=list(numbers))
    parser.add_argument("--tools", nargs="+", choices=names, default=names)
    parser.add_argument("--record", type=Path, required=True, help="JSON, added to if it exists")
    parser.add_argument("--table", type=Path, help="Markdown with the markers; else print it")
    return parser.parse_args()


def _read(path: Path) -> dict[str, Any]:
    if path.exists():
        known: dict[str, Any] = json.loads(path.read_text())
        return known
    return {"kafka": "", "versions": {}, "cells": {}}


def _write(path: Path, record: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")


def _version(tool: Tool) -> str | None:
    try:
        return tool.version()
    except Missing as missing:
        print(f"{tool.name}: not run, {missing}", file=sys.stderr)
        return None


def _run_cells(
    cluster: Cluster, numbers: Iterable[int], tools: Sequence[Tool]
) -> Iterable[dict[str, Any]]:
    observer = Observer(cluster)
    for number in numbers:
        for tool in tools:
            print(f"{number} {tool.name} …", file=sys.stderr)
            observer.delete_all()
            with tempfile.TemporaryDirectory() as directory:
                place = Place(Path(directory), cluster.bootstrap_servers, cluster.cluster_id)
                cell = _run_cell(EDITS[number - 1], tool, place, observer)
            yield {"edit": number, "tool": tool.name, **cell}


def _run_cell(edit: Edit, tool: Tool, place: Place, observer: Observer) -> dict[str, Any]:
    """Bring the cluster to the start with the tool itself, then make the edit."""
    _prepare(edit, tool, place, observer)
    before = observer.look()
    done: list[dict[str, Any]] = []
    steps = tool.steps(edit.start, edit.wanted, place)
    for step in steps:
        if step.kind == "apply" and not all(d["ok"] for d in done if d["kind"] == "plan"):
            break
        if step.kind == "apply" and step is _first_apply(steps) and edit.by_hand:
            observer.set_config("orders", *edit.by_hand)
        done.append(_run(step, tool, place))
    after = observer.look()
    return {"steps": done, "before": _kept(before), "after": _kept(after)}


def _first_apply(steps: Sequence[Step]) -> Step:
    return next(step for step in steps if step.kind == "apply")


def _prepare(edit: Edit, tool: Tool, place: Place, observer: Observer) -> None:
    """Errors: SystemExit where the tool cannot make the start."""
    for step in tool.steps((), edit.start, place) if edit.start else ():
        done = _run(step, tool, place)
        if not done["ok"]:
            raise SystemExit(f"{tool.name} could not start {edit.title!r}: {done}")
    for topic in edit.start if edit.records else ():
        observer.store_records(topic.name, edit.records)


def _run(step: Step, tool: Tool, place: Place) -> dict[str, Any]:
    """Run a command where the tool works and keep what it said, both ends if it said much."""
    try:
        done = subprocess.run(
            step.command,
            cwd=place.directory,
            env={**os.environ, "NO_COLOR": "1", **tool.environment(place)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )
    except subprocess.TimeoutExpired as hung:
        raise SystemExit(f"{tool.name} did not end within {COMMAND_S} s") from hung
    command = " ".join([Path(step.command[0]).name, *step.command[1:]])
    return {
        "kind": step.kind,
        "command": command.replace(str(place.directory), "."),
        "exit": done.returncode,
        "ok": done.returncode in {0, step.pending},
        "said": _ends(done.stdout.replace(str(place.directory), ".")),
    }


def _ends(text: str) -> str:
    half = OUTPUT_CHARACTERS // 2
    return text if len(text) <= 2 * half else f"{text[:half]}\n[…]\n{text[-half:]}"


def _kept(picture: Picture) -> dict[str, Any]:
    """Return a picture as JSON keeps it: every key is text."""
    racks = {str(broker): rack for broker, rack in picture.racks.items()}
    return {"topics": {n: asdict(t) for n, t in picture.topics.items()}, "racks": racks}


if __name__ == "__main__":
    main()
