"""A real Spark cluster on this machine, from the pyspark package alone: a master and workers.

    python -m reconciler.fleet.standalone -- plan topics --lake build/lake

runs `reconciler fleet plan …` with `--master spark://127.0.0.1:PORT`, on executors of two workers,
and ends what it started. Everything listens on loopback only.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from reconciler.errors import FleetError
from reconciler.sandbox.paths import isolated_python

HOST = "127.0.0.1"
WORKERS = 2
STUCK_S, END_S = 90.0, 10.0
"""How long a start may write nothing to any log, and how long an end may take."""


_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_REGISTERED = re.compile(r"Registering worker ")


@contextmanager
def start_spark(workers: int = WORKERS, memory: str = "2g") -> Iterator[str]:
    """Start a master and workers of one core each, and end them. Yields: the master's URL.

    Errors: FleetError if one of them ends, or if all of them are stuck.
    """
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reconciler-spark-")))
        with socket.socket() as free:  # the kernel picks a free port
            free.bind((HOST, 0))
            port: int = free.getsockname()[1]
        url = f"spark://{HOST}:{port}"
        log = place / "master.log"
        told = ["--host", HOST, "--port", str(port), "--webui-port", "0"]
        started = [stack.enter_context(_running(place, log, _MASTER, told))]
        # A worker that asks before the master listens waits seconds for its next try.
        _wait_for(log, re.compile("I have been elected leader"), 1, started)
        for number in range(workers):
            told = ["--host", HOST, "--cores", "1", "--memory", memory, "--webui-port", "0"]
            told += ["--work-dir", str(place / f"work-{number}"), url]
            worker = _running(place, place / f"worker-{number}.log", _WORKER, told)
            started.append(stack.enter_context(worker))
        _wait_for(log, _REGISTERED, workers, started)
        yield url


def run_fleet(arguments: Sequence[str]) -> int:
    """Run `reconciler fleet` on a cluster of its own. Returns: its exit code."""
    with start_spark() as url:
        command = [*isolated_python(), "-m", "reconciler", "fleet", *arguments, "--master", url]
        return subprocess.run(command, check=False, env=_environment()).returncode  # noqa: S603


@contextmanager
def _running(
    place: Path, log: Path, main: str, arguments: list[str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a class of Spark in a process of its own, which ends with the block."""
    import pyspark

    launcher = Path(pyspark.__file__).parent / "bin" / "spark-class"
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603
            [str(launcher), main, *arguments],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=_environment(),
            cwd=place,
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _environment() -> dict[str, str]:
    """Return the environment of the cluster's processes: where Java, Python and this package are.

    A worker starts executors with its own JAVA_HOME, and these start Python from PYSPARK_PYTHON.
    """
    from reconciler.fleet.runtime import use_java

    use_java()
    path = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONSAFEPATH": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_NO_DAEMONIZE": "1",
    }


def _wait_for(
    log: Path, line: re.Pattern[str], times: int, started: Sequence[subprocess.Popen[bytes]]
) -> None:
    """Wait until a log has N matching lines, as long as any log next to it grows.

    Errors: FleetError with its last line.
    """
    written, grown_at = 0, time.monotonic()
    while len(line.findall(said := log.read_text(errors="replace"))) < times:
        size = sum(path.stat().st_size for path in log.parent.glob("*.log"))
        if size > written:
            written, grown_at = size, time.monotonic()
        last = said.strip().splitlines()[-1:] or ["nothing"]
        if any(process.poll() is not None for process in started):
            raise FleetError(f"a process of Spark has ended; its master said: {last[0]}")
        if time.monotonic() - grown_at > STUCK_S:
            raise FleetError(f"Spark has been stuck for {STUCK_S:.0f} s; it said: {last[0]}")
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(run_fleet([a for a in sys.argv[1:] if a != "--"]))
