"""A broker with every way to prove who one is: certificates, users, tokens and their issuer."""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from reconciler.sandbox.cluster import Cluster, start_cluster

LISTENERS = {
    "MTLS": "SSL",
    "SASLSSL": "SASL_SSL",
    "SASLPLAIN": "SASL_PLAINTEXT",
    "OAUTH": "SASL_PLAINTEXT",
    "OIDC": "SASL_PLAINTEXT",
    "MISNAMED": "SSL",
    "EXPIRED": "SSL",
    "EARLY": "SSL",
}
# Certificates of the authority that are not valid today: their first and last second, in UTC.
UNTIMELY = {
    "expired": ("20200101000000Z", "20200201103000Z"),
    "early": ("20990101103000Z", "20990201000000Z"),
}
# What `openssl ca` needs to be told, which alone signs for other days than those to come.
AUTHORITY = """
[ca]
default_ca = this
[this]
certificate = ca.pem
private_key = ca.key
database = index
serial = ca.srl
new_certs_dir = .
default_md = sha256
policy = any
[any]
commonName = supplied
"""
USERS = ("alice", "planner", "applier", "nobody")
SCRAM_USERS = [f"SCRAM-SHA-{n}=[name=alice,password=alice-secret]" for n in (256, 512)]


@dataclass(frozen=True)
class Secured:
    """The broker, where its certificates lie, and who issues its tokens."""

    cluster: Cluster
    directory: Path
    issuer: TokenIssuer

    def address(self, listener: str) -> str:
        """Return where a listener is."""
        return self.cluster.addresses(listener)[1]

    def file(self, name: str) -> str:
        """Return the path of a certificate or key."""
        return str(self.directory / name)

    def read(self, name: str) -> str:
        """Return the text of a certificate or key."""
        return (self.directory / name).read_text()


@contextmanager
def start_secured(directory: Path) -> Iterator[Secured]:
    """Start the broker."""
    make_certificates(directory)
    issuer = TokenIssuer(directory)
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={issuer.url}/jwks"
    with start_cluster(
        brokers=1,
        listeners=LISTENERS,
        properties=broker_properties(directory, issuer),
        scram_users=SCRAM_USERS,
        jvm_options=[allowed],
    ) as cluster:
        yield Secured(cluster, directory, issuer)
    issuer.stop()


def _run(*command: str, cwd: Path, text: bytes = b"") -> bytes:
    made = subprocess.run(
        ["openssl", *command], cwd=cwd, input=text, capture_output=True, check=True
    )
    return made.stdout


def make_certificates(directory: Path) -> None:
    """Make two authorities, and server, misnamed and client certificates of the first."""
    for authority in ("ca", "other-ca"):
        request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
        names = ["-subj", f"/CN={authority}", "-keyout", f"{authority}.key"]
        _run(*request, *names, "-out", f"{authority}.pem", cwd=directory)
    _sign(directory, "server", "ca", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    _sign(directory, "misnamed", "ca", "subjectAltName=DNS:elsewhere.example")
    _sign(directory, "lab-client", "ca", "subjectAltName=DNS:lab-client")
    _sign(directory, "stranger", "other-ca", "subjectAltName=DNS:stranger")
    (directory / "index").touch()
    (directory / "authority.cnf").write_text(AUTHORITY)
    for name in UNTIMELY:
        _sign(directory, name, "ca", "subjectAltName=DNS:localhost,IP:127.0.0.1")


def _sign(directory: Path, name: str, authority: str, extension: str) -> None:
    request = ["req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}"]
    _run(*request, "-keyout", f"{name}.key", "-out", f"{name}.csr", cwd=directory)
    (directory / "extension").write_text(extension)
    if dates := UNTIMELY.get(name):
        signing = ["ca", "-config", "authority.cnf", "-batch", "-notext"]
        key = ["-in", f"{name}.csr", "-startdate", dates[0], "-enddate", dates[1]]
    else:
        signing = ["x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem", "-days", "2"]
        key = ["-CAkey", f"{authority}.key", "-CAcreateserial"]
    _run(*signing, *key, "-extfile", "extension", "-out", f"{name}.pem", cwd=directory)
    parts = (f"{name}.key", f"{name}.pem", f"{authority}.pem")
    store = "".join((directory / part).read_text() for part in parts)
    (directory / f"{name}.store.pem").write_text(store)


def broker_properties(directory: Path, issuer: TokenIssuer) -> dict[str, str]:
    """Return what a broker needs beside its listeners."""
    security = "org.apache.kafka.common.security"
    users = " ".join(f'user_{user}="{user}-secret"' for user in USERS)
    plain = f"{security}.plain.PlainLoginModule required {users};"
    scram = f"{security}.scram.ScramLoginModule required;"
    oauth = f"{security}.oauthbearer.OAuthBearerLoginModule required"
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / "server.store.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(directory / "ca.pem"),
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
        "listener.name.mtls.ssl.client.auth": "required",
        "listener.name.misnamed.ssl.keystore.type": "PEM",
        "listener.name.misnamed.ssl.keystore.location": str(directory / "misnamed.store.pem"),
        **{
            f"listener.name.{name}.ssl.keystore.{key}": value
            for name in UNTIMELY
            for key, value in (("type", "PEM"), ("location", str(directory / f"{name}.store.pem")))
        },
        "listener.name.saslssl.sasl.enabled.mechanisms": "SCRAM-SHA-512,SCRAM-SHA-256,PLAIN",
        "listener.name.saslssl.scram-sha-512.sasl.jaas.config": scram,
        "listener.name.saslssl.scram-sha-256.sasl.jaas.config": scram,
        "listener.name.saslssl.plain.sasl.jaas.config": plain,
        "listener.name.saslplain.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.saslplain.plain.sasl.jaas.config": plain,
        "listener.name.oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.oauth.oauthbearer.sasl.jaas.config": (
            f'{oauth} unsecuredLoginStringClaim_sub="broker";'
        ),
        # A session ends with its token, so that clients have to authenticate again (KIP-368).
        "listener.name.oauth.oauthbearer.connections.max.reauth.ms": "3600000",
        "listener.name.oidc.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.oidc.oauthbearer.sasl.jaas.config": f"{oauth};",
        "listener.name.oidc.oauthbearer.sasl.server.callback.handler.class": (
            f"{security}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
        "listener.name.oidc.sasl.oauthbearer.jwks.endpoint.url": f"{issuer.url}/jwks",
        "listener.name.oidc.sasl.oauthbearer.expected.audience": "kafka",
        "listener.name.oidc.sasl.oauthbearer.expected.issuer": issuer.url,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:alice;User:lab-client;User:oauth-admin",
        "allow.everyone.if.no.acl.found": "false",
    }


@dataclass
class TokenIssuer:
    """An OpenID provider on loopback, with and without TLS: its keys, and tokens for one client."""

    directory: Path
    client: str = "oauth-admin"
    secret: str = "oauth-secret"
    server: ThreadingHTTPServer = field(init=False)
    encrypted: ThreadingHTTPServer = field(init=False)

    def __post_init__(self) -> None:
        _run("genrsa", "-out", "issuer.key", "2048", cwd=self.directory)
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.answer(self, 200, issuer.keys())

            def do_POST(self) -> None:
                asked = self.rfile.read(int(self.headers["Content-Length"]))
                expected = base64.b64encode(f"{issuer.client}:{issuer.secret}".encode()).decode()
                if b"jwt-bearer" in asked or self.headers["Authorization"] == f"Basic {expected}":
                    issuer.answer(self, 200, {"access_token": issuer.token(), "expires_in": 300})
                else:
                    issuer.answer(self, 401, {"error": "invalid_client"})

            def log_message(self, *_: object) -> None:
                """Keep the tests' output clean."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.encrypted = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.directory / "server.pem", self.directory / "server.key")
        self.encrypted.socket = context.wrap_socket(self.encrypted.socket, server_side=True)
        for server in (self.server, self.encrypted):
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        for server in (self.server, self.encrypted):
            server.shutdown()
            server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    @property
    def encrypted_url(self) -> str:
        return f"https://127.0.0.1:{self.encrypted.server_port}"

    @staticmethod
    def answer(handler: BaseHTTPRequestHandler, status: int, content: object) -> None:
        body = json.dumps(content).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def keys(self) -> object:
        text = _run("rsa", "-in", "issuer.key", "-noout", "-modulus", cwd=self.directory)
        modulus = bytes.fromhex(text.decode().strip().removeprefix("Modulus="))
        key = {"kty": "RSA", "kid": "1", "use": "sig", "alg": "RS256"}
        return {"keys": [{**key, "n": _encode(modulus), "e": _encode(b"\x01\x00\x01")}]}

    def token(self) -> str:
        now = int(time.time())
        claims = {"sub": self.client, "iss": self.url, "aud": "kafka", "iat": now, "exp": now + 300}
        header = {"alg": "RS256", "kid": "1", "typ": "JWT"}
        text = ".".join(_encode(json.dumps(part).encode()) for part in (header, claims))
        signing = ["dgst", "-sha256", "-sign", "issuer.key", "-binary"]
        return f"{text}.{_encode(_run(*signing, cwd=self.directory, text=text.encode()))}"


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
