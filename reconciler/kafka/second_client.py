"""kafka-python, for what librdkafka cannot do, or crashes on: its settings, and how it is asked.

It takes other names for the same security settings, and Python's own TLS.
"""

from __future__ import annotations

import logging
import ssl
import time
from contextlib import contextmanager
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, TypeVar

from reconciler.kafka.connection import PAUSES_S, REQUEST_S
from reconciler.kafka.errors import UntranslatableError
from reconciler.kafka.probe import Trust
from reconciler.kafka.tokens import make_provider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from confluent_kafka import Node

    from reconciler.kafka.connection import Connection
    from reconciler.kafka.settings import Settings

T = TypeVar("T")

TIMEOUT_MS = 10_000


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

    Errors: UntranslatableError for settings that only librdkafka takes, TokenError, KafkaError and
    OSError where no connection comes about. Cost: 0.2 s, most of it the import and the first
    connection.
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

    Errors: UntranslatableError for what only librdkafka can do; TokenError where no OAuth token can
    be had.
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
        provider = make_provider(settings)
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
        trust = Trust(settings.get("ssl.ca.location"), settings.get("ssl.ca.pem"))
        context = trust.build_context()
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
