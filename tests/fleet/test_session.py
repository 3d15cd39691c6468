"""Where a session runs, on which Java, and what it says on the way: nothing of Spark's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import reconciler
from reconciler.cli.fleet.options import spark_job
from reconciler.fleet import runtime
from reconciler.fleet.runtime import find_archive, use_java
from reconciler.fleet.session import (
    SHUFFLES,
    Engine,
    _choose_settings,
    _is_submitted,
    size_shuffles,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
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
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", os.environ.get("JAVA_HOME", ""))
    assert find_archive(use_java(), pytest.fail) is None


def test_nothing_that_a_cache_holds_is_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CI restores a cache from another run: neither its archive nor its launcher is used."""
    monkeypatch.setenv("JAVA_HOME", os.environ.get("JAVA_HOME", ""))
    java = use_java()
    elsewhere, here = tmp_path / "elsewhere", tmp_path / "here"
    for variable in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(variable, str(elsewhere))
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(runtime, "_make_once", lambda archive, _: archive.touch())
    assert find_archive(java, pytest.fail)
    assert runtime._make_launcher(java).is_relative_to(elsewhere)
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("XDG_DATA_HOME", str(here))
    assert find_archive(java, pytest.fail) is None
    assert runtime._make_launcher(java).is_relative_to(here)


@pytest.mark.fleet
def test_a_small_session_has_room_for_the_code_of_many_jobs(spark: SparkSession) -> None:
    """Without room, its JVM interprets all that follows."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    pools = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    room = sum(pool.getUsage().getMax() for pool in pools if pool.getName().startswith("Code"))
    assert room > 200 * 2**20


@pytest.mark.fleet
def test_rows_go_to_python_unmeasured(spark: SparkSession) -> None:
    """Spark measures the batch after each row, unless its limit is the largest int."""
    limit = spark._jsparkSession.sessionState().conf().arrowMaxBytesPerBatch()
    assert limit == 2**31 - 1


def test_spark_submit_chooses_where_it_submits_to(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not _is_submitted(Engine())
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert _is_submitted(Engine())
    assert _choose_settings(Engine(memory="4g"), pytest.fail) == {}
    assert not _is_submitted(Engine(master="spark://host:7077"))


@pytest.mark.fleet
def test_shuffles_follow_the_rows_unless_the_user_has_sized_them(spark: SparkSession) -> None:
    sized = []
    before = spark.conf.get(SHUFFLES)
    try:
        for rows in (0, 3_000_000, 10):
            size_shuffles(spark, rows)
            sized.append(spark.conf.get(SHUFFLES))
        spark.conf.set(SHUFFLES, "7")
        size_shuffles(spark, 3_000_000)
        sized.append(spark.conf.get(SHUFFLES))
    finally:
        spark.conf.set(SHUFFLES, before)
    assert sized == ["4", "15", "4", "7"]


SUBMITTED = """
from reconciler.fleet.session import Engine, open_session
session = open_session(Engine())
assert session.range(3).groupBy("id").count().count() == 3
of = session.conf.getAll
shown = ("spark.sql.shuffle.partitions", "spark.driver.bindAddress", "spark.ui.enabled")
print(*(of[name] for name in shown))
"""
PROFILE = """
rootLogger.level = info
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = theirs: %m%n
"""


def submit(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run SUBMITTED by spark-submit on this machine."""
    import pyspark

    use_java()
    job = place / "job.py"
    job.write_text(SUBMITTED)
    command = [Path(pyspark.__file__).parent / "bin" / "spark-submit", "--master", "local[2]"]
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": path}
    return subprocess.run(
        [*command, *words, job], env=environment, capture_output=True, text=True, check=True
    )


ROOT = Path(reconciler.__file__).parents[1]


@pytest.mark.fleet
def test_spark_submit_is_quiet_small_and_on_loopback(tmp_path: Path) -> None:
    done = submit(tmp_path)
    assert done.stdout == "4 127.0.0.1 false\n"
    assert " INFO " not in done.stderr
    assert len(done.stderr.splitlines()) <= 8  # what Java and spark-submit say before the job


@pytest.mark.fleet
@pytest.mark.slow
def test_what_the_user_of_spark_submit_configures_stays(tmp_path: Path) -> None:
    profile = tmp_path / "log4j2.properties"
    profile.write_text(PROFILE)
    settings = {
        SHUFFLES: "7",
        "spark.driver.host": "127.0.0.2",
        "spark.driver.bindAddress": "127.0.0.2",
    }
    words = [word for pair in settings.items() for word in ("--conf", "=".join(pair))]
    logging = ["--driver-java-options", f"-Dlog4j2.configurationFile={profile.as_uri()}"]
    done = submit(tmp_path, *words, *logging)
    assert done.stdout == "7 127.0.0.2 false\n"
    assert "theirs: Running Spark version" in done.stderr


def test_a_connect_server_brings_its_own_settings() -> None:
    assert _choose_settings(Engine(remote="sc://host"), pytest.fail) == {}


@pytest.mark.slow
@pytest.mark.fleet
@pytest.mark.usefixtures("interruptible")
@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_an_interrupt_while_the_jvm_starts_leaves_no_jvm() -> None:
    """PySpark then takes away the file by which the JVM tells where it listens."""
    with subprocess.Popen([sys.executable, "-c", JOB], stderr=subprocess.DEVNULL) as job:
        while not (jvm := _find_java_below(job.pid)):
            assert job.poll() is None, "it ended without a JVM"
            time.sleep(0.01)
        job.send_signal(signal.SIGINT)
        job.wait()
    deadline = time.monotonic() + 60
    while _command_of(jvm):
        assert time.monotonic() < deadline, "the JVM is still there"
        time.sleep(0.1)


def _find_java_below(parent: int) -> int:
    """Return the JVM that a process has started, or 0."""
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            status = dict(
                line.split(":\t", 1)
                for line in (path / "status").read_text().splitlines()
                if ":\t" in line
            )
            if status["PPid"].strip() == str(parent) and b"java" in _command_of(int(path.name)):
                return int(path.name)
    return 0


def _command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0]
    except OSError:
        return b""


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Take Ctrl-C as a command does, whatever an earlier test has left it at."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.fleet
@pytest.mark.usefixtures("interruptible")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_that_python_drops_ends_the_job_at_its_next_step() -> None:
    """An exception in what is called when a value is let go reaches nobody."""

    class Value: ...

    value = Value()
    told = weakref.ref(value, lambda _: signal.raise_signal(signal.SIGINT))
    with spark_job(Engine()) as job:
        del value
        assert told() is None, "the interrupt did not come, or was not dropped"
        with pytest.raises(KeyboardInterrupt):
            job.announce("the next step")
