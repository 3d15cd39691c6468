"""The messages of docs/how-to/troubleshoot-*.md that need brokers: each is made here as there."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import NewPartitions
from lab import HERE, create, wait_for
from proxy import failing_network
from test_connections import mutual, oidc, plain, scram
from test_rights import Grants
from troubleshooting import MADE_ON_BROKERS, TOPIC, answer, check_shown, write_estate

from reconciler.kafka import probe
from reconciler.kafka.connection import Connection, connect
from reconciler.kafka.lock import Holder, hold_lock
from reconciler.kafka.reader import KafkaReader
from reconciler.model.steps import CreateTopic
from reconciler.spec.entry import ClusterEntry

if TYPE_CHECKING:
    from security import Secured

pytestmark = pytest.mark.cluster

PLAN = ("plan", "topics", "--cluster", "prod-eu")
APPLY = ("apply", "topics", "--cluster", "prod-eu", "--auto-approve")
ADDRESS = "kafka-1.shop.example:9093"
Made = tuple[str, dict[str, str]]
"""What was printed, and what the page has instead of what differs in each run."""


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    for name in ("PASSWORD", "KAFKA_PASSWORD"):
        monkeypatch.setenv(name, "alice-secret")


def plan_with(client: Mapping[str, str], masks: Mapping[str, str] | None = None) -> Made:
    """Plan with a client that does not fit."""
    write_estate(client)
    return answer(*PLAN), {client["bootstrap.servers"]: ADDRESS, **(masks or {})}


def speak_tls_to_none(secured: Secured) -> Made:
    return plan_with({**mutual(secured), "bootstrap.servers": secured.address("PLAINTEXT")})


def speak_no_tls(secured: Secured) -> Made:
    return plan_with({**plain(secured), "bootstrap.servers": secured.address("SASLSSL")})


def trust_another_authority(secured: Secured) -> Made:
    other = secured.file("other-ca.pem")
    client = {**scram(secured), "ssl.ca.location": other}
    unsigned, masks = plan_with(client, {other: "/etc/kafka/ca.pem"})
    at = secured.address("MISNAMED")
    misnamed, _ = plan_with({**mutual(secured), "bootstrap.servers": at})
    return unsigned + misnamed, {**masks, at: ADDRESS}


def meet_an_expired_certificate(secured: Secured) -> Made:
    client = {**mutual(secured), "bootstrap.servers": secured.address("EXPIRED")}
    return plan_with(client, {f"{datetime.now(UTC):%Y-%m-%d}": "2026-03-01"})


def show_no_certificate(secured: Secured) -> Made:
    shown = ("ssl.certificate.location", "ssl.key.location")
    return plan_with({name: text for name, text in mutual(secured).items() if name not in shown})


def speak_no_sasl(secured: Secured) -> Made:
    return plan_with({"bootstrap.servers": secured.address("SASLPLAIN")})


def speak_sasl_to_none(secured: Secured) -> Made:
    return plan_with({**plain(secured), "bootstrap.servers": secured.address("PLAINTEXT")})


def ask_for_another_mechanism(secured: Secured) -> Made:
    return plan_with({**plain(secured), "sasl.mechanism": "SCRAM-SHA-512"})


def give_a_wrong_password(secured: Secured) -> Made:
    return plan_with({**scram(secured), "sasl.username": "bob"})


def ask_nobody_for_a_token(secured: Secured) -> Made:
    url = "http://127.0.0.1:9/token"
    client = {**oidc(secured), "sasl.oauthbearer.token.endpoint.url": url}
    client["sasl.oauthbearer.client.secret"] = "${env:PASSWORD}"
    write_estate(client)
    said = re.sub(r"after \d+ ms", "after 2 ms", answer(*PLAN))
    page = {"127.0.0.1:9 after": "login.shop.example:443 after"}
    return said, {url: "https://login.shop.example/token", **page}


def ask_a_controller(secured: Secured) -> Made:
    files = secured.cluster.directory.rglob("*.properties")
    voter = next(m[1] for f in files if (m := re.search(r"3000@([\d.:]+)", f.read_text())))
    return plan_with({"bootstrap.servers": voter})


def ask_another_service(_: Secured) -> Made:
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=quiet, text=True) as service:
        try:
            port = re.search(r"port ([0-9]+)", service.stdout.readline())[1]
            return plan_with({"bootstrap.servers": f"127.0.0.1:{port}"})
        finally:
            service.kill()


def ask_by_a_port_forward(secured: Secured) -> Made:
    with failing_network(secured.cluster) as network:
        network.advertise("k.invalid", 9092)
        write_estate({"bootstrap.servers": network.bootstrap_servers})
        return answer(*PLAN), {"k.invalid": "kafka-1.internal"}


def expect_another_cluster(secured: Secured) -> Made:
    write_estate(
        {"bootstrap.servers": secured.address("PLAINTEXT")}, cluster_id="5L6g3nShT-eMCtK--X86sw"
    )
    return answer(*PLAN), {secured.cluster.cluster_id: "GD0BDyv_SL2iApnwMzvPyQ"}


MAKE: dict[str, Callable[[Secured], Made]] = {
    "cluster-id": expect_another_cluster,
    "connect-controller": ask_a_controller,
    "connect-credentials": give_a_wrong_password,
    "connect-mechanism": ask_for_another_mechanism,
    "connect-not-kafka": ask_another_service,
    "connect-sasl-missing": speak_no_sasl,
    "connect-sasl-unwanted": speak_sasl_to_none,
    "connect-tls-client": show_no_certificate,
    "connect-tls-missing": speak_no_tls,
    "connect-tls-unwanted": speak_tls_to_none,
    "connect-tls-untrusted": trust_another_authority,
    "connect-tls-validity": meet_an_expired_certificate,
    "connect-token": ask_nobody_for_a_token,
    "the-address-that-a-broker-advertises": ask_by_a_port_forward,
}


@pytest.mark.parametrize("section", MAKE)
def test_a_connection_that_fails(
    section: str, secured: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "TIMEOUT_S", 4.0)  # a busy machine answers late
    check_shown(section, *MAKE[section](secured))


def test_rights_that_an_account_lacks(
    secured: Secured, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = f"{topic_prefix}events"
    create(connect_unsecured(secured), CreateTopic(topic, ((1,),), {}))
    monkeypatch.setenv("PASSWORD", "planner-secret")
    client = {**plain(secured), "sasl.username": "planner"}
    write_estate(client, TOPIC.replace("orders.events", topic))
    grants = Grants(secured, "planner")
    said = answer(*PLAN)
    try:
        grants.give({"topic": {"DESCRIBE", "DESCRIBE_CONFIGS"}, "cluster": {"DESCRIBE"}})
        wait_for(lambda: "lacks" not in answer(*PLAN))
        said += answer("apply", "topics", "--cluster", "prod-eu", "--check")
    finally:
        grants.take_all()
    check_shown("cluster-rights", said, {topic: "orders.events"})


class TestApply:
    """An estate with one topic, that the cluster lacks or has as specified."""

    @pytest.fixture
    def topic(self, topic_prefix: str, secured: Secured) -> str:
        topic = f"{topic_prefix}events"
        self.write(secured, topic)
        return topic

    @staticmethod
    def write(secured: Secured, topic: str, partitions: int = 2, **keys: str) -> None:
        client = {"bootstrap.servers": secured.address("PLAINTEXT")}
        text = f"topic: {topic}\npartitions: {partitions}\nreplication_factor: 1\n"
        write_estate(client, text, **keys)

    def test_another_run_holds_the_lock(self, secured: Secured, topic: str) -> None:
        ana = Holder("ana", "ci-7", 4242, "2026-03-01T12:00:00Z", "0123456789ab", "6f1e2d3c4b5a")
        with hold_lock(connect_unsecured(secured), ana):
            said = answer(*APPLY, "--lock-timeout", "0")
        check_shown("lock-held", said)
        assert topic in said

    def test_the_audit_topic_is_missing(self, secured: Secured, topic: str) -> None:
        self.write(secured, topic, audit_topic="audit.applies")
        check_shown("audit-topic", answer(*APPLY))

    def test_the_cluster_changed_since_the_plan(self, secured: Secured, topic: str) -> None:
        connection = connect_unsecured(secured)
        create(connection, CreateTopic(topic, ((1,), (1,)), {}))
        self.write(secured, topic, partitions=4)
        answer(*PLAN, "--out", "plan.json")
        connection.client().create_partitions([NewPartitions(topic, 3)])[topic].result(15)
        wait_for(lambda: len(read_topic(connection, topic)) == 3)
        said = answer("apply", "plan.json", "--auto-approve")
        check_shown("plan-stale", said, {topic: "orders.events"})

    def test_another_plan_was_approved(self, topic: str) -> None:
        said = answer(*APPLY, "--expect", "0" * 64)
        found = re.search(r"fingerprint is ([0-9a-f]{64})", said)
        assert found
        assert topic in said
        check_shown("plan-unexpected", said, {found[1]: "6f1e2d3c4b5a…", "0" * 64: "0123456789ab…"})

    def test_the_plan_is_for_another_cluster(self, secured: Secured, topic: str) -> None:
        state = Path("prod.json")
        answer("snapshot", "topics", "--cluster", "prod-eu", "--out", str(state))
        other = "5L6g3nShT-eMCtK--X86sw"
        state.write_text(state.read_text().replace(secured.cluster.cluster_id, other))
        answer(*PLAN, "--against", str(state), "--out", "plan.json")
        masks = {secured.cluster.cluster_id: "GD0BDyv_SL2iApnwMzvPyQ"}
        check_shown("plan-cluster", answer("apply", "plan.json", "--auto-approve"), masks)
        assert topic


def connect_unsecured(secured: Secured) -> Connection:
    entry = ClusterEntry("prod-eu", HERE)
    return connect(entry, bootstrap_servers=secured.address("PLAINTEXT"))


def read_topic(connection: Connection, topic: str) -> tuple[tuple[int, ...], ...]:
    return KafkaReader(connection).read_cluster([topic]).topics[topic].assignment


def test_each_message_of_the_pages_that_needs_brokers_is_made_here() -> None:
    others = {"audit-topic", "cluster-rights", "lock-held", "plan-cluster", "plan-stale"}
    assert MAKE.keys() | others | {"plan-unexpected"} == MADE_ON_BROKERS
