"""The client properties that an admin client can use, each with its values.

A test checks every name, number and word of LIBRDKAFKA with librdkafka. Values that nobody can
intend are refused as well: librdkafka reads 10s as 10 milliseconds. Each kind of values has a
`schema` for editors, and `correct`, which returns what to write instead of a text, or "" if it is
one of the values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from reconciler.errors import Finding
from reconciler.spec.fields import Schema, suggest
from reconciler.spec.values import YamlText, describe_yaml
from reconciler.units import UnitError, parse_duration, parse_size

_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,18})")
_PORT = re.compile(r"[0-9]{1,5}")
MOST_PORT = 65_535
_ANY: Schema = {"type": ["string", "number", "boolean"]}
_LITERAL: Schema = {**_ANY, "not": {"type": "string", "pattern": r"\$\{"}}
_REFERENCES = r"^(\$\{(env:[A-Za-z_][A-Za-z0-9_]*|file:/[^}]*)\})+$"


@dataclass(frozen=True, slots=True)
class Text:
    """Any text. `refers`: it may hold references to secrets; `is_secret`: it is nothing else."""

    refers: bool = False
    is_secret: bool = False

    @property
    def schema(self) -> Schema:
        if self.is_secret:
            return {"type": "string", "pattern": _REFERENCES}
        return _ANY if self.refers else _LITERAL

    def correct(self, _key: str, _value: str) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class Range:
    """Whole numbers. Units: as in the name of the property."""

    least: int
    most: int

    @property
    def schema(self) -> Schema:
        number = {"type": "integer", "minimum": self.least, "maximum": self.most}
        return {"anyOf": [number, {"type": "string", "pattern": "^-?[0-9]{1,19}$"}]}

    def correct(self, key: str, value: str) -> str:
        if _WHOLE.fullmatch(value) and self.least <= int(value) <= self.most:
            return ""
        meant = _read_amount(key, value)
        if meant is not None and self.least <= meant <= self.most:
            return f"write {meant}"
        return f"write a whole number from {self.least} to {self.most}"


@dataclass(frozen=True, slots=True)
class Words:
    """One of a few words, in any case. `also`: words that the client accepts and messages do not
    list."""

    words: tuple[str, ...]
    also: tuple[str, ...] = ()

    @property
    def schema(self) -> Schema:
        if self.also:
            return _LITERAL
        forms = (form for word in self.words for form in (word, word.upper(), word.lower()))
        either = (
            "".join(f"[{c.upper()}{c.lower()}]" if c.isalpha() else c for c in word)
            for word in self.words
        )
        pattern = {"type": "string", "pattern": f"^({'|'.join(either)})$"}
        return {"anyOf": [{"enum": [*dict.fromkeys(forms)]}, pattern]}

    def correct(self, _key: str, value: str) -> str:
        is_one = value.lower() in map(str.lower, (*self.words, *self.also))
        return "" if is_one else _list(self.words)


@dataclass(frozen=True, slots=True)
class Mechanism:
    """A mechanism of SASL, in its own case."""

    words: tuple[str, ...]

    @property
    def schema(self) -> Schema:
        return {"enum": [*self.words]}

    def correct(self, _key: str, value: str) -> str:
        return "" if value in self.words else suggest(value, self.words) or _list(self.words)


@dataclass(frozen=True, slots=True)
class Contexts:
    """Words with commas between them: what to write to the log."""

    words: tuple[str, ...]
    schema = _LITERAL

    def correct(self, _key: str, value: str) -> str:
        wrong = [part for part in value.split(",") if part.lstrip() not in self.words]
        return f"the contexts are {', '.join(self.words)}" if wrong else ""


@dataclass(frozen=True, slots=True)
class Form:
    """Texts of one form, without references. `example`: one of them."""

    pattern: str
    example: str

    @property
    def schema(self) -> Schema:
        return {"type": "string", "pattern": self.pattern}

    def correct(self, _key: str, value: str) -> str:
        return "" if re.fullmatch(self.pattern, value) else f"write one such as {self.example}"


def _read_amount(key: str, value: str) -> int | None:
    """Return what a value with a unit amounts to in the unit of its property."""
    parse = {"ms": parse_duration, "bytes": parse_size}.get(key.rpartition(".")[2])
    try:
        return parse(value) if parse else None
    except UnitError:
        return None


def _list(words: Sequence[str]) -> str:
    return f"write {', '.join(words[:-1])} or {words[-1]}"


LITERAL, REFERENCE, SECRET = Text(), Text(refers=True), Text(refers=True, is_secret=True)
"""What a text may hold: properties that authenticate may refer to a secret. The value of any other
property is shown in messages, or sent to other machines before they have proven who they are."""
FLAG = Words(("true", "false"), also=("t", "f", "1", "0"))
MSK_IAM = "AWS_MSK_IAM"
"""The mechanism of Amazon MSK, by the name that it has for Java clients. It is ours: librdkafka has
none of this name, and gets OAUTHBEARER with tokens that AWS's library signs."""
MECHANISM = Mechanism((MSK_IAM, "GSSAPI", "OAUTHBEARER", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"))
CONTEXTS = Contexts(
    (
        *("generic", "broker", "topic", "metadata", "feature", "queue", "msg", "protocol", "cgrp"),
        *("security", "fetch", "interceptor", "plugin", "consumer", "admin", "eos", "mock"),
        *("assignor", "conf", "telemetry", "all"),
    )
)

Values = Text | Range | Words | Mechanism | Contexts | Form

LIBRDKAFKA: Mapping[str, Values] = MappingProxyType(
    {
        "allow.auto.create.topics": FLAG,
        "api.version.fallback.ms": Range(0, 604_800_000),
        "api.version.request": FLAG,
        "api.version.request.timeout.ms": Range(1, 300_000),
        "bootstrap.servers": LITERAL,
        "broker.address.family": Words(("any", "v4", "v6")),
        "broker.address.ttl": Range(0, 86_400_000),
        "broker.version.fallback": LITERAL,
        "client.dns.lookup": Words(("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")),
        "client.id": LITERAL,
        "client.rack": LITERAL,
        "connections.max.idle.ms": Range(0, 2_147_483_647),
        "debug": CONTEXTS,
        "enable.metrics.push": FLAG,
        "enable.sasl.oauthbearer.unsecure.jwt": FLAG,
        "enable.ssl.certificate.verification": FLAG,
        "https.ca.location": REFERENCE,
        "https.ca.pem": REFERENCE,
        "log.connection.close": FLAG,
        "log.thread.name": FLAG,
        "log_level": Range(0, 7),
        "max.in.flight": Range(1, 1_000_000),
        "max.in.flight.requests.per.connection": Range(1, 1_000_000),
        "message.copy.max.bytes": Range(0, 1_000_000_000),
        "message.max.bytes": Range(1_000, 1_000_000_000),
        "metadata.broker.list": LITERAL,
        "metadata.max.age.ms": Range(1, 86_400_000),
        "metadata.recovery.rebootstrap.trigger.ms": Range(0, 2_147_483_647),
        "metadata.recovery.strategy": Words(("none", "rebootstrap")),
        "receive.message.max.bytes": Range(1_000, 2_147_483_647),
        "reconnect.backoff.max.ms": Range(0, 3_600_000),
        "reconnect.backoff.ms": Range(0, 3_600_000),
        "request.timeout.ms": LITERAL,
        "retry.backoff.max.ms": Range(1, 300_000),
        "retry.backoff.ms": Range(1, 300_000),
        "sasl.kerberos.keytab": LITERAL,
        "sasl.kerberos.min.time.before.relogin": Range(0, 86_400_000),
        "sasl.kerberos.principal": LITERAL,
        "sasl.kerberos.service.name": LITERAL,
        "sasl.mechanism": MECHANISM,
        "sasl.mechanisms": MECHANISM,
        "sasl.oauthbearer.assertion.algorithm": Words(("RS256", "ES256")),
        "sasl.oauthbearer.assertion.claim.aud": REFERENCE,
        "sasl.oauthbearer.assertion.claim.exp.seconds": Range(1, 2_147_483_647),
        "sasl.oauthbearer.assertion.claim.iss": REFERENCE,
        "sasl.oauthbearer.assertion.claim.jti.include": FLAG,
        "sasl.oauthbearer.assertion.claim.nbf.seconds": Range(0, 2_147_483_647),
        "sasl.oauthbearer.assertion.claim.sub": REFERENCE,
        "sasl.oauthbearer.assertion.file": REFERENCE,
        "sasl.oauthbearer.assertion.jwt.template.file": REFERENCE,
        "sasl.oauthbearer.assertion.private.key.file": REFERENCE,
        "sasl.oauthbearer.assertion.private.key.passphrase": SECRET,
        "sasl.oauthbearer.assertion.private.key.pem": SECRET,
        "sasl.oauthbearer.client.credentials.client.id": REFERENCE,
        "sasl.oauthbearer.client.credentials.client.secret": SECRET,
        "sasl.oauthbearer.client.id": REFERENCE,
        "sasl.oauthbearer.client.secret": SECRET,
        "sasl.oauthbearer.config": REFERENCE,
        "sasl.oauthbearer.extensions": REFERENCE,
        "sasl.oauthbearer.grant.type": Words(
            ("client_credentials", "urn:ietf:params:oauth:grant-type:jwt-bearer")
        ),
        "sasl.oauthbearer.metadata.authentication.type": Words(("none", "azure_imds", "aws_iam")),
        "sasl.oauthbearer.method": Words(("default", "oidc")),
        "sasl.oauthbearer.scope": REFERENCE,
        "sasl.oauthbearer.token.endpoint.url": LITERAL,
        "sasl.password": SECRET,
        "sasl.username": REFERENCE,
        "security.protocol": Words(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
        "socket.connection.setup.timeout.ms": Range(1_000, 2_147_483_647),
        "socket.keepalive.enable": FLAG,
        "socket.max.fails": Range(0, 1_000_000),
        "socket.nagle.disable": FLAG,
        "socket.receive.buffer.bytes": Range(0, 100_000_000),
        "socket.send.buffer.bytes": Range(0, 100_000_000),
        "socket.timeout.ms": Range(10, 300_000),
        "ssl.ca.certificate.stores": LITERAL,
        "ssl.ca.location": REFERENCE,
        "ssl.ca.pem": REFERENCE,
        "ssl.certificate.location": REFERENCE,
        "ssl.certificate.pem": REFERENCE,
        "ssl.cipher.suites": LITERAL,
        "ssl.crl.location": REFERENCE,
        "ssl.curves.list": LITERAL,
        "ssl.endpoint.identification.algorithm": Words(("none", "https")),
        "ssl.key.location": REFERENCE,
        "ssl.key.password": SECRET,
        "ssl.key.pem": SECRET,
        "ssl.keystore.location": REFERENCE,
        "ssl.keystore.password": SECRET,
        "ssl.sigalgs.list": LITERAL,
        "statistics.interval.ms": Range(0, 86_400_000),
        "topic.metadata.propagation.max.ms": Range(0, 3_600_000),
        "topic.metadata.refresh.fast.interval.ms": Range(1, 60_000),
        "topic.metadata.refresh.interval.ms": Range(-1, 3_600_000),
        "topic.metadata.refresh.sparse": FLAG,
    }
)
AWS: Mapping[str, Values] = MappingProxyType(
    {
        "aws.profile": REFERENCE,
        "aws.region": Form(r"^[a-z]{2}(-[a-z]+)+-[0-9]{1,2}$", "eu-west-1"),
        "aws.role.arn": REFERENCE,
        "aws.role.external.id": REFERENCE,
        "aws.role.session.name": REFERENCE,
    }
)
"""Our own properties, with AWS_MSK_IAM only: whose credentials sign the tokens, and for where."""
PROPERTIES: Mapping[str, Values] = MappingProxyType({**LIBRDKAFKA, **AWS})
REFERENCES = frozenset(name for name, values in PROPERTIES.items() if values in (REFERENCE, SECRET))
SECRET_PROPERTIES = frozenset(name for name, values in PROPERTIES.items() if values == SECRET)


def check_value(key: YamlText, value: YamlText) -> list[Finding]:
    """Return the error in the value of a property; empty if librdkafka accepts it."""
    way_out = PROPERTIES[key].correct(key, value)
    if not way_out:
        return []
    what = f"{key} is {describe_yaml(value)}, which the client does not accept"
    return [Finding("client-property-value", what, way_out, value.where)]


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
