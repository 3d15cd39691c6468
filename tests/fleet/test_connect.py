"""Every job on a Spark Connect server: the plans are those of a session of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import reconciler
from reconciler.fleet import tables
from reconciler.fleet.generator.job import write_estate
from reconciler.fleet.generator.shapes import FleetSize
from reconciler.fleet.lake.attempts import PLAN
from reconciler.fleet.lake.lake import Lake
from reconciler.fleet.runtime import use_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.fleet, pytest.mark.slow]

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
SIZE = FleetSize(clusters=3, topics=60, partitions=400, seed=5)
DOWN = "version: 1\nclusters: {down: {client: {bootstrap.servers: '127.0.0.1:1'}}}\n"
SIZES = ["--clusters", "3", "--topics", "60", "--partitions", "400", "--seed", "5"]
START_S = 120

# One process: a client takes seconds to start. Each line is a command and its exit code.
CLIENT = """
import sys
from reconciler.cli.app import run
for line in sys.stdin:
    code = run(line.split())
    print(f"#{line.split()[1]}={code}", flush=True)
"""


@contextmanager
def serve(place: Path) -> Iterator[str]:
    """Start a Connect server on loopback, and end it. Yields: its URL."""
    import pyspark

    use_java()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    told = [word for pair in settings.items() for word in ("--conf", "=".join(pair))]
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    command = [submit, "--master", "local[2]", "--class", SERVER, *told, "spark-internal"]
    with (place / "server.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env=environment(), cwd=place)
    try:
        deadline = time.monotonic() + START_S
        while not listens(port):
            said = (place / "server.log").read_text()[-2000:]
            assert server.poll() is None, said
            assert time.monotonic() < deadline, said
            time.sleep(0.2)
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.kill()  # nothing of it is needed any more; spark-submit becomes the server itself
        server.wait()


def environment() -> dict[str, str]:
    path = [str(Path(reconciler.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_a_connect_server_runs_every_job(spark: SparkSession, tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="pip install 'pyspark[connect]'")
    lake, estate, down = tmp_path / "lake", tmp_path / "estate", tmp_path / "down"
    write_estate(SIZE, estate)
    down.mkdir()
    (down / "clusters.yaml").write_text(DOWN)
    page = tmp_path / "fleet.html"
    with serve(tmp_path) as url:
        rest = f"--lake {lake} --remote {url}"
        jobs = [
            f"fleet generate {' '.join(SIZES)} --collection 20261120T030000Z {rest}",
            f"fleet generate {' '.join(SIZES)} --collection 20261121T030000Z {rest}",
            f"fleet plan {estate} {rest} --out {tmp_path}/plans",
            f"fleet audit {estate} {rest}",
            f"fleet history {rest}",
            f"fleet page {rest} --out {page}",
            f"fleet collect {down} --lake {tmp_path}/other --remote {url}",
            f"fleet run {down} --lake {tmp_path}/other --remote {url} --page {tmp_path}/down.html",
        ]
        done = subprocess.run(
            [sys.executable, "-c", CLIENT],
            input="\n".join(jobs),
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
    codes = [line[1:] for line in done.stdout.splitlines() if line.startswith("#")]
    verbs = [job.split()[1] for job in jobs]
    assert [code.partition("=")[0] for code in codes] == verbs, done.stderr[-3000:]
    assert done.stderr.count("error:") == 0, done.stderr[-3000:]
    assert "20261121T030000Z" in page.read_text()
    assert "down" in (tmp_path / "down.html").read_text()
    assert "connect-refused" in done.stdout
    here = Lake(spark, str(lake))
    made = here.find_attempt(what=PLAN)
    remote = {row["cluster"]: row["plan"] for row in here.read(tables.PLANS, made).collect()}
    assert len(remote) == SIZE.clusters
    plan_here(spark, lake, estate)
    latest = here.find_attempt(what=PLAN)
    assert latest.id != made.id
    rows = here.read(tables.PLANS, latest).collect()
    assert {row["cluster"]: row["plan"] for row in rows} == remote


def plan_here(spark: SparkSession, lake: Path, estate: Path) -> None:
    from reconciler.api.planning import load_estate
    from reconciler.fleet.jobs import plan_collection

    plan_collection(Lake(spark, str(lake)), load_estate(estate))
