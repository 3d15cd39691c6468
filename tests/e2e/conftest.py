"""A shell on the shared cluster, and a network to it that fails when told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from proxy import failing_network
from shell import Shell

from reconciler.sandbox.cluster import Cluster

if TYPE_CHECKING:
    from proxy import FailingNetwork


@pytest.fixture
def shell(cluster3: Cluster, tmp_path: Path) -> Shell:
    return Shell(tmp_path, cluster3.bootstrap_servers)


@pytest.fixture
def network(cluster3: Cluster) -> Iterator[FailingNetwork]:
    with failing_network(cluster3) as network:
        yield network
