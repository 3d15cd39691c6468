"""Where a session runs, on which Java, and what it says on the way: nothing of Spark's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import reconciler
from reconciler.fleet.runtime import find_archive, use_java
from reconciler.fleet.session import Engine, _choose_settings, _is_submitted

JOB = """
from reconciler.fleet.session import Engine, open_session
session = open_session(Engine(master="local[1]"))
rows = session.range(3).groupBy("id").applyInArrow(lambda rows: rows, schema="id bigint")
print(rows.count())
session.stop()
"""


@pytest.mark.fleet
@pytest.mark.slow
def test_the_runtime_of_the_extra_serves_where_there_is_no_java(tmp_path: Path) -> None:
    """It lacks a module that Spark asks for by a flag; a launcher drops the flag."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "sh", "env", "dirname", "rm", "ps", "uname", "cat"):
        (tools / name).symlink_to(Path("/bin") / name)
    environment = {
        "PATH": str(tools),
        "HOME": str(tmp_path),
        "CI": "true",
        "PYTHONPATH": str(Path(reconciler.__file__).parents[1]),
    }
    done = subprocess.run(
        [sys.executable, "-c", JOB], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("3\n", "")


@pytest.mark.fleet
@pytest.mark.slow
def test_an_archive_that_does_not_fit_is_no_result(tmp_path: Path) -> None:
    """With another class path Java cannot use it, and would say so on stdout."""
    (tmp_path / "conf").mkdir()
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    environment.pop("CI", None)
    for more in ({}, {"SPARK_CONF_DIR": str(tmp_path / "conf")}):
        done = subprocess.run(
            [sys.executable, "-c", JOB],
            env=environment | more,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.stdout, done.stderr) == ("3\n", "")
        assert [*tmp_path.rglob("*.jsa")]
    (log,) = tmp_path.rglob("spark.log")
    assert "Unable to use shared archive" in log.read_text()


def test_no_archive_is_made_on_a_machine_of_a_ci(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", os.environ.get("JAVA_HOME", ""))
    assert find_archive(use_java(), pytest.fail) is None


def test_spark_submit_chooses_where_it_submits_to(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not _is_submitted(Engine())
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert _is_submitted(Engine())
    assert _choose_settings(Engine(memory="4g"), pytest.fail) == {}
    assert not _is_submitted(Engine(master="spark://host:7077"))


def test_a_connect_server_brings_its_own_settings() -> None:
    assert _choose_settings(Engine(remote="sc://host"), pytest.fail) == {}
