"""Real clusters for every test that asks for one; nothing is started for the others."""

from __future__ import annotations

import gc
import itertools
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from schedule import FilesTogether, rank

from reconciler.errors import forget_secrets
from reconciler.sandbox.cluster import Cluster, start_cluster

if TYPE_CHECKING:
    from moving import Moving
    from xdist.remote import Producer
    from xdist.scheduler.loadscope import LoadScopeScheduling

CLUSTER_FIXTURES = {"cluster3", "cluster6", "moving", "quiet3"}
TESTS = Path(__file__).parent
PARTS = {
    "unit": {"unit", "golden"},
    "laws": {"laws", "campaign"},
    "kafka": {"contract", "e2e", "workflows", "campaign", "wheel"},
    "fleet": {"fleet", "e2e"},
}
"""The folders that hold tests of a part. Every test is in one part; unit and laws start no JVM."""

_numbers = itertools.count()


def pytest_configure(config: pytest.Config) -> None:
    """Take Ctrl-C where a shell has it ignored, as for background jobs: children inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--part") in (None, "kafka"):
        # kafka-python's close() stops its loop without those connections that are just being made,
        # and Python closes their sockets when it collects garbage, in any later test. That is one
        # of three runs of this part. A broker that died meanwhile leaves one without an address of
        # it. Sockets that listen still fail a test: nothing listens on all interfaces here.
        leak = r"unclosed <socket\.socket fd=\d+, family=2, .*( raddr=|laddr=\('0\.0\.0\.0', )"
        config.addinivalue_line("filterwarnings", f"ignore:{leak}:ResourceWarning")
        # librdkafka aborts the process if a client's own thread destroys it. That thread completes
        # futures, so it may be the one that collects the garbage of an earlier test.
        from confluent_kafka.admin import AdminClient

        from reconciler.kafka.client import Client

        AdminClient.__del__ = Client.__del__


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", choices=tuple(PARTS), help="Run this part of the tests only.")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """Hand out tests by file as we do it; other ways to distribute them are xdist's own."""
    if config.getvalue("dist") != "loadfile":
        return None
    return FilesTogether(config, log)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Pass over folders that hold nothing of a part: collecting costs as much as many tests."""
    part = config.getoption("--part")
    if part and collection_path.parent == TESTS and collection_path.is_dir():
        return collection_path.name not in PARTS[part] or None
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test that needs a cluster, leave out other parts, and begin with what is long."""
    for item in items:
        if CLUSTER_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.cluster)
    if part := config.getoption("--part"):
        parts = [find_part(item) for item in items]
        others = [item for item, its in zip(items, parts, strict=True) if its != part]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item, its in zip(items, parts, strict=True) if its == part]
    items.sort(key=rank)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect no garbage meanwhile, and never look at what was collected again: it lives on."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_sessionfinish() -> None:
    """Let all be collected at the end: DuckDB reports on stderr what is not."""
    gc.unfreeze()


def find_part(item: pytest.Item) -> str:
    """Return the one part that a test belongs to: by what it needs, then by where it is."""
    folder = item.path.relative_to(TESTS).parts[0]
    if folder == "fleet" or item.get_closest_marker("fleet"):
        part = "fleet"
    elif folder in {"contract", "e2e", "wheel", "workflows"} or item.get_closest_marker("cluster"):
        part = "kafka"
    else:
        part = "laws" if folder in PARTS["laws"] else "unit"
    if folder not in PARTS[part]:
        raise pytest.UsageError(f"{item.nodeid} is a test of {part}, which {folder}/ holds none of")
    return part


@pytest.fixture(scope="session")
def cluster3() -> Iterator[Cluster]:
    """Three brokers in three racks, shared: use topics under `topic_prefix` only."""
    with start_cluster(brokers=3, racks=3) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def cluster6() -> Iterator[Cluster]:
    """Six brokers in three racks, shared: use topics under `topic_prefix` only."""
    with start_cluster(brokers=6, racks=3) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def quiet3_brokers() -> Iterator[Cluster]:
    with start_cluster(brokers=3, racks=3) as cluster:
        yield cluster


@pytest.fixture
def quiet3(quiet3_brokers: Cluster) -> Iterator[Cluster]:
    """Three brokers in three racks, which a test finds without topics."""
    from workbench import Workbench, remove

    yield quiet3_brokers
    bench = Workbench(quiet3_brokers)
    if left := [name for name in bench.others.list_topics(timeout=15).topics if name[:2] != "__"]:
        remove(bench, left)


@pytest.fixture(scope="session")
def moving() -> Iterator[Moving]:
    """Four brokers in two racks, to move replicas on: a default rate reaches every broker.

    A test leaves nothing in flight and no throttle: a report of moves shows what is on all brokers.
    """
    from moving import Moving

    with start_cluster(brokers=4, racks=2) as cluster:
        yield Moving(cluster)


@pytest.fixture
def brief_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure write rates over a second: a plan of moves waits that long, and 10 s by default."""
    from reconciler.kafka.reader import KafkaReader

    monkeypatch.setitem(KafkaReader.read_moves.__kwdefaults__, "interval_s", 1.0)


@pytest.fixture(autouse=True)
def forgotten_secrets() -> Iterator[None]:
    """Let no test hide what is a secret in another one."""
    yield
    forget_secrets()


@pytest.fixture
def topic_prefix() -> str:
    """Return a prefix that no other test's topics have, such as "t7-"."""
    return f"t{next(_numbers)}-"
