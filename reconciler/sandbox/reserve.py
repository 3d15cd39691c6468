"""Free ports on loopback, kept for their brokers for as long as the cluster lives.

A reserved port stays bound, without listening, so that the system gives it to nobody else, also
while its broker is stopped. Brokers may bind it all the same: they, too, allow reuse.
"""

from __future__ import annotations

import socket

from reconciler.sandbox.settings import HOST


class PortReservation:
    """Ports that this process holds until `release`."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def take(self) -> int:
        """Reserve one more port."""
        held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._sockets.append(held)
        held.bind((HOST, 0))
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        port: int = held.getsockname()[1]
        return port

    def release(self) -> None:
        """Give all ports back."""
        while self._sockets:
            self._sockets.pop().close()
