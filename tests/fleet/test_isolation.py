"""A job imports nothing from the directory that it runs in, nor does any Python of Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hostile_modules import Planted, list_user_sites

from reconciler.fleet.runtime import isolated_workers, use_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.fleet

CLUSTERS = """\
version: 1
clusters: {down: {client: {bootstrap.servers: '127.0.0.1:1'}}}
"""


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"CI": "true"}, id="a job"),
        # Half a minute, once on a machine: a small job of its own.
        pytest.param({}, id="the archive of classes", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("options", [[], ["-I", "-m", "reconciler"]], ids=["command", "isolated"])
def test_nothing_is_imported_from_the_checkout_or_the_home(
    options: list[str], more: dict[str, str], tmp_path: Path
) -> None:
    """Executors read the clusters: their error comes from a Python that the JVM started."""
    topics, home = tmp_path / "topics", tmp_path / "home"
    planted = Planted(tmp_path / "imported", [tmp_path, topics, home, *list_user_sites(home)])
    (topics / "clusters.yaml").write_text(CLUSTERS)
    kept = {name: value for name, value in os.environ.items() if name != "CI"}
    path = {"PYTHONPATH": ""} if options else {}
    program = [sys.executable, *options] if options else [str(COMMAND)]
    done = subprocess.run(
        [*program, "fleet", "collect", "topics", "--lake", "lake", "--time-limit", "20"],
        cwd=tmp_path,
        env={**kept, "HOME": str(home), **path, **more},
        capture_output=True,
        text=True,
        check=False,
    )
    assert planted.list_imported() == []
    assert done.returncode == 1, done.stderr
    assert "127.0.0.1:1 refuses the connection" in done.stdout + done.stderr


def test_only_the_jvm_starts_isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the same process starts after Spark imports as its user has it."""
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    monkeypatch.setenv("PYSPARK_PYTHON", "python3.13")
    before = dict(os.environ)
    with isolated_workers():
        assert os.environ["PYTHONSAFEPATH"] == "1"
        assert os.environ["PYSPARK_PYTHON"] == "python3.13"
    assert dict(os.environ) == before


def test_a_session_leaves_the_environment(spark: SparkSession) -> None:
    assert spark.range(3).count() == 3
    assert "PYTHONSAFEPATH" not in os.environ


COMMAND = Path(sys.executable).with_name("reconciler")


@pytest.mark.slow
def test_nothing_is_imported_from_where_spark_submit_runs(tmp_path: Path) -> None:
    """Its JVM is there first, so its user sets a variable: docs/how-to/run-a-fleet.md."""
    import pyspark

    use_java()
    topics = tmp_path / "topics"
    planted = Planted(tmp_path / "imported", [tmp_path, topics])
    (topics / "clusters.yaml").write_text(CLUSTERS)
    job = tmp_path / "jobs" / "fleet_job.py"
    job.parent.mkdir()
    job.write_text("from reconciler.cli import main\n\nmain()\n")
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    words = ("fleet", "collect", "topics", "--lake", "lake", "--time-limit", "20")
    done = subprocess.run(
        [submit, "--master", "local[2]", job, *words],
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert planted.list_imported() == []
    assert done.returncode == 1, done.stderr
    assert "127.0.0.1:1 refuses the connection" in done.stdout + done.stderr
