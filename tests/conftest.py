"""Real clusters for every test that asks for one; nothing is started for the others."""

from __future__ import annotations

import itertools
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reconciler.errors import forget_secrets
from reconciler.sandbox import start_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconciler.sandbox import Cluster

CLUSTER_FIXTURES = {"cluster3", "cluster6"}
TESTS = Path(__file__).parent
PARTS = ("unit", "laws", "kafka", "fleet")
"""Every test is in one of them; unit and laws start no JVM, and run in parallel."""

_numbers = itertools.count()


def pytest_configure() -> None:
    """Take Ctrl-C where a shell has it ignored, as for background jobs: children inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", choices=PARTS, help="Run this part of the tests only.")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test that needs a cluster, and leave out what is in another part."""
    for item in items:
        if CLUSTER_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.cluster)
    if part := config.getoption("--part"):
        config.hook.pytest_deselected(items=[item for item in items if find_part(item) != part])
        items[:] = [item for item in items if find_part(item) == part]


def find_part(item: pytest.Item) -> str:
    """Return the one part that a test belongs to: by what it needs, then by where it is."""
    folder = item.path.relative_to(TESTS).parts[0]
    if folder == "fleet" or item.get_closest_marker("fleet"):
        return "fleet"
    if folder in {"contract", "e2e", "workflows"} or item.get_closest_marker("cluster"):
        return "kafka"
    return "laws" if folder in {"laws", "campaign"} else "unit"


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


@pytest.fixture(autouse=True)
def forgotten_secrets() -> Iterator[None]:
    """Let no test hide what is a secret in another one."""
    yield
    forget_secrets()


@pytest.fixture
def topic_prefix() -> str:
    """Return a prefix that no other test's topics have, such as "t7-"."""
    return f"t{next(_numbers)}-"
