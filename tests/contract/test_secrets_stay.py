"""What a reference stands for is in no output, whatever becomes of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic
from planted import ENVIRONMENT, MARK, NAMES, echoing, find_planted, refer, use, write_client

from reconciler.cli.app import run
from reconciler.sandbox.cluster import Cluster

if TYPE_CHECKING:
    from security import Secured


@pytest.fixture
def estate(tmp_path: Path, topic_prefix: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of an estate, below which everything is written; secrets are set."""
    monkeypatch.chdir(tmp_path)
    for variable, secret in ENVIRONMENT.items():
        monkeypatch.setenv(variable, secret)
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics" / "a.yaml").write_text(
        f"topic: {topic_prefix}a\npartitions: 2\nreplication_factor: 1\n"
    )
    return tmp_path


def write_clusters(client: dict[str, str], more: str = "") -> None:
    Path("topics/clusters.yaml").write_text(
        f"version: 1\nclusters:\n  lab:\n    client: {write_client(client)}\n{more}"
    )


LAB = ("--cluster", "lab")


def test_a_run_that_succeeds_shows_no_secret_anywhere(
    estate: Path, cluster3: Cluster, topic_prefix: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every property holds one; as text, JSON, annotations, plan, journal, record, snapshot …"""
    servers, audit = cluster3.bootstrap_servers, f"{topic_prefix}audit"
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    admin.create_topics([NewTopic(audit, 1, 1)])[audit].result(15)
    client = {"bootstrap.servers": servers, **refer(*NAMES)}
    for one in (
        "ssl.ca.pem",
        "https.ca.pem",
        "https.ca.location",
    ):  # of two, one excludes the other
        del client[one]
    write_clusters(client, f"    audit_topic: {audit}\n")
    name = f"{topic_prefix}a"
    for form in ("text", "json", "sarif", "junit", "github"):
        assert run(("validate", "topics", "--format", form)) == 0
    for form in ("text", "json", "markdown", "github"):
        assert run(("plan", *LAB, "--format", form, "--unmanaged", "--out", f"{form}.json")) == 0
    assert run(("plan", *LAB, "--explain", name, "--svg", "a.svg")) == 0
    assert run(("show", "text.json")) == 0
    applied = ("apply", "text.json", "--auto-approve", "--journal", "journal.jsonl")
    assert run(applied) == 0
    assert run(("snapshot", *LAB, "--out", "snapshot.json")) == 0
    assert run(("plan", *LAB, "--against", "snapshot.json")) == 0
    assert run(("import", *LAB, "--topic", f"{topic_prefix}*", "topics")) == 0
    assert run(("plan", *LAB, "--debug")) == 0
    assert run(("moves", "status", *LAB, "--debug")) == 0
    said = capfd.readouterr()
    assert "Sent MetadataRequest" in said.err
    record = read_record(servers, audit)
    assert '"fingerprint"' in record
    assert find_planted(estate, said.out, said.err, record) == []


def read_record(servers: str, topic: str) -> str:
    config = {"bootstrap.servers": servers, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer(config)
    consumer.subscribe([topic])
    message = consumer.poll(30)
    consumer.close()
    assert message is not None
    return (message.value() or b"").decode()


# One of each kind: what a login, a token and a certificate need.
GATE = {"sasl.password", "sasl.oauthbearer.client.secret", "ssl.key.pem"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in GATE else pytest.mark.slow) for name in NAMES],
)
def test_a_run_that_fails_shows_no_secret_anywhere(
    estate: Path, secured: Secured, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The property is used; brokers, libraries and token endpoints quote what they were given."""
    with echoing() as endpoint:
        write_clusters(use(name, secured, endpoint))
        run(("plan", *LAB, "--out", "plan.json"))
        run(("apply", *LAB, "--auto-approve", "--journal", "journal.jsonl"))
        run(("plan", *LAB, "--debug"))
    said = capfd.readouterr()
    assert said.out + said.err
    assert find_planted(estate, said.out, said.err) == []


def test_a_token_endpoint_is_quoted_without_the_secret_that_it_quotes(
    estate: Path, secured: Secured, capfd: pytest.CaptureFixture[str]
) -> None:
    with echoing() as endpoint:
        write_clusters(use("sasl.oauthbearer.client.id", secured, endpoint))
        assert run(("plan", *LAB)) == 1
    assert "what is ***:***" in capfd.readouterr().err


@pytest.mark.parametrize("name", ["bootstrap.servers", "sasl.oauthbearer.token.endpoint.url"])
def test_an_address_with_a_reference_is_never_resolved(
    estate: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    variable = next(iter(ENVIRONMENT))
    write_clusters({"bootstrap.servers": "b:1", name: f"${{env:{variable}}}.example:9092"})
    for form in ("text", "json", "sarif", "junit", "github"):
        assert run(("validate", "topics", "--format", form)) == 1
    assert run(("plan", *LAB)) == 1
    said = capfd.readouterr()
    assert "[secret-misplaced]" in said.err
    assert MARK not in said.out + said.err
