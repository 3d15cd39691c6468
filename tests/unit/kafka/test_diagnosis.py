"""The client's reports, taken apart, and what follows from them and from a probe."""

from __future__ import annotations

from confluent_kafka import KafkaError

from reconciler.errors import Location, keep_secret
from reconciler.kafka.diagnosis import Trouble, explain, read_trouble
from reconciler.kafka.probe import Listener, Reach
from reconciler.kafka.settings import Settings

HERE = Location("clusters.yaml", 1)


def say(
    settings: dict[str, str], troubles: list[Trouble], listeners: dict[str, Listener] | None = None
) -> list[str]:
    found = explain(Settings(settings), troubles, listeners or {}, HERE)
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
        (finding,) = explain(Settings({}), [trouble], listeners, HERE)
        assert str(finding) == (
            "clusters.yaml:1:1: kafka-2:9092, where the cluster says that broker 2 is, cannot be "
            "reached: no host has this name; check advertised.listeners of the broker, and this "
            "machine's way there [connect-host-unknown]"
        )

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
