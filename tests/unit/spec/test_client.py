"""Client properties: the names librdkafka knows, and secrets by reference only."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from reconciler.spec.client import RUNS, read_client
from reconciler.spec.client_properties import (
    AWS,
    CONTEXTS,
    FLAG,
    LIBRDKAFKA,
    MECHANISM,
    MSK_IAM,
    PROPERTIES,
    REFERENCES,
    SECRET_PROPERTIES,
    Range,
    Words,
)
from reconciler.spec.fields import FieldError
from reconciler.spec.syntax import load_text

MSK = f"""\
bootstrap.servers: b-1.shop.a1b2c3.c4.kafka.eu-west-1.amazonaws.com:9098
security.protocol: SASL_SSL
sasl.mechanism: {MSK_IAM}
"""
ROLE = "aws.role.arn: arn:aws:iam::123456789012:role/topics\n"
FLAGS = sorted(name for name, values in LIBRDKAFKA.items() if values is FLAG)
RANGES = {name: values for name, values in PROPERTIES.items() if isinstance(values, Range)}
WORDS = {
    name: values.words
    for name, values in PROPERTIES.items()
    if isinstance(values, Words) and values is not FLAG
}


def read(text: str) -> dict[str, str]:
    (document,) = load_text(text.encode(), "clusters.yaml").documents
    return dict(read_client(document))


def explain(text: str) -> str:
    with pytest.raises(FieldError) as refused:
        read(text)
    return "\n".join(map(str, refused.value.findings))


def is_known(name: str) -> bool:
    """Ask librdkafka; a value no property takes makes no client and starts no thread."""
    try:
        AdminClient({name: "\x01", "no.such.property": ""})
    except KafkaException as error:
        return f'"{name}"' not in str(error) or "No such" not in str(error)
    return True


@pytest.mark.parametrize("name", sorted(LIBRDKAFKA))
def test_librdkafka_knows_every_property(name: str) -> None:
    assert is_known(name)


def test_librdkafka_would_have_said_if_not() -> None:
    assert not is_known("bootstrap.server")


def test_values_come_back_as_text_with_references_unresolved() -> None:
    text = "bootstrap.servers: a:9092\nsocket.timeout.ms: 5000\nsasl.password: ${env:PASSWORD}"
    assert read(text) == {
        "bootstrap.servers": "a:9092",
        "socket.timeout.ms": "5000",
        "sasl.password": "${env:PASSWORD}",
    }


@pytest.mark.parametrize("name", sorted(SECRET_PROPERTIES))
@pytest.mark.parametrize("value", ["hunter2", "hunter2${env:X}", "${env:hunter2", "[hunter2]"])
def test_a_secret_is_never_shown(name: str, value: str) -> None:
    said = explain(f"{name}: {value}")
    assert "hunter2" not in said
    assert said.startswith("clusters.yaml:1:")


@pytest.mark.parametrize("name", sorted(RUNS))
def test_what_loads_or_runs_something_is_refused(name: str) -> None:
    """Each is one that librdkafka takes: a line of YAML would be code in the job that plans."""
    assert is_known(name)
    assert "[client-property-runs]" in explain(f"{name}: evil")


@pytest.mark.parametrize("name", ["sasl.kerberos.principal", "sasl.kerberos.keytab"])
@pytest.mark.parametrize(
    "value", ["$(id)", "'`id`'", "a;id", "a&id", "a|id", "'a\" id'", "a b", "-X"]
)
def test_a_word_of_a_command_is_one_word(name: str, value: str) -> None:
    assert "[client-property-runs]" in explain(f"{name}: {value}")
    assert read(f"{name}: /etc/shop_1.keytab") == {name: "/etc/shop_1.keytab"}
    assert read(f"{name}: shop/host-1.example@EXAMPLE")


@pytest.mark.parametrize(
    "name",
    ["error_cb", "throttle_cb", "stats_cb", "log_cb", "oauth_cb", "logger", "open_cb", "socket_cb",
     "connect_cb", "resolve_cb", "ssl.certificate.verify_cb", "interceptors", "opaque",
     "ssl_engine_callback_data", "default_topic_conf", "on_delivery", "partitioner"],
)  # fmt: skip
def test_callbacks_are_no_properties(name: str) -> None:
    assert "[client-property-unknown]" in explain(f"{name}: evil")


@pytest.mark.parametrize("name", sorted(PROPERTIES.keys() - REFERENCES))
def test_a_reference_goes_nowhere_but_to_authentication(name: str) -> None:
    for value in ("${env:KAFKA_PASSWORD}", "a.${file:/run/secrets/kafka}.example"):
        assert "[secret-misplaced]" in explain(f"{name}: {value}")


@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_a_reference_goes_to_authentication(name: str) -> None:
    with_it = MSK * (name in AWS) + ROLE * name.startswith(
        ("aws.role.external", "aws.role.session")
    )
    assert read(f"{with_it}{name}: ${{env:X}}")[name] == "${env:X}"


@pytest.mark.parametrize(
    "address",
    ["me:hunter2@a:1", "a:1,me:hunter2@b:1", "a:1, SSL://hunter2@b:1", "https://hunter2@a/x"],
)
def test_an_address_holds_no_user(address: str) -> None:
    for name in ("bootstrap.servers", "sasl.oauthbearer.token.endpoint.url"):
        assert "hunter2" not in explain(f"{name}: '{address}'")
    assert read("sasl.oauthbearer.token.endpoint.url: https://a.example/t/x@y?scope=a@b")


def test_a_property_of_the_java_client_is_translated() -> None:
    assert "write ssl.ca.location, a PEM file" in explain("ssl.truststore.location: /ca.jks")


def takes(name: str, value: str) -> bool:
    """Ask librdkafka for a value; the other property keeps it from making a client."""
    try:
        AdminClient({name: value, "no.such.property": ""})
    except KafkaException as error:
        return '"no.such.property"' in str(error)
    except ValueError:  # of the Python around it: the value wants another property
        return True
    raise AssertionError("a client was made")


@pytest.mark.parametrize("name", sorted(RANGES))
def test_the_range_of_a_number_is_librdkafkas(name: str) -> None:
    least, most = RANGES[name].least, RANGES[name].most
    for number in (least - 1, least, most, most + 1):
        assert takes(name, str(number)) == (least <= number <= most)
    assert read(f"{name}: {most}") == {name: str(most)}
    assert f"write a whole number from {least} to {most}" in explain(f"{name}: {most + 1}")


@pytest.mark.parametrize("name", sorted(WORDS))
def test_a_word_is_one_of_librdkafkas(name: str) -> None:
    for word in (*WORDS[name], WORDS[name][0].upper(), WORDS[name][0].lower()):
        assert takes(name, word)
        assert read(f"{name}: {word}") == {name: word}
    assert not takes(name, "nonsense")
    assert "[client-property-value]" in explain(f"{name}: nonsense")


@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_is_one_of_librdkafkas(name: str) -> None:
    for word in ("true", "False", "1", "0"):
        assert takes(name, word)
        assert read(f"{name}: {word}") == {name: word}
    assert not takes(name, "yes")
    assert "write true or false" in explain(f"{name}: yes")


@pytest.mark.parametrize("context", CONTEXTS.words)
def test_a_context_of_debug_is_one_of_librdkafkas(context: str) -> None:
    assert takes("debug", f"broker,{context}")


@pytest.mark.parametrize("mechanism", MECHANISM.words)
def test_every_mechanism_is_read(mechanism: str) -> None:
    protocol = {"security.protocol": "SASL_SSL"} if mechanism == MSK_IAM else {}
    text = "".join(f"{name}: {value}\n" for name, value in protocol.items())
    assert read(f"{text}sasl.mechanism: {mechanism}") == {**protocol, "sasl.mechanism": mechanism}


@pytest.mark.parametrize(
    ("text", "way_out"),
    [
        ("security.protocol: SASL_TLS", "write PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"),
        ("socket.timeout.ms: soon", "write a whole number from 10 to 300000"),
        ("socket.timeout.ms: 10s", "write 10000"),
        ("socket.timeout.ms: 10d", "write a whole number from 10 to 300000"),
        ("message.max.bytes: 1MiB", "write 1048576"),
        ("sasl.mechanism: SCRAM-SHA512", "did you mean SCRAM-SHA-512?"),
        ("sasl.mechanisms: plain", "did you mean PLAIN?"),
        ("debug: brokr", "the contexts are generic, broker, topic"),
    ],
)
def test_what_the_client_does_not_take_is_refused(text: str, way_out: str) -> None:
    said = explain(text)
    assert "which the client does not accept" in said
    assert way_out in said


@pytest.mark.parametrize("name", ["bootstrap.servers", "metadata.broker.list"])
@pytest.mark.parametrize("port", ["65536", "99999", "0", "-1", "x", "", "９０９２"])
def test_a_port_that_cannot_be_is_refused(name: str, port: str) -> None:
    """librdkafka takes the rest of a division by 65,536, and 0 for a word."""
    for host in ("kafka", "SSL://kafka", "[::1]"):
        wrong = f"{host}:{port}"
        said = explain(f"{name}: '{wrong}, b:9092'")
        assert f"{name} has no port in '{wrong}'; write one from 1 to 65535 [" in said


@pytest.mark.parametrize("address", ["a", "a:1", "a:65535", "::1", "[::1]", "[::1]:9", "SSL://a:9"])
def test_an_address_needs_no_port(address: str) -> None:
    assert read(f"bootstrap.servers: 'b:9092, {address}'")


def test_a_port_of_the_token_endpoint_is_one() -> None:
    name = "sasl.oauthbearer.token.endpoint.url"
    assert "write one from 1 to 65535" in explain(f"{name}: https://login.example:65536/token")
    assert read(f"{name}: https://login.example:8443/token?scope=a:b")
