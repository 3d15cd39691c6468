"""KafkaTopic documents of Strimzi and Jikkou, read as they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.errors import Severity
from reconciler.spec import load_estate

if TYPE_CHECKING:
    from pathlib import Path

    from reconciler.spec import Estate

STRIMZI = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaTopic
metadata:
  name: orders-events
  namespace: kafka
  labels: {strimzi.io/cluster: prod}
  managedFields: [{manager: kubectl, fieldsV1: {"f:spec": {"f:config": {}}}}]
spec:
  topicName: orders.events
  partitions: 12
  replicas: 3
  config:
    retention.ms: 604800000
    cleanup.policy: compact
status: {conditions: [{type: Ready, status: "True"}], observedGeneration: 1}
"""
JIKKOU = """\
apiVersion: kafka.jikkou.io/v1beta2
kind: KafkaTopicList
items:
  - metadata: {name: a}
    spec: {partitions: 1, replicas: 2, configs: {retention.ms: 1d}}
  - metadata: {name: b, annotations: {jikkou.io/delete: true}}
    spec: {partitions: 1, replicationFactor: 2}
"""


def load(root: Path, topics: str) -> Estate:
    (root / "clusters.yaml").write_text("version: 1\nclusters: {prod: {}, staging: {}}")
    (root / "topics.yaml").write_text(topics)
    return load_estate(root)


def notes(estate: Estate) -> list[str]:
    assert all(finding.severity is Severity.NOTE for finding in estate.findings)
    return [f"{finding.where.line}: {finding.rule}" for finding in estate.findings if finding.where]


def test_strimzi(tmp_path: Path) -> None:
    estate = load(tmp_path, STRIMZI)
    (spec,) = estate.topics_for("prod")
    assert (spec.name, spec.partitions, spec.replication_factor) == ("orders.events", 12, 3)
    assert spec.config == {"cleanup.policy": "compact", "retention.ms": "604800000"}
    assert (spec.where("replication_factor").line, spec.location.line) == (11, 9)
    assert estate.topics_for("staging") == ()
    assert notes(estate) == []


def test_a_label_of_no_cluster_here_restricts_nothing_and_is_noted(tmp_path: Path) -> None:
    estate = load(tmp_path, STRIMZI.replace("cluster: prod", "cluster: my-cluster"))
    assert len(estate.topics_for("staging")) == 1
    assert notes(estate) == ["6: cluster-unknown"]


def test_jikkou(tmp_path: Path) -> None:
    a, b = load(tmp_path, JIKKOU).topics_for("staging")
    assert (a.name, a.replication_factor, a.config) == ("a", 2, {"retention.ms": "86400000"})
    assert (b.name, b.replication_factor, b.absent) == ("b", 2, True)


def test_what_kubectl_prints(tmp_path: Path) -> None:
    items = "".join(f"  {line}\n" for line in STRIMZI.splitlines())
    estate = load(tmp_path, f"apiVersion: v1\nkind: List\nitems:\n- {items.strip()}\n")
    assert [spec.name for spec in estate.topics_for("prod")] == ["orders.events"]


def test_what_asks_not_to_be_managed_is_named_and_left_alone(tmp_path: Path) -> None:
    annotations = '  annotations: {strimzi.io/managed: "false"}\n  namespace:'
    estate = load(tmp_path, STRIMZI.replace("  namespace:", annotations))
    assert estate.topics == ()
    assert notes(estate) == ["4: topic-not-managed"]


def test_other_kinds_are_named_and_passed_over(tmp_path: Path) -> None:
    user = "apiVersion: kafka.strimzi.io/v1beta2\nkind: KafkaUser\nmetadata: {name: u}\n"
    other = "apiVersion: example.org/v1\nkind: KafkaTopic\nmetadata: {name: t}\n"
    estate = load(tmp_path, f"{user}---\n{other}")
    assert notes(estate) == ["1: document-kind", "5: document-kind"]
