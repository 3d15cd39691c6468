"""What listens at an address: TLS or not, SASL or not, a broker, a controller, or no Kafka at all.

Two small requests of the Kafka protocol on a bare socket (SaslHandshake v1, ApiVersions v0), for
the failures that a client reports only as 'down'. No secret is sent.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

TIMEOUT_S = 1.5
_ANSWER_BYTES = 1 << 20

_METADATA, _SASL_HANDSHAKE, _API_VERSIONS = 3, 17, 18
_ILLEGAL_SASL_STATE = 34

# OpenSSL's results of a verification (x509_vfy.h), and the flag that leaves the dates out of it:
# Python shows the dates of a certificate only if it is verified.
_NOT_YET_VALID, _EXPIRED = 9, 10
_WHATEVER_THE_DATE = 0x200000


class Reach(StrEnum):
    """The result of a connection to an address."""

    UNKNOWN_HOST = "no such host"
    REFUSED = "refused"
    UNREACHABLE = "no way there"
    SILENT = "no answer"
    CLOSED = "closed at once"
    FOREIGN = "no Kafka"
    CONTROLLER = "controller"
    BROKER = "broker"


@dataclass(frozen=True, slots=True)
class Untimely:
    """A certificate that has expired or is not yet valid.

    `moment_s`: when that was or will be, in seconds since 1970; None if the certificate itself
    is valid, and that of an authority between it and the trusted ones is not.
    """

    expired: bool
    moment_s: float | None = None


@dataclass(frozen=True, slots=True)
class Listener:
    """What a probe found. `mechanisms`: what SASL offers; None if SASL is not spoken.

    `signed`: whether the certificate leads to an authority that is trusted, whatever its name.
    `untimely`: set if it is not valid today, though it leads there.
    `certificate_wanted`: TLS was cut because no client certificate was shown.
    """

    reach: Reach
    tls: bool = False
    mechanisms: tuple[str, ...] | None = None
    signed: bool = False
    untimely: Untimely | None = None
    certificate_wanted: bool = False


@dataclass(frozen=True, slots=True)
class Trust:
    """The trusted certificate authorities: a path, PEM text, or the machine's.

    `path`: a file or a directory, as librdkafka takes both; `probe` means the machine's.
    """

    path: str = ""
    text: str = ""

    def build_context(self) -> ssl.SSLContext:
        """Build TLS settings that trust these. Errors: OSError if they cannot be read."""
        path = None if self.path in ("", "probe") else self.path
        in_directory = path is not None and Path(path).is_dir()
        return ssl.create_default_context(
            cafile=None if in_directory else path,
            capath=path if in_directory else None,
            cadata=self.text or None,
        )


def probe_all(servers: Iterable[str], trust: Trust) -> Mapping[str, Listener]:
    """Probe addresses in parallel. Cost: a few TIMEOUT_S, for any number of addresses."""
    names = list(dict.fromkeys(servers))
    with ThreadPoolExecutor(max(1, min(len(names), 16))) as pool:
        return dict(zip(names, pool.map(lambda name: probe(name, trust), names), strict=True))


def probe(server: str, trust: Trust) -> Listener:
    """Find out what listens at host:port. Errors: none, they are part of the result."""
    address = split_address(server)
    try:
        # TLS first: its outcome is clear. A broker without TLS takes the handshake for a request of
        # an impossible size, and closes the connection at once.
        found = _probe_tls(address) or _probe_kafka(_connect(address), tls=False)
        return _check_certificate(found, address, trust) if found.tls else found
    except (socket.gaierror, UnicodeError):  # the second is for a name that no host can have
        return Listener(Reach.UNKNOWN_HOST)
    except ConnectionRefusedError:
        return Listener(Reach.REFUSED)
    except TimeoutError:
        return Listener(Reach.SILENT)
    except (EOFError, ConnectionError):
        return Listener(Reach.CLOSED)
    except OSError:
        return Listener(Reach.UNREACHABLE)
    except struct.error:
        return Listener(Reach.FOREIGN)


def split_address(server: str) -> tuple[str, int]:
    """Split host:port as librdkafka does: a port that is missing is 9092."""
    name = server.rpartition("://")[2]
    host, _, port = ("", "", "") if name.endswith("]") else name.rpartition(":")
    return (host or name).strip("[]"), int(port) if host and port.isdecimal() else 9092


def _connect(address: tuple[str, int]) -> socket.socket:
    return socket.create_connection(address, TIMEOUT_S)


def _probe_tls(address: tuple[str, int]) -> Listener | None:
    """Try TLS with any certificate; None if the other side closes the connection, as brokers do."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # this only tests whether the listener uses TLS
    plain = _connect(address)
    try:
        encrypted = context.wrap_socket(plain, server_hostname=address[0])
    except ssl.SSLError as error:
        plain.close()
        reason = error.reason or ""
        if "ALERT" in reason:  # an alert is TLS: the other side speaks it, and refuses this client
            return Listener(Reach.BROKER, tls=True)
        return Listener(Reach.FOREIGN) if reason == "WRONG_VERSION_NUMBER" else None
    except (ConnectionResetError, BrokenPipeError):
        plain.close()
        return None
    try:
        return _probe_kafka(encrypted, tls=True)
    except ssl.SSLError:  # TLS 1.3 asks for the client's certificate after the handshake
        return Listener(Reach.BROKER, tls=True, certificate_wanted=True)


def _check_certificate(found: Listener, address: tuple[str, int], trust: Trust) -> Listener:
    """Add whether the certificate is trusted, whatever is asked for in turn, and valid today."""
    try:
        _read_certificate(address, trust)
    except ssl.SSLCertVerificationError as error:
        if error.verify_code not in (_NOT_YET_VALID, _EXPIRED):
            return found
        expired = error.verify_code == _EXPIRED
    except ssl.SSLError:  # it passed, and TLS failed later: the broker wants one from us as well
        return replace(found, signed=True)
    except OSError:
        return found
    else:
        return replace(found, signed=True)
    # The dates are the only trouble if the certificate is trusted without them; then it is read.
    try:
        certificate = _read_certificate(address, trust, _WHATEVER_THE_DATE)
    except OSError:
        return found
    moment_s = ssl.cert_time_to_seconds(str(certificate["notAfter" if expired else "notBefore"]))
    itself = (moment_s < time.time()) == expired
    return replace(found, signed=True, untimely=Untimely(expired, moment_s if itself else None))


def _read_certificate(address: tuple[str, int], trust: Trust, flags: int = 0) -> Mapping[str, Any]:
    """Return the certificate that is shown. Errors: SSLError if it is not trusted."""
    context = trust.build_context()
    context.check_hostname = False
    context.verify_flags |= flags
    with (
        _connect(address) as plain,
        context.wrap_socket(plain, server_hostname=address[0]) as encrypted,
    ):
        return encrypted.getpeercert() or {}


def _probe_kafka(connection: socket.socket, *, tls: bool) -> Listener:
    """Ask for the supported requests and the SASL mechanisms."""
    with connection:
        connection.settimeout(TIMEOUT_S)
        versions = _ask(connection, _API_VERSIONS, 0, b"")
        if versions is None:
            return Listener(Reach.FOREIGN, tls=tls)
        # An error code, then (key, oldest version, newest version) of each request.
        (count,) = struct.unpack_from(">i", versions, 2)
        keys = {struct.unpack_from(">h", versions, 6 + 6 * n)[0] for n in range(count)}
        if _METADATA not in keys:  # a KRaft controller serves no metadata to clients
            return Listener(Reach.CONTROLLER, tls=tls)
        # No mechanism is called "?", so the broker refuses it and lists those that it has.
        handshake = None
        with suppress(EOFError, ConnectionError):  # what happens in SASL, the client says better
            handshake = _ask(connection, _SASL_HANDSHAKE, 1, b"\x00\x01?")
        if handshake is None or handshake[:2] == struct.pack(">h", _ILLEGAL_SASL_STATE):
            return Listener(Reach.BROKER, tls=tls)
        # An error code, then an array of strings.
        (count,) = struct.unpack_from(">i", handshake, 2)
        names, at = [], 6
        for _ in range(count):
            (length,) = struct.unpack_from(">h", handshake, at)
            names.append(handshake[at + 2 : at + 2 + length].decode(errors="replace"))
            at += 2 + length
        return Listener(Reach.BROKER, tls=tls, mechanisms=tuple(sorted(names)))


def _ask(connection: socket.socket, key: int, version: int, body: bytes) -> bytes | None:
    """Send one request and return the answer's body; None if it is not an answer of Kafka.

    Errors: EOFError if the other side closes the connection before it has answered.
    """
    correlation = 4711
    header = struct.pack(">hhih", key, version, correlation, -1)
    connection.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
    (length,) = struct.unpack(">i", _receive(connection, 4))
    if not 4 < length < _ANSWER_BYTES:
        return None
    answer = _receive(connection, length)
    if answer[:4] != struct.pack(">i", correlation):
        return None
    return answer[4:]


def _receive(connection: socket.socket, length: int) -> bytes:
    """Return exactly `length` bytes. Errors: EOFError if the other side closes before."""
    received = b""
    while len(received) < length:
        part = connection.recv(length - len(received))
        if not part:
            raise EOFError
        received += part
    return received
