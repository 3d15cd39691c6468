"""Real clusters for every test that asks for one; nothing is started for the others."""

from __future__ import annotations

import itertools
import signal
from typing import TYPE_CHECKING

import pytest

from reconciler.errors import forget_secrets
from reconciler.sandbox import start_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconciler.sandbox import Cluster

CLUSTER_FIXTURES = {"cluster3", "cluster6"}
_numbers = itertools.count()


def pytest_configure() -> None:
    """Take Ctrl-C where a shell has it ignored, as for background jobs: children inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test that needs a cluster, so that `-m "not cluster"` runs without Java."""
    for item in items:
        if CLUSTER_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.cluster)


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
