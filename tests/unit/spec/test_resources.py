"""KafkaTopic documents of Strimzi and Jikkou, read as they stand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.api.planning import load_estate
from reconciler.errors import Severity, SpecError
from reconciler.spec.estate import Estate
from reconciler.spec.syntax import load_text
from reconciler.spec.values import YamlList, YamlMap, YamlValue

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


KUBECTL = """\
apiVersion: v1
items:
- apiVersion: kafka.strimzi.io/v1
  kind: KafkaTopic
  metadata:
    annotations:
      kubectl.kubernetes.io/last-applied-configuration: |
        {"apiVersion":"kafka.strimzi.io/v1","kind":"KafkaTopic","spec":{"partitions":9}}
    creationTimestamp: "2026-01-02T03:04:05Z"
    deletionGracePeriodSeconds: 0
    deletionTimestamp: "2026-02-02T03:04:05Z"
    finalizers:
    - strimzi.io/topic-operator
    generateName: orders-
    generation: 2
    labels:
      app.kubernetes.io/part-of: shop
      strimzi.io/cluster: prod
    managedFields:
    - apiVersion: kafka.strimzi.io/v1
      fieldsType: FieldsV1
      fieldsV1:
        f:spec:
          f:config: {}
      manager: kubectl
    name: orders-events
    namespace: kafka
    ownerReferences:
    - {apiVersion: v1, kind: Shop, name: shop, uid: 5c1d}
    resourceVersion: "4711"
    selfLink: ""
    uid: 0b6ad3f0-9c6e-4b0f-8a3e-0e9e2a9e5b7a
  spec:
    config:
      retention.ms: 604800000
    partitions: 12
    replicas: 3
    topicName: orders.events
  status:
    conditions:
    - lastTransitionTime: "2026-01-02T03:04:06Z"
      status: "True"
      type: Ready
    observedGeneration: 2
    topicId: Zq2fVb3mQ2K1y5wq6m6c3A
    topicName: orders.events
kind: List
metadata:
  continue: ""
  remainingItemCount: 0
  resourceVersion: ""
"""
FREE = {"labels", "annotations", "managedFields", "ownerReferences", "status", "config", "configs"}
"""Maps whose keys are free, or Kafka's."""


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


@pytest.mark.parametrize("text", [STRIMZI, KUBECTL], ids=["one", "in a list"])
def test_a_label_of_no_cluster_here_is_an_error(tmp_path: Path, text: str) -> None:
    """The topic would go to every cluster because of a typo."""
    with pytest.raises(SpecError) as caught:
        load(tmp_path, text.replace("strimzi.io/cluster: prod", "strimzi.io/cluster: prdo"))
    (found,) = caught.value.findings
    assert (found.rule, found.way_out) == ("cluster-unknown", "did you mean prod?")
    assert found.where is not None
    place = text.splitlines()[found.where.line - 1]
    assert place[: found.where.column - 1].endswith("strimzi.io/cluster: ")


@pytest.mark.parametrize(
    ("words", "way_out"),
    [
        ("labels: {strimzi.io/clusters: prod}", "did you mean strimzi.io/cluster?"),
        ("labels: {Strimzi.io/cluster: prod}", "did you mean strimzi.io/cluster?"),
        ("annotations: {strimzi.io/cluster: prod}", "write it below labels"),
        ('annotations: {strimzi.io/manage: "false"}', "did you mean strimzi.io/managed?"),
        ('labels: {strimzi.io/managed: "false"}', "write it below annotations"),
    ],
)
def test_a_label_with_a_typo_in_its_key_is_an_error(
    tmp_path: Path, words: str, way_out: str
) -> None:
    """The topic would go to every cluster, or be managed, because of a typo."""
    with pytest.raises(SpecError) as caught:
        load(tmp_path, STRIMZI.replace("labels: {strimzi.io/cluster: prod}", words))
    assert [(each.rule, each.way_out) for each in caught.value.findings] == [
        ("key-unknown", way_out)
    ]


def test_labels_of_others_are_free(tmp_path: Path) -> None:
    labels = "labels: {strimzi.io/cluster: prod, strimzi.io/clusters: x, app: y, team/cluster: z}"
    text = STRIMZI.replace("labels: {strimzi.io/cluster: prod}", labels)
    assert [spec.name for spec in load(tmp_path, text).topics_for("prod")] == ["orders.events"]


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


def test_kinds_of_other_tools_are_named_and_passed_over(tmp_path: Path) -> None:
    user = "apiVersion: kafka.strimzi.io/v1beta2\nkind: KafkaUser\nmetadata: {name: u}\n"
    kustomization = "apiVersion: kustomize.config.k8s.io/v1\nkind: Kustomization\nresources: []\n"
    kubeconfig = "apiVersion: v1\nkind: Config\nclusters: []\nusers: []\n"
    estate = load(tmp_path, f"{user}---\n{kustomization}---\n{kubeconfig}")
    assert notes(estate) == ["1: document-kind", "5: document-kind", "9: document-kind"]


def test_a_kafka_topic_of_another_tool_is_called_one_and_warned_of(tmp_path: Path) -> None:
    topic = "apiVersion: platform.confluent.io/v1beta1\nkind: KafkaTopic\nmetadata: {name: t}\n"
    (warning,) = load(tmp_path, f"{topic}spec: {{partitionCount: 3}}").findings
    assert warning.severity is Severity.WARNING
    assert warning.what == (
        "the KafkaTopic of 'platform.confluent.io/v1beta1' is not read, and its topics are not "
        "managed"
    )


def test_all_that_kubectl_prints_is_read(tmp_path: Path) -> None:
    estate = load(tmp_path, KUBECTL)
    (spec,) = estate.topics_for("prod")
    assert (spec.name, spec.partitions, spec.replication_factor) == ("orders.events", 12, 3)
    assert spec.config == {"retention.ms": "604800000"}
    assert estate.topics_for("staging") == ()
    assert estate.findings == ()


@pytest.mark.parametrize("value", ["true", "True", '"true"', '"True"', '"TRUE"'])
def test_a_deletion_is_read_as_jikkou_does_in_any_case(tmp_path: Path, value: str) -> None:
    _, b = load(tmp_path, JIKKOU.replace("delete: true", f"delete: {value}")).topics_for("staging")
    assert b.absent


@pytest.mark.parametrize("value", ["false", '"False"'])
def test_a_deletion_that_is_false_is_none(tmp_path: Path, value: str) -> None:
    _, b = load(tmp_path, JIKKOU.replace("delete: true", f"delete: {value}")).topics_for("staging")
    assert not b.absent


@pytest.mark.parametrize("labels", ["", "null", "{}"])
def test_a_map_without_labels_is_one(tmp_path: Path, labels: str) -> None:
    topic = STRIMZI.replace("{strimzi.io/cluster: prod}", labels)
    assert len(load(tmp_path, topic).topics_for("staging")) == 1


def list_maps(value: YamlValue) -> Iterator[YamlMap]:
    """Yield every map whose keys are not free."""
    if isinstance(value, YamlMap):
        yield value
    for key, item in value.items() if isinstance(value, YamlMap) else ():
        yield from () if key in FREE else list_maps(item)
    for item in value if isinstance(value, YamlList) else ():
        yield from list_maps(item)


@pytest.mark.parametrize("text", [STRIMZI, JIKKOU, KUBECTL], ids=["strimzi", "jikkou", "kubectl"])
def test_no_key_of_any_map_is_dropped(tmp_path: Path, text: str) -> None:
    (document,) = load_text(text.encode(), "").documents
    maps = [*list_maps(document)]
    assert len(maps) >= 3
    for table in maps:
        lines = text.splitlines()
        line, at = table.line - 1, table.column - 1
        if lines[line][at] == "{":
            stray = "{stray: 1, " + lines[line][at + 1 :]
        else:
            stray = f"stray: 1\n{' ' * at}{lines[line][at:]}"
        lines[line] = lines[line][:at] + stray
        with pytest.raises(SpecError) as refused:
            load(tmp_path, "\n".join(lines))
        assert [(f.rule, f.where and f.where.line) for f in refused.value.findings] == [
            ("key-unknown", table.line)
        ]


@pytest.mark.parametrize(
    ("version", "owner"),
    [
        ("kafka/v2", "Conduktor"),
        ("v1", "ns4kafka"),
        ("kafka.nais.io/v1", "nais"),
        ("example.com/v1", "another tool"),
    ],
)
def test_a_topic_of_another_tool_is_skipped_with_a_warning(
    tmp_path: Path, version: str, owner: str
) -> None:
    estate = load(
        tmp_path, f"apiVersion: {version}\nkind: Topic\nmetadata: {{name: a}}\nspec: {{}}"
    )
    (finding,) = estate.findings
    assert finding.severity is Severity.WARNING
    assert str(finding).endswith(
        f"the Topic of '{version}' is a topic of {owner}, is skipped and not managed; write it in "
        f"the form of Strimzi, of Jikkou or of this estate; or leave it to {owner} [document-kind]"
    )


def test_a_name_that_strimzi_made_is_taken_with_the_real_one(tmp_path: Path) -> None:
    made = f"orders-events---{'0c9d1f3f' * 5}"
    text = STRIMZI.replace("name: orders-events", f"name: {made}")
    (spec,) = load(tmp_path, text).topics_for("prod")
    assert spec.name == "orders.events"
    with pytest.raises(SpecError, match="a name that Strimzi generated"):
        load(tmp_path, text.replace("  topicName: orders.events\n", ""))
