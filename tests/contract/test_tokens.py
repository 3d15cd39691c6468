"""Runs that outlive their tokens, and the ways to tokens that clouds have."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
from lab import HERE
from msk import MskFront, msk_front
from proxy import FailingNetwork
from sts import ROLE, ROLE_KEY, ROLE_SECRET, serving_sts

from reconciler.cli.app import run
from reconciler.errors import ClusterError
from reconciler.kafka.connection import REQUEST_S, Connection, connect
from reconciler.kafka.lock import Holder, hold_lock
from reconciler.kafka.reader import KafkaReader
from reconciler.kafka.second_look import read_reassignments
from reconciler.spec.entry import ClusterEntry

if TYPE_CHECKING:
    from security import Secured

pytestmark = pytest.mark.cluster

HOLDER = Holder("ana", "desk", 7, "2026-03-01T12:00:00Z")
SASL_AUTHENTICATE = 36
KEY, SECRET = "AKIALAB", "lab-S3cret-key"


class Counting(FailingNetwork):
    """A network that only counts: requests by kind, and connections."""

    def __init__(self, secured: Secured, listener: str) -> None:
        self.counted = Counter[int]()
        self.connections = 0
        super().__init__(secured.cluster, listener)

    def strike(self, api: int, version: int, frame: bytes) -> None:  # noqa: ARG002
        self.counted[api] += 1

    def link(self, client: Any, broker: Any) -> None:
        self.connections += 1
        super().link(client, broker)


@pytest.fixture
def counting(secured: Secured) -> Iterator[Counting]:
    network = Counting(secured, "OAUTH")
    yield network
    network.close()


@pytest.fixture
def front(secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MskFront]:
    """Put an IAM listener before the broker, and keys of AWS in the environment."""
    for variable in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    for variable in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    with msk_front(secured.cluster, secured.directory, {KEY: SECRET}) as front:
        yield front


def unsigned(network: FailingNetwork, seconds: int) -> dict[str, str]:
    return {
        "bootstrap.servers": network.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": f"principal=oauth-admin lifeSeconds={seconds}",
    }


def msk(front: MskFront, secured: Secured, **more: str) -> dict[str, str]:
    return {
        "bootstrap.servers": front.bootstrap_servers,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": secured.file("ca.pem"),
        "sasl.mechanism": "AWS_MSK_IAM",
        "aws.region": "eu-west-1",
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def open_lab(client: dict[str, str]) -> Connection:
    return connect(ClusterEntry("lab", HERE, client=client), environment={"HALF": "secret"})


def ask_for(connection: Connection, seconds: float) -> None:
    """Ask both clients for a while: the lock is kept by the second one."""
    client = connection.client()
    with hold_lock(connection, HOLDER) as lease:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            lease.check()
            client.describe_cluster(request_timeout=REQUEST_S).result()
            time.sleep(0.3)
    assert connection.client() is client


class TestOutlived:
    """Both clients authenticate again, on the connections that they have."""

    def test_unsigned_tokens_of_a_broker(self, counting: Counting) -> None:
        with open_lab(unsigned(counting, 5)) as connection:
            ask_for(connection, 12)
        assert counting.counted[SASL_AUTHENTICATE] >= 2 * 3
        assert counting.counted[SASL_AUTHENTICATE] > counting.connections

    def test_tokens_of_msk(
        self, front: MskFront, secured: Secured, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(MSKAuthTokenProvider, "DEFAULT_TOKEN_EXPIRY_SECONDS", 5)
        with open_lab(msk(front, secured)) as connection:
            ask_for(connection, 13)
        assert len(front.tokens) >= 3
        often = [session for session in front.sessions if len(session.authenticated) >= 3]
        assert len(often) >= 2  # one of each client

    @pytest.mark.slow
    def test_a_client_that_waits_meanwhile(
        self, front: MskFront, secured: Secured, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As at the question for approval: nothing is asked, and nobody polls the client."""
        monkeypatch.setattr(MSKAuthTokenProvider, "DEFAULT_TOKEN_EXPIRY_SECONDS", 5)
        with open_lab(msk(front, secured)) as connection:
            client = connection.client()
            time.sleep(9)
            client.describe_cluster(request_timeout=REQUEST_S).result()
        assert len(front.tokens) >= 3


class TestMsk:
    def test_a_role_reads_the_cluster(
        self, front: MskFront, secured: Secured, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        front.secrets = {ROLE_KEY: ROLE_SECRET}
        with serving_sts() as sts:
            monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sts.url)
            with open_lab(msk(front, secured, aws_role_arn=ROLE)) as connection:
                found = KafkaReader(connection).read_cluster(())
                assert read_reassignments(connection, {"some-topic"}) == ({}, [])
        assert found.cluster_id == secured.cluster.cluster_id
        assert len(sts.asked) == 1

    def fail(self, client: dict[str, str]) -> str:
        with open_lab(client) as connection, pytest.raises(ClusterError) as refused:
            connection.client()
        (finding,) = refused.value.findings
        return str(finding).removeprefix(f"{HERE}: ")

    def test_keys_that_msk_does_not_accept(self, front: MskFront, secured: Secured) -> None:
        front.secrets = {KEY: "another-S3cret"}
        assert self.fail(msk(front, secured)) == (
            f"{front.bootstrap_servers} does not accept the credentials of AWS_MSK_IAM: [5f0c]: "
            "Access denied; check that the IAM policy of these credentials allows "
            "kafka-cluster:Connect on this cluster, and that aws.region is its region "
            "[connect-credentials]"
        )

    def test_a_region_that_is_not_the_clusters(self, front: MskFront, secured: Secured) -> None:
        said = self.fail(msk(front, secured, aws_region="us-east-1"))
        assert said.endswith("and that aws.region is its region [connect-credentials]")

    def test_the_port_for_passwords(self, secured: Secured, front: MskFront) -> None:
        at = secured.address("SASLSSL")
        said = self.fail(msk(front, secured, bootstrap_servers=at))
        assert said.startswith(f"{at} offers SASL ")
        assert ", not OAUTHBEARER; use the port for IAM, such as 9098, or set " in said
        assert said.endswith("[connect-mechanism]")

    def test_keys_that_are_taken_away_during_a_run(
        self, front: MskFront, secured: Secured, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As where a login of a person is over: the reason is said, not that brokers are lost."""
        monkeypatch.setattr(MSKAuthTokenProvider, "DEFAULT_TOKEN_EXPIRY_SECONDS", 2)
        monkeypatch.setattr("reconciler.kafka.connection.PAUSES_S", (0.2,))
        monkeypatch.setattr("reconciler.kafka.connection.REQUEST_S", 2.0)
        with open_lab(msk(front, secured)) as connection:
            connection.client()
            connection.settings.tokens._credentials = None
            monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
            time.sleep(2.5)
            with pytest.raises(ClusterError) as refused:
                connection.ask(
                    lambda client: client.describe_cluster(request_timeout=2).result(), "asking"
                )
        (finding,) = refused.value.findings
        assert finding.rule == "connect-token"
        assert "missing: AWS_SECRET_ACCESS_KEY" in finding.what

    def test_no_output_holds_a_secret(
        self,
        front: MskFront,
        secured: Secured,
        topic_prefix: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.chdir(tmp_path)
        write_estate(msk(front, secured), topic_prefix, 1)
        apply = ("apply", "--cluster", "lab", "--auto-approve", "--debug", "--journal", "journal")
        assert run(("plan", "--cluster", "lab", "--out", "plan.json")) == 0
        assert run(apply) == 0
        front.secrets = {}
        assert run(("plan", "--cluster", "lab", "--debug")) == 1
        said = capfd.readouterr()
        assert "Sent MetadataRequest" in said.err
        files = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
        assert len(front.tokens) >= 1
        for secret in (SECRET, *(token[:60] for token in front.tokens)):
            assert not [text for text in (said.out, said.err, *files) if secret in text]


def write_estate(client: dict[str, str], prefix: str, topics: int) -> None:
    """Write an estate of some topics below the current directory."""
    Path("topics").mkdir()
    clusters = {"version": 1, "clusters": {"lab": {"client": client}}}
    Path("topics/clusters.yaml").write_text(json.dumps(clusters))
    for number in range(topics):
        Path(f"topics/{number}.yaml").write_text(
            f"topic: {prefix}{number}\npartitions: 1\nreplication_factor: 1\n"
        )


@pytest.mark.slow
@pytest.mark.parametrize("way", ["unsigned", "msk"])
def test_an_apply_outlives_several_tokens_of_ten_seconds(
    way: str,
    counting: Counting,
    front: MskFront,
    secured: Secured,
    topic_prefix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The network holds back every answer, so that it takes long."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(MSKAuthTokenProvider, "DEFAULT_TOKEN_EXPIRY_SECONDS", 10)
    network = counting if way == "unsigned" else front
    client = unsigned(counting, 10) if way == "unsigned" else msk(front, secured)
    write_estate(client, topic_prefix, 12)
    network.delay_s = 0.9
    started = time.monotonic()
    assert run(("apply", "--cluster", "lab", "--auto-approve")) == 0
    took_s = time.monotonic() - started
    said = capfd.readouterr()
    assert "Applied: 12 done" in said.out
    assert took_s > 33
    if way == "msk":
        assert len(front.tokens) >= 3
    else:
        assert counting.counted[SASL_AUTHENTICATE] > counting.connections


@contextmanager
def cloud(secured: Secured) -> Iterator[tuple[str, list[str]]]:
    """Yield the address of a token server of a cloud, and the paths that were asked.

    It answers a GET as Azure's metadata service does, and a POST as Google's local server, to which
    it does not matter who asks.
    """
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            answer = {"access_token": secured.issuer.token(), "expires_in": "300"}
            status = 200 if self.headers["Metadata"] == "true" else 400
            secured.issuer.answer(self, status, answer)

        def do_POST(self) -> None:
            asked.append(self.path)
            self.rfile.read(int(self.headers["Content-Length"]))
            secured.issuer.answer(self, 200, {"access_token": secured.issuer.token()})

        def log_message(self, *_: object) -> None:
            """Keep the tests' output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


def test_a_managed_identity_of_azure_is_followed_by_both_clients(secured: Secured) -> None:
    query = "api-version=2025-04-07&resource=api://kafka&client_id=1234"
    with cloud(secured) as (address, asked):
        client = {
            "bootstrap.servers": secured.address("OIDC"),
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.metadata.authentication.type": "azure_imds",
            "sasl.oauthbearer.config": f"query={query}",
            "sasl.oauthbearer.token.endpoint.url": f"{address}/metadata/identity/oauth2/token",
        }
        with open_lab(client) as connection:
            assert KafkaReader(connection).read_cluster(()).cluster_id == secured.cluster.cluster_id
            assert read_reassignments(connection, {"some-topic"}) == ({}, [])
    assert len(asked) >= 2
    assert set(asked) == {f"/metadata/identity/oauth2/token?{query}"}


def test_the_local_token_server_of_google_is_followed_by_both_clients(secured: Secured) -> None:
    """It takes any id and secret, which librdkafka wants to have."""
    with cloud(secured) as (address, asked):
        client = {
            "bootstrap.servers": secured.address("OIDC"),
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": "unused",
            "sasl.oauthbearer.client.secret": "${env:HALF}",
            "sasl.oauthbearer.token.endpoint.url": address,
        }
        with open_lab(client) as connection:
            assert KafkaReader(connection).read_cluster(()).cluster_id == secured.cluster.cluster_id
            assert read_reassignments(connection, {"some-topic"}) == ({}, [])
    assert len(asked) >= 2
