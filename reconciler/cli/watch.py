"""`reconciler watch`: plan clusters again and again, and serve what is found as metrics."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli import options
from reconciler.cli.figures import describe_made
from reconciler.cli.planning import Made, Planner, Wanted, load_planner
from reconciler.cli.terminal import print_error, print_note
from reconciler.errors import ReconcilerError, UsageError, keep_interrupts
from reconciler.metrics.catalogue import Sample
from reconciler.metrics.figures import ClusterFigures, list_drift, list_samples
from reconciler.metrics.text import make_registry

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

LISTEN = "127.0.0.1:19308"
"""Not 9308, the port of kafka_exporter."""


@click.command(cls=options.Command)
@options.estate_argument
@options.clusters_option
@options.all_clusters_option
@options.bootstrap_option
@click.option(
    "--every",
    callback=options.read_duration,
    default="10m",
    show_default=True,
    metavar="DURATION",
    help="The time between two rounds.",
)
@click.option(
    "--listen",
    default=LISTEN,
    show_default=True,
    metavar="HOST:PORT",
    help="Where the metrics are served, without TLS and without an account.",
)
def command(
    estate: Path,
    clusters: tuple[str, ...],
    *,
    all_clusters: bool,
    bootstrap_servers: str | None,
    every: float,
    listen: str,
) -> int:
    """Plan clusters every few minutes, write nothing to them, and serve metrics.

    Specs are loaded again in each round. A cluster that cannot be read shows in the metrics, and is
    read again in the next round. Ends with 0 at SIGTERM, and with 130 at Ctrl-C. ESTATE defaults to
    topics.
    """
    wanted = Wanted(estate, clusters, all_clusters, bootstrap_servers)
    wanted.check()
    if every <= 0:
        raise UsageError("--every is the time between rounds, and must be more than 0")
    watch = Watch(load_planner(wanted), every)
    ended: list[int] = []
    try:
        with keep_interrupts(), _ending_at_sigterm(ended), _serve(watch, listen) as address:
            print_note(f"serving http://{address}/metrics; Ctrl-C ends it")
            while True:
                due = time.monotonic() + every
                watch.run_round()
                time.sleep(max(0.0, due - time.monotonic()))
    except KeyboardInterrupt:
        if not ended:
            raise
    return 0


@dataclass(slots=True)
class Watch:
    """The rounds so far. `samples` is replaced as one value, because other threads read it."""

    planner: Planner
    every_s: float
    samples: tuple[Sample, ...] = ()
    rounds: int = 0
    _known: dict[str, ClusterFigures] = field(default_factory=dict)
    _drifts: dict[str, dict[tuple[str, str], float]] = field(default_factory=dict)

    def run_round(self) -> None:
        """Load the specs, plan every cluster, and print a line about each."""
        began = time.monotonic()
        valid = self._load()
        made = self.planner.try_plans()
        now = time.time()
        self._follow_drift(made, now)
        found = describe_made(made, now)
        self._known = {name: self._complete(figures) for name, figures in found.items()}
        self.rounds += 1
        overall = {
            "specs_valid": valid,
            "watch_interval_seconds": self.every_s,
            "watch_round_duration_seconds": time.monotonic() - began,
            "watch_rounds_total": self.rounds,
        }
        self.samples = (
            *(Sample(f"reconciler_{name}", float(value)) for name, value in overall.items()),
            *(sample for figures in self._known.values() for sample in list_samples(figures)),
        )
        _print_round(self._known.values(), now)

    def _load(self) -> bool:
        """Load the specs again; keep the previous ones if that fails."""
        if not self.rounds:
            return True
        try:
            self.planner = load_planner(self.planner.wanted)
        except ReconcilerError as error:
            print_error(str(error))
            return False
        return True

    def _follow_drift(self, made: Made, now: float) -> None:
        """Remember since when each change is pending. A plan that fails ends no drift."""
        for planned in made.plans:
            before = self._drifts.get(planned.cluster, {})
            pending = list_drift(planned.plan).items()
            self._drifts[planned.cluster] = {one: before.get(one, now) for one in pending}

    def _complete(self, figures: ClusterFigures) -> ClusterFigures:
        """Add what earlier rounds know."""
        before = self._known.get(figures.cluster, figures)
        pending = self._drifts.get(figures.cluster, {}).values()
        return replace(
            figures,
            read_at=figures.read_at or before.read_at,
            planned_at=figures.planned_at or before.planned_at,
            drift_since=min(pending, default=None),
        )


def _print_round(known: Iterable[ClusterFigures], now: float) -> None:
    at = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for one in known:
        failed = [f"{stage} failed [{rule}]" for stage, rule in one.failures.items()]
        problems = [f"{n:,} {what}" for what, n in (one.problems or {}).items() if n]
        health = problems or (["healthy"] if one.read else [])
        drift = [f"{n:,} to {what}" for what, n in (one.drift or {}).items() if n]
        click.echo(f"{at} {one.cluster}: {', '.join([*failed, *health, *drift])}")


@contextmanager
def _ending_at_sigterm(ended: list[int]) -> Iterator[None]:
    """Interrupt the round at SIGTERM, and add its number to `ended`."""

    def end(number: int, _: object) -> None:
        ended.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _serve(watch: Watch, listen: str) -> Iterator[str]:
    """Serve the samples of a watch. Yields: the address. Errors: UsageError."""
    registry: CollectorRegistry = make_registry(lambda: watch.samples)
    from prometheus_client import start_http_server

    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError(f"--listen {listen}: write HOST:PORT, such as {LISTEN}")
    try:
        server, thread = start_http_server(int(port), host.strip("[]"), registry)
    except (OSError, OverflowError) as error:
        raise UsageError(f"--listen {listen}: {error}; name another address") from error
    try:
        yield f"{host}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
