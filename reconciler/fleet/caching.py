"""Tables that a job keeps until it ends, also when it fails: cached, or computed at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from reconciler.fleet.session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Cache = Callable[["DataFrame"], "DataFrame"]


@contextmanager
def caching() -> Iterator[Cache]:
    """Yield a function that caches a table until the block ends. Returns: the cached table."""
    with ExitStack() as kept:

        def cache(rows: DataFrame) -> DataFrame:
            kept.callback(rows.persist().unpersist)
            return rows

        yield cache


@contextmanager
def computing() -> Iterator[Cache]:
    """Yield a function that computes a table at once. Returns: its rows, without their plan.

    Spark plans a cached table again with everything that is made of it. In a job of many tables,
    that takes longer than the rows of a small fleet. A table that was computed has no plan.
    Errors: the next use of the rows fails if Spark has lost an executor that had some of them.
    """
    with ExitStack() as kept:

        def compute(rows: DataFrame) -> DataFrame:
            computed = rows.localCheckpoint()
            kept.callback(_release, computed)
            return computed

        yield compute


def _release(computed: DataFrame) -> None:
    """Free the rows of a table. A server of Connect frees them when no client refers to them."""
    if not is_connect(computed):
        computed._jdf.queryExecution().logical().rdd().unpersist(False)  # noqa: FBT003
