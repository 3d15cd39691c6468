"""The sources of Spark: who is contacted, what is asked for, and what a commit holds."""

from __future__ import annotations

import json
import socket
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from lab import HERE
from moving import RATE, SIZE, Moving
from proxy import FailingNetwork

from reconciler.cli.app import run
from reconciler.errors import FleetError, SpecError
from reconciler.fleet import tables
from reconciler.fleet.source.kafka_metadata import (
    KafkaMetadata,
    KafkaMetadataReader,
    choose_clusters,
    settle_readings,
)
from reconciler.fleet.source.spec_tree import SpecTree, find_tree
from reconciler.sandbox.cluster import Cluster
from reconciler.spec.entry import ClusterEntry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

DESCRIBE_CONFIGS = 32
STATE = [table.name for table in tables.STATE]


def load(
    spark: SparkSession,
    servers: dict[str, str],
    ranges: int = 1,
    schema: StructType | None = None,
    **client: str,
) -> DataFrame:
    spark.dataSource.register(KafkaMetadata)
    entries = [ClusterEntry(name, HERE, client=client) for name in servers]
    reader = spark.read.format("kafka_metadata").options(
        **choose_clusters(entries, servers, ranges)
    )
    return (reader if schema is None else reader.schema(schema)).load()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        listening.setblocking(False)
        yield listening


@pytest.mark.fleet
@pytest.mark.cluster
class TestFilters:
    @pytest.mark.parametrize("wanted", ["cluster = 'lab'", "cluster IN ('lab', 'other')"])
    def test_only_the_wanted_cluster_is_contacted(
        self, spark: SparkSession, cluster3: Cluster, listener: socket.socket, wanted: str
    ) -> None:
        unwanted = f"127.0.0.1:{listener.getsockname()[1]}"
        facts = load(spark, {"lab": cluster3.bootstrap_servers, "unwanted": unwanted})
        rows = facts.where(wanted).where("table = 'readings'").collect()
        assert [(row["cluster"], row["status"]) for row in rows] == [("lab", "read")]
        with pytest.raises(BlockingIOError):
            listener.accept()

    def test_the_listener_would_have_seen_a_connection(self, listener: socket.socket) -> None:
        with socket.create_connection(listener.getsockname()):
            listener.accept()[0].close()


@pytest.mark.fleet
@pytest.mark.cluster
def test_ranges_split_topics_without_loss_or_doubles(
    spark: SparkSession, cluster3: Cluster, topic_prefix: str
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster3.bootstrap_servers})
    topics = [NewTopic(f"{topic_prefix}{n}", 2, 3, config={"flush.ms": "7"}) for n in range(9)]
    for created in admin.create_topics(topics).values():
        created.result(20)
    servers = {"lab": cluster3.bootstrap_servers}
    whole, split = (
        sorted(
            repr((row["table"], row["topic"], row["partition"], row["config"], row["id"]))
            for row in load(spark, servers, ranges).collect()
        )
        for ranges in (1, 4)
    )
    assert split == whole
    assert len(set(whole)) == len(whole)
    assert sum(topic_prefix in row for row in whole) == 9 * (1 + 2 + 1)


@pytest.mark.cluster
def test_who_uses_a_topic_is_read_where_it_is_asked_for(
    cluster3: Cluster, topic_prefix: str
) -> None:
    names = [f"{topic_prefix}{name}" for name in ("written", "empty", "unasked")]
    servers = {"lab": cluster3.bootstrap_servers}
    admin = AdminClient({"bootstrap.servers": cluster3.bootstrap_servers})
    created = admin.create_topics(
        [NewTopic(name, 1, 1, config={"retention.ms": "-1"}) for name in names]
    )
    for one in created.values():
        one.result(20)
    producer = Producer({"bootstrap.servers": servers["lab"]})
    producer.produce(names[0], b"x", timestamp=1_735_689_600_000)
    assert producer.flush(20) == 0
    # A topic that does not exist yet may be asked for: its file is there before it is.
    used = {"lab": [*names[:2], f"{topic_prefix}absent"]}
    options = choose_clusters([ClusterEntry("lab", HERE)], servers, used=used)
    reader = KafkaMetadataReader(options, tables.FACTS.columns)
    (partition,) = reader.partitions()
    rows = [row for batch in reader.read(partition) for row in batch.to_pylist()]
    found = {
        row["topic"]: (row["last_write_ms"], row["readers"], row["use_unknown"])
        for row in rows
        if row["table"] == "topics" and row["topic"].startswith(topic_prefix)
    }
    assert found == {
        names[0]: (1_735_689_600_000, [], None),
        names[1]: (None, [], None),
        names[2]: (None, None, None),
    }


class CountingNetwork(FailingNetwork):
    """Counts the requests that pass, by kind."""

    def __init__(self, cluster: Cluster) -> None:
        self.seen: Counter[int] = Counter()
        super().__init__(cluster)

    def strike(self, api: int, version: int, frame: bytes) -> None:  # noqa: ARG002
        self.seen[api] += 1


@pytest.mark.cluster
def test_columns_left_out_are_not_asked_for(cluster3: Cluster, topic_prefix: str) -> None:
    """Brokers tell their own configs in any case, topics only where values are wanted."""
    admin = AdminClient({"bootstrap.servers": cluster3.bootstrap_servers})
    admin.create_topics([NewTopic(f"{topic_prefix}a", 1, 1)])[f"{topic_prefix}a"].result(20)
    columns = tables.FACTS.columns
    without = [name for name in columns if name not in ("value", "topic_id")]
    assert count_configs(cluster3, columns) > count_configs(cluster3, without) == 3


@pytest.mark.cluster
def test_what_a_plan_of_moves_needs_is_read(cluster3: Cluster, topic_prefix: str) -> None:
    entry = ClusterEntry("lab", HERE, drain_brokers=frozenset({3}))
    servers = {"lab": cluster3.bootstrap_servers}
    reader = KafkaMetadataReader(choose_clusters([entry], servers), tables.FACTS.columns)
    (partition,) = reader.partitions()
    bench, name = Moving(cluster3), f"{topic_prefix}a"
    bench.fill(name, ((1, 2), (2, 1)))
    bench.throttle(name, "0:1,0:2", "0:3")
    bench.reassign(name, [3, 2])
    rows = [row for batch in reader.read(partition) for row in batch.to_pylist()]
    bench.clear(name)
    found = {kind: [row for row in rows if row["table"] == kind] for kind in STATE}
    [reading] = found["readings"]
    assert (reading["status"], reading["can_cordon"]) == ("read", True)
    assert reading["voters"]
    assert sorted((rate["broker"], rate["side"]) for rate in reading["throttle_rates"]) == [
        (broker, side) for broker in (1, 2, 3) for side in ("follower", "leader")
    ]
    told = {(r["side"], r["bytes_per_s"], r["source"]) for r in reading["throttle_rates"]}
    # With the mark of a run of moves.
    assert told == {
        ("leader", RATE, "cluster-default"),
        ("follower", RATE + 1, "cluster-default"),
    }
    for broker in found["brokers"]:
        [held] = broker["log_directories"]
        assert held["total_bytes"] > held["usable_bytes"] > 0
    partitions = {row["partition"]: row for row in found["partitions"] if row["topic"] == name}
    assert partitions[0]["size_bytes"] >= SIZE > partitions[1]["size_bytes"] >= 0
    assert partitions[0]["replicas"] == [3, 2]
    assert partitions[0]["reassignment"] == {
        "replicas": [3, 2, 1],
        "adding": [3],
        "removing": [1],
        "leader": 1,
        "in_sync": [1, 2],
    }
    assert partitions[1]["reassignment"] is None


@pytest.mark.fleet
@pytest.mark.cluster
@pytest.mark.parametrize("words", [[], ["--moves"]], ids=["changes", "moves"])
def test_a_live_plan_is_that_of_the_single_cluster(
    spark: SparkSession,  # the job uses its session
    cluster3: Cluster,
    topic_prefix: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster3.bootstrap_servers})
    name = f"{topic_prefix}grows"
    admin.create_topics([NewTopic(name, 3, 1)])[name].result(20)
    estate = tmp_path / "estate"
    estate.mkdir()
    client = f'client: {{bootstrap.servers: "{cluster3.bootstrap_servers}"}}'
    moves = "moves: {allow: [replication], rate: 1MiB, keep_free: 1%}"
    (estate / "clusters.yaml").write_text(f"version: 1\nclusters: {{lab: {{{client}, {moves}}}}}\n")
    asked = {"topic": name, "partitions": 4, "replication_factor": 2}
    (estate / "grows.yaml").write_text(json.dumps(asked))
    options = ["--lake", str(tmp_path / "lake"), "--live", "--out", str(tmp_path / "plans")]
    assert run(["fleet", "plan", str(estate), *options, *words]) == 0
    shown = capsys.readouterr().out
    assert "moves: 3 partitions of 1 topic · 3 replicas to copy, " in shown
    assert ("shown by --moves" in shown) == (not words)
    single = tmp_path / "single.json"
    assert run(["plan", str(estate), "--cluster", "lab", "--out", str(single), *words]) == 0
    found, wanted = (
        json.loads(path.read_text()) for path in (tmp_path / "plans" / "lab.json", single)
    )
    assert found["fingerprint"] == wanted["fingerprint"]
    assert found["resource_changes"] == wanted["resource_changes"] != []
    if words:
        for document in (found, wanted):
            # The fleet measures no write rates, and disks fill up meanwhile.
            del document["moves"]["forecast"]["least_rate"]
            peaks = document["moves"]["forecast"].pop("peaks")
            assert [peak["broker"] for peak in peaks] == [1, 2, 3]
        assert found["moves"]["replicas"] == 3
        assert found["moves"] == wanted["moves"]


def count_configs(cluster: Cluster, columns: list[str]) -> int:
    """Read these columns. Returns: how many requests for configs that took."""
    with closing(CountingNetwork(cluster)) as network:
        servers = {"lab": network.bootstrap_servers}
        reader = KafkaMetadataReader(choose_clusters([ClusterEntry("lab", HERE)], servers), columns)
        (partition,) = reader.partitions()
        batches = list(reader.read(partition))
    assert {row for batch in batches for row in batch["table"].to_pylist()} >= {"topics"}
    assert all(batch.schema.names == columns for batch in batches)
    return network.seen[DESCRIBE_CONFIGS]


@pytest.mark.fleet
@pytest.mark.cluster
def test_secrets_are_resolved_where_the_cluster_is_read(
    spark: SparkSession, cluster3: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reference travels, its value never does: not even in a plan of Spark's."""
    secret = tmp_path / "secret"
    secret.write_text("swordfish")
    client = {"sasl.password": f"${{file:{secret}}}"}
    options = choose_clusters([ClusterEntry("lab", HERE, client=client)])
    assert "swordfish" not in str(options)
    facts = load(spark, {"lab": cluster3.bootstrap_servers}, **client)
    facts.explain(mode="extended")
    assert "swordfish" not in capsys.readouterr().out
    assert "swordfish" not in str(facts.collect())
    secret.unlink()
    (row,) = facts.where("table = 'readings'").collect()
    assert row["status"] == "secret-unresolved"
    assert str(secret) in row["error"]


def test_a_range_that_failed_goes_before_those_that_were_read() -> None:
    rows = [
        {"cluster": "a", "status": "read"},
        {"cluster": "b", "status": "read"},
        {"cluster": "a", "status": "connect-lost"},
    ]
    settled = settle_readings(rows)
    assert {name: row["status"] for name, row in settled.items()} == {
        "a": "connect-lost",
        "b": "read",
    }


@pytest.fixture
def estate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a repository of two commits, `good` and, checked out, one whose estate is broken."""
    monkeypatch.chdir(tmp_path)
    topics = tmp_path / "topics"
    topics.mkdir()
    (topics / "clusters.yaml").write_text("version: 1\nclusters: {a: {}, b: {}, c: {}}\n")
    (topics / "some.yaml").write_text("topic: some\npartitions: 3\nclusters: [b]\n")
    git("init", "--quiet", "--initial-branch=main")
    commit("good")
    git("tag", "good")
    (topics / "some.yaml").write_text("topic: some\npartitions: many\n")
    commit("broken")
    return topics


def git(*words: str) -> None:
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True)


def commit(what: str) -> None:
    git("add", ".")
    git("commit", "--quiet", "-m", what)


class TestTrees:
    @pytest.mark.usefixtures("estate")
    def test_places_are_spelled_as_in_the_working_tree(self) -> None:
        tree = find_tree("topics", "good")
        (spec,) = tree.load().topics_for("b")
        assert str(spec.location) == "topics/some.yaml:1:8"

    def test_an_absolute_path_is_found_in_its_own_repository(
        self, estate: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir("/")
        assert find_tree(str(estate), "good").load().topics == ("some",)

    @pytest.mark.usefixtures("estate")
    def test_a_packed_tree_needs_no_repository(self) -> None:
        options = find_tree("topics", "good").list_options()
        assert SpecTree(options).reader(tables.SPECS.schema)._tree.load().files == 1
        assert options == find_tree("topics", "good").list_options()

    def test_what_could_not_be_read_at_a_commit_is_said_where_it_is_planned(
        self, estate: Path
    ) -> None:
        (estate / "some.yaml").unlink()
        (estate / "some.yaml").symlink_to("gone.yaml")
        commit("a link to nowhere")
        options = find_tree("topics", "main").list_options()
        with pytest.raises(
            SpecError, match=r"topics/some\.yaml:1:1: some.yaml is a link to nowhere"
        ):
            SpecTree(options).reader(tables.SPECS.schema)._tree.load()

    @pytest.mark.parametrize(
        ("path", "ref", "said"),
        [
            ("topics", "nowhere", "topics cannot be read at nowhere: not a valid object name"),
            ("other", "good", "other cannot be read at good: pathspec 'other' did not match"),
            ("topics", "--output=x", "topics cannot be read at --output=x: not a valid"),
        ],
    )
    @pytest.mark.usefixtures("estate")
    def test_what_is_not_there_is_said(self, path: str, ref: str, said: str) -> None:
        with pytest.raises(FleetError) as refused:
            find_tree(path, ref)
        assert str(refused.value).startswith(said)


@pytest.mark.fleet
class TestSpecTree:
    def test_a_commit_is_read(self, spark: SparkSession, estate: Path) -> None:
        """Clusters without topics stand before and after the one that has some."""
        spark.dataSource.register(SpecTree)
        reader = spark.read.format("spec_tree").options(
            commit="good", repository=str(estate.parent)
        )
        rows = reader.load().collect()
        assert [(row["cluster"], row["topic"], row["file"]) for row in rows] == [
            ("b", "some", "topics/some.yaml")
        ]

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["--commit", "nowhere"], "there is no commit nowhere in this repository"),
            ([], "topics/some.yaml:2:13"),
            (["--commit", "main"], "topics/some.yaml:2:13"),
            (["--cluster", "z"], "topics/some.yaml:2:13"),
            (["--commit", "good", "--cluster", "z"], "z"),
            (["--collection", "today"], "'today' is not a valid time"),
        ],
        ids=str,
    )
    def test_mistakes_end_a_collection_in_words(
        self, estate: Path, words: list[str], said: str, capfd: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["fleet", "collect", "topics", "--lake", "lake", *words]) in (1, 64)
        _, told = capfd.readouterr()
        assert said in told
        assert "Traceback" not in told
        assert not (estate.parent / "lake").exists()
