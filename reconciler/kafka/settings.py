"""Client properties of a run: references resolved, and kept out of every finding and answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from confluent_kafka import Consumer, KafkaError, Producer, ThrottleEvent
from confluent_kafka.admin import AdminClient

from reconciler.errors import ClusterError, Finding, Location, keep_secret
from reconciler.kafka.client import Client, ignore
from reconciler.kafka.errors import TokenError
from reconciler.kafka.msk import MskTokens
from reconciler.kafka.probe import Trust
from reconciler.kafka.trace import list_log_properties, poll_aside
from reconciler.spec.client import (
    MalformedReferenceError,
    SecretKind,
    SecretRef,
    check_ports,
    parse_references,
)
from reconciler.spec.client_authentication import RULE as AUTHENTICATION
from reconciler.spec.client_authentication import find_region, read_mechanism
from reconciler.spec.client_properties import AWS, MSK_IAM, SECRET_PROPERTIES
from reconciler.spec.entry import ClusterEntry

# Quiet, because findings say what matters; `debug` with `log_level` in clusters.yaml wins.
_DEFAULTS = {"client.id": "reconciler", "log_level": "0"}

STATISTICS_MS = 300

_SERVERS = ("bootstrap.servers", "metadata.broker.list")
_OURS = frozenset({*AWS, "sasl.mechanism", "sasl.mechanisms"})
"""What librdkafka does not get, or not as it is written, with AWS_MSK_IAM."""


class ClientSettings:
    """Client properties with their secrets. Printing it shows names only.

    `overridden`: the servers are not those of clusters.yaml, so no finding refers to it.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        *,
        overridden: bool = False,
        where: Location | None = None,
        tokens: MskTokens | None = None,
    ) -> None:
        self._properties = dict(properties)
        self.overridden = overridden
        self.where = where
        self.tokens = tokens
        """The source of tokens for AWS_MSK_IAM; None for any other mechanism."""
        if tokens is None and self.mechanism == MSK_IAM:
            self.tokens = MskTokens(
                self.get("aws.region") or find_region(",".join(self.servers)),
                profile=self.get("aws.profile"),
                role=self.get("aws.role.arn"),
                session_name=self.get("aws.role.session.name"),
                external_id=self.get("aws.role.external.id"),
            )

    def __repr__(self) -> str:
        return f"ClientSettings({', '.join(sorted(self._properties))})"

    __str__ = __repr__

    def __reduce__(self) -> NoReturn:
        raise TypeError("settings hold secrets: they are not written anywhere")

    @property
    def servers(self) -> tuple[str, ...]:
        """Where the client starts, as host:port."""
        servers = next((self._properties[n] for n in _SERVERS if n in self._properties), "")
        return tuple(server.strip() for server in servers.split(",") if server.strip())

    @property
    def protocol(self) -> str:
        """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
        return self.get("security.protocol", "PLAINTEXT").upper()

    @property
    def mechanism(self) -> str:
        """The SASL mechanism of clusters.yaml; librdkafka's default if none is written."""
        return read_mechanism(self.get)

    @property
    def sent_mechanism(self) -> str:
        """The SASL mechanism that brokers are asked for."""
        return "OAUTHBEARER" if self.mechanism == MSK_IAM else self.mechanism

    @property
    def trust(self) -> Trust:
        """The trusted certificate authorities."""
        return Trust(self.get("ssl.ca.location"), self.get("ssl.ca.pem"))

    @property
    def makes_unsigned_tokens(self) -> bool:
        """Whether librdkafka makes the tokens, unsigned; it does so when it is polled."""
        return self.get("enable.sasl.oauthbearer.unsecure.jwt").lower() in ("true", "t", "1")

    def get(self, name: str, default: str = "") -> str:
        """Return one property as the client gets it, including secrets."""
        return self._properties.get(name, default)

    def start_at(self, servers: str) -> ClientSettings:
        """Return the same settings for a client that starts at other brokers."""
        kept = {name: value for name, value in self._properties.items() if name not in _SERVERS}
        return ClientSettings(
            {**kept, "bootstrap.servers": servers},
            overridden=self.overridden,
            where=self.where,
            tokens=self.tokens,
        )

    def _spell(self) -> dict[str, Any]:
        """Return all properties in clear text, as librdkafka takes them.

        Errors: ClusterError if there is no token.
        """
        if self.tokens is None:
            return dict(self._properties)
        # The first token comes before the client: one that lacks it waits ten seconds, and then
        # does not say why.
        try:
            self.tokens.fetch()
        except TokenError as error:
            finding = Finding("connect-token", str(error), error.way_out, self.where)
            raise ClusterError([finding]) from None
        kept = {name: value for name, value in self._properties.items() if name not in _OURS}
        # confluent-kafka asks for each further token in a thread of the client's own.
        return {**kept, "sasl.mechanism": self.sent_mechanism, "oauth_cb": self.tokens.fetch}

    def build_client(
        self,
        observe: Callable[[KafkaError], None] = ignore,
        throttled: Callable[[ThrottleEvent], None] = ignore,
        watch: Callable[[str], None] | None = None,
    ) -> AdminClient:
        """Pass all properties in clear text to a client.

        Polling calls `observe` with its errors, `throttled` with what exceeded a quota, and `watch`
        with its statistics. None should hold whatever holds the client, which then lives until
        garbage is collected.

        `watch` gets the client's statistics as JSON, several times a second. They pile up in the
        client between two polls, so it is for clients that are soon closed.
        Errors: for properties that the client does not accept, KafkaException, ValueError or
        TypeError; ImportError if they need a library that is not installed;
        ClusterError if there is no token.
        """
        ours: dict[str, Any] = {"error_cb": observe, "throttle_cb": throttled}
        if watch is not None:
            ours |= {"stats_cb": watch, "statistics.interval.ms": STATISTICS_MS}
        traced = list_log_properties()
        client = Client({**self._spell(), **ours, **traced})
        if traced or self.makes_unsigned_tokens:
            poll_aside(client)
        return client

    def build_producer(self, **properties: object) -> Producer:
        """Pass all properties in clear text to a producer; `properties` win, with `_` for dots.

        Errors: as `build_client`.
        """
        ours = {name.replace("_", "."): value for name, value in properties.items()}
        return Producer({**self._spell(), **ours, "error_cb": ignore})

    def build_consumer(self, **properties: object) -> Consumer:
        """Pass all properties in clear text to a consumer; see `build_producer`."""
        ours = {name.replace("_", "."): value for name, value in properties.items()}
        return Consumer({**self._spell(), **ours, "error_cb": ignore})


def hides_servers(entry: ClusterEntry) -> bool:
    """Return whether the bootstrap servers of a cluster are a secret, or a part of them is."""
    spelled = (entry.client.get(name, "") for name in _SERVERS)
    return any(isinstance(part, SecretRef) for text in spelled for part in parse_references(text))


def resolve_settings(
    entry: ClusterEntry, bootstrap_servers: str | None, environment: Mapping[str, str]
) -> ClientSettings:
    """Resolve a cluster's client properties. Units: a file's last newline is not part of a secret.

    From here on no finding and no answer shows the value of a reference.

    Errors: ClusterError that names every reference that cannot be resolved, and never a value.
    """
    properties = dict(_DEFAULTS)
    findings: list[Finding] = []
    for name, text in entry.client.items():
        if bootstrap_servers is not None and name in _SERVERS:
            continue
        try:
            properties[name] = _resolve(text, name, entry.location, environment)
        except ClusterError as error:
            findings += error.findings
    if bootstrap_servers is not None:
        properties["bootstrap.servers"] = bootstrap_servers
        findings += check_ports("--bootstrap-servers", bootstrap_servers)
        if _holds_bytes(bootstrap_servers):
            what = "--bootstrap-servers is not UTF-8 text"
            findings.append(Finding("connect-address", what, "write host:port as text"))
    overridden = bootstrap_servers is not None
    settings = ClientSettings(properties, overridden=overridden, where=entry.location)
    if not settings.servers and not findings:  # a reference that fails may be the address
        what = f"{entry.name} has no bootstrap servers"
        way_out = "write client.bootstrap.servers in clusters.yaml, or pass --bootstrap-servers"
        findings.append(Finding("connect-address", what, way_out, entry.location))
    # validate found this only if the addresses are those of clusters.yaml.
    if settings.servers and settings.tokens is not None and not settings.tokens.region:
        what = f"{MSK_IAM} needs the AWS region of the cluster, and its addresses name none"
        way_out = "write the region, such as aws.region: eu-west-1"
        findings.append(Finding(AUTHENTICATION, what, way_out, entry.location))
    if findings:
        raise ClusterError(findings)
    return settings


def _resolve(text: str, name: str, where: Location, environment: Mapping[str, str]) -> str:
    """Join a property's parts; a property with a reference stays secret."""
    try:
        parts = parse_references(text)
    except MalformedReferenceError as error:
        what = f"the reference in {name} is malformed"
        finding = Finding("secret-reference", what, error.way_out, where)
        raise ClusterError([finding]) from None
    resolved = []
    for part in parts:
        if isinstance(part, str):
            resolved.append(part)
            continue
        value = _look_up(part, name, where, environment)
        # A user's name may be a part of a topic's name, so it is hidden only where it is a word.
        keep_secret(value, is_word=name not in SECRET_PROPERTIES)
        resolved.append(value)
    # Also the joined value: clients print it as a whole, for example host:port.
    value = "".join(resolved)
    if value != text:
        keep_secret(value, is_word=name not in SECRET_PROPERTIES)
    return value


def _look_up(
    reference: SecretRef, name: str, where: Location, environment: Mapping[str, str]
) -> str:
    """Fetch one secret. Errors: ClusterError naming the reference and the property."""
    if reference.kind is SecretKind.ENV:
        if value := environment.get(reference.name):
            if _holds_bytes(value):
                what = f"{name} refers to {reference}, which is not UTF-8 text"
                raise _unresolved(what, f"set {reference.name} as text", where)
            return value
        state = "empty" if reference.name in environment else "not set"
        what = f"{name} refers to {reference}, and {reference.name} is {state}"
        raise _unresolved(what, f"set the environment variable {reference.name}", where)
    try:
        value = Path(reference.name).read_text(encoding="utf-8").removesuffix("\n")
    except OSError as error:
        what = f"{name} refers to {reference}: {error.strerror}"
        raise _unresolved(what, "write the secret there, readable by this run", where) from None
    except UnicodeDecodeError:
        what = f"{name} refers to {reference}, which is not UTF-8 text"
        raise _unresolved(what, "write the secret there as text", where) from None
    if value := value.removesuffix("\r"):
        return value
    what = f"{name} refers to {reference}, which is empty"
    raise _unresolved(what, "write the secret there", where)


def _holds_bytes(text: str) -> bool:
    """Return whether a text has bytes that are not UTF-8, as surrogates: no client encodes them."""
    return any("\ud800" <= character <= "\udfff" for character in text)


def _unresolved(what: str, way_out: str, where: Location) -> ClusterError:
    return ClusterError([Finding("secret-unresolved", what, way_out, where)])
