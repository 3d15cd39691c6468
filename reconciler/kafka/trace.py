"""The requests of clients to a cluster, for --verbose and --debug: requests, brokers, times and
retries.

Texts of clients pass through the log's handler, which hides the secrets of the run.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any
from weakref import ref

LOG = logging.getLogger("reconciler.kafka")
"""Requests at INFO. At DEBUG also the protocol of librdkafka, which it writes there itself."""

_POLL_S = 0.05


@contextmanager
def trace_request(cluster: str, what: str) -> Iterator[None]:
    """Log a request with its duration, and with its error if it raises one."""
    begun = time.monotonic()
    try:
        yield
    except Exception as error:
        LOG.info("%s: %s: failed after %s: %s", cluster, what, _spell_since(begun), error)
        raise
    LOG.info("%s: %s: %s", cluster, what, _spell_since(begun))


def _spell_since(begun: float) -> str:
    return f"{(time.monotonic() - begun) * 1000:,.0f} ms"


def list_log_properties() -> dict[str, Any]:
    """Return the properties of a client that logs its protocol; none without --debug."""
    if not LOG.isEnabledFor(logging.DEBUG):
        return {}
    return {"logger": LOG, "debug": "broker,protocol", "log_level": "7"}


def poll_aside(client: Any) -> None:
    """Poll a client in a thread while it lives, for its log and its tokens."""
    held = ref(client)

    def follow() -> None:
        # No name may hold the client while this thread sleeps: it would live for ever.
        while poll(held):
            time.sleep(_POLL_S)

    def poll(held: ref[Any]) -> bool:
        client = held()
        if client is not None:
            client.poll(0)
        return client is not None

    Thread(target=follow, daemon=True).start()
