"""A stand-in for AWS STS on loopback: it gives credentials for one role, to those who may have it.

It answers in the form of the API reference of AssumeRole, version 2011-06-15.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl

ROLE = "arn:aws:iam::123456789012:role/topics"
ROLE_KEY, ROLE_SECRET, ROLE_TOKEN = "ASIAROLE", "role-S3cret-key", "role-S3ssion-token"

_GRANTED = """\
<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
<AssumedRoleUser><Arn>{arn}</Arn><AssumedRoleId>AROA:x</AssumedRoleId></AssumedRoleUser>
<Credentials><AccessKeyId>{key}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey>
<SessionToken>{token}</SessionToken><Expiration>{until}</Expiration></Credentials>
</AssumeRoleResult><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata>
</AssumeRoleResponse>"""
_REFUSED = """\
<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>
<Code>AccessDenied</Code><Message>{message}</Message></Error><RequestId>1</RequestId>
</ErrorResponse>"""


@dataclass
class Sts:
    """The stand-in. `asked`: the forms that came. `quotes`: a refusal quotes what it was sent."""

    url: str = ""
    external_id: str = ""
    lifetime: timedelta = timedelta(hours=1)
    quotes: bool = False
    asked: list[dict[str, str]] = field(default_factory=list)

    def answer(self, form: dict[str, str], headers: str) -> tuple[int, str]:
        self.asked.append(form)
        if form["RoleArn"] != ROLE or form.get("ExternalId", "") != self.external_id:
            message = f"not authorized to perform: sts:AssumeRole on {form['RoleArn']}"
            return 403, _REFUSED.format(message=message + headers * self.quotes)
        until = f"{datetime.now(UTC) + self.lifetime:%Y-%m-%dT%H:%M:%SZ}"
        arn = ROLE.replace(":iam:", ":sts:")
        credentials = {"key": ROLE_KEY, "secret": ROLE_SECRET, "token": ROLE_TOKEN}
        return 200, _GRANTED.format(arn=arn, until=until, **credentials)


@contextmanager
def serving_sts() -> Iterator[Sts]:
    """Yield the stand-in while it serves."""
    sts = Sts()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status, text = sts.answer(dict(parse_qsl(body)), str(self.headers))
            content = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Keep the tests' output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    sts.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield sts
    server.shutdown()
    server.server_close()
