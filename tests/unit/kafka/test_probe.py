"""Addresses of brokers as they may be written, and answers that are not quite Kafka's."""

from __future__ import annotations

import socket
import struct
from threading import Thread

import pytest

from reconciler.kafka.probe import Reach, Trust, probe, split_address


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("kafka.example:9093", ("kafka.example", 9093)),
        ("kafka.example", ("kafka.example", 9092)),
        ("SASL_SSL://kafka.example:9093", ("kafka.example", 9093)),
        ("[::1]:9093", ("::1", 9093)),
        ("[::1]", ("::1", 9092)),
    ],
)
def test_an_address_is_split_as_the_client_splits_it(
    written: str, address: tuple[str, int]
) -> None:
    assert split_address(written) == address


@pytest.mark.parametrize("name", ["kafka..example", f"{'k' * 64}.example", "xn--é"])
def test_a_name_that_no_host_can_have_is_no_host(name: str) -> None:
    assert probe(f"{name}:9092", Trust()).reach is Reach.UNKNOWN_HOST


def test_a_mechanism_that_is_no_text_is_no_crash() -> None:
    """A listener that knows Metadata, and names a mechanism in bytes that are not UTF-8."""
    versions = struct.pack(">hi3h", 0, 1, 3, 0, 12)
    mechanisms = struct.pack(">hi", 33, 1) + struct.pack(">h", 2) + b"\xff\xfe"

    def serve(listener: socket.socket) -> None:
        listener.accept()[0].close()  # the attempt with TLS
        with listener.accept()[0] as connection:
            for body in (versions, mechanisms):
                (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
                request = connection.recv(size, socket.MSG_WAITALL)
                connection.sendall(struct.pack(">i", 4 + len(body)) + request[4:8] + body)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(target=serve, args=(listener,), daemon=True).start()
        found = probe(f"127.0.0.1:{listener.getsockname()[1]}", Trust())
    assert found.reach is Reach.BROKER
    assert found.mechanisms == ("\ufffd\ufffd",)


def test_a_server_that_hangs_up_is_not_unreachable() -> None:
    """As a port-forward and a load balancer do, without a broker behind them."""

    def serve(listener: socket.socket) -> None:
        for reset in (b"\0" * 8, struct.pack("ii", 1, 0)):  # an orderly end, and a reset
            for _ in range(2):
                connection = listener.accept()[0]
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
                connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(target=serve, args=(listener,), daemon=True).start()
        at = f"127.0.0.1:{listener.getsockname()[1]}"
        assert [probe(at, Trust()).reach for _ in range(2)] == [Reach.CLOSED] * 2
