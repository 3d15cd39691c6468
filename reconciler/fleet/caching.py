"""Cached tables that are released when their job ends, also when it fails."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame

    Cache = Callable[[DataFrame], DataFrame]


@contextmanager
def caching() -> Iterator[Cache]:
    """Yield a function that caches a table until the block ends. Returns: the cached table."""
    with ExitStack() as kept:

        def cache(rows: DataFrame) -> DataFrame:
            kept.callback(rows.persist().unpersist)
            return rows

        yield cache
