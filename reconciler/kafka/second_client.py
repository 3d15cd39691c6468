"""kafka-python, for what librdkafka cannot do, or crashes on: its settings, and how it is asked.

It takes other names for the same security settings, and Python's own TLS.
"""

from __future__ import annotations

import base64
import json
import logging
import ssl
import time
import urllib.parse
import urllib.request
from contextlib import contextmanager
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, TypeVar

from reconciler.kafka.connection import PAUSES_S, REQUEST_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from confluent_kafka import Node

    from reconciler.kafka.connection import Connection
    from reconciler.kafka.settings import Settings

T = TypeVar("T")

TIMEOUT_MS = 10_000


class UntranslatableError(Exception):
    """A setting has no counterpart; says which."""


class UnansweredError(Exception):
    """No answer comes, though asked for several times; says why, without secrets."""


def ask_second_client(connection: Connection, question: Callable[[Any], T]) -> T:
    """Ask a question that changes nothing, again with a fresh client where waiting may help.

    A fresh client, since this one keeps what it knows of brokers and coordinators. Where it hears
    nothing at all, once is enough.
    Errors: UntranslatableError; UnansweredError; a KafkaError of kafka-python for an answer that
    waiting does not change; ClusterError where the cluster does not answer at all.
    """
    from kafka.errors import KafkaTimeoutError, RetriableError, UnknownBrokerIdError

    what = f"asking for the brokers of {connection.entry.name}"
    reason = ""
    for pause in (*PAUSES_S, None):
        nodes = connection.ask(
            lambda client: client.describe_cluster(request_timeout=REQUEST_S).result().nodes, what
        )
        try:
            with open_second_client(connection.settings, nodes) as client:
                return question(client)
        except KafkaTimeoutError as error:
            reason = describe_error(error)
            break
        except (RetriableError, UnknownBrokerIdError, OSError, RuntimeError, ValueError) as error:
            reason = describe_error(error)
        if pause is not None:
            time.sleep(pause)
    raise UnansweredError(reason)


def describe_error(error: Exception) -> str:
    """Name what a broker answered as the Kafka protocol does; what else went wrong in words.

    The client's own text repeats the whole answer, which may list thousands of groups.
    """
    from kafka.errors import BrokerResponseError

    if isinstance(error, BrokerResponseError):
        return str(error.message)
    return f"{type(error).__name__}: {error}"


@contextmanager
def open_second_client(settings: Settings, nodes: Sequence[Node]) -> Iterator[Any]:
    """Open kafka-python's admin client, and close it in the end.

    Errors: UntranslatableError for settings that only librdkafka takes, KafkaError and OSError
    where no connection comes about. Cost: 0.2 s, most of it the import and the first connection.
    """
    properties = translate_settings(settings, nodes)
    from kafka.admin import KafkaAdminClient

    logging.getLogger("kafka").addHandler(logging.NullHandler())
    client = KafkaAdminClient(**properties)
    try:
        yield client
    finally:
        client.close()


def translate_settings(settings: Settings, nodes: Sequence[Node]) -> dict[str, Any]:
    """Translate what a connection needs; it starts at the brokers that are known to live.

    Errors: UntranslatableError for what only librdkafka can do.
    """
    protocol = settings.protocol
    properties: dict[str, Any] = {
        "bootstrap_servers": [f"{node.host}:{node.port}" for node in nodes],
        "client_id": settings.get("client.id"),
        "security_protocol": protocol,
        "bootstrap_timeout_ms": TIMEOUT_MS,
        "request_timeout_ms": TIMEOUT_MS,
    }
    if protocol.endswith("SSL"):
        properties["ssl_context"] = _build_context(settings)
    if protocol.startswith("SASL"):
        properties |= _translate_sasl(settings)
    return properties


def _translate_sasl(settings: Settings) -> dict[str, Any]:
    mechanism = settings.mechanism
    if mechanism == "OAUTHBEARER":
        provider = _make_provider(settings)
        return {"sasl_mechanism": mechanism, "sasl_oauth_token_provider": provider}
    if mechanism not in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        raise UntranslatableError(f"sasl.mechanism {mechanism} is not spoken there")
    return {
        "sasl_mechanism": mechanism,
        "sasl_plain_username": settings.get("sasl.username"),
        "sasl_plain_password": settings.get("sasl.password"),
    }


def _build_context(settings: Settings) -> ssl.SSLContext:
    """Build Python's TLS settings from librdkafka's."""
    if settings.get("ssl.keystore.location"):
        raise UntranslatableError("ssl.keystore.location is not read there, PEM files are")
    try:
        context = ssl.create_default_context(
            cafile=settings.get("ssl.ca.location") or None,
            cadata=settings.get("ssl.ca.pem") or None,
        )
        _load_certificate(context, settings)
    except OSError as error:
        raise UntranslatableError(f"TLS settings: {error}") from None
    if settings.get("ssl.endpoint.identification.algorithm", "https") == "none":
        context.check_hostname = False
    if settings.get("enable.ssl.certificate.verification", "true") == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE  # as clusters.yaml asks for
    return context


def _load_certificate(context: ssl.SSLContext, settings: Settings) -> None:
    """Load the client's certificate; Python reads it from files only."""
    password = settings.get("ssl.key.password") or None
    if certificate := settings.get("ssl.certificate.location"):
        context.load_cert_chain(certificate, settings.get("ssl.key.location"), password)
    elif certificate := settings.get("ssl.certificate.pem"):
        with NamedTemporaryFile("w", suffix=".pem") as file:  # readable by this user only
            file.write(settings.get("ssl.key.pem") + "\n" + certificate)
            file.flush()
            context.load_cert_chain(file.name, None, password)


def _make_provider(settings: Settings) -> Any:
    """Make kafka-python's token provider, for the two ways that need no code of the team's."""
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
        """Fetches a token whenever a connection asks for one."""

        def token(self) -> str:
            """Return a token."""
            return fetch_token(settings)

    return TokenProvider()


def fetch_token(settings: Settings) -> str:
    """Fetch an OAuth token as librdkafka would. Errors: OSError, UntranslatableError."""
    if settings.get("sasl.oauthbearer.method") == "oidc":
        return _fetch_by_credentials(settings)
    if settings.get("enable.sasl.oauthbearer.unsecure.jwt") == "true":
        return _sign_nothing(settings.get("sasl.oauthbearer.config"))
    raise UntranslatableError("OAUTHBEARER is spoken there with method oidc only")


def _fetch_by_credentials(settings: Settings) -> str:
    """Ask the endpoint by the client credentials grant (RFC 6749 section 4.4)."""
    prefix = "sasl.oauthbearer.client."
    name = settings.get(prefix + "id") or settings.get(prefix + "credentials.client.id")
    secret = settings.get(prefix + "secret") or settings.get(prefix + "credentials.client.secret")
    form = {"grant_type": "client_credentials"}
    if scope := settings.get("sasl.oauthbearer.scope"):
        form["scope"] = scope
    endpoint = settings.get("sasl.oauthbearer.token.endpoint.url")
    if not endpoint.startswith(("https://", "http://")):
        raise UntranslatableError("the token endpoint is no web address")
    credentials = base64.b64encode(f"{name}:{secret}".encode()).decode()
    request = urllib.request.Request(  # noqa: S310 - the scheme is checked above
        endpoint,
        data=urllib.parse.urlencode(form).encode(),
        headers={"Authorization": f"Basic {credentials}"},
    )
    with urllib.request.urlopen(request, timeout=TIMEOUT_MS / 1000) as answer:  # noqa: S310
        return str(json.load(answer)["access_token"])


def _sign_nothing(config: str) -> str:
    """Make the unsigned token of development clusters (RFC 7515 appendix A.5)."""
    fields = dict(part.split("=", 1) for part in config.split() if "=" in part)
    now = int(time.time())
    lifetime = int(fields.get("lifeSeconds", "3600"))
    claims = {
        fields.get("principalClaimName", "sub"): fields.get("principal", ""),
        "iat": now,
        "exp": now + lifetime,
    }
    if scope := fields.get("scope"):
        claims[fields.get("scopeClaimName", "scope")] = scope.split(",")
    parts = ({"alg": "none"}, claims)
    encoded = (base64.urlsafe_b64encode(json.dumps(p).encode()).rstrip(b"=") for p in parts)
    return ".".join((*(part.decode() for part in encoded), ""))
