"""When a cluster counts as ready: every broker, asked on its own, names all the others."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from reconciler.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PAUSE_S = 0.05
REQUEST_TIMEOUT_S = 2


def await_metadata(
    addresses: Mapping[int, str], timeout_s: float, refuse_death: Callable[[], None]
) -> None:
    """Wait until each broker's metadata shows exactly these brokers.

    In: `timeout_s`, how long none of them may see anything new.
    Errors: SandboxError naming the brokers that still see others, or what `refuse_death` raises.
    """
    deadline = time.monotonic() + timeout_s
    views: dict[int, set[int]] = {}
    lagging = set(addresses)
    while True:
        before, views = views, {i: _ask_brokers(addresses[i]) for i in lagging}
        lagging = {i for i, view in views.items() if view != set(addresses)}
        if not lagging:
            return
        refuse_death()
        if views != before:
            deadline = time.monotonic() + timeout_s
        if time.monotonic() > deadline:
            names = ", ".join(map(str, sorted(lagging)))
            raise SandboxError(
                f"the metadata of these brokers does not show the cluster as it is, and has not"
                f" changed for {timeout_s:g} s: {names}; the machine may be short of memory or"
                " processor time"
            )
        time.sleep(PAUSE_S)


def _ask_brokers(address: str) -> set[int]:
    """Return the ids that one broker knows, or nothing while it does not answer."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    # A client goes on to any broker it has heard of: a fresh one asks the one it is given.
    client = AdminClient({"bootstrap.servers": address, "log_level": 0})
    try:
        return set(client.list_topics(timeout=REQUEST_TIMEOUT_S).brokers)
    except KafkaException:
        return set()
