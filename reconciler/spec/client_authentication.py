"""Client properties that authenticate: whether they fit together, and which client supports them.

kafka-python makes the requests that librdkafka lacks. It knows fewer ways to authenticate, and
settings that it does not know are reported before anything connects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from reconciler.errors import Finding, Location, Severity
from reconciler.spec.client_properties import AWS, MSK_IAM
from reconciler.spec.values import YamlMap

RULE = "client-authentication"

_OAUTH = "sasl.oauthbearer."
_UNSIGNED = "enable.sasl.oauthbearer.unsecure.jwt"
_OTHER_WAYS = ("sasl.username", "sasl.password", "sasl.kerberos.", _OAUTH, _UNSIGNED)
_SERVERS = ("bootstrap.servers", "metadata.broker.list")
# b-2.shop.a1b2c3.c4.kafka.REGION.amazonaws.com and boot-a1b2.c1.kafka-serverless.REGION. …
_REGION = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?(?::|$)")

_WITHOUT_LOCK = (
    "pass --no-lock to apply if a CI concurrency group or the like prevents other applies"
)
_INSTEAD = f"use sasl.oauthbearer.client.secret, or {_WITHOUT_LOCK}"
_INSTEAD_OF_STS = f"write sasl.mechanism: {MSK_IAM} for Amazon MSK; otherwise {_WITHOUT_LOCK}"

METADATA = "sasl.oauthbearer.metadata.authentication.type"
# librdkafka's other ways to get a token: their values that kafka-python can follow as well, and
# what to do instead of the others.
_FOLLOWED: Mapping[str, tuple[tuple[str, ...], str]] = MappingProxyType(
    {
        "sasl.oauthbearer.grant.type": (("client_credentials",), _INSTEAD),
        METADATA: (("none", "azure_imds"), _INSTEAD_OF_STS),
    }
)


def read_mechanism(get: Callable[[str, str], str]) -> str:
    """Return the mechanism of SASL; librdkafka's default if none is written."""
    return get("sasl.mechanisms", "") or get("sasl.mechanism", "") or "GSSAPI"


def find_region(servers: str) -> str:
    """Return the AWS region that the addresses of an MSK cluster name; "" if none does."""
    regions = {m[1] for each in servers.split(",") if (m := _REGION.search(each.strip().lower()))}
    return regions.pop() if len(regions) == 1 else ""


def check_authentication(written: YamlMap) -> list[Finding]:
    """Return what does not fit together, among properties that are each valid."""
    client = {str(key): str(value) for key, value in written.items()}
    if read_mechanism(client.get) == MSK_IAM:
        return list(_check_msk_iam(client, written))
    return list(_check_tokens(client, written))


def _check_msk_iam(client: Mapping[str, str], written: YamlMap) -> Iterator[Finding]:
    place = {str(key): key.where for key, _ in written.entries()}
    mechanism = place["sasl.mechanisms" if client.get("sasl.mechanisms") else "sasl.mechanism"]
    protocol = client.get("security.protocol", "")
    if protocol.upper() != "SASL_SSL":
        state = f"is {protocol}" if protocol else "is not set"
        what = f"{MSK_IAM} is sent over TLS only, and security.protocol {state}"
        where = place.get("security.protocol", mechanism)
        yield Finding(RULE, what, "write security.protocol: SASL_SSL", where)
    for name in client:
        if name.startswith(_OTHER_WAYS):
            what = f"{name} has no effect with {MSK_IAM}"
            yield Finding(RULE, what, "remove it, or correct sasl.mechanism", place[name])
    for name in ("aws.role.external.id", "aws.role.session.name"):
        if name in client and "aws.role.arn" not in client:
            what = f"{name} has no effect without aws.role.arn"
            yield Finding(RULE, what, "write aws.role.arn, or remove it", place[name])
    # Without addresses here, they come from the command line.
    servers = next((client[name] for name in _SERVERS if name in client), "")
    if servers and "aws.region" not in client and not find_region(servers):
        what = f"{MSK_IAM} needs the AWS region of the cluster, and its addresses name none"
        yield Finding(RULE, what, "write the region, such as aws.region: eu-west-1", mechanism)


def _check_tokens(client: Mapping[str, str], written: YamlMap) -> Iterator[Finding]:
    place = {str(key): key.where for key, _ in written.entries()}
    for name in client:
        if name in AWS:
            what = f"{name} has an effect with sasl.mechanism {MSK_IAM} only"
            yield Finding(RULE, what, f"write sasl.mechanism: {MSK_IAM}, or remove it", place[name])
    if not client.get("security.protocol", "").upper().startswith("SASL"):
        return
    unsigned = client.get(_UNSIGNED, "").lower() in ("true", "t", "1")
    if (
        read_mechanism(client.get) == "OAUTHBEARER"
        and client.get("sasl.oauthbearer.method", "").lower() != "oidc"
        and not unsigned
    ):
        what = "sasl.mechanism OAUTHBEARER has no source of tokens"
        way_out = (
            "write sasl.oauthbearer.method: oidc and sasl.oauthbearer.token.endpoint.url, "
            f"or sasl.mechanism: {MSK_IAM} for Amazon MSK"
        )
        where = place["sasl.mechanisms" if client.get("sasl.mechanisms") else "sasl.mechanism"]
        yield Finding(RULE, what, way_out, where)


def find_unfollowed(get: Callable[[str, str], str]) -> tuple[str, str, str] | None:
    """Find settings that kafka-python does not support: the property, what is wrong, and the way
    out.

    `get` returns a property, or its second argument if it is not written.
    """
    protocol = get("security.protocol", "").upper()
    if protocol.endswith("SSL") and get("ssl.keystore.location", ""):
        name = "ssl.keystore.location"
        way_out = f"write ssl.certificate.location and ssl.key.location, or {_WITHOUT_LOCK}"
        return name, f"{name} is not read there, PEM files are", way_out
    if not protocol.startswith("SASL"):
        return None
    mechanism = read_mechanism(get)
    if mechanism == "GSSAPI":
        what = "sasl.mechanism GSSAPI is not supported there"
        return "sasl.mechanism", what, _WITHOUT_LOCK
    if mechanism != "OAUTHBEARER" or get("sasl.oauthbearer.method", "").lower() != "oidc":
        return None
    for name, (followed, way_out) in _FOLLOWED.items():
        value = get(name, followed[0])
        if value.lower() not in followed:
            what = f"{name} {value} is not supported there, only {' and '.join(followed)}"
            return name, what, way_out
    return None


def note_unfollowed(
    cluster: str, client: Mapping[str, str], locate: Callable[[str], Location]
) -> tuple[Finding, ...]:
    """Warn, before anything connects, of settings that kafka-python does not support."""
    found = find_unfollowed(client.get)
    # Without a mechanism librdkafka takes GSSAPI, which nobody has asked for then.
    if found is None or not (found[0] in client or "sasl.mechanisms" in client):
        return ()
    name, reason, way_out = found
    what = f"apply takes the lock of {cluster} with a second client: {reason}"
    where = locate(f"client.{name}")
    return (Finding("lock-unavailable", what, way_out, where, Severity.WARNING),)
