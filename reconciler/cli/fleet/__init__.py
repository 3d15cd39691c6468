"""`reconciler fleet`: every cluster at once, on Spark."""

from __future__ import annotations

import importlib
from types import MappingProxyType

import click

from reconciler.cli.groups import Group

JOBS = MappingProxyType(
    {
        "run": "Run the nightly jobs in one session: collect, plan, audit, history and page.",
        "collect": "Add a snapshot of every cluster to the lake.",
        "plan": "Plan every cluster of a collection.",
        "audit": "Report findings about a collection, the worst first.",
        "history": "Report changes between collections, and how long drift lasts.",
        "page": "Write a collection as one HTML page.",
        "lake": "List, check, keep, compact or remove the collections of the lake.",
        "metrics": "Write what the lake holds as metrics, for Prometheus.",
        "generate": "Add a synthetic fleet to the lake, to try the other jobs on.",
    }
)


class Jobs(Group):
    """A group that imports a job's module only when that job is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Name the jobs in the order in which they are used."""
        return list(JOBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import `reconciler.cli.fleet.<job>` and return its `command`."""
        if cmd_name not in JOBS:
            return None
        command: click.Command = importlib.import_module(f"{__name__}.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the jobs without importing them."""
        with formatter.section("Jobs"):
            formatter.write_dl(list(JOBS.items()))


@click.group(name="fleet", cls=Jobs, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Run the same stages over every cluster, as tables on Spark. Nothing here writes to Kafka."""
