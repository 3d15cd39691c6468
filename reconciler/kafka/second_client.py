"""kafka-python, for requests that librdkafka lacks or crashes on: its settings and retries.

It uses other names for the same security settings, and Python's own TLS. It fetches its own OAuth
tokens, since librdkafka does not expose the tokens that it fetches.
"""

from __future__ import annotations

import base64
import json
import logging
import re
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from tempfile import NamedTemporaryFile
from typing import Any, TypeVar

from confluent_kafka import Node

from reconciler.kafka.connection import PAUSES_S, REQUEST_S, Connection
from reconciler.kafka.errors import TokenError, UntranslatableError
from reconciler.kafka.probe import Trust
from reconciler.kafka.settings import ClientSettings
from reconciler.kafka.trace import trace_request
from reconciler.spec.client_authentication import METADATA, find_unfollowed

T = TypeVar("T")

TIMEOUT_MS = 10_000
_REQUEST = re.compile(r"'(?P<name>\w+?)(?:Request)?'")


class NoAnswerError(Exception):
    """No answer came after several tries. The message has the reason, without secrets."""


class SecondClient:
    """kafka-python's admin client of one connection, kept between requests.

    A kept client does not notice that brokers moved, and avoids one that failed for up to 30 s. So
    it is replaced if the living brokers are others, and after every failure. Not for several
    threads at once.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._client: Any = None
        self._brokers: list[tuple[int, str, int]] = []
        self._end: weakref.finalize[..., Any] | None = None

    def open(self) -> Any:
        """Return a client that knows the living brokers. Cost: a request, 0.2 s for a new client.

        Errors: ClusterError if no broker answers; otherwise as `open_second_client`.
        """
        what = f"asking for the brokers of {self._connection.entry.name}"
        nodes = self._connection.ask(
            lambda client: client.describe_cluster(request_timeout=REQUEST_S).result().nodes, what
        )
        brokers = sorted((node.id, node.host, node.port) for node in nodes)
        if self._client is None or brokers != self._brokers:
            self.close()
            client = build_second_client(self._connection.settings, nodes)
            self._client, self._brokers = client, brokers
            self._end = weakref.finalize(self, _close_aside, client)
            # Not at the end of the program: it must not wait for a broker.
            self._end.atexit = False
        return self._client

    def close(self) -> None:
        """Close the client; the next request opens another."""
        if self._client is not None and self._end is not None:
            self._end.detach()
            self._client.close()
            self._client = None

    def ask(self, question: Callable[[Any], T]) -> T:
        """Send a read-only request, and retry with a new client if the error may be temporary.

        If no broker answers at all, there is no retry.
        Errors: UntranslatableError; NoAnswerError; a KafkaError of kafka-python for an answer that
        waiting does not change; ClusterError if the cluster does not answer at all.
        """
        from kafka.errors import KafkaTimeoutError, RetriableError, UnknownBrokerIdError

        reason = ""
        for pause in (*PAUSES_S, None):
            try:
                client = self.open()
                with trace_request(self._connection.entry.name, "request of kafka-python"):
                    return question(client)
            except KafkaTimeoutError as error:  # kafka-python has retried by itself, for 10 s
                self.close()
                reason = describe_error(error)
                break
            except (
                RetriableError,
                UnknownBrokerIdError,
                OSError,
                RuntimeError,
                ValueError,
            ) as error:
                self.close()
                reason = describe_error(error)
            except KeyboardInterrupt:  # an answer is still under way, for the next question
                self.close()
                raise
            if pause is not None:
                time.sleep(pause)
        raise NoAnswerError(reason)


def _close_aside(client: Any) -> None:
    # Closing waits for the client's thread, and garbage may be collected in that very thread.
    threading.Thread(target=client.close, daemon=True).start()


def ask_second_client(connection: Connection, question: Callable[[Any], T]) -> T:
    """Send a read-only request with a client of its own; see `SecondClient.ask`."""
    client = SecondClient(connection)
    try:
        return client.ask(question)
    finally:
        client.close()


def describe_error(error: Exception) -> str:
    """Name a broker's error as the Kafka protocol does; describe any other error.

    The client's own text repeats the entire answer, which may list thousands of groups. A request
    that the brokers do not offer is named: nothing was sent.
    """
    from kafka.errors import BrokerResponseError, IncompatibleBrokerVersion

    if isinstance(error, IncompatibleBrokerVersion) and (named := _REQUEST.search(str(error))):
        return f"the brokers do not offer {named['name']}"
    if isinstance(error, BrokerResponseError):
        return str(error.message)
    return f"{type(error).__name__}: {error}"


@contextmanager
def open_second_client(settings: ClientSettings, nodes: Sequence[Node]) -> Iterator[Any]:
    """Open kafka-python's admin client, and close it at the end; see `build_second_client`."""
    client = build_second_client(settings, nodes)
    try:
        yield client
    finally:
        client.close()


def build_second_client(settings: ClientSettings, nodes: Sequence[Node]) -> Any:
    """Build kafka-python's admin client, which the caller closes.

    Errors: UntranslatableError for settings that only librdkafka takes, TokenError, KafkaError and
    OSError if the connection fails. Cost: 0.2 s, most of it the import and the first connection.
    """
    properties = translate_settings(settings, nodes)
    from kafka.admin import KafkaAdminClient

    logging.getLogger("kafka").addHandler(logging.NullHandler())
    return KafkaAdminClient(**properties)


def translate_settings(settings: ClientSettings, nodes: Sequence[Node]) -> dict[str, Any]:
    """Translate the settings of a connection; it starts at the brokers that are known to be alive.

    Errors: UntranslatableError for settings that only librdkafka supports; TokenError if there is
    no OAuth token.
    """
    if unfollowed := find_unfollowed(settings.get):
        raise UntranslatableError(unfollowed[1])
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
        mechanism = properties["sasl_mechanism"] = settings.sent_mechanism
        if mechanism == "OAUTHBEARER":
            properties["sasl_oauth_token_provider"] = make_provider(settings)
        else:
            properties["sasl_plain_username"] = settings.get("sasl.username")
            properties["sasl_plain_password"] = settings.get("sasl.password")
    return properties


def _build_context(settings: ClientSettings) -> ssl.SSLContext:
    """Build Python's TLS settings from librdkafka's."""
    try:
        context = settings.trust.build_context()
        password = settings.get("ssl.key.password") or None
        if certificate := settings.get("ssl.certificate.location"):
            context.load_cert_chain(certificate, settings.get("ssl.key.location"), password)
        elif certificate := settings.get("ssl.certificate.pem"):
            # Python reads a certificate from files only; only this user may read this one.
            with NamedTemporaryFile("w", suffix=".pem") as file:
                file.write(settings.get("ssl.key.pem") + "\n" + certificate)
                file.flush()
                context.load_cert_chain(file.name, None, password)
    except OSError as error:
        raise UntranslatableError(f"TLS settings: {error}") from None
    if settings.get("ssl.endpoint.identification.algorithm", "https") == "none":
        context.check_hostname = False
    if settings.get("enable.ssl.certificate.verification", "true") == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE  # as clusters.yaml asks for
    return context


TIMEOUT_S = 10.0
REUSE_S = 10.0
ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
IMDS = "http://169.254.169.254/metadata/identity/oauth2/token"
"""Where a virtual machine of Azure gets the tokens of its identity, as in librdkafka."""


@dataclass(frozen=True, slots=True)
class Token:
    """An OAuth token. Printing it shows no secret. `lifetime_s`: None if its source says none."""

    text: str = field(repr=False)
    lifetime_s: float | None = None


def make_provider(settings: ClientSettings) -> Any:
    """Make kafka-python's token provider, with its first token.

    kafka-python tries for half a minute to connect without one, and then reports that it timed out.
    Errors: UntranslatableError if only librdkafka could have one; TokenError.
    """
    from kafka.net.sasl.oauth import AbstractTokenProvider

    if settings.tokens is None and not _is_oidc(settings) and not settings.makes_unsigned_tokens:
        raise UntranslatableError("OAUTHBEARER works there with sasl.oauthbearer.method oidc only")

    # In a function, because its base class is imported here only.
    class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
        """A provider whose token serves all connections that open within some seconds."""

        # The first token is fetched before kafka-python connects, so that its error is ours.
        def __init__(self) -> None:
            self._fetch()

        def token(self) -> str:
            """Return a token."""
            # Fetching holds up the client's thread, and it may connect to a hundred brokers.
            if time.monotonic() > self._until:
                self._fetch()
            return self._token

        def _fetch(self) -> None:
            token = fetch_token(settings)
            self._token = token.text
            # Half of its life is left: brokers close a connection when its token expires.
            lifetime_s = REUSE_S if token.lifetime_s is None else token.lifetime_s / 2
            self._until = time.monotonic() + min(REUSE_S, lifetime_s)

        def extensions(self) -> dict[str, str]:
            """Return the extensions that are sent with the token."""
            return read_extensions(settings)

    return TokenProvider()


def fetch_token(settings: ClientSettings) -> Token:
    """Fetch an OAuth token as librdkafka would. Errors: TokenError."""
    if settings.tokens is not None:
        text, expires_s = settings.tokens.fetch()
        return Token(text, expires_s - time.time())
    if not _is_oidc(settings):
        return _sign_nothing(settings.get("sasl.oauthbearer.config"))
    from_imds = settings.get(METADATA).lower() == "azure_imds"
    endpoint = settings.get(ENDPOINT, IMDS if from_imds else "")
    try:
        fetch = _fetch_from_imds if from_imds else _fetch_by_credentials
        return fetch(settings, endpoint)
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        reason = f"{type(error).__name__}: {error}"
        raise TokenError(f"no OAuth token comes from {endpoint}: {reason}") from error


def read_extensions(settings: ClientSettings) -> dict[str, str]:
    """Read the extensions of the token (RFC 7628 section 3.1), such as an identity pool."""
    if _is_oidc(settings):
        return _read_pairs(settings.get("sasl.oauthbearer.extensions").split(","))
    fields = _read_pairs(settings.get("sasl.oauthbearer.config").split())
    prefix = "extension_"
    return {n.removeprefix(prefix): text for n, text in fields.items() if n.startswith(prefix)}


def _is_oidc(settings: ClientSettings) -> bool:
    return settings.get("sasl.oauthbearer.method").lower() == "oidc"


def _read_pairs(parts: Iterable[str]) -> dict[str, str]:
    pairs = (part.partition("=") for part in parts if "=" in part)
    return {name.strip(): text.strip() for name, _, text in pairs}


def _fetch_from_imds(settings: ClientSettings, endpoint: str) -> Token:
    """Ask for the token of a managed identity; `query` says whose, and for what."""
    query = _read_pairs(settings.get("sasl.oauthbearer.config").split(",")).get("query", "")
    if query:
        endpoint += ("&" if "?" in endpoint else "?") + query
    return _ask_for_token(settings, endpoint, {"Metadata": "true"})


def _fetch_by_credentials(settings: ClientSettings, endpoint: str) -> Token:
    """Ask the endpoint by the client credentials grant (RFC 6749 section 4.4)."""
    prefix = "sasl.oauthbearer.client."
    name = settings.get(prefix + "id") or settings.get(prefix + "credentials.client.id")
    secret = settings.get(prefix + "secret") or settings.get(prefix + "credentials.client.secret")
    form = {"grant_type": "client_credentials"}
    if scope := settings.get("sasl.oauthbearer.scope"):
        form["scope"] = scope
    credentials = base64.b64encode(f"{name}:{secret}".encode()).decode()
    headers = {"Authorization": f"Basic {credentials}"}
    return _ask_for_token(settings, endpoint, headers, form)


def _ask_for_token(
    settings: ClientSettings,
    address: str,
    headers: Mapping[str, str],
    form: Mapping[str, str] | None = None,
) -> Token:
    """Ask an endpoint by GET, or by POST with a form."""
    if not address.startswith(("https://", "http://")):
        raise ValueError("this is not a web address")
    body = None if form is None else urllib.parse.urlencode(form).encode()
    request = urllib.request.Request(address, body, dict(headers))  # noqa: S310 - checked above
    trust = Trust(settings.get("https.ca.location"), settings.get("https.ca.pem"))
    context = trust.build_context()
    with urllib.request.urlopen(  # noqa: S310
        request, timeout=TIMEOUT_S, context=context
    ) as answer:
        told = json.load(answer)
    lifetime = told.get("expires_in")  # a number, and a text on Azure
    return Token(str(told["access_token"]), None if lifetime is None else float(lifetime))


def _sign_nothing(config: str) -> Token:
    """Make the unsigned token of development clusters (RFC 7515 appendix A.5)."""
    fields = _read_pairs(config.split())
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
    return Token(".".join((*(part.decode() for part in encoded), "")), lifetime)
