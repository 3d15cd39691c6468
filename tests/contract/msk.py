"""A stand-in for the IAM listener of Amazon MSK, in front of a real broker.

Apache Kafka takes only tokens that are JWTs, and those of MSK are none. So this front speaks TLS
and SASL: it checks the signature of a token as AWS does (Signature Version 4, with a query), limits
the session to the life of the token (KIP-368), and passes everything else on to a broker.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ssl
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlsplit

from proxy import FailingNetwork, _read_frame, _shut, _write_frame

from reconciler.sandbox.cluster import Cluster

SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 17, 18, 36
UNSUPPORTED_MECHANISM, AUTHENTICATION_FAILED = 33, 58
MECHANISMS = ("AWS_MSK_IAM", "OAUTHBEARER")
_UNSIGNED = ("User-Agent", "X-Amz-Signature")  # the agent is added after signing


def check_token(token: str, secrets: Mapping[str, str], region: str) -> float:
    """Return until when a token is valid, in seconds since 1970. Errors: ValueError.

    `secrets`: the secret key of each access key.
    """
    url = urlsplit(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
    pairs = dict(parse_qsl(url.query))
    if url.netloc != f"kafka.{region}.amazonaws.com" or pairs["Action"] != "kafka-cluster:Connect":
        raise ValueError("not for this cluster")
    access_key, _, scope = pairs["X-Amz-Credential"].partition("/")
    day, *parts = scope.split("/")
    if parts != [region, "kafka-cluster", "aws4_request"] or access_key not in secrets:
        raise ValueError("not of these credentials")
    signed = "&".join(
        f"{quote(name, safe='-_.~')}={quote(text, safe='-_.~')}"
        for name, text in sorted(pairs.items())
        if name not in _UNSIGNED
    )
    nothing = hashlib.sha256(b"").hexdigest()
    request = f"GET\n/\n{signed}\nhost:{url.netloc}\n\nhost\n{nothing}"
    digest = hashlib.sha256(request.encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{pairs['X-Amz-Date']}\n{scope}\n{digest}"
    key = f"AWS4{secrets[access_key]}".encode()
    for part in (day, *parts):
        key = hmac.digest(key, part.encode(), "sha256")
    if hmac.digest(key, text.encode(), "sha256").hex() != pairs["X-Amz-Signature"]:
        raise ValueError("not signed by these credentials")
    moment = datetime.strptime(pairs["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    until = moment.timestamp() + int(pairs["X-Amz-Expires"])
    if until < time.time():
        raise ValueError("expired")
    return until


@dataclass
class Session:
    """One connection of a client: when it authenticated, and until when it may ask."""

    authenticated: list[float] = field(default_factory=list)
    until: float = 0.0


class MskFront(FailingNetwork):
    """The front of a cluster's brokers. `sessions`: one for each connection that came so far."""

    def __init__(self, cluster: Cluster, directory: Path, secrets: Mapping[str, str]) -> None:
        self.secrets = dict(secrets)
        self.region = "eu-west-1"
        self.sessions: list[Session] = []
        self.tokens: set[str] = set()
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(directory / "server.pem", directory / "server.key")
        super().__init__(cluster)

    @property
    def longest(self) -> Session:
        """The connection that authenticated most often."""
        return max(self.sessions, key=lambda session: len(session.authenticated))

    def link(self, client: object, broker: object) -> None:
        """Serve a connection in a thread of its own."""
        threading.Thread(target=self._serve, args=(client, broker), daemon=True).start()

    def _serve(self, plain: object, broker: object) -> None:
        client = plain
        with suppress(OSError, EOFError):
            client = self._keep(self._context.wrap_socket(plain, server_side=True))
            session = Session()
            self.sessions.append(session)
            while True:
                frame = _read_frame(client)
                api, version = struct.unpack_from(">hh", frame)
                if api == SASL_HANDSHAKE:
                    answer = self._shake_hands(frame)
                elif api == SASL_AUTHENTICATE:
                    answer = self._authenticate(frame, version, session)
                elif api != API_VERSIONS and session.until < time.time():
                    break  # as brokers do with a session that is over
                else:
                    _write_frame(broker, frame)
                    answer = self.rewrite(_read_frame(broker))
                _write_frame(client, answer)
        _shut(client)
        _shut(broker)

    def _shake_hands(self, frame: bytes) -> bytes:
        body = _skip_header(frame)
        asked = body[2:].decode()
        code = 0 if asked in MECHANISMS else UNSUPPORTED_MECHANISM
        names = b"".join(struct.pack(">h", len(name)) + name.encode() for name in MECHANISMS)
        return frame[4:8] + struct.pack(">hi", code, len(MECHANISMS)) + names

    def _authenticate(self, frame: bytes, version: int, session: Session) -> bytes:
        # From version 2 on, a tagged field may follow the header, and lengths are one byte or two.
        body = _skip_header(frame)
        message = body[4:] if version < 2 else body[1:]
        token = message.partition(b"auth=Bearer ")[2].partition(b"\x01")[0].decode()
        number, nothing = frame[4:8], (b"\x00" if version >= 2 else b"")
        try:
            until = check_token(token, self.secrets, self.region)
        except (ValueError, KeyError):
            text = b"[5f0c]: Access denied"
            length = bytes([len(text) + 1]) if version >= 2 else struct.pack(">h", len(text))
            code, said, lifetime_ms = AUTHENTICATION_FAILED, length + text, 0
        else:
            self.tokens.add(token)
            session.authenticated.append(time.time())
            session.until = until
            lifetime_ms = max(0, int((until - time.time()) * 1000))
            code, said = 0, nothing or struct.pack(">h", -1)
        empty = b"\x01" if version >= 2 else struct.pack(">i", 0)
        life = struct.pack(">q", lifetime_ms) if version >= 1 else b""
        return number + nothing + struct.pack(">h", code) + said + empty + life + nothing


def _skip_header(frame: bytes) -> bytes:
    """Return the body after a header of version 1: key, version, number, name of the client."""
    (length,) = struct.unpack_from(">h", frame, 8)
    return frame[10 + max(0, length) :]


@contextmanager
def msk_front(cluster: Cluster, directory: Path, secrets: Mapping[str, str]) -> Iterator[MskFront]:
    """Put a front before a cluster's brokers; `directory` has a certificate for 127.0.0.1."""
    front = MskFront(cluster, directory, secrets)
    try:
        yield front
    finally:
        front.close()
