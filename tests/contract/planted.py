"""Secrets planted into every client property that takes one, and a search for them afterwards."""

from __future__ import annotations

import json
import sys
import threading
from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.spec.client_properties import LIBRDKAFKA, REFERENCES

if TYPE_CHECKING:
    from security import Secured

MARK = "pl4nted"
NAMES = sorted(REFERENCES & LIBRDKAFKA.keys())
VARIABLES = {name: f"PLANTED_{number}" for number, name in enumerate(NAMES)}
ENVIRONMENT = {
    variable: f"{MARK}-{number:02}-S3cret" for number, variable in enumerate(VARIABLES.values())
}

_commands: list[str] = []


def _listen(event: str, arguments: tuple[object, ...]) -> None:
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system"):
        _commands.append(str(arguments[:2]))


sys.addaudithook(_listen)


def write_client(properties: Mapping[str, str]) -> str:
    """Write a client as YAML has it, on one line."""
    return json.dumps(dict(properties))


def refer(*names: str) -> dict[str, str]:
    """Return properties that refer to what is planted for them."""
    return {name: f"${{env:{VARIABLES[name]}}}" for name in names}


def find_planted(root: Path, *texts: str) -> list[str]:
    """Say where a planted secret is: in a file, in a text, in a command of this process."""
    found = [text[max(0, text.index(MARK) - 80) :][:200] for text in texts if MARK in text]
    found += [command for command in _commands if MARK in command]
    for path in root.rglob("*"):
        if path.is_file() and MARK.encode() in path.read_bytes():
            found.append(str(path))
    return found


@contextmanager
def watching_processes() -> Iterator[list[str]]:
    """Yield the command lines of this machine that hold a planted secret, while they last."""
    over, found = threading.Event(), list[str]()

    def watch() -> None:
        while not over.wait(0.05):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    line = path.read_bytes()
                except OSError:
                    continue
                if MARK.encode() in line:
                    found.append(line.decode(errors="replace"))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


@contextmanager
def echoing() -> Iterator[str]:
    """Yield the address of a token endpoint that refuses, and quotes all that it was sent."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            kind, _, credentials = (self.headers["Authorization"] or "").partition(" ")
            told = b64decode(credentials).decode() if kind == "Basic" else credentials
            answer = {"error": "invalid", "error_description": f"what is {told} with {body}"}
            content = json.dumps(answer).encode()
            self.send_response(400)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Keep the tests' output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/token"
    server.shutdown()
    server.server_close()


def use(name: str, secured: Secured, endpoint: str) -> dict[str, str]:
    """Return a client of a real broker that makes use of a property, with a secret in it."""
    users = {"sasl.username": "alice", "sasl.password": "alice-secret"}
    tls = {
        "bootstrap.servers": secured.address("SASLSSL"),
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "ssl.ca.location": secured.file("ca.pem"),
        **users,
    }
    tokens = {
        "bootstrap.servers": secured.address("OIDC"),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": endpoint,
        "sasl.oauthbearer.client.id": "me",
        **refer("sasl.oauthbearer.client.secret"),
    }
    if name == "sasl.oauthbearer.config":
        unsigned = {"enable.sasl.oauthbearer.unsecure.jwt": "true"}
        kept = {k: v for k, v in tokens.items() if not k.startswith("sasl.oauthbearer")}
        return {**kept, "bootstrap.servers": secured.address("OAUTH"), **unsigned, **refer(name)}
    if "assertion" in name:
        grant = {"sasl.oauthbearer.grant.type": "urn:ietf:params:oauth:grant-type:jwt-bearer"}
        key = {"sasl.oauthbearer.assertion.private.key.file": secured.file("lab-client.key")}
        return {**tokens, **grant, **key, **refer(name)}
    if name.startswith(("sasl.oauthbearer", "https")):
        return {**tokens, **refer(name)}
    if name.startswith("ssl.ca"):
        del tls["ssl.ca.location"]
    if name == "ssl.key.password":
        pair = {"ssl.certificate.location": "lab-client.pem", "ssl.key.location": "lab-client.key"}
        tls |= {property_: secured.file(file) for property_, file in pair.items()}
    if name == "ssl.keystore.password":
        tls["ssl.keystore.location"] = secured.file("lab-client.pem")
    if name in users:
        tls |= users
    return {**tls, **refer(name)}
