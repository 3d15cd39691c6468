"""Rehearsals on real brokers: a plan from a state and from a file, and what brokers refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from published import read_answer
from shorthand import spec
from workbench import Workbench

from reconciler.api.planning import build_plan, load_estate
from reconciler.api.rehearsing import rehearse_plan
from reconciler.api.snapshots import read_snapshot
from reconciler.cli.app import run
from reconciler.rehearse.rehearsal import Rehearsal
from reconciler.sandbox.cluster import start_cluster
from reconciler.units import DAY

pytestmark = pytest.mark.cluster

CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
BROKERS = [
    {"id": 7, "rack": "eu-1a"},
    {"id": 9, "rack": "eu-1b"},
    {"id": 12, "rack": "eu-1c"},
    {"id": 104, "rack": "eu-1a"},
    {"id": 230, "rack": "eu-1b"},
]
TOPICS = [
    {
        "name": "shop.payments",
        "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ",
        "partitions": [[7, 9, 12], [9, 12, 104], [12, 104, 230]],
        "config": {"min.insync.replicas": "2"},
    },
    {
        "name": "shop.clicks",
        "partitions": [[7, 9], [230, 12]],
        "config": {"retention.ms": str(7 * DAY)},
    },
    {"name": "audit.log", "partitions": [[230, 12], [9, 7]], "config": {"flush.ms": "5"}},
    {"name": "__consumer_offsets", "partitions": [[7, 9, 12]], "internal": True},
]
CLUSTERS = """
version: 1
defaults: {replication_factor: 3}
clusters: {prod-eu: {kafka_version: "4.4"}}
"""
CHANGES = """
topic: shop.orders
partitions: 7
---
topic: shop.payments
partitions: 5
config: {min.insync.replicas: 2}
acknowledge: [ordering]
---
topic: shop.clicks
replication_factor: 2
config: {retention.ms: 5d}
acknowledge: [data-loss]
"""


class Place:
    """A directory with an estate and a snapshot of the cluster that it is for."""

    def __init__(self, directory: Path) -> None:
        self.estate = directory / "topics"
        self.snapshot = directory / "snapshot.json"
        self.plan = directory / "plan.json"
        self.estate.mkdir()
        (self.estate / "clusters.yaml").write_text(CLUSTERS)
        self.write(CHANGES)
        self.save()

    def write(self, specs: str) -> None:
        """Write the specs of the estate."""
        (self.estate / "shop.yaml").write_text(specs)

    def save(self, **more: object) -> None:
        """Save a state with some fields of its own."""
        state = {"format_version": "1.0", "cluster_id": CLUSTER_ID, "brokers": BROKERS}
        self.snapshot.write_text(json.dumps({**state, "topics": TOPICS, **more}))

    def rehearse(self) -> Rehearsal:
        """Rehearse what the estate asks for against the snapshot."""
        estate, state = load_estate(self.estate), read_snapshot(self.snapshot)
        plan = build_plan(estate, "prod-eu", state)
        return rehearse_plan(plan, state=state, entry=estate.clusters["prod-eu"])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.chdir(tmp_path)
    return Place(tmp_path)


@pytest.mark.slow
def test_a_plan_on_a_snapshot_is_run_among_all_its_topics(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--cluster", "prod-eu", "--against", str(place.snapshot)]
    assert run(["rehearse", *asked, "--format", "json"]) == 0
    found = read_answer("rehearse", capsys.readouterr().out)
    assert [(o["topic"], o["kind"]) for o in found["outcomes"]] == [
        ("shop.clicks", "done"),
        ("shop.orders", "done"),
        ("shop.payments", "done"),
    ]
    assert found["setup"]["brokers"] == BROKERS
    assert (found["setup"]["topics"], found["setup"]["complete"]) == (4, True)
    assert (found["differences"], found["pending"], found["notes"]) == ({}, [], [])
    estate, state = load_estate(place.estate), read_snapshot(place.snapshot)
    plan = build_plan(estate, "prod-eu", state)
    assert plan.balance_after is not None
    assert found["balance_after"]["leaders"]["most"] == plan.balance_after.leaders.most
    assert found["balance_after"]["replicas"]["least"] == plan.balance_after.replicas.least


@pytest.mark.slow
def test_a_saved_plan_is_rehearsed_on_what_it_rests_on(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--cluster", "prod-eu", "--against", str(place.snapshot)]
    assert run(["plan", *asked, "--out", str(place.plan)]) == 0
    capsys.readouterr()
    assert run(["rehearse", str(place.plan)]) == 0
    said = capsys.readouterr().out
    assert "5 brokers in 3 racks · 2 topics of 13 replicas set up" in said
    assert "are as planned" in said
    assert "The plan applied again changes nothing." in said
    assert "the plan contains only its own topics" in said


@pytest.mark.slow
def test_what_only_brokers_refuse_is_reported_and_what_cannot_be_set_up(place: Place) -> None:
    """No file says that these brokers have no tiered storage, and none creates mixed topics."""
    place.save(topics=[*TOPICS, {"name": "shop.odd", "partitions": [[7, 9], [9]]}])
    place.write(
        CHANGES
        + "---\ntopic: shop.archive\npartitions: 1\nconfig: {remote.storage.enable: true}\n"
        + "---\ntopic: shop.odd\nreplication_factor: null\nconfig: {flush.ms: 5}\n"
        + "---\ntopic: audit.log\npartitions: 1\n"
    )
    rehearsal = place.rehearse()
    assert {o.topic: o.text for o in rehearsal.outcomes if o.kind != "done"} == {
        "audit.log": "2 → 1 partition: Kafka cannot remove partitions",
        "shop.archive": "the brokers refuse it: Tiered Storage functionality is disabled in the "
        "broker. Topic cannot be configured with remote log storage.",
        "shop.odd": "it could not be set up: its partitions have 1 and 2 replicas, and brokers "
        "do not create such a topic",
    }
    assert rehearsal.count_outcomes() == "3 done, 1 failed, 1 not attempted, 1 refused"
    assert (rehearsal.differences, rehearsal.succeeded) == ({}, False)


@pytest.mark.slow
def test_a_cluster_with_a_tier_takes_tiered_topics(place: Place) -> None:
    tiered = {"name": "old", "partitions": [[7]], "config": {"remote.storage.enable": "true"}}
    place.save(topics=[*TOPICS, tiered])
    place.write("topic: new\npartitions: 1\nconfig: {remote.storage.enable: true}\n")
    assert place.rehearse().succeeded


@pytest.mark.slow
def test_brokers_that_are_out_stay_out(place: Place) -> None:
    """A dead broker holds replicas, a cordoned one takes none, and one is known by rows alone."""
    nodes = [dict(node) for node in BROKERS]
    nodes[0]["alive"] = False
    nodes[4]["cordoned"] = True
    gone = {"name": "old", "partitions": [[55, 9], [9, 55]]}
    place.save(brokers=nodes, topics=[*TOPICS, gone])
    rehearsal = place.rehearse()
    assert (rehearsal.setup.dead, rehearsal.setup.cordoned) == ((7, 55), (230,))
    assert rehearsal.succeeded
    assert rehearsal.balance_after is not None


@pytest.mark.slow
def test_what_brokers_have_for_topics_by_default_is_theirs_here_too(place: Place) -> None:
    """A spec that says what the brokers do anyway is no change, there and here."""
    place.save(config_defaults={"retention.ms": str(DAY), "min.insync.replicas": "2"})
    place.write(
        "topic: audit.log\nreplication_factor: 2\npartitions: 3\n"
        "config: {flush.ms: 5, retention.ms: 1d}\nacknowledge: [ordering]\n"
    )
    estate, state = load_estate(place.estate), read_snapshot(place.snapshot)
    plan = build_plan(estate, "prod-eu", state)
    rehearsal = rehearse_plan(
        plan, state=state, replan=lambda found: build_plan(estate, "prod-eu", found)
    )
    assert rehearsal.setup.properties == {"log.retention.ms": str(DAY), "min.insync.replicas": "2"}
    assert (rehearsal.pending, rehearsal.succeeded) == ((), True)


@pytest.mark.slow
def test_a_plan_that_no_longer_fits_is_stale_here_too(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--cluster", "prod-eu", "--against", str(place.snapshot)]
    assert run(["plan", *asked, "--out", str(place.plan)]) == 0
    grown = [dict(topic) for topic in TOPICS]
    grown[0]["partitions"] = [[7, 9, 12]] * 4
    place.save(topics=grown)
    assert run(["rehearse", str(place.plan), "--against", str(place.snapshot)]) == 1
    assert "shop.payments: partitions: 3 → 4 since the plan was made" in capsys.readouterr().err


def test_the_cluster_itself_is_only_read(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    with start_cluster(brokers=2, racks=2) as production:
        bench = Workbench(production)
        bench.bring(spec("shop.orders", partitions=2, replication_factor=2))
        place.write(
            "topic: shop.orders\nreplication_factor: 2\npartitions: 5\nacknowledge: [ordering]\n"
            "---\ntopic: new\npartitions: 1\nreplication_factor: 1\n"
        )
        before = bench.topics("shop.orders", "new")
        reach = ["--cluster", "prod-eu", "--bootstrap-servers", production.bootstrap_servers]
        assert run(["rehearse", *reach]) == 0
        assert bench.topics("shop.orders", "new") == before
    said = capsys.readouterr().out
    assert "2 brokers in 2 racks · 1 topic of 4 replicas set up" in said
    assert "Rehearsed: 2 done." in said
