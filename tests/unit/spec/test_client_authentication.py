"""Properties that authenticate: together, and as far as the second client can follow them."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.cli.app import run
from reconciler.spec.client import read_client
from reconciler.spec.client_authentication import find_region, find_unfollowed
from reconciler.spec.fields import FieldError
from reconciler.spec.syntax import load_text

MSK = {
    "bootstrap.servers": "b-1.shop.a1b2c3.c4.kafka.eu-west-1.amazonaws.com:9098",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "AWS_MSK_IAM",
}
OIDC = {
    "bootstrap.servers": "broker:9092",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
}
METADATA = "sasl.oauthbearer.metadata.authentication.type"
GRANT = "sasl.oauthbearer.grant.type"
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"


def refuse(client: dict[str, str]) -> list[str]:
    text = "".join(f"{name}: '{value}'\n" for name, value in client.items())
    (document,) = load_text(text.encode(), "clusters.yaml").documents
    try:
        read_client(document)
    except FieldError as error:
        return [f"{found.what} [{found.rule}]" for found in error.findings]
    return []


@pytest.mark.parametrize(
    ("servers", "region"),
    [
        ("b-1.shop.a1b2c3.c4.kafka.eu-west-1.amazonaws.com:9098", "eu-west-1"),
        ("b-1-public.shop.a1b2c3.c4.kafka.us-gov-west-1.amazonaws.com:9198", "us-gov-west-1"),
        ("boot-a1b2.c1.kafka-serverless.us-east-1.amazonaws.com:9098", "us-east-1"),
        ("b-1.shop.a1b2c3.c4.kafka.cn-north-1.amazonaws.com.cn:9098", "cn-north-1"),
        ("B-1.Shop.a.c4.Kafka.EU-West-1.amazonaws.com", "eu-west-1"),
        ("b-1.a.c4.kafka.eu-west-1.amazonaws.com:1, b-2.a.c4.kafka.eu-west-1.amazonaws.com:1",
         "eu-west-1"),
        ("b-1.a.c4.kafka.eu-west-1.amazonaws.com:1,b-2.a.c4.kafka.us-east-1.amazonaws.com:1", ""),
        ("kafka.eu-west-1.amazonaws.com.evil.example:9098", ""),
        ("kafka.internal:9098", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_the_region_is_in_the_names_of_the_brokers(servers: str, region: str) -> None:
    assert find_region(servers) == region


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"aws.profile": "topics"},
        {"aws.role.arn": "${env:ROLE}", "aws.role.external.id": "x", "aws.role.session.name": "y"},
        {"bootstrap.servers": "kafka.internal:9098", "aws.region": "eu-west-1"},
        {"security.protocol": "sasl_ssl"},
    ],
)
def test_a_client_of_msk_is_read(more: dict[str, str]) -> None:
    assert refuse({**MSK, **more}) == []


def test_a_client_of_msk_whose_addresses_come_from_the_command_line_is_read() -> None:
    assert refuse({name: MSK[name] for name in MSK if name != "bootstrap.servers"}) == []


@pytest.mark.parametrize("region", ["Ireland", "eu", "eu_west_1", "eu-west-1/", "eu-west-1.x"])
def test_a_region_that_is_none_is_refused(region: str) -> None:
    """It becomes a part of the address that is signed."""
    (said,) = refuse({**MSK, "aws.region": region})
    assert said.endswith("which the client does not accept [client-property-value]")


def test_the_mechanism_may_have_its_other_name() -> None:
    client = {("sasl.mechanisms" if n == "sasl.mechanism" else n): v for n, v in MSK.items()}
    assert refuse(client) == []
    assert refuse({**client, "security.protocol": "SSL"}) == [
        "AWS_MSK_IAM is sent over TLS only, and security.protocol is SSL [client-authentication]"
    ]


@pytest.mark.parametrize(
    "source",
    [
        {"sasl.oauthbearer.method": "oidc"},
        {"sasl.oauthbearer.method": "OIDC"},
        {"enable.sasl.oauthbearer.unsecure.jwt": "true"},
        {"security.protocol": "SSL"},
    ],
)
def test_tokens_have_a_source(source: dict[str, str]) -> None:
    client = {name: value for name, value in OIDC.items() if "oauthbearer" not in name}
    assert refuse({**client, **source}) == []
    assert refuse(client) == [
        "sasl.mechanism OAUTHBEARER has no source of tokens [client-authentication]"
    ]


@pytest.mark.parametrize(
    ("client", "reason"),
    [
        ({**OIDC, GRANT: JWT_BEARER}, f"{GRANT} {JWT_BEARER} is not supported there, only "
         "client_credentials"),
        ({**OIDC, METADATA: "aws_iam"}, f"{METADATA} aws_iam is not supported there, only none "
         "and azure_imds"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"},
         "sasl.mechanism GSSAPI is not supported there"),
        ({"security.protocol": "SSL", "ssl.keystore.location": "/a.p12"},
         "ssl.keystore.location is not read there, PEM files are"),
        ({"security.protocol": "PLAINTEXT", "ssl.keystore.location": "/a.p12"}, ""),
        ({"security.protocol": "SSL", "sasl.mechanism": "GSSAPI"}, ""),
        ({**OIDC, METADATA: "azure_imds"}, ""),
        ({**OIDC, METADATA: "None", GRANT: "Client_Credentials"}, ""),
        (OIDC, ""),
        (MSK, ""),
    ],
)  # fmt: skip
def test_what_the_second_client_cannot_follow_is_named(client: dict[str, str], reason: str) -> None:
    found = find_unfollowed(client.get)
    assert (found[1] if found else "") == reason


def test_validate_warns_of_what_the_second_client_cannot_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Otherwise the first apply after the merge says it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics" / "a.yaml").write_text("topic: a\n")
    (tmp_path / "topics" / "clusters.yaml").write_text(
        "version: 1\n"
        "clusters:\n"
        "  prod:\n"
        "    client:\n"
        "      bootstrap.servers: broker:9092\n"
        "      security.protocol: SASL_SSL\n"
        "      sasl.mechanism: OAUTHBEARER\n"
        "      sasl.oauthbearer.method: oidc\n"
        f"      {METADATA}: aws_iam\n"
    )
    assert run(["validate"]) == 0
    assert capsys.readouterr().out == (
        "topics/clusters.yaml:9:7: warning: apply takes the lock of prod with a second client: "
        f"{METADATA} aws_iam is not supported there, only none and azure_imds\n"
        "    write sasl.mechanism: AWS_MSK_IAM for Amazon MSK; otherwise pass --no-lock to apply "
        "if a CI concurrency group or the like prevents other applies [lock-unavailable]\n"
        "\n"
        "1 topic in 1 file, 1 cluster: all good\n"
    )
