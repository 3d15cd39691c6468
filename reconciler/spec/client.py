"""Client properties of a cluster: librdkafka's names and `aws.*`, and secrets by reference only.

A pull request that changes the estate must not be able to run a command, or to move a secret to a
place where it is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from reconciler.errors import Finding, Location
from reconciler.spec.client_authentication import check_authentication
from reconciler.spec.client_properties import (
    MOST_PORT,
    PROPERTIES,
    REFERENCES,
    SECRET_PROPERTIES,
    check_value,
    find_wrong_ports,
)
from reconciler.spec.fields import FieldError, read_map, suggest
from reconciler.spec.values import YamlText, YamlValue, describe_yaml, quote

_OPENED = re.compile(r"\$\{([^}]*)(\}?)")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class SecretKind(StrEnum):
    """Where a secret is kept."""

    ENV = "env"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class SecretRef:
    """A reference to a secret: an environment variable, or the absolute path of a file."""

    kind: SecretKind
    name: str

    def __str__(self) -> str:
        return f"${{{self.kind}:{self.name}}}"


class MalformedReferenceError(ValueError):
    """A `${…}` that is not a reference. The message shows the syntax, never the content."""

    def __init__(self, way_out: str) -> None:
        self.way_out = way_out
        super().__init__(way_out)


def parse_references(text: str) -> tuple[str | SecretRef, ...]:
    """Split a client property into literal parts and references, in order.

    Returns: no empty parts; a single reference is a tuple of one.
    Errors: MalformedReferenceError at the first `${` that starts no reference.
    """
    parts: list[str | SecretRef] = []
    end = 0
    for opened in _OPENED.finditer(text):
        parts.extend(filter(None, [text[end : opened.start()]]))
        if not opened.group(2):
            raise MalformedReferenceError("close it with a brace: ${env:NAME}")
        parts.append(_parse_reference(opened.group(1)))
        end = opened.end()
    parts.extend(filter(None, [text[end:]]))
    return tuple(parts)


def _parse_reference(inner: str) -> SecretRef:
    kind, colon, name = inner.partition(":")
    if kind == SecretKind.ENV and colon:
        if not _VARIABLE.fullmatch(name):
            raise MalformedReferenceError(
                "name a variable of letters, digits and underscores: ${env:NAME}"
            )
        return SecretRef(SecretKind.ENV, name)
    if kind == SecretKind.FILE and colon:
        if not name.startswith("/"):
            raise MalformedReferenceError("write the path from the root: ${file:/absolute/path}")
        return SecretRef(SecretKind.FILE, name)
    raise MalformedReferenceError("write ${env:NAME} or ${file:/absolute/path}")


# Properties that load a library or run a command, and what to do without them.
RUNS = MappingProxyType(
    {
        "plugin.library.paths": "leave it out: reconciler needs no plugin",
        "sasl.kerberos.kinit.cmd": "leave it out, and run kinit before",
        "ssl.engine.id": "leave it out; the machine's openssl.cnf can name an engine",
        "ssl.engine.location": "leave it out; the machine's openssl.cnf can name an engine",
        "ssl.providers": "leave it out; the machine's openssl.cnf can name providers",
    }
)

# librdkafka puts these into the kinit command and passes it to a shell, unescaped.
_IN_A_SHELL = frozenset({"sasl.kerberos.keytab", "sasl.kerberos.principal"})
_PLAIN_WORD = re.compile(r"[A-Za-z0-9._/][A-Za-z0-9._/@:+=-]*")

_ADDRESSES = frozenset(
    {"bootstrap.servers", "metadata.broker.list", "sasl.oauthbearer.token.endpoint.url"}
)
_WITH_A_USER = re.compile(r"(?:^|,)\s*(?:\w+://)?[^/?#,]*@")

# Properties of the Java client, and their equivalents in librdkafka.
_JAVA = MappingProxyType(
    {
        "sasl.jaas.config": "write sasl.username and sasl.password, or aws.profile and "
        "aws.role.arn for Amazon MSK",
        "sasl.client.callback.handler.class": "write sasl.oauthbearer.method, or sasl.mechanism "
        "AWS_MSK_IAM alone for Amazon MSK",
        "sasl.login.callback.handler.class": "write sasl.oauthbearer.method",
        "ssl.truststore.location": "write ssl.ca.location, a PEM file",
        "ssl.truststore.password": "write ssl.ca.location, a PEM file without a password",
        "ssl.truststore.type": "write ssl.ca.location, a PEM file",
        "ssl.truststore.certificates": "write ssl.ca.pem",
        "ssl.keystore.type": "write ssl.keystore.location for PKCS#12, or ssl.key.location for PEM",
        "ssl.keystore.key": "write ssl.key.pem",
        "ssl.keystore.certificate.chain": "write ssl.certificate.pem",
        "ssl.protocol": "leave it out: the newest protocol that both sides know is used",
        "ssl.enabled.protocols": "leave it out: the newest protocol that both sides know is used",
        "request.timeout.ms": "write socket.timeout.ms",
        "default.api.timeout.ms": "leave it out: reconciler waits as long as a step needs",
        "bootstrap.controllers": "write bootstrap.servers",
    }
)


def read_client(value: YamlValue) -> Mapping[str, str]:
    """Read client properties, references unresolved. Errors: FieldError, with every finding."""
    way_out = "write properties below it, one per line: bootstrap.servers: host:9092"
    written = read_map(value, "client", "a map", way_out)
    findings = [
        finding for key, item in written.entries() for finding in _check_property(key, item)
    ]
    # Together only where each is right by itself: the second finding would follow from the first.
    findings = findings or check_authentication(written)
    if findings:
        raise FieldError(findings)
    return MappingProxyType({str(key): str(item) for key, item in written.items()})


def _check_property(key: YamlText, value: YamlValue) -> list[Finding]:
    """Check one property. No finding ever shows the value of a secret."""
    if key in RUNS:
        what = f"{key} loads a library or runs a command, and a file of the estate must not do that"
        return [Finding("client-property-runs", what, RUNS[key], key.where)]
    if key not in PROPERTIES:
        return [_refuse_unknown(key)]
    if not isinstance(value, YamlText):
        what = f"{key} is {describe_yaml(value)}, not one value"
        way_out = "write one value, its parts with commas"
        if key in SECRET_PROPERTIES:
            way_out = "write ${env:NAME} or ${file:/absolute/path}"
        return [Finding("value-form", what, way_out, value.where)]
    if value.tag == "null" or value == "":
        return [
            Finding(
                "value-missing", f"{key} has no value", "write one, or leave it out", value.where
            )
        ]
    try:
        parts = parse_references(value)
    except MalformedReferenceError as error:
        what = f"the reference in {key} is malformed"
        return [Finding("secret-reference", what, error.way_out, value.where)]
    if key in SECRET_PROPERTIES and any(isinstance(part, str) for part in parts):
        what = f"{key} is a literal value (not shown here)"
        way_out = (
            "keep it in an environment variable or a file, write ${env:NAME} or "
            "${file:/absolute/path}, and change it: others may have read it here"
        )
        return [Finding("secret-literal", what, way_out, value.where)]
    if key not in REFERENCES and any(isinstance(part, SecretRef) for part in parts):
        what = f"{key} cannot be a reference: its value is shown in messages or sent unprotected"
        way_out = "write the value itself; secrets belong into sasl.password and the like"
        return [Finding("secret-misplaced", what, way_out, value.where)]
    found = [*_check_word(key, value), *_check_address(key, value), *_check_debug(key, value)]
    return found or check_value(key, value)


def _check_word(key: YamlText, value: YamlText) -> Iterator[Finding]:
    if key in _IN_A_SHELL and not _PLAIN_WORD.fullmatch(value):
        what = f"{key} becomes part of a shell command, and {quote(value)} is more than a word"
        way_out = "use letters, digits and . _ / @ : + = - only"
        yield Finding("client-property-runs", what, way_out, value.where)


def _check_debug(key: YamlText, value: YamlText) -> Iterator[Finding]:
    contexts = {part.strip() for part in value.lower().split(",")}
    if key == "debug" and contexts & {"all", "conf"}:
        what = f"{key}: {value} prints client properties as they are, to standard error"
        way_out = "name the contexts that you need, such as broker,security,protocol"
        yield Finding("secret-misplaced", what, way_out, value.where)


def _check_address(key: YamlText, value: YamlText) -> Iterator[Finding]:
    if key in _ADDRESSES and _WITH_A_USER.search(value):
        what = f"{key} holds a user or a password (not shown here)"
        way_out = "write the address without it, and change it: others may have read it here"
        yield Finding("secret-literal", what, way_out, value.where)
    elif key in _ADDRESSES:
        yield from check_ports(key, value, value.where)


def check_ports(name: str, addresses: str, where: Location | None = None) -> Iterator[Finding]:
    """Refuse the addresses of an option or a property whose ports do not exist."""
    if wrong := find_wrong_ports(addresses):
        what = f"{name} has no port in {', '.join(map(quote, wrong))}"
        yield Finding("client-property-value", what, f"write one from 1 to {MOST_PORT}", where)


def _refuse_unknown(key: YamlText) -> Finding:
    if key in _JAVA:
        what = f"{quote(key)} is a property of the Java client"
        return Finding("client-property-unknown", what, _JAVA[key], key.where)
    owner = "reconciler" if key.startswith("aws.") else "librdkafka"
    what = f"{owner} knows no client property {quote(key)}"
    way_out = suggest(key, PROPERTIES) or "remove it"
    return Finding("client-property-unknown", what, way_out, key.where)
