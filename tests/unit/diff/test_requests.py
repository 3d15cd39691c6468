from dataclasses import replace
from pathlib import Path

import pytest
from shorthand import brokers, cluster, topic, unused_cluster

from reconciler import build_plan, load_estate
from reconciler.api.planning import build_moves
from reconciler.errors import Severity
from reconciler.model.cluster import ClusterState
from reconciler.model.plan import Plan
from reconciler.model.requests import KafkaRequest

CLUSTERS = """\
version: 1
clusters:
  lab:
    moves: {rate: RATE, allow: [replication, assignment], keep_free: 0%}
    guards: {max_deletes: 1, unused_for: 0s}
"""
GONE = "the brokers do not offer "


def plan(
    root: Path, spec: str, state: ClusterState, *lacking: KafkaRequest, rate: str = "unlimited"
) -> tuple[Plan, Plan]:
    """Plan a spec of the topic "old" and a new topic: the changes, and the moves."""
    (root / "clusters.yaml").write_text(CLUSTERS.replace("RATE", rate))
    new = "topic: new\npartitions: 1\nreplication_factor: 1\n"
    (root / "topics.yaml").write_text(f"topic: old\n{spec}\n---\n{new}")
    estate = load_estate(root)
    state = replace(state, unoffered=frozenset(lacking))
    return build_plan(estate, "lab", state), build_moves(estate, "lab", state)


def refusals(made: Plan) -> dict[str, list[str]]:
    return {t.name: [f.what for f in t.refusals] for t in made.topics if t.refusals}


def live(rows: str = "1 2 3") -> ClusterState:
    return cluster(topic(rows, "old"), nodes=brokers(None, None, None))


@pytest.mark.parametrize(
    ("spec", "lacking", "said"),
    [
        (
            "config: {segment.ms: 2d}",
            KafkaRequest.ALTER_CONFIGS,
            "IncrementalAlterConfigs, so configs of existing topics cannot be changed through "
            "Kafka",
        ),
        (
            "partitions: 4",
            KafkaRequest.CREATE_PARTITIONS,
            "CreatePartitions, so partitions cannot be added through Kafka",
        ),
        (
            "state: absent\nacknowledge: [data-loss]",
            KafkaRequest.DELETE_TOPICS,
            "DeleteTopics v6, so topics cannot be deleted by their ids, and a deletion by name "
            "could delete another topic",
        ),
    ],
)
def test_only_the_topic_that_needs_the_request_is_refused(
    tmp_path: Path, spec: str, lacking: KafkaRequest, said: str
) -> None:
    state = unused_cluster(topic("1 2 3", "old"))
    assert refusals(plan(tmp_path, spec, state)[0]) == {}
    made, _ = plan(tmp_path, spec, state, lacking)
    assert refusals(made) == {"old": [GONE + said]}
    assert {finding.rule for t in made.topics for finding in t.refusals} == {"request-unoffered"}
    assert made.refusals == ()
    # Every other request may be missing.
    others = set(KafkaRequest) - {lacking, KafkaRequest.TOPIC_IDS, KafkaRequest.CREATE_TOPICS}
    assert refusals(plan(tmp_path, spec, state, *others)[0]) == {}


def test_a_topic_that_is_as_specified_needs_no_request(tmp_path: Path) -> None:
    made, moves = plan(tmp_path, "partitions: 3", live(), *KafkaRequest)
    said = "CreateTopics, so topics cannot be created through Kafka"
    assert refusals(made) == {"new": [GONE + said]}
    assert moves.refusals == ()


def test_moves_are_refused_as_a_whole(tmp_path: Path) -> None:
    for lacking in (KafkaRequest.ALTER_REASSIGNMENTS, KafkaRequest.LIST_REASSIGNMENTS):
        _, moves = plan(tmp_path, "replication_factor: 2", live(), lacking)
        what = (
            f"the brokers of lab do not offer {lacking}, so replicas cannot be moved through Kafka"
        )
        assert [finding.what for finding in moves.refusals] == [what]


def test_a_throttle_needs_configs_and_a_move_without_one_does_not(tmp_path: Path) -> None:
    lacking = KafkaRequest.ALTER_CONFIGS
    _, moves = plan(tmp_path, "replication_factor: 2", live(), lacking, rate="30MiB")
    assert [str(finding) for finding in moves.refusals] == [
        "the brokers of lab do not offer IncrementalAlterConfigs, so throttles and "
        "min.insync.replicas cannot be set while replicas move; write rate: unlimited, or do it "
        "with the tools of the service, then plan again [request-unoffered]"
    ]
    assert plan(tmp_path, "replication_factor: 2", live(), lacking)[1].refusals == ()


def test_leaders_stay_if_none_can_be_elected(tmp_path: Path) -> None:
    spec = "assignment: [[2, 1], [2, 3], [3, 1]]"
    _, moves = plan(tmp_path, spec, live("1,2 2,3 3,1"), KafkaRequest.ELECT_LEADERS)
    assert moves.refusals == ()
    assert [n.what for n in moves.notes if n.rule == "request-unoffered"] == [
        "the brokers of lab do not offer ElectLeaders, so leaders stay where they are until the "
        "brokers elect others by themselves"
    ]
    assert {n.severity for n in moves.notes if n.rule == "request-unoffered"} == {Severity.NOTE}
