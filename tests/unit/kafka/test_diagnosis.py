"""The client's reports, taken apart, and what follows from them and from a probe."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import KafkaError

from reconciler.errors import ClusterError, Location, keep_secret
from reconciler.kafka.connection import connect
from reconciler.kafka.diagnosis import Trouble, explain, read_awaited, read_trouble
from reconciler.kafka.probe import Listener, Reach
from reconciler.kafka.settings import ClientSettings
from reconciler.spec.entry import ClusterEntry


def say(
    settings: dict[str, str], troubles: list[Trouble], listeners: dict[str, Listener] | None = None
) -> list[str]:
    found = explain(ClientSettings(settings), troubles, listeners or {}, HERE)
    return [f"{finding.what} [{finding.rule}]" for finding in found]


class TestReadTrouble:
    def test_a_bootstrap_server(self) -> None:
        text = (
            "sasl_ssl://127.0.0.1:9093/bootstrap: SSL handshake failed: certificate verify failed "
            "(after 18ms in state SSL_HANDSHAKE)"
        )
        assert read_trouble(KafkaError(KafkaError._SSL, text)) == Trouble(
            KafkaError._SSL, "SSL handshake failed: certificate verify failed", "127.0.0.1:9093"
        )

    def test_a_broker_that_the_cluster_told(self) -> None:
        text = "kafka-2:9092/2: Failed to resolve 'kafka-2:9092': Name or service not known"
        trouble = read_trouble(KafkaError(KafkaError._RESOLVE, text))
        assert (trouble.server, trouble.broker) == ("kafka-2:9092", 2)

    def test_the_sum_of_all(self) -> None:
        trouble = read_trouble(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
        assert trouble.tells_nothing
        assert not trouble.server


class TestExplain:
    def test_an_advertised_address_is_told_from_a_bootstrap_server(self) -> None:
        trouble = Trouble(KafkaError._RESOLVE, "Failed to resolve", "kafka-2:9092", 2)
        listeners = {"kafka-2:9092": Listener(Reach.UNKNOWN_HOST)}
        (finding,) = explain(ClientSettings({}), [trouble], listeners, HERE)
        assert str(finding) == (
            "topics/clusters.yaml:7:3: kafka-2:9092, where the cluster says that broker 2 is, "
            "cannot be reached: no host has this name; check advertised.listeners of the broker, "
            "and the network from this machine [connect-host-unknown]"
        )

    def test_a_server_that_does_not_answer_is_named(self) -> None:
        trouble = Trouble(KafkaError._TRANSPORT, "Connection setup timed out", "kafka-1:9092")
        found = say({}, [trouble], {"kafka-1:9092": Listener(Reach.SILENT)})
        assert found == ["kafka-1:9092 does not answer [connect-timeout]"]

    def test_one_reason_is_said_once(self) -> None:
        listeners = {f"b{n}:9092": Listener(Reach.REFUSED) for n in range(3)}
        assert len(say({}, [], listeners)) == 1

    def test_a_listener_that_fits_explains_nothing(self) -> None:
        assert say({}, [], {"b:1": Listener(Reach.BROKER)}) == []
        settings = {"security.protocol": "sasl_ssl", "sasl.mechanisms": "PLAIN"}
        fitting = Listener(Reach.BROKER, tls=True, mechanisms=("PLAIN", "SCRAM-SHA-256"))
        assert say(settings, [], {"b:1": fitting}) == []

    def test_secrets_in_the_text_of_others_are_hidden(self) -> None:
        keep_secret("hush-hush")
        text = "Failed to acquire SASL OAUTHBEARER token: server echoed hush-hush"
        endpoint = {"sasl.oauthbearer.token.endpoint.url": "http://issuer/token"}
        assert say(endpoint, [Trouble(KafkaError._AUTHENTICATION, text)]) == [
            "no OAuth token comes from http://issuer/token: server echoed *** [connect-token]"
        ]


class TestAwaited:
    """What the client's statistics say of brokers that do not answer it."""

    def test_the_brokers_that_it_waits_for_are_read_with_their_ids(self) -> None:
        states = {
            "a:1/bootstrap": (-1, "a:1", "configured", "AUTH_REQ"),
            "b:1/2": (2, "b:1", "learned", "CONNECT"),
            "c:1/3": (3, "c:1", "learned", "SSL_HANDSHAKE"),
            "d:1/4": (4, "d:1", "learned", "INIT"),
            "e:1/5": (5, "e:1", "learned", "UP"),
        }
        names = ("nodeid", "nodename", "source", "state")
        told = {name: dict(zip(names, row, strict=True)) for name, row in states.items()}
        found = read_awaited(json.dumps({"brokers": told}), "PLAIN")
        assert [(each.server, each.broker, each.text) for each in found] == [
            ("a:1", None, "a:1 does not finish SASL PLAIN"),
            ("b:1", 2, "b:1 does not finish the connection"),
            ("c:1", 3, "c:1 does not finish TLS"),
        ]

    def test_a_slow_server_that_named_a_broker_is_not_blamed(self) -> None:
        slow = {"a:1": Listener(Reach.SILENT), "kafka-2:9092": Listener(Reach.REFUSED)}
        asked = Trouble(KafkaError._TRANSPORT, "Disconnected", "a:1")
        named = Trouble(KafkaError._TRANSPORT, "Connection refused", "kafka-2:9092", 2)
        for told in ([named], [asked, named]):
            (said,) = say({}, told, slow)
            assert said.startswith("kafka-2:9092, where the cluster says that broker 2 is, refuses")


HERE = Location("topics/clusters.yaml", 7, 3)
RULE = "[client-property-value]"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a key with the password `right`, its certificate and key store, and another key."""
    directory = tmp_path_factory.mktemp("files")
    one = "req -x509 -newkey rsa:2048 -subj /CN=x -keyout its.key -passout pass:right -out its.pem"
    other = "genrsa -out other.key 2048"
    store = "pkcs12 -export -inkey its.key -passin pass:right -in its.pem -out its.p12"
    old = "rsa -in its.key -passin pass:right -traditional -aes128 -passout pass:right -out old.key"
    for command in (one, other, f"{store} -passout pass:right", old):
        subprocess.run(
            ["openssl", *command.split()], cwd=directory, capture_output=True, check=True
        )
    (directory / "rubbish").write_text("rubbish\n")
    return directory


def refuse(**client: str) -> list[str]:
    """Return what is said of properties that the client does not accept; `_` stands for a dot."""
    properties = {
        "bootstrap.servers": "broker.invalid:9092",
        "security.protocol": "SSL",
        **{name.replace("_", "."): value for name, value in client.items()},
    }
    connection = connect(
        ClusterEntry("lab", HERE, client=properties), environment={"PASSWORD": "wrong-secret"}
    )
    with pytest.raises(ClusterError) as refused:
        connection.client()
    return [str(finding).removeprefix(f"{HERE}: ") for finding in refused.value.findings]


@pytest.mark.parametrize(
    "name",
    [
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.key.location",
        "ssl.crl.location",
        "https.ca.location",
    ],
)
def test_a_file_that_is_missing_is_named_with_its_property(name: str) -> None:
    assert refuse(**{name: "/nowhere/file.pem"}) == [
        f"{name} is /nowhere/file.pem: No such file or directory; correct the path, or put the "
        f"file there, readable for this run {RULE}"
    ]


def test_a_path_that_no_file_can_have_is_named() -> None:
    assert refuse(ssl_key_location="/nowhere/\0") == [
        "ssl.key.location is /nowhere/\\x00: embedded null byte; correct the path, or put the file "
        f"there, readable for this run {RULE}"
    ]


def test_a_key_store_that_is_missing_is_named() -> None:
    (said,) = refuse(ssl_keystore_location="/nowhere/x.p12", ssl_keystore_password="secret")
    assert said.startswith("ssl.keystore.location is /nowhere/x.p12: No such file or directory; ")


def test_every_missing_file_is_named(files: Path) -> None:
    said = refuse(
        ssl_ca_location=str(files / "its.pem"),
        ssl_certificate_location="/nowhere/a",
        ssl_key_location="/nowhere/b",
    )
    assert [text.split()[0] for text in said] == ["ssl.certificate.location", "ssl.key.location"]


@pytest.mark.parametrize("name", ["its.key", "old.key"])
def test_a_wrong_password_of_a_key_is_said(files: Path, name: str) -> None:
    key = str(files / name)
    assert refuse(ssl_key_location=key, ssl_key_password="${env:PASSWORD}") == [
        f"ssl.key.password does not open ssl.key.location {key}; check what ssl.key.password "
        f"refers to {RULE}"
    ]
    (said,) = refuse(ssl_key_pem="${file:" + key + "}", ssl_key_password="${env:PASSWORD}")
    assert said.startswith("ssl.key.password does not open ssl.key.pem; ")


def test_a_password_that_is_missing_is_said(files: Path) -> None:
    key = str(files / "its.key")
    assert refuse(ssl_key_location=key) == [
        f"ssl.key.location {key} is protected by a password, and ssl.key.password is not set; set "
        f"ssl.key.password to ${{env:NAME}} or ${{file:/absolute/path}} {RULE}"
    ]


def test_a_wrong_password_of_a_key_store_is_said(files: Path) -> None:
    store = str(files / "its.p12")
    assert refuse(ssl_keystore_location=store, ssl_keystore_password="${env:PASSWORD}") == [
        f"ssl.keystore.password does not open ssl.keystore.location {store}; check what "
        f"ssl.keystore.password refers to {RULE}"
    ]


def test_a_key_of_another_certificate_is_said(files: Path) -> None:
    certificate, key = str(files / "its.pem"), str(files / "other.key")
    (said,) = refuse(ssl_certificate_location=certificate, ssl_key_location=key)
    assert said.startswith(
        f"ssl.key.location {key} holds another key than that of the client certificate; "
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("ssl.ca.location", "certificate"),
        ("ssl.certificate.location", "certificate"),
        ("ssl.key.location", "private key"),
        ("ssl.crl.location", "revocation list"),
    ],
)
def test_a_file_of_another_kind_is_named(files: Path, name: str, content: str) -> None:
    file = str(files / "rubbish")
    assert refuse(**{name: file}) == [
        f"{name} {file} holds no {content} in PEM format; check its content {RULE}"
    ]


def test_kerberos_is_not_in_the_wheels() -> None:
    assert refuse(security_protocol="SASL_SSL", sasl_mechanism="GSSAPI") == [
        "sasl.mechanism GSSAPI (Kerberos) is not available: the wheels of confluent-kafka are "
        "built without it; build confluent-kafka against a librdkafka with GSSAPI (pip install "
        "--no-binary confluent-kafka confluent-kafka), or use another mechanism "
        "[client-property-value]"
    ]


def test_no_mechanism_is_not_taken_for_kerberos() -> None:
    assert refuse(security_protocol="SASL_SSL") == [
        "security.protocol is SASL_SSL, and sasl.mechanism is not set; set sasl.mechanism, such "
        "as SCRAM-SHA-512 [client-property-value]"
    ]


class TestTokensOfAws:
    """The Python around librdkafka has conditions of its own, and other exceptions for them."""

    TYPE = "sasl.oauthbearer.metadata.authentication.type"

    def refuse(self, **more: str) -> list[str]:
        secured = {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}
        return refuse(**secured, **{self.TYPE: "aws_iam"}, **more)

    def test_a_property_that_is_missing_is_said(self) -> None:
        assert self.refuse() == [
            f"the client does not accept its settings: '{self.TYPE}=aws_iam' requires "
            "'sasl.oauthbearer.method=oidc'. Current value: <unset>. method=oidc is mandatory for "
            f"the AWS IAM authentication path; correct that property in clusters.yaml {RULE}"
        ]
        (said,) = self.refuse(sasl_oauthbearer_method="oidc")
        assert "'sasl.oauthbearer.config' is missing or empty" in said

    def test_a_library_that_is_missing_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "boto3", None)
        config = "region=eu-west-1,audience=https://broker.invalid"
        oidc = {"sasl_oauthbearer_method": "oidc", "sasl_oauthbearer_config": config}
        assert self.refuse(**oidc) == [
            f"the client does not accept its settings: Config '{self.TYPE}=aws_iam' requires the "
            "optional 'oauthbearer-aws' extra; run pip install "
            f"'confluent-kafka[oauthbearer-aws]' where reconciler is installed {RULE}"
        ]


def test_what_nobody_explains_is_said_in_the_clients_words() -> None:
    (said,) = refuse(ssl_cipher_suites="none-such")
    assert said.startswith("the client does not accept its settings: ssl.cipher.suites failed: ")
    assert said.endswith(f"; correct that property in clusters.yaml {RULE}")
