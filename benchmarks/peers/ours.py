"""reconciler in the comparison: a saved plan, and the apply of that plan."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tool import Place, Step, Topic

PROGRAM = str(Path(sys.executable).with_name("reconciler"))


class Reconciler:
    """This project, from its own sources."""

    name = "reconciler"

    def version(self) -> str:
        """Return what `reconciler --version` says."""
        done = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True)
        return done.stdout.split()[-1]

    def environment(self, place: Place) -> dict[str, str]:
        """Return nothing: what it needs is on the command line."""
        return {}

    def steps(
        self, before: Sequence[Topic], wanted: Sequence[Topic], place: Place
    ) -> Sequence[Step]:
        """Write an estate; plan into a file, apply the file."""
        estate = place.directory / "topics"
        estate.mkdir(exist_ok=True)
        (estate / "topics.yaml").write_text("---\n".join(map(_document, wanted)))
        servers = ("--bootstrap-servers", place.servers)
        plan = str(place.directory / "plan.json")
        return (
            Step(
                "plan", (PROGRAM, "plan", "topics", "--cluster", "sandbox", *servers, "--out", plan)
            ),
            Step("apply", (PROGRAM, "apply", plan, "--auto-approve", *servers)),
        )


def _document(topic: Topic) -> str:
    lines = [
        f"topic: {topic.name}",
        f"partitions: {topic.partitions}",
        f"replication_factor: {topic.replication}",
    ]
    if topic.config:
        lines += ["config:", *(f"  {key}: {value}" for key, value in topic.config)]
    return "\n".join(lines) + "\n"
