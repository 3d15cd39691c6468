"""`reconciler sandbox`: a throwaway Kafka cluster on this machine, from up to down."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli import options
from reconciler.cli.groups import Group
from reconciler.cli.terminal import can_redraw, paint, print_note, wants_colour
from reconciler.errors import UsageError
from reconciler.model.cluster import Broker
from reconciler.sandbox.control import (
    bring_up_sandbox,
    look_after,
    require_sandbox,
    start_broker,
    stop_broker,
    take_down_sandbox,
)
from reconciler.sandbox.jars import find_release, known_releases
from reconciler.sandbox.record import SandboxRecord
from reconciler.sandbox.request import (
    BrokerState,
    EngineName,
    SandboxHealth,
    describe_shape,
    read_shape,
    spread_brokers,
)
from reconciler.styling import set_columns
from reconciler.units import count

if TYPE_CHECKING:
    from rich.progress import Progress

DEFAULT_BROKERS = 3
COLOURS = {
    BrokerState.RUNNING: "green",
    BrokerState.STOPPED: "yellow",
    BrokerState.FROZEN: "yellow",
    BrokerState.DEAD: "red",
}


@click.group(name="sandbox", cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Run a throwaway Kafka cluster of real brokers, reachable only from this machine."""


@command.command(cls=options.Command)
@click.option("--brokers", type=click.IntRange(1, 100), help="Number of brokers.  [default: 3]")
@click.option(
    "--racks", type=click.IntRange(1, 100), help="Number of racks.  [default: 3, or fewer]"
)
@click.option(
    "--like",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Take broker ids and racks from a snapshot of a cluster.",
)
@click.option(
    "--kafka",
    metavar="VERSION",
    callback=options.read_release,
    help=f"One of {', '.join(known_releases())}.",
)
@click.option(
    "--engine",
    type=click.Choice([name.value for name in EngineName]),
    default=EngineName.EMBEDDED.value,
    show_default=True,
    help="Brokers as a local process, or the official image.",
)
@click.option(
    "--isolate", is_flag=True, help="Run each broker in its own process (embedded engine)."
)
@click.option(
    "--controllers",
    type=click.IntRange(1, 9),
    default=1,
    show_default=True,
    help="Number of controllers; several are isolated (embedded engine).",
)
@click.option("--image", metavar="NAME", help="The image (container engine).")
@click.option(
    "--log-dirs",
    type=click.IntRange(1, 20),
    default=1,
    show_default=True,
    help="Number of log directories of each broker.",
)
def up(
    brokers: int | None,
    racks: int | None,
    like: Path | None,
    kafka: str | None,
    engine: str,
    isolate: bool,
    controllers: int,
    image: str | None,
    log_dirs: int,
) -> None:
    """Start the sandbox and leave it running."""
    shape = _choose_shape(brokers, racks, like)
    if image is not None and engine != EngineName.CONTAINER:
        raise UsageError("--image is for --engine container")
    if isolate and engine == EngineName.CONTAINER:
        raise UsageError("--isolate is for --engine embedded; containers are isolated anyway")
    if controllers > 1 and engine == EngineName.CONTAINER:
        raise UsageError("--controllers is for --engine embedded; containers have one controller")
    began = time.monotonic()
    with StartProgress() as progress:
        record = bring_up_sandbox(
            shape,
            engine=engine,
            isolate=isolate,
            controllers=controllers,
            kafka_version=kafka or find_release(None),
            image=image,
            log_directories=log_dirs,
            progress=progress,
        )
    _print_record(record, f"ready in {time.monotonic() - began:.1f} s")
    print_note("`reconciler plan --cluster sandbox` plans on it, `reconciler sandbox down` ends it")


@command.command(cls=options.Command)
@options.form_option
def status(form: str) -> None:
    """Show the sandbox and the state of each broker."""
    record = require_sandbox()
    health = look_after(record)
    if form == "json":
        click.echo(_encode_status(record, health))
        return
    well = sum(status.state is BrokerState.RUNNING for status in health.brokers)
    _print_record(record, f"{well} of {len(health.brokers)} brokers running")
    _print_health(health)


@command.command(cls=options.Command)
def down() -> None:
    """Stop the sandbox and remove its data. There may be none."""
    click.echo("The sandbox was removed." if take_down_sandbox() else "No sandbox runs.")


@command.command("stop-broker", cls=options.Command)
@click.argument("broker_id", metavar="ID", type=int)
def stop_one_broker(broker_id: int) -> None:
    """Shut one broker down, as an operator would."""
    _print_health(stop_broker(require_sandbox(), broker_id))


@command.command("start-broker", cls=options.Command)
@click.argument("broker_id", metavar="ID", type=int)
def start_broker_again(broker_id: int) -> None:
    """Start a broker that is stopped or dead."""
    _print_health(start_broker(require_sandbox(), broker_id))


def _choose_shape(brokers: int | None, racks: int | None, like: Path | None) -> tuple[Broker, ...]:
    if like is None:
        wanted = DEFAULT_BROKERS if brokers is None else brokers
        if racks is not None and racks > wanted:
            raise UsageError(f"{count(wanted, 'broker')} cannot fill {count(racks, 'rack')}")
        return spread_brokers(wanted, racks or min(3, wanted))
    if brokers is not None or racks is not None:
        raise UsageError("--like defines brokers and racks; leave --brokers and --racks out")
    return read_shape(like)


def _print_record(record: SandboxRecord, state: str) -> None:
    click.echo(
        f"sandbox · Kafka {record.kafka_version}"
        f" · {describe_shape(record.brokers, record.controllers)} · {record.engine} · {state}"
    )
    rows = (
        ("  cluster id", record.cluster_id),
        ("  bootstrap servers", record.bootstrap_servers),
        ("  logs", str(record.directory)),
    )
    click.echo("\n".join(set_columns(rows)))


def _encode_status(record: SandboxRecord, health: SandboxHealth) -> str:
    answer = {
        "format_version": "1.0",
        "cluster_id": record.cluster_id,
        "kafka_version": record.kafka_version,
        "engine": record.engine,
        "bootstrap_servers": record.bootstrap_servers,
        "directory": record.directory,
        "brokers": [asdict(broker) for broker in health.brokers],
        "controllers": [asdict(node) for node in health.controllers],
    }
    return json.dumps(answer, indent=2)


def _print_health(health: SandboxHealth) -> None:
    """Print a row for each node; a node that does not run has its reason."""
    rows = [("  node", "rack", "address", "state", "")]
    for broker in health.brokers:
        state = paint(COLOURS[broker.state], broker.state)
        rows.append((f"  {broker.id}", broker.rack or "–", broker.address, state, broker.reason))
    for node in health.controllers:
        state = paint(COLOURS[node.state], "active" if node.active else node.state)
        rows.append((f"  controller {node.id}", "–", node.address, state, node.reason))
    click.echo("\n".join(set_columns(rows)), color=True)


class StartProgress:
    """A start as a person sees it on stderr: the stage, and a bar while something downloads."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn

        console = Console(
            stderr=True,
            no_color=not wants_colour(sys.stderr),
            force_terminal=can_redraw(sys.stderr),  # FORCE_COLOR moves no cursor
        )
        stage = (SpinnerColumn(), TextColumn("{task.description}", markup=False))
        self._visible = console.is_terminal
        self._stages = Progress(*stage, console=console, transient=True)
        self._downloads = Progress(
            *stage, BarColumn(30), DownloadColumn(), console=console, transient=True
        )
        self._stage = "looking for Java and Kafka"
        self._shown: Progress | None = None

    def __enter__(self) -> StartProgress:
        self._show(self._stages)
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown is not None:
            self._shown.stop()

    def enter(self, stage: str) -> None:
        """Show what begins now."""
        self._stage = stage
        if not self._visible:
            print_note(f"{stage} …")
        self._show(self._stages)

    def count(self, done: int, total: int) -> None:
        """Show how far it is."""
        if self._shown is not self._downloads:
            self._show(self._downloads)
        for task in self._downloads.task_ids:
            self._downloads.update(task, completed=done, total=total)

    def _show(self, form: Progress) -> None:
        """Show the current stage in this form instead of what was shown before."""
        if not self._visible:
            return
        if self._shown is not None:
            self._shown.stop()
        for task in form.task_ids:
            form.remove_task(task)
        form.add_task(self._stage, total=None)
        form.start()
        self._shown = form
