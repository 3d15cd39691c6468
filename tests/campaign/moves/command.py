"""Play every scenario, or kill runs many times; say what was wrong, and fail for it."""

from __future__ import annotations

import argparse
import signal
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from subprocess import TimeoutExpired

from campaign.moves.interventions import play_interventions
from campaign.moves.kills import play_kills
from campaign.moves.scenarios import SCENARIOS, play
from campaign.moves.world import open_world
from reconciler.errors import FindingsError


def main(arguments: Sequence[str]) -> int:
    """Return 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="campaign moves", description=__doc__)
    parser.add_argument("--kafka-version", help="default: the newest")
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, help="default: all")
    parser.add_argument("--kills", type=int, help="kill this many runs instead")
    parser.add_argument("--drains", action="store_true", help="every plan drains a broker")
    parser.add_argument(
        "--interventions", action="store_true", help="kill cancel, settle and rate, not apply"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    if options.drains and not options.kills:
        parser.error("--drains needs --kills: the scenarios have drains of their own")
    if options.interventions and (options.drains or not options.kills):
        parser.error("--interventions needs --kills, without --drains")
    # A shell's background job ignores SIGINT, and its children would as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    wrong = kill(options) if options.kills else play_all(options)
    print("nothing was wrong" if not wrong else f"{wrong} went wrong", flush=True)
    return int(wrong > 0)


def play_all(options: argparse.Namespace) -> int:
    """Play scenarios, each on a new cluster: what one leaves behind is not another's fault."""
    wrong = 0
    for name in options.scenario or SCENARIOS:
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                with open_world(Path(folder), options.kafka_version) as world:
                    verdict = play(world, name)
                said = f"{verdict.written:,} records, none missing or out of order"
            except (AssertionError, FindingsError, TimeoutError, TimeoutExpired) as error:
                wrong += 1
                said = f"FAILED {type(error).__name__}: {error}"
                traceback.print_exc()
        print(f"{name} ({time.monotonic() - started:.0f} s): {said}", flush=True)
    return wrong


def kill(options: argparse.Namespace) -> int:
    """Kill runs on one cluster."""
    wrong = kills = in_flight = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        open_world(Path(folder), options.kafka_version) as world,
    ):
        plans = (
            play_interventions(world, options.seed, options.kills)
            if options.interventions
            else play_kills(world, options.seed, options.kills, drains=options.drains)
        )
        for plan in plans:
            kills += plan.kills
            in_flight += plan.in_flight
            wrong += bool(plan.faults)
            said = "; ".join(plan.faults) or "as planned, nothing left"
            met = f"{kills} kills, {in_flight} of them during copies"
            print(f"{met} · {plan.kind}, {plan.runs} runs: {said}", flush=True)
    return wrong
