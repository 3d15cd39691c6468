"""One Spark session for every test of the fleet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from reconciler.fleet.session import Engine, open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = open_session(Engine(master="local[2]"))
    yield session
    session.stop()
