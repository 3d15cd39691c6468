"""The values of client properties, as librdkafka documents them; a test checks each with it.

Values that nobody can intend are refused as well: librdkafka reads 10s as 10 milliseconds.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING

from reconciler.errors import Finding
from reconciler.spec.fields import suggest
from reconciler.spec.values import YamlText, describe_yaml
from reconciler.units import UnitError, parse_duration, parse_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FLAGS = frozenset(
    {
        "allow.auto.create.topics",
        "api.version.request",
        "enable.metrics.push",
        "enable.sasl.oauthbearer.unsecure.jwt",
        "enable.ssl.certificate.verification",
        "log.connection.close",
        "log.thread.name",
        "sasl.oauthbearer.assertion.claim.jti.include",
        "socket.keepalive.enable",
        "socket.nagle.disable",
        "topic.metadata.refresh.sparse",
    }
)

RANGES: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "api.version.fallback.ms": (0, 604_800_000),
        "api.version.request.timeout.ms": (1, 300_000),
        "broker.address.ttl": (0, 86_400_000),
        "connections.max.idle.ms": (0, 2_147_483_647),
        "log_level": (0, 7),
        "max.in.flight": (1, 1_000_000),
        "max.in.flight.requests.per.connection": (1, 1_000_000),
        "message.copy.max.bytes": (0, 1_000_000_000),
        "message.max.bytes": (1_000, 1_000_000_000),
        "metadata.max.age.ms": (1, 86_400_000),
        "metadata.recovery.rebootstrap.trigger.ms": (0, 2_147_483_647),
        "receive.message.max.bytes": (1_000, 2_147_483_647),
        "reconnect.backoff.max.ms": (0, 3_600_000),
        "reconnect.backoff.ms": (0, 3_600_000),
        "retry.backoff.max.ms": (1, 300_000),
        "retry.backoff.ms": (1, 300_000),
        "sasl.kerberos.min.time.before.relogin": (0, 86_400_000),
        "sasl.oauthbearer.assertion.claim.exp.seconds": (1, 2_147_483_647),
        "sasl.oauthbearer.assertion.claim.nbf.seconds": (0, 2_147_483_647),
        "socket.connection.setup.timeout.ms": (1_000, 2_147_483_647),
        "socket.max.fails": (0, 1_000_000),
        "socket.receive.buffer.bytes": (0, 100_000_000),
        "socket.send.buffer.bytes": (0, 100_000_000),
        "socket.timeout.ms": (10, 300_000),
        "statistics.interval.ms": (0, 86_400_000),
        "topic.metadata.propagation.max.ms": (0, 3_600_000),
        "topic.metadata.refresh.fast.interval.ms": (1, 60_000),
        "topic.metadata.refresh.interval.ms": (-1, 3_600_000),
    }
)
"""The minimum and maximum of each number. Units: as in the name."""

CHOICES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "broker.address.family": (
            "any",
            "v4",
            "v6",
        ),
        "client.dns.lookup": (
            "use_all_dns_ips",
            "resolve_canonical_bootstrap_servers_only",
        ),
        "metadata.recovery.strategy": (
            "none",
            "rebootstrap",
        ),
        "sasl.oauthbearer.assertion.algorithm": (
            "RS256",
            "ES256",
        ),
        "sasl.oauthbearer.grant.type": (
            "client_credentials",
            "urn:ietf:params:oauth:grant-type:jwt-bearer",
        ),
        "sasl.oauthbearer.metadata.authentication.type": (
            "none",
            "azure_imds",
            "aws_iam",
        ),
        "sasl.oauthbearer.method": (
            "default",
            "oidc",
        ),
        "security.protocol": (
            "plaintext",
            "ssl",
            "sasl_plaintext",
            "sasl_ssl",
        ),
        "ssl.endpoint.identification.algorithm": (
            "none",
            "https",
        ),
    }
)
"""Properties with one word as value, case-insensitive."""

MECHANISMS = ("GSSAPI", "OAUTHBEARER", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
CONTEXTS = (
    "generic",
    "broker",
    "topic",
    "metadata",
    "feature",
    "queue",
    "msg",
    "protocol",
    "cgrp",
    "security",
    "fetch",
    "interceptor",
    "plugin",
    "consumer",
    "admin",
    "eos",
    "mock",
    "assignor",
    "conf",
    "telemetry",
    "all",
)
"""The values of `debug`, separated by commas."""

_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,18})")
_PORT = re.compile(r"[0-9]{1,5}")
MOST_PORT = 65_535
_FLAG_WORDS = {"true", "false", "t", "f", "1", "0"}


def check_value(key: YamlText, value: YamlText) -> list[Finding]:
    """Return the error in the value of a property; empty if librdkafka accepts it."""
    if key in RANGES:
        least, most = RANGES[key]
        right = bool(_WHOLE.fullmatch(value)) and least <= int(value) <= most
        meant = _read_amount(key, value)
        way_out = f"write a whole number from {least} to {most}"
        if meant is not None and least <= meant <= most:
            way_out = f"write {meant}"
    elif key in FLAGS:
        right, way_out = value.lower() in _FLAG_WORDS, "write true or false"
    else:
        right, way_out = _check_word(key, value)
    if right:
        return []
    what = f"{key} is {describe_yaml(value)}, which the client does not take"
    return [Finding("client-property-value", what, way_out, value.where)]


def _read_amount(key: str, value: str) -> int | None:
    """Return what a value with a unit amounts to in the unit of its property."""
    parse = {"ms": parse_duration, "bytes": parse_size}.get(key.rpartition(".")[2])
    try:
        return parse(value) if parse else None
    except UnitError:
        return None


def find_wrong_ports(addresses: str) -> list[str]:
    """Return the addresses of a list whose port is none: librdkafka takes another, or 0.

    In: `host:port` or `protocol://host:port`, with commas; a port may be left out.
    """
    wrong = []
    for address in filter(None, (each.strip() for each in addresses.split(","))):
        authority = re.split("[/?#]", address.rpartition("://")[2], maxsplit=1)[0]
        host, colon, port = authority.rpartition(":")
        if not colon or (":" in host and not host.endswith("]")):  # an IPv6 address alone
            continue
        if not (_PORT.fullmatch(port) and 1 <= int(port) <= MOST_PORT):
            wrong.append(address)
    return wrong


def _check_word(key: YamlText, value: YamlText) -> tuple[bool, str]:
    """Return whether a value is one of the words of a property, and these words."""
    if key == "debug":
        wrong = [part for part in value.split(",") if part.lstrip() not in CONTEXTS]
        return not wrong, f"the contexts are {', '.join(CONTEXTS)}"
    if key in ("sasl.mechanism", "sasl.mechanisms"):
        return value in MECHANISMS, suggest(value, MECHANISMS) or _list(MECHANISMS)
    choices = CHOICES.get(key)
    if choices is None:
        return True, ""
    shown = [word.upper() for word in choices] if key == "security.protocol" else choices
    return value.lower() in map(str.lower, choices), _list(shown)


def _list(words: Sequence[str]) -> str:
    return f"write {', '.join(words[:-1])} or {words[-1]}"
