"""`fleet run`: a night in one session leaves in the lake what the jobs leave one by one."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from published import read_answer
from test_caching import count_cached

from reconciler.cli.app import run
from reconciler.fleet import tables
from reconciler.fleet.lake.attempts import AUDIT, PLAN
from reconciler.fleet.lake.lake import Lake
from reconciler.planfile.codec import decode_plan
from reconciler.sandbox.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.fleet, pytest.mark.cluster]

NIGHTS = ("20261120T030000Z", "20261121T030000Z")
TOPIC = "topic: night-orders\npartitions: 4\nreplication_factor: 3\nconfig: {flush.ms: 9}\n"


@dataclass(frozen=True)
class Night:
    """How a night went, and where its results are."""

    code: int
    said: str
    place: Path
    cached: int

    @property
    def lake(self) -> str:
        return str(self.place / "lake")

    def see(self, job: str, *words: str) -> str:
        """Run another job on the lake. Returns what it prints."""
        with redirect_stdout(StringIO()) as said:
            run(["fleet", job, *words, "--lake", self.lake])
        return said.getvalue()


@pytest.fixture(scope="module")
def night(
    spark: SparkSession, cluster3: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Night:
    """Play two nights: somebody creates a topic between them; one of two clusters is down.

    The first is only collected: what the second finds new is compared with that.
    """
    place = tmp_path_factory.mktemp("nights")
    (place / "topics").mkdir()
    (place / "topics" / "orders.yaml").write_text(TOPIC)
    entries = {
        "up": {"client": {"bootstrap.servers": cluster3.bootstrap_servers}},
        "down": {"client": {"bootstrap.servers": "127.0.0.1:1"}},
    }
    text = json.dumps({"version": 1, "clusters": entries})
    (place / "topics" / "clusters.yaml").write_text(text)
    create(cluster3, "night-orders")
    words = ["--lake", str(place / "lake"), "--time-limit", "20"]
    cached = count_cached(spark)
    files = ["--out", str(place / "plans"), "--page", str(place / "fleet.html")]
    assert run(["fleet", "collect", str(place / "topics"), *words, "--collection", NIGHTS[0]]) == 1
    create(cluster3, "night-unmanaged")
    with redirect_stdout(StringIO()) as said:
        last = ["--collection", NIGHTS[1]]
        code = run(["fleet", "run", str(place / "topics"), *words, *files, *last])
    return Night(code, said.getvalue(), place, count_cached(spark) - cached)


def create(cluster: Cluster, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(topic, 2, 3)])[topic].result(20)


def test_every_stage_says_what_it_found(night: Night) -> None:
    stages = [line.split()[0] for line in night.said.splitlines()[:5]]
    assert stages == ["collect", "plan", "audit", "history", "page"]
    assert "2 clusters, 1 not read" in night.said
    assert "1 topic to change, 0 refused, 1 cluster not planned" in night.said


def test_what_needs_attention_follows_and_decides_the_exit_code(night: Night) -> None:
    assert night.code == 1
    _, _, attention = night.said.partition("fleet.html")
    assert "connect-refused" in attention
    assert "cluster-unread" in attention
    assert "topic-unmanaged" not in attention  # a note; the page has it


@pytest.mark.slow
def test_the_lake_holds_what_the_jobs_would_add(night: Night, spark: SparkSession) -> None:
    lake = Lake(spark, night.lake)
    held = {
        table.name: sorted(map(str, lake.read(table, lake.find_attempt(what=what)).collect()))
        for table, what in ((tables.PLANS, PLAN), (tables.CHANGES, PLAN), (tables.FINDINGS, AUDIT))
    }
    assert all(held.values())
    estate = str(night.place / "topics")
    night.see("plan", estate)
    night.see("audit", estate)
    again = Lake(spark, night.lake)
    for table, what in ((tables.PLANS, PLAN), (tables.CHANGES, PLAN), (tables.FINDINGS, AUDIT)):
        rows = again.read(table, again.find_attempt(what=what)).collect()
        assert sorted(map(str, rows)) == held[table.name]


def test_no_cached_table_is_left(night: Night) -> None:
    assert night.cached == 0


def test_history_tells_what_is_new_tonight(night: Night, spark: SparkSession) -> None:
    lake = Lake(spark, night.lake)
    rows = lake.read(tables.EVENTS, lake.find_attempt(what="history")).collect()
    tonight = {row["topic"] for row in rows if row["first_seen"] == NIGHTS[1]}
    assert "night-unmanaged" in tonight
    assert "night-orders" not in tonight


def test_plans_and_page_are_written(night: Night) -> None:
    plans = sorted(path.name for path in (night.place / "plans").iterdir())
    assert plans == ["up.json"]
    plan = decode_plan((night.place / "plans" / "up.json").read_text(), "up.json")
    assert plan.cluster == "up"
    page = (night.place / "fleet.html").read_text()
    assert NIGHTS[1] in page
    assert "night-orders" in page


def test_a_page_without_a_directory_is_refused_first(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "clusters.yaml").write_text("version: 1\nclusters: {a: {}}\n")
    page = tmp_path / "no" / "fleet.html"
    words = ["--lake", str(tmp_path / "lake"), "--page", str(page)]
    assert run(["fleet", "run", str(tmp_path), *words]) == 64
    assert "is not a directory" in capfd.readouterr().err
    assert not (tmp_path / "lake").exists()


@pytest.mark.slow
def test_the_json_of_each_job_fits_its_schema(night: Night) -> None:
    estate = str(night.place / "topics")
    planned = read_answer("fleet-plan", night.see("plan", estate, "--format", "json"))
    assert {row["cluster"]: row["status"] for row in planned["plans"]}["up"] == "planned"
    audited = read_answer("fleet-audit", night.see("audit", estate, "--format", "json"))
    assert "cluster-unread" in {found["rule"] for found in audited["findings"]}
    told = read_answer("fleet-history", night.see("history", "--format", "json"))
    assert "night-unmanaged" in {event["topic"] for event in told["events"]["rows"]}
