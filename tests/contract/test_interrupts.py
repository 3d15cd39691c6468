"""Ctrl-C while the client's C code runs: it stays an interrupt, whatever that code makes of it."""

from __future__ import annotations

import gc
import signal
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from lab import connect_to

from reconciler.sandbox.cluster import Cluster

if TYPE_CHECKING:
    from reconciler.kafka.connection import Connection

KEPT: list[Connection] = []
"""Clients with answers under way: one that its own thread collects aborts the process."""

TRIES = 2_000
ENOUGH = 5


@pytest.fixture
def in_c_code() -> Iterator[threading.Event]:
    """Return an event; once it is set, Ctrl-C comes as soon as other code than Python's runs."""
    armed = threading.Event()
    main = threading.main_thread().ident
    over = False

    def press() -> None:
        while not over:
            armed.wait()
            armed.clear()
            if main and not over:
                signal.pthread_kill(main, signal.SIGINT)

    handler, interval = signal.getsignal(signal.SIGINT), sys.getswitchinterval()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.setswitchinterval(1000)  # the thread runs only where the main one lets go of the lock
    thread = threading.Thread(target=press)
    thread.start()
    gc.disable()  # Python drops an interrupt that meets the collector, with a warning
    yield armed
    gc.enable()
    over = True
    armed.set()
    thread.join()
    sys.setswitchinterval(interval)
    signal.signal(signal.SIGINT, handler)


def test_an_interrupt_in_c_code_is_one(cluster3: Cluster, in_c_code: threading.Event) -> None:
    """Without `keep_interrupts`, most of them are a SystemError."""
    connection = connect_to(cluster3)
    KEPT.append(connection)
    connection.client()
    asked = [ConfigResource(ResourceType.BROKER, "1")]

    def describe(client: AdminClient) -> None:
        in_c_code.set()
        client.describe_configs(asked)

    seen = 0
    for _ in range(TRIES):
        try:
            connection.ask(describe, "asking for configs")
        except KeyboardInterrupt as error:
            seen += isinstance(error.__cause__, SystemError)
        if seen == ENOUGH:
            return
    pytest.fail(f"C code was interrupted {seen} times only")
