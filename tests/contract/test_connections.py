"""Every way to connect, and every way to fail at it: the reason, the way out, within seconds."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from kafka.net.sasl.oauth import SaslMechanismOAuth
from lab import HERE
from proxy import Loss, failing_network

from reconciler.errors import ClusterError, Finding
from reconciler.kafka import connection, probe, second_client
from reconciler.kafka.connection import PATIENCE_S, connect
from reconciler.kafka.errors import TokenError
from reconciler.kafka.lock import WITHOUT, Holder, hold_lock
from reconciler.kafka.metadata import ClientForAll, ClientPerBroker
from reconciler.kafka.reader import KafkaReader
from reconciler.kafka.second_client import translate_settings
from reconciler.kafka.second_look import read_reassignments
from reconciler.kafka.views import Views
from reconciler.model.rights import GROUP
from reconciler.spec.entry import ClusterEntry

if TYPE_CHECKING:
    from confluent_kafka import Node
    from confluent_kafka.admin import AdminClient
    from proxy import FailingNetwork
    from security import Secured

    from reconciler.kafka.settings import ClientSettings

pytestmark = pytest.mark.cluster

HOLDER = Holder("ana", "desk", 7, "2026-03-01T12:00:00Z")
PASSWORD = {"PASSWORD": "alice-secret"}
SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36


def scram(secured: Secured, mechanism: str = "SCRAM-SHA-512") -> dict[str, str]:
    return {
        "bootstrap.servers": secured.address("SASLSSL"),
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": secured.file("ca.pem"),
        "sasl.mechanism": mechanism,
        "sasl.username": "alice",
        "sasl.password": "${env:PASSWORD}",
    }


def plain(secured: Secured) -> dict[str, str]:
    return {
        "bootstrap.servers": secured.address("SASLPLAIN"),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": "${env:PASSWORD}",
    }


def mutual(secured: Secured) -> dict[str, str]:
    return {
        "bootstrap.servers": secured.address("MTLS"),
        "security.protocol": "SSL",
        "ssl.ca.location": secured.file("ca.pem"),
        "ssl.certificate.location": secured.file("lab-client.pem"),
        "ssl.key.location": secured.file("lab-client.key"),
    }


def inline(secured: Secured) -> dict[str, str]:
    names = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location")
    kept = {name: text for name, text in mutual(secured).items() if name not in names}
    return kept | {
        "ssl.ca.pem": secured.read("ca.pem"),
        "ssl.certificate.pem": secured.read("lab-client.pem"),
        "ssl.key.pem": "${file:" + secured.file("lab-client.key") + "}",
    }


def unsigned(secured: Secured) -> dict[str, str]:
    return {
        "bootstrap.servers": secured.address("OAUTH"),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": "principal=oauth-admin",
    }


def oidc(secured: Secured) -> dict[str, str]:
    return {
        "bootstrap.servers": secured.address("OIDC"),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "oauth-admin",
        "sasl.oauthbearer.client.secret": "oauth-${env:HALF}",
        "sasl.oauthbearer.token.endpoint.url": f"{secured.issuer.url}/token",
    }


def oidc_by_https(secured: Secured) -> dict[str, str]:
    return {
        **oidc(secured),
        "sasl.oauthbearer.token.endpoint.url": f"{secured.issuer.encrypted_url}/token",
        "sasl.oauthbearer.extensions": "organizationId=sales,teamName=orders",
        "https.ca.location": secured.file("ca.pem"),
    }


WAYS = {
    "SCRAM-SHA-512 over TLS": scram,
    "SCRAM-SHA-256 over TLS": lambda secured: scram(secured, "SCRAM-SHA-256"),
    "PLAIN over TLS": lambda secured: scram(secured, "PLAIN"),
    "PLAIN": plain,
    "certificates": mutual,
    "certificates, inline": inline,
    "unsigned tokens": unsigned,
    "OpenID Connect": oidc,
    "OpenID Connect by https": oidc_by_https,
}
ENVIRONMENT = {**PASSWORD, "HALF": "secret"}


def read_with(client: Mapping[str, str], environment: Mapping[str, str] = ENVIRONMENT) -> str:
    with connect(ClusterEntry("lab", HERE, client=client), environment=environment) as connection:
        return str(KafkaReader(connection).read_cluster(()).cluster_id)


@pytest.mark.parametrize("way", WAYS)
class TestWaysIn:
    def test_the_cluster_is_read(self, secured: Secured, way: str) -> None:
        assert read_with(WAYS[way](secured)) == secured.cluster.cluster_id

    def test_single_brokers_are_asked(self, secured: Secured, way: str) -> None:
        entry = ClusterEntry("lab", HERE, client=WAYS[way](secured))
        views = Views(connect(entry, environment=ENVIRONMENT))
        assert list(views.read((), ())) == [1]
        assert isinstance(views._client, ClientForAll)

    def test_the_second_client_gets_in_as_well(self, secured: Secured, way: str) -> None:
        entry = ClusterEntry("lab", HERE, client=WAYS[way](secured))
        connection = connect(entry, environment=ENVIRONMENT)
        assert read_reassignments(connection, {"some-topic"}) == ({}, [])


def by_assertion(secured: Secured) -> dict[str, str]:
    """Return settings for the issuer by RFC 7523; the issuer takes any assertion."""
    assertion = "sasl.oauthbearer.assertion."
    credentials = ("sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret")
    kept = {name: text for name, text in oidc(secured).items() if name not in credentials}
    return kept | {
        "sasl.oauthbearer.grant.type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
        f"{assertion}algorithm": "RS256",
        f"{assertion}private.key.file": secured.file("ca.key"),
        f"{assertion}claim.aud": "issuer",
        f"{assertion}claim.iss": "lab",
        f"{assertion}claim.sub": "lab",
    }


class TestSingleBrokers:
    """Where kafka-python cannot ask single brokers, librdkafka does, with a client for each."""

    def test_settings_that_only_librdkafka_knows(self, secured: Secured) -> None:
        entry = ClusterEntry("lab", HERE, client=by_assertion(secured))
        views = Views(connect(entry, environment=ENVIRONMENT))
        assert list(views.read((), ())) == [1]
        assert isinstance(views._client, ClientPerBroker)

    def test_a_token_that_only_librdkafka_has(
        self, secured: Secured, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        entry = ClusterEntry("lab", HERE, client=unsigned(secured))
        monkeypatch.setattr(second_client, "fetch_token", _fail_to_fetch)
        views = Views(connect(entry, environment=ENVIRONMENT))
        assert list(views.read((), ())) == [1]
        assert isinstance(views._client, ClientPerBroker)

    def test_a_client_that_reaches_no_broker_is_replaced(
        self, secured: Secured, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        entry = ClusterEntry("lab", HERE, client=plain(secured))
        views = Views(connect(entry, environment=ENVIRONMENT))

        def lack(settings: ClientSettings, nodes: Sequence[Node]) -> dict[str, Any]:
            return {**translate_settings(settings, nodes), "sasl_plain_password": "wrong"}

        monkeypatch.setattr(second_client, "translate_settings", lack)
        assert list(views.read((), ())) == [1]
        assert isinstance(views._client, ClientPerBroker)


def _fail_to_fetch(_: ClientSettings) -> str:
    raise TokenError("no OAuth token")


class TestSecondClient:
    """The lock is taken by kafka-python, whose settings and tokens are made from librdkafka's."""

    def test_the_lock_is_had_with_a_token_that_came_by_https(self, secured: Secured) -> None:
        entry = ClusterEntry("lab", HERE, client=oidc_by_https(secured))
        with (
            connect(entry, environment=ENVIRONMENT) as connection,
            hold_lock(connection, HOLDER) as lease,
        ):
            lease.check()

    def test_a_way_to_tokens_that_it_does_not_know_is_named(self, secured: Secured) -> None:
        client = by_assertion(secured)
        assert read_with(client) == secured.cluster.cluster_id
        assert self.lose(client) == (
            "the lock of lab is taken by a second client: sasl.oauthbearer.grant.type "
            f"{client['sasl.oauthbearer.grant.type']} is not supported there, only "
            f"client_credentials; {WITHOUT[GROUP]} [lock-unavailable]"
        )

    def test_a_token_that_it_cannot_have_is_named(
        self, secured: Secured, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        entry = ClusterEntry("lab", HERE, client=oidc(secured))
        with connect(entry, environment=ENVIRONMENT) as connection:
            connection.client()
            monkeypatch.setattr(secured.issuer, "secret", "changed")
            with pytest.raises(ClusterError) as refused, hold_lock(connection, HOLDER):
                pass
        (finding,) = refused.value.findings
        assert finding.what == (
            "the lock of lab is taken by a second client: no OAuth token comes from "
            f"{secured.issuer.url}/token: HTTPError: HTTP Error 401: Unauthorized"
        )

    def test_extensions_go_along_with_the_token(self, secured: Secured) -> None:
        extensions = {"sasl.oauthbearer.extensions": "organizationId=sales,teamName=orders"}
        entry = ClusterEntry("lab", HERE, client={**oidc(secured), **extensions})
        settings = connect(entry, environment=ENVIRONMENT).settings
        sent = SaslMechanismOAuth(**translate_settings(settings, ())).auth_bytes()
        token, *others = sent.removeprefix(b"n,,\x01auth=Bearer ").split(b"\x01")
        assert token.count(b".") == 2
        assert others == [b"organizationId=sales", b"teamName=orders", b"", b""]

    def lose(self, client: Mapping[str, str]) -> str:
        """Return why the lock cannot be had."""
        entry = ClusterEntry("lab", HERE, client=client)
        with (
            connect(entry, environment=ENVIRONMENT) as connection,
            pytest.raises(ClusterError) as refused,
            hold_lock(connection, HOLDER),
        ):
            pass
        return str(refused.value)


def fail(client: Mapping[str, str], environment: Mapping[str, str] = ENVIRONMENT) -> str:
    """Return the one finding of a connection that fails, without place.

    The reason is found before the client gives up its wait for the first answer.
    """
    started = time.monotonic()
    with pytest.raises(ClusterError) as refused:
        read_with(client, environment)
    assert time.monotonic() - started < PATIENCE_S
    (finding,) = refused.value.findings
    assert finding.where == HERE
    return str(finding).removeprefix(f"{HERE}: ")


class TestWaysToFail:
    def test_bad_password(self, secured: Secured) -> None:
        at = secured.address("SASLSSL")
        assert fail(scram(secured), {"PASSWORD": "wrong-secret"}) == (
            f"{at} does not accept the credentials of SCRAM-SHA-512: Authentication failed during "
            "authentication due to invalid credentials with SASL mechanism SCRAM-SHA-512; check "
            "sasl.username, and what sasl.password refers to [connect-credentials]"
        )
        at = secured.address("SASLPLAIN")
        assert fail(plain(secured), {"PASSWORD": "wrong-secret"}) == (
            f"{at} does not accept the credentials of PLAIN: Authentication failed: Invalid "
            "username or password; check sasl.username, and what sasl.password refers to "
            "[connect-credentials]"
        )

    def test_wrong_authority(self, secured: Secured) -> None:
        other = secured.file("other-ca.pem")
        assert fail({**scram(secured), "ssl.ca.location": other}) == (
            f"the certificate of {secured.address('SASLSSL')} is not signed by ssl.ca.location "
            f"{other}; set ssl.ca.location to the authority that signed it "
            "[connect-tls-untrusted]"
        )

    def test_certificate_of_another_name(self, secured: Secured) -> None:
        at = secured.address("MISNAMED")
        assert fail({**mutual(secured), "bootstrap.servers": at}) == (
            f"the certificate of {at} is for another name; use a name that the certificate holds "
            "in bootstrap.servers [connect-tls-untrusted]"
        )

    def test_certificate_that_expired(self, secured: Secured) -> None:
        at = secured.address("EXPIRED")
        said = fail({**mutual(secured), "bootstrap.servers": at})
        assert re.sub(r"\d{4}-\d\d-\d\d \[", "TODAY [", said) == (
            f"the certificate of {at} expired on 2020-02-01 10:30 UTC; renew the certificate of "
            "the broker, or correct the clock of this machine, which says TODAY "
            "[connect-tls-validity]"
        )

    def test_certificate_that_is_not_yet_valid(self, secured: Secured) -> None:
        at = secured.address("EARLY")
        said = fail({**mutual(secured), "bootstrap.servers": at})
        assert said.startswith(
            f"the certificate of {at} is not valid before 2099-01-01 10:30 UTC; renew "
        )
        assert said.endswith("[connect-tls-validity]")

    def test_expired_certificate_of_a_stranger_is_untrusted(self, secured: Secured) -> None:
        other = {"ssl.ca.location": secured.file("other-ca.pem")}
        client = {**mutual(secured), **other, "bootstrap.servers": secured.address("EXPIRED")}
        assert fail(client).endswith("[connect-tls-untrusted]")

    def test_missing_client_certificate(self, secured: Secured) -> None:
        client = mutual(secured)
        del client["ssl.certificate.location"], client["ssl.key.location"]
        assert fail(client) == (
            f"{secured.address('MTLS')} asks for a client certificate, and none is configured; "
            "set ssl.certificate.location and ssl.key.location [connect-tls-client]"
        )

    def test_client_certificate_of_a_stranger(self, secured: Secured) -> None:
        names = {"ssl.certificate.location": "stranger.pem", "ssl.key.location": "stranger.key"}
        client = {name: secured.file(file) for name, file in names.items()}
        said = fail({**mutual(secured), **client})
        assert re.fullmatch(
            rf"{secured.address('MTLS')} does not accept the client certificate \([a-z ]+\); use "
            r"a certificate that is valid today, and signed by an authority that the brokers "
            r"trust \[connect-tls-client\]",
            said,
        )

    def test_mechanism_that_is_not_offered(self, secured: Secured) -> None:
        at = secured.address("SASLPLAIN")
        assert fail({**plain(secured), "sasl.mechanism": "SCRAM-SHA-512"}) == (
            f"{at} offers SASL PLAIN, not SCRAM-SHA-512; set sasl.mechanism to PLAIN "
            "[connect-mechanism]"
        )

    def test_tls_on_a_port_without(self, secured: Secured) -> None:
        at = secured.address("PLAINTEXT")
        assert fail({**mutual(secured), "bootstrap.servers": at}) == (
            f"{at} does not speak TLS, and security.protocol is SSL; use the port that does, or "
            "PLAINTEXT [connect-tls-unwanted]"
        )

    def test_no_tls_on_a_port_with(self, secured: Secured) -> None:
        at = secured.address("MTLS")
        assert fail({"bootstrap.servers": at}) == (
            f"{at} speaks TLS, and security.protocol is PLAINTEXT; set security.protocol to SSL, "
            "and ssl.ca.location [connect-tls-missing]"
        )
        at = secured.address("SASLSSL")
        assert fail({**plain(secured), "bootstrap.servers": at}) == (
            f"{at} speaks TLS, and security.protocol is SASL_PLAINTEXT; set security.protocol to "
            "SASL_SSL, and ssl.ca.location [connect-tls-missing]"
        )

    def test_no_sasl_on_a_port_with(self, secured: Secured) -> None:
        at = secured.address("SASLPLAIN")
        assert fail({"bootstrap.servers": at}) == (
            f"{at} asks for SASL (PLAIN), and security.protocol is PLAINTEXT; set "
            "security.protocol to SASL_PLAINTEXT, sasl.mechanism, and what that needs "
            "[connect-sasl-missing]"
        )

    def test_sasl_on_a_port_without(self, secured: Secured) -> None:
        at = secured.address("PLAINTEXT")
        assert fail({**plain(secured), "bootstrap.servers": at}) == (
            f"{at} does not speak SASL, and security.protocol is SASL_PLAINTEXT; use the port that "
            "does, or PLAINTEXT [connect-sasl-unwanted]"
        )

    def test_token_that_cannot_be_had(self, secured: Secured) -> None:
        said = fail(oidc(secured), {"HALF": "wrong"})
        assert said.startswith(f"no OAuth token comes from {secured.issuer.url}/token: ")
        assert said.endswith("[connect-token]")
        assert "wrong" not in said
        nowhere = "http://127.0.0.1:9/token"
        client = {**oidc(secured), "sasl.oauthbearer.token.endpoint.url": nowhere}
        assert fail(client).startswith(f"no OAuth token comes from {nowhere}: Failed to connect")

    def test_token_endpoint_of_a_stranger(self, secured: Secured) -> None:
        other = {"https.ca.location": secured.file("other-ca.pem")}
        said = fail({**oidc_by_https(secured), **other})
        assert said.startswith(f"no OAuth token comes from {secured.issuer.encrypted_url}/token: ")
        assert said.endswith(
            "; set https.ca.location to the authority that signed the certificate of the "
            "endpoint, or to probe for the authorities of this machine [connect-token]"
        )

    def test_nothing_listens(self) -> None:
        assert fail({"bootstrap.servers": "127.0.0.1:9"}) == (
            "127.0.0.1:9 refuses the connection: nothing listens there; check the port, and that "
            "the broker runs [connect-refused]"
        )

    def test_an_address_of_the_command_line_is_not_blamed_on_clusters_yaml(self) -> None:
        entry = ClusterEntry("lab", HERE, client={"bootstrap.servers": "127.0.0.1:10"})
        for servers, way_out in (
            ("127.0.0.1:9", "check the port, and that the broker runs"),
            ("broker.invalid:1", "check the name in --bootstrap-servers, and this machine's DNS"),
        ):
            connection = connect(entry, bootstrap_servers=servers)
            with connection, pytest.raises(ClusterError) as refused:
                connection.client()
            (finding,) = refused.value.findings
            assert (finding.where, finding.way_out) == (None, way_out)
            assert finding.what.startswith(servers)

    def test_no_such_host(self) -> None:
        assert fail({"bootstrap.servers": "broker.invalid:9092"}) == (
            "broker.invalid:9092 cannot be reached: no host has this name; check the name in "
            "bootstrap.servers, and this machine's DNS [connect-host-unknown]"
        )

    def test_controllers_port(self, secured: Secured) -> None:
        files = secured.cluster.directory.rglob("*.properties")
        voters = next(m for f in files if (m := re.search(r"3000@([\d.:]+)", f.read_text())))
        assert fail({"bootstrap.servers": voters[1]}) == (
            f"{voters[1]} is the port of a KRaft controller, which knows no topics; use the port "
            "that the broker's listeners name for clients [connect-controller]"
        )

    def test_another_service(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(probe, "TIMEOUT_S", 4.0)  # a busy machine answers late
        command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"]
        quiet = subprocess.DEVNULL
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=quiet, text=True) as service:
            at = f"127.0.0.1:{re.search(r'port ([0-9]+)', service.stdout.readline())[1]}"
            try:
                assert fail({"bootstrap.servers": at}) == (
                    f"{at} answers, but not as Kafka does; check the port: another service listens "
                    "there [connect-not-kafka]"
                )
            finally:
                service.kill()

    def test_property_that_the_client_does_not_take(self, secured: Secured) -> None:
        said = fail({**scram(secured), "security.protocol": "SASL"})
        assert said.startswith("the client does not accept its settings: ")
        assert said.endswith("correct that property in clusters.yaml [client-property-value]")

    def test_two_reasons_are_both_said(self, secured: Secured) -> None:
        servers = f"broker.invalid:9092,{secured.address('MTLS')}"
        with pytest.raises(ClusterError) as refused:
            read_with({"bootstrap.servers": servers})
        rules = [finding.rule for finding in refused.value.findings]
        assert rules == ["connect-host-unknown", "connect-tls-missing"]


class TestAskingAgain:
    @pytest.mark.parametrize(
        "code", [KafkaError.FENCED_LEADER_EPOCH, KafkaError.KAFKA_STORAGE_ERROR]
    )
    def test_an_answer_that_passes_is_asked_for_again(self, secured: Secured, code: int) -> None:
        """As where a leader moves while a question is under way; the broker is asked for real."""
        asked = []

        def question(client: AdminClient) -> str:
            asked.append(client)
            if len(asked) == 1:
                raise KafkaException(KafkaError(code))
            return str(client.describe_cluster(request_timeout=10).result().cluster_id)

        servers = secured.address("PLAINTEXT")
        with connect(ClusterEntry("lab", HERE), bootstrap_servers=servers) as connection:
            assert connection.ask(question, "asking") == secured.cluster.cluster_id
        assert len(asked) == 2


@pytest.fixture
def silent() -> Iterator[str]:
    """Return the address of a port that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


class TestSilence:
    @pytest.mark.slow
    def test_no_answer_at_all_is_said_after_ten_seconds(self, silent: str) -> None:
        started = time.monotonic()
        with pytest.raises(ClusterError, match=r"does not answer.*\[connect-timeout\]"):
            read_with({"bootstrap.servers": silent})
        assert 9 < time.monotonic() - started < 12

    def test_one_silent_server_does_not_hold_up_the_others(
        self, secured: Secured, silent: str
    ) -> None:
        servers = f"{silent},{secured.address('PLAINTEXT')}"
        started = time.monotonic()
        for _ in range(3):  # whichever the client takes first
            assert read_with({"bootstrap.servers": servers}) == secured.cluster.cluster_id
        assert time.monotonic() - started < 12

    def test_one_refusing_server_does_not_hold_up_the_others(self, secured: Secured) -> None:
        servers = f"127.0.0.1:9,{secured.address('PLAINTEXT')}"
        assert read_with({"bootstrap.servers": servers}) == secured.cluster.cluster_id


@pytest.fixture
def dropping() -> Iterator[int]:
    """Yield a port whose packets are dropped: its queue of connections is full."""
    with socket.socket() as server, ExitStack() as queue:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(3):
            waiting = queue.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        yield server.getsockname()[1]


class TestAdvertisedAddresses:
    """As behind a port-forward, a container or a load balancer: the first server answers."""

    WAY_OUT = "check advertised.listeners of the broker, and the network from this machine"

    def fail(self, network: FailingNetwork, host: str, port: int) -> Sequence[Finding]:
        network.advertise(host, port)
        with pytest.raises(ClusterError) as refused:
            read_with({"bootstrap.servers": network.bootstrap_servers})
        return refused.value.findings

    @pytest.mark.parametrize("delay_s", [0.0, 0.6, 2.0])
    def test_one_that_refuses_is_named_also_on_a_slow_machine(
        self, secured: Secured, delay_s: float
    ) -> None:
        """The servers of clusters.yaml are probed after a second, before the client knows it."""
        with failing_network(secured.cluster) as network:
            network.delay_s = delay_s
            (finding,) = self.fail(network, "127.0.0.1", 9)
        assert (finding.rule, finding.way_out) == ("connect-refused", self.WAY_OUT)
        assert finding.what.startswith("127.0.0.1:9, where the cluster says that broker 1 is, ")

    def test_one_that_is_unknown_is_named(self, secured: Secured) -> None:
        with failing_network(secured.cluster) as network:
            (finding,) = self.fail(network, "k.invalid", 9092)
        assert (finding.rule, finding.way_out) == ("connect-host-unknown", self.WAY_OUT)

    @pytest.mark.parametrize("silence", ["dropping", "silent"])
    def test_one_that_never_answers_is_named(
        self,
        secured: Secured,
        silence: str,
        request: pytest.FixtureRequest,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(connection, "PATIENCE_S", 5.0)
        port = int(str(request.getfixturevalue(silence)).rpartition(":")[2])
        with failing_network(secured.cluster) as network:
            (finding,) = self.fail(network, "127.0.0.1", port)
        assert finding.what == (
            f"127.0.0.1:{port}, where the cluster says that broker 1 is, does not answer"
        )
        assert (finding.rule, finding.way_out) == ("connect-timeout", self.WAY_OUT)

    def test_one_that_is_lost_later_is_named(
        self, secured: Secured, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(connection, "PAUSES_S", ())
        servers = secured.address("PLAINTEXT")

        def question(client: AdminClient) -> str:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

        with connect(ClusterEntry("lab", HERE), bootstrap_servers=servers) as opened:
            opened.client()
            opened._nodes = [SimpleNamespace(id=2, host="127.0.0.1", port=9)]
            with pytest.raises(ClusterError) as refused:
                opened.ask(question, "asking")
        lost, unreachable = refused.value.findings
        assert (lost.rule, unreachable.rule) == ("connect-lost", "connect-refused")
        assert unreachable.what.startswith("127.0.0.1:9, where the cluster says that broker 2 is, ")


class TestWhoAnswersIsNotBlamed:
    @pytest.mark.parametrize("request_kind", [SASL_HANDSHAKE, SASL_AUTHENTICATE])
    def test_a_server_that_hangs_up_during_sasl_is_no_firewall(
        self, secured: Secured, request_kind: int
    ) -> None:
        with failing_network(secured.cluster, "SASLPLAIN") as network:
            network.lose(request_kind, Loss.CUT_BEFORE, skip=0, times=1_000_000)
            servers = {"bootstrap.servers": network.bootstrap_servers}
            assert fail({**plain(secured), **servers}) == (
                f"{network.bootstrap_servers} closes the connection during SASL PLAIN, without a "
                "reason; check sasl.username, and what sasl.password refers to; the log of the "
                "broker may say why [connect-credentials]"
            )

    def test_a_server_that_never_ends_sasl_is_no_firewall(
        self, secured: Secured, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(connection, "PATIENCE_S", 5.0)
        with failing_network(secured.cluster, "SASLPLAIN") as network:
            network.lose(SASL_AUTHENTICATE, Loss.SILENT_BEFORE, skip=0, times=1_000_000)
            with pytest.raises(ClusterError) as refused:
                read_with({**plain(secured), "bootstrap.servers": network.bootstrap_servers})
            at = network.bootstrap_servers
        (finding,) = refused.value.findings
        assert finding.what == (
            f"{at} accepts connections, but the client has no answer after 5 s "
            f"({at} does not finish SASL PLAIN)"
        )
        assert "firewall" not in finding.way_out


class TestSecrets:
    """What a secret resolves to reaches the client, and nothing that a person or a file sees."""

    def test_bootstrap_servers_go_before_the_file(self, secured: Secured) -> None:
        entry = ClusterEntry("lab", HERE, client={**plain(secured), "bootstrap.servers": "x:1"})
        connection = connect(
            entry, bootstrap_servers=secured.address("SASLPLAIN"), environment=ENVIRONMENT
        )
        assert KafkaReader(connection).read_cluster(()).cluster_id == secured.cluster.cluster_id

    def test_a_process_that_fails_prints_no_secret(self, secured: Secured, tmp_path: Path) -> None:
        """Neither in its message, nor in a traceback, nor through the client's own log."""
        script = tmp_path / "script.py"
        script.write_text(
            "import sys\n"
            "from reconciler.errors import Location\n"
            "from reconciler.kafka.reader import KafkaReader\n"
            "from reconciler.kafka.connection import connect\n"
            "from reconciler.spec.entry import ClusterEntry\n"
            f"entry = ClusterEntry('lab', Location('c.yaml', 1), client={scram(secured)!r})\n"
            "connection = connect(entry)\n"
            "print(connection, vars(connection), connection.settings)\n"
            "KafkaReader(connection).read_cluster()\n"
        )
        environment = {**os.environ, "PASSWORD": "wr0ng-S3cret-of-mine"}
        done = subprocess.run(
            [sys.executable, str(script)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        assert "does not accept the credentials" in done.stderr
        assert "S3cret" not in done.stdout + done.stderr
