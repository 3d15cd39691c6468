"""A round: what is brought about, what apply is made to do, and how it is judged."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka.admin import NewTopic

from campaign.faults import Strike
from campaign.judge import Run, judge
from campaign.network import Stage
from campaign.records import read_told
from campaign.world import CLUSTER, write_estate

if TYPE_CHECKING:
    from campaign.faults import Fault
    from campaign.judge import Verdict
    from campaign.lane import Lane
    from campaign.truth import Reading
    from campaign.world import Live, Wish, World

CHILD = Path(__file__).with_name("child.py")
AUDIT = "audit"
LONGEST_FAULT_S = 75.0
"""Without the fault having struck: then it never does."""
LONGEST_RUN_S = 150.0
"""After everything is healed: longer than any patience of apply, but for seeing a change."""
LATE_S = 1.0
"""After everything is healed: for requests that brokers still hold to reach a controller."""
MOST_RUNS = 6


@dataclass(slots=True)
class Result:
    """A round's result, a line of the results file."""

    seed: int
    round: int
    kind: str
    lane: int
    stage: str = ""
    struck: bool = False
    whom: str = ""
    fault: dict[str, Any] = field(default_factory=dict)
    api: int | None = None
    runs: list[dict[str, Any]] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    unknown: dict[str, int] = field(default_factory=dict)
    trouble: str = ""
    seconds: float = 0.0


class Round:
    """One round on a lane: begun, struck, finished, cleaned up."""

    def __init__(self, lane: Lane, result: Result, directory: Path, rng: random.Random) -> None:
        self.lane = lane
        self.result = result
        self.directory = directory
        self.rng = rng
        self.world: World
        self.truth: Reading = {}
        self.planned: dict[str, tuple[tuple[int, ...], ...]] = {}

    def begin(self, world: World) -> None:
        """Bring the live state about, write the estate, and save the plan where one is applied."""
        self.world = world
        self.lane.truth.create([_spell_topic(live) for live in world.live])
        self._keep("world.json", asdict(world))
        self.truth = self._read("0")
        write_estate(world, self.directory, AUDIT)
        self.lane.network.arm(None)
        if world.saved:
            code = self._start(
                "plan", "plan", "topics", "--cluster", CLUSTER, "--out", "plan.json"
            ).wait(60)
            assert code == 0, (self.directory / "plan.err").read_text()

    def _save_plan(self) -> None:
        arguments = ("plan", "topics", "--cluster", CLUSTER, "--out", "plan.json")
        code = self._start("plan", *arguments).wait(LONGEST_RUN_S)
        assert code == 0, (self.directory / "plan.err").read_text()
        plan = json.loads((self.directory / "plan.json").read_text())
        for resource in plan["resource_changes"]:
            after = resource["change"]["after"]
            rows = tuple(tuple(row) for row in after["assignment"]) if after else ()
            self.planned[resource["address"].partition(".")[2]] = rows

    def strike(self, fault: Fault) -> None:
        """Run apply once, with the fault, and judge it after everything is healed."""
        lane, result = self.lane, self.result
        lane.trail.read()
        strike = Strike.prepare(fault, lane.cluster, lane.network)
        result.stage = fault.stage.value
        result.fault = {k: str(v) for k, v in asdict(fault).items()}
        strike.process = self._start_apply(1, skip_refused=self.world.skip_refused)
        hung = self._wait(strike)
        strike.heal()
        time.sleep(LATE_S)
        result.struck, result.whom, result.api = strike.struck, strike.whom, strike.trap.api
        if strike.trouble:
            raise RuntimeError(strike.trouble)
        refusing = any(wish.refused for wish in self.world.wishes)
        struck = fault if strike.struck else None
        self._judge(1, strike.process.returncode, struck, refusing=refusing, hung=hung)

    def finish(self) -> None:
        """Repeat the command until the plan is empty, and see that all is as the estate wants."""
        write_estate(self.world, self.directory, AUDIT, refused=False)
        for number in range(2, MOST_RUNS + 1):
            self.lane.network.arm(None)
            fresh = not self.world.saved or number > 3
            process = self._start_apply(number, fresh=fresh)
            try:
                process.wait(LONGEST_RUN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                self._complain(number, "it does not end, on a healthy cluster")
            ended = self._judge(number, process.returncode, None)
            if ended == "nothing to do":
                break
        else:
            self._complain(MOST_RUNS, f"the plan is not empty after {MOST_RUNS} runs")
        self._judge_end()

    def clean_up(self) -> None:
        """Delete what the round left; the next one has other names."""
        names = [name for name in self.truth if name.startswith(self.world.prefix)]
        self.lane.truth.delete(names)

    def _judge_end(self) -> None:
        for wish in self.world.wishes:
            found = self.truth.get(wish.name)
            if wish.refused or (wish.absent and found is None):
                continue
            if (
                not found
                or len(found.rows) != wish.partitions
                or dict(found.config) != dict(wish.config)
            ):
                self._complain(0, f"{wish.name}: is {found} in the end, and not {wish}")

    def _wait(self, strike: Strike) -> bool:
        """Wait for the end of apply; heal when the fault has lasted. Returns whether it hangs."""
        process = strike.process
        assert process is not None
        began = time.monotonic()
        healed = None
        while process.poll() is None:
            now = time.monotonic()
            if healed is None and (strike.is_over or now - began > LONGEST_FAULT_S):
                strike.heal()
                healed = time.monotonic()
            if healed is not None and now - healed > LONGEST_RUN_S:
                process.kill()
                process.wait()
                return True
            time.sleep(0.05)
        return False

    def _judge(
        self,
        number: int,
        code: int,
        fault: Fault | None,
        *,
        refusing: bool = False,
        hung: bool = False,
    ) -> str | None:
        """Read the cluster and the records, and judge the run. Returns how it ended."""
        sent = self.lane.network.seen[Stage.WRITE]
        before, after = self.truth, self._read(str(number))
        told = read_told(code, self.directory, f"run{number}")
        told.audit = list(self.lane.trail.read())
        self._keep(f"audit{number}.json", told.audit)
        wishes: dict[str, Wish] = {wish.name: wish for wish in self.world.wishes}
        run = Run(
            told,
            before,
            after,
            wishes,
            fault.kind if fault else None,
            sent,
            scaled=self.world.scaled,
            planned=self.planned,
            refusing=refusing,
            twice=bool(fault and fault.again_s),
            hung=hung,
        )
        verdict: Verdict = judge(run)
        self.truth = after
        for violation in verdict.violations:
            self._complain(number, violation)
        for state, count in verdict.unknown.items():
            self.result.unknown[state] = self.result.unknown.get(state, 0) + count
        self.result.runs.append({"code": code, "ended": told.ended, "sent": sent})
        return told.ended

    def _complain(self, number: int, violation: str) -> None:
        self.result.violations.append(f"run {number}: {violation}")

    def _read(self, name: str) -> Reading:
        reading = self.lane.truth.read()
        self._keep(f"truth{name}.json", {k: asdict(v) for k, v in sorted(reading.items())})
        return reading

    def _start_apply(
        self, number: int, *, fresh: bool = False, skip_refused: bool = False
    ) -> subprocess.Popen[bytes]:
        saved = self.world.saved and not fresh
        what = ("plan.json",) if saved else ("topics", "--cluster", CLUSTER)
        skip = ("--skip-refused",) if skip_refused else ()
        journal = ("--journal", f"run{number}.journal")
        return self._start(f"run{number}", "apply", *what, "--auto-approve", *skip, *journal)

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        patience = "scaled" if self.world.scaled else "real"
        program = [sys.executable, "-P", str(CHILD), patience, *arguments]
        program += ["--bootstrap-servers", self.lane.network.servers]
        with (
            (self.directory / f"{name}.out").open("wb") as out,
            (self.directory / f"{name}.err").open("wb") as err,
        ):
            return subprocess.Popen(
                program, cwd=self.directory, stdin=subprocess.DEVNULL, stdout=out, stderr=err
            )

    def _keep(self, name: str, content: object) -> None:
        (self.directory / name).write_text(json.dumps(content, indent=1, default=str))


def _spell_topic(live: Live) -> NewTopic:
    rows = [list(row) for row in live.rows]
    return NewTopic(live.name, len(rows), replica_assignment=rows, config=dict(live.config))
