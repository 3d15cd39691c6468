"""A fleet of which half is in trouble: every cluster is named, and the rest is complete."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from lab import connect_to
from proxy import FailingNetwork, Fault, Loss
from security import start_secured

from reconciler.cli.app import run
from reconciler.fleet import tables
from reconciler.fleet.lake.attempts import PLAN
from reconciler.fleet.lake.lake import Lake
from reconciler.kafka.reader import KafkaReader
from reconciler.planfile.codec import decode_plan
from reconciler.sandbox.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.fleet, pytest.mark.cluster]

SECRET = "no-such-secret"
WHEN = "20261121T030000Z"
DESCRIBE_CONFIGS = 32
LIMIT_S = 8
WAYS = {
    "bad-credentials": "connect-credentials",
    "blind": "cluster-rights",
    "down": "connect-refused",
    "hung": "fleet-time-limit",
    "malformed": None,  # what the client makes of garbage is not ours to say
    "healthy": "read",
    "slow": "read",
}


class SlowNetwork(FailingNetwork):
    """Passes every answer on a while later."""

    def rewrite(self, answer: bytes) -> bytes:
        time.sleep(0.1)
        return super().rewrite(answer)


class GarblingNetwork(FailingNetwork):
    """Cuts each answer in half that names brokers: metadata, and little else."""

    def rewrite(self, answer: bytes) -> bytes:
        return answer[: len(answer) // 2] if b"127.0.0.1" in answer else answer


class HungNetwork(FailingNetwork):
    """Opens well; what topics are configured to is never told."""

    def strike(self, api: int, version: int, frame: bytes) -> Fault | None:  # noqa: ARG002
        return Fault(api, Loss.SILENT_BEFORE) if api == DESCRIBE_CONFIGS else None


@dataclass(frozen=True)
class Troubled:
    """The estate of a troubled fleet, its lake, and how its collection went."""

    estate: Path
    lake: Path
    code: int
    said: str


@pytest.fixture(scope="module")
def troubled(
    spark: SparkSession, cluster3: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Troubled]:
    place = tmp_path_factory.mktemp("troubled")
    admin = AdminClient({"bootstrap.servers": cluster3.bootstrap_servers})
    topics = [NewTopic(f"troubled-{n}", n, 3, config={"flush.ms": "7"}) for n in (1, 2, 3)]
    for created in admin.create_topics(topics).values():
        created.result(20)
    with ExitStack() as stack:
        networks = {
            name: stack.enter_context(closing(kind(cluster3)))
            for name, kind in (
                ("slow", SlowNetwork),
                ("malformed", GarblingNetwork),
                ("hung", HungNetwork),
            )
        }
        secured = stack.enter_context(start_secured(tmp_path_factory.mktemp("security")))
        servers = {name: network.bootstrap_servers for name, network in networks.items()}
        servers |= {"healthy": cluster3.bootstrap_servers, "down": "127.0.0.1:1"}
        write_estate(place, servers, secured.address("SASLPLAIN"))
        lake = place / "lake"
        words = ["--lake", str(lake), "--time-limit", str(LIMIT_S), "--collection", WHEN]
        code, said = run_job("collect", str(place / "topics"), *words)
        yield Troubled(place / "topics", lake, code, said)


def run_job(*words: str) -> tuple[int, str]:
    """Run a job in the session that is open. Returns: its exit code, and what it printed."""
    with redirect_stdout(StringIO()) as said:
        code = run(["fleet", *words])
    return code, said.getvalue()


def write_estate(place: Path, servers: dict[str, str], sasl: str) -> None:
    (place / "topics").mkdir()
    (place / "wrong").write_text(SECRET)
    (place / "nobody").write_text("nobody-secret")
    entries = [
        f"  {name}: {{client: {{bootstrap.servers: '{at}'}}}}" for name, at in servers.items()
    ]
    for name, user, file in (("bad-credentials", "alice", "wrong"), ("blind", "nobody", "nobody")):
        client = {
            "bootstrap.servers": sasl,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": f"${{file:{place / file}}}",
        }
        entries.append(f"  {name}: {{client: {client}}}")
    clusters = "\n".join(["version: 1", "clusters:", *entries])
    (place / "topics" / "clusters.yaml").write_text(clusters + "\n")
    (place / "topics" / "some.yaml").write_text(
        "topic: troubled-3\npartitions: 5\nconfig: {flush.ms: 7}\n"
    )


def test_every_cluster_is_named_with_its_reason(spark: SparkSession, troubled: Troubled) -> None:
    lake = Lake(spark, str(troubled.lake))
    rows = lake.read(tables.READINGS, lake.find_attempt()).collect()
    found = {row["cluster"]: row["status"] for row in rows}
    assert found.keys() == WAYS.keys()
    assert {name: found[name] for name, rule in WAYS.items() if rule} == {
        name: rule for name, rule in WAYS.items() if rule
    }
    assert found["malformed"] != "read"
    assert all(bool(row["error"]) == (row["status"] != "read") for row in rows)
    assert all(name in troubled.said for name in WAYS)
    assert f"reading hung took longer than {LIMIT_S} s" in troubled.said
    assert troubled.code == 1


def test_the_rest_is_complete(spark: SparkSession, troubled: Troubled, cluster3: Cluster) -> None:
    """What the lake has of a cluster is all that its reader reads, or nothing."""
    with connect_to(cluster3) as connection:
        state = KafkaReader(connection).read_cluster()
    lake = Lake(spark, str(troubled.lake))
    attempt = lake.find_attempt()
    rows = lake.read(tables.PARTITIONS, attempt).collect()
    found = {(r["cluster"], r["topic"], r["partition"]): tuple(r["replicas"]) for r in rows}
    assert found == {
        (name, topic.name, number): replicas
        for name in ("healthy", "slow")
        for topic in state.topics.values()
        for number, replicas in enumerate(topic.assignment)
    }
    configs = lake.read(tables.CONFIGS, attempt).where("config = 'flush.ms'").collect()
    assert {r["topic"] for r in configs} >= {"troubled-1", "troubled-2", "troubled-3"}
    for table in (tables.BROKERS, tables.TOPICS, tables.CONFIGS):
        names = lake.read(table, attempt).select("cluster").distinct().collect()
        assert {row["cluster"] for row in names} == {"healthy", "slow"}
    wished = lake.read(tables.SPECS, attempt).select("cluster").distinct().collect()
    assert {row["cluster"] for row in wished} == WAYS.keys()


def test_the_rest_is_planned(spark: SparkSession, troubled: Troubled, tmp_path: Path) -> None:
    (tmp_path / "down.json").write_text("the plan of a day when it was up")
    words = [str(troubled.estate), "--lake", str(troubled.lake), "--out", str(tmp_path)]
    code, said = run_job("plan", *words)
    assert code == 1
    assert "7 clusters: 2 topics to change, 0 refused, 5 clusters not planned" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["healthy.json", "slow.json"]
    (planned,) = decode_plan((tmp_path / "healthy.json").read_text()).topics
    assert planned.name == "troubled-3"
    lake = Lake(spark, str(troubled.lake))
    rows = lake.read(tables.PLANS, lake.find_attempt(what=PLAN)).collect()
    assert {r["cluster"]: r["status"] for r in rows if WAYS[r["cluster"]]} == {
        name: "planned" if rule == "read" else rule for name, rule in WAYS.items() if rule
    }


def test_chosen_clusters_of_a_collection_are_planned(troubled: Troubled, tmp_path: Path) -> None:
    words = [str(troubled.estate), "--lake", str(troubled.lake), "--cluster", "healthy"]
    code, said = run_job("plan", *words, "--out", str(tmp_path))
    assert code == 0
    assert "1 cluster: 1 topic to change, 0 refused" in said
    assert [path.name for path in tmp_path.iterdir()] == ["healthy.json"]


def test_live_clusters_are_planned(troubled: Troubled, tmp_path: Path) -> None:
    """Those that are named, and each as it is planned alone."""
    chosen = [word for name in ("healthy", "down") for word in ("--cluster", name)]
    words = [str(troubled.estate), "--lake", str(tmp_path / "lake"), "--out", str(tmp_path)]
    code, said = run_job("plan", *words, "--live", *chosen)
    assert code == 1
    assert "2 clusters: 1 topic to change, 0 refused, 1 cluster not planned" in said
    assert [path.name for path in tmp_path.glob("*.json")] == ["healthy.json"]
    alone = tmp_path / "alone.json"
    assert run(["plan", str(troubled.estate), "--cluster", "healthy", "--out", str(alone)]) == 0
    assert (tmp_path / "healthy.json").read_text() == alone.read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--ranges", "2"], "--ranges says how clusters are read; add --live"),
        (["--time-limit", "300"], "--time-limit says how clusters are read; add --live"),
        (["--live", "--collection", WHEN], "--live makes its own collection"),
        (["--cluster", "unheard-of"], "no cluster is called 'unheard-of'; the estate knows:"),
    ],
)
def test_reading_is_asked_for_with_live(
    troubled: Troubled, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = run_job("plan", str(troubled.estate), "--lake", str(troubled.lake), *words)
    assert code == 64
    assert said in capsys.readouterr().err


def test_no_secret_is_kept_or_said(troubled: Troubled) -> None:
    kept = [str(pq.read_table(file).to_pylist()) for file in troubled.lake.rglob("*.parquet")]
    assert len(kept) > 5
    for text in (*kept, troubled.said):
        assert SECRET not in text
        assert "nobody-secret" not in text
