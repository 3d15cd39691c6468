"""Other tools' files: what becomes a spec, and what is named because no spec can say it."""

from __future__ import annotations

from pathlib import Path

import pytest
from shorthand import rows

from reconciler.adopt.draft import Adoption
from reconciler.api.adoption import convert_files, write_adoption
from reconciler.api.estate_files import read_estate_files
from reconciler.api.planning import load_estate
from reconciler.model.cluster import TopicSpec
from reconciler.spec.estate import parse_estate

STRIMZI = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaTopic
metadata:
  name: orders-events
  namespace: shop
  labels: {strimzi.io/cluster: prod, team: orders}
spec:
  topicName: orders.events
  partitions: 12
  replicas: 3
  config: {retention.ms: 604800000, min.insync.replicas: 2}
status: {observedGeneration: 1}
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaTopic
metadata: {name: left, annotations: {strimzi.io/managed: "false"}}
spec: {partitions: 1}
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaUser
metadata: {name: alice}
"""
JIKKOU = """\
apiVersion: kafka.jikkou.io/v1
kind: ConfigMap
metadata: {name: short}
data: {retention.ms: 3600000, cleanup.policy: delete}
---
apiVersion: kafka.jikkou.io/v1
kind: KafkaTopicList
items:
  - metadata: {name: shop.clicks}
    spec: {partitions: 6, replicas: -1, configMapRefs: [short], configs: {flush.ms: 1000}}
  - metadata: {name: shop.old, annotations: {jikkou.io/delete: true}}
    spec: {partitions: 1, replicas: 1}
"""
KAFKA_GITOPS = """\
settings:
  ccloud: {enabled: false}
  topics:
    defaults: {replication: 2}
    blacklist: {prefixed: [_confluent]}
topics:
  payments.captured:
    partitions: 6
    configs: {cleanup.policy: compact, segment.bytes: 1073741824}
  payments.failed: {partitions: 1, replication: 1, configs: {retention.msec: 5}}
services:
  billing: {type: application, principal: "User:billing", consumes: [payments.captured]}
"""
TOPICCTL = """\
meta: {name: prod, environment: live, region: eu, description: What customers see.}
spec:
  bootstrapAddrs: [broker-1:9092, broker-2:9092]
  clusterID: 5L6g3nShT-eMCtK--X86sw
  tls: {enabled: true}
---
meta: {name: search.index, cluster: prod, environment: live, region: eu, description: Pages.}
spec:
  partitions: 3
  replicationFactor: 2
  retentionMinutes: 1440
  settings: {cleanup.policy: [compact, delete], max.message.bytes: 5242880}
  placement:
    strategy: static
    staticAssignments: [[1, 2], [2, 3], [3, 1]]
---
meta: {name: search.queries, cluster: prod, environment: live, region: eu}
spec: {partitions: 3, replicationFactor: 2, placement: {strategy: in-rack}, migration: {}}
---
meta: {name: search.queries, cluster: test, environment: test, region: eu}
spec: {partitions: 1, replicationFactor: 1, placement: {strategy: any}}
"""
JULIE = """\
context: acme
company: shop
env: live
projects:
  - name: orders
    consumers: [{principal: "User:app"}]
    topics:
      - name: placed
        dataType: avro
        plan: gold
        config: {num.partitions: 4, replication.factor: 3}
      - name: lost
special_topics:
  - name: legacy
    config: {num.partitions: 1, replication.factor: 1}
"""


def convert(tool: str, text: str, tmp_path: Path) -> tuple[Adoption, Path]:
    source, root = tmp_path / "old", tmp_path / "topics"
    source.mkdir(exist_ok=True)
    (source / "old.yaml").write_text(text)
    adoption = convert_files(tool, source, root)
    write_adoption(adoption, root)
    return adoption, root


def read(root: Path, cluster: str = "sandbox") -> dict[str, TopicSpec]:
    # As the import leaves it: the files of a tool may leave counts open.
    estate = parse_estate(read_estate_files(root), str(root), is_draft=True)
    return {spec.name: spec for spec in estate.topics_for(cluster)}


def said(adoption: Adoption) -> str:
    return "\n".join(note.what for note in adoption.notes)


def test_strimzi(tmp_path: Path) -> None:
    adoption, root = convert("strimzi", STRIMZI, tmp_path)
    (spec,) = read(root, "prod").values()
    assert (spec.name, spec.partitions, spec.replication_factor) == ("orders.events", 12, 3)
    assert spec.config == {"retention.ms": "604800000", "min.insync.replicas": "2"}
    assert "retention.ms: 7d" in (root / "orders.yaml").read_text()
    assert "strimzi.io/managed: false says that it is not managed" in said(adoption)
    assert "a 'KafkaUser' of 'kafka.strimzi.io/v1' is not a Kafka topic" in said(adoption)
    assert spec.labels["team"] == "orders"
    assert "import-not-carried" in {note.rule for note in adoption.notes}


def test_jikkou(tmp_path: Path) -> None:
    adoption, root = convert("jikkou", JIKKOU, tmp_path)
    specs = read(root)
    clicks = specs["shop.clicks"]
    assert (clicks.partitions, clicks.replication_factor) == (6, None)
    assert clicks.config == {
        "cleanup.policy": "delete", "flush.ms": "1000", "retention.ms": "3600000"
    }  # fmt: skip
    assert specs["shop.old"].absent
    assert "replicas -1 is not a count, and is left open" in said(adoption)


def test_kafka_gitops(tmp_path: Path) -> None:
    adoption, root = convert("kafka-gitops", KAFKA_GITOPS, tmp_path)
    specs = read(root)
    assert specs["payments.captured"].replication_factor == 2
    assert specs["payments.captured"].config["segment.bytes"] == "1073741824"
    assert specs["payments.failed"].replication_factor == 1
    assert "no topic config 'retention.msec'" in said(adoption)
    assert "'services' has no counterpart" in said(adoption)
    assert "'ccloud' has no counterpart" in said(adoption)
    assert any('ignore: ["_confluent*"]' in note.way_out for note in adoption.notes)


def test_topicctl(tmp_path: Path) -> None:
    adoption, root = convert("topicctl", TOPICCTL, tmp_path)
    prod, test = read(root, "prod"), read(root, "test")
    index = prod["search.index"]
    assert index.assignment == rows("1,2 2,3 3,1")
    assert index.config["retention.ms"] == "86400000"
    assert index.config["cleanup.policy"] == "compact,delete"
    assert index.description == "Pages."
    assert prod["search.queries"].partitions == 3
    assert (test["search.queries"].partitions, test.keys()) == (1, {"search.queries"})
    entry = load_estate(root).clusters["prod"]
    assert entry.client == {"bootstrap.servers": "broker-1:9092,broker-2:9092"}
    assert entry.cluster_id == "5L6g3nShT-eMCtK--X86sw"
    for words in ("'tls' has no", "placement in-rack has no", "'migration' has no"):
        assert words in said(adoption)


def test_julie(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "plans.yaml").write_text("plans: {gold: {config: {retention.ms: 1000}}}\n")
    adoption, root = convert("julie", JULIE, tmp_path)
    specs = read(root)
    placed = specs["acme.shop.live.orders.placed.avro"]
    assert (placed.partitions, placed.replication_factor) == (4, 3)
    assert placed.config == {"retention.ms": "1000"}
    assert specs["acme.shop.live.orders.lost"].partitions is None
    assert specs["legacy"].partitions == 1
    assert "project orders: 'consumers' has no counterpart" in said(adoption)


@pytest.mark.parametrize("tool", ["strimzi", "jikkou", "kafka-gitops", "topicctl", "julie"])
def test_files_of_another_kind_are_named_and_not_converted(tool: str, tmp_path: Path) -> None:
    adoption, root = convert(tool, "apiVersion: v1\nkind: Secret\n", tmp_path)
    assert adoption.written == ()
    assert adoption.notes
    assert not list(root.rglob("*.yaml"))


@pytest.mark.parametrize(
    ("tool", "text", "words"),
    [
        ("strimzi", STRIMZI.replace("status: {", "config: {a: b}\nstatus: {"), "'config' has no"),
        ("strimzi", STRIMZI.replace("\nspec:\n", "\nspecs:\n", 1), "'specs' has no"),
        ("strimzi", STRIMZI.replace("labels: {", "labels: [{").replace("orders}", "orders}]"),
         "labels is a list, not a map"),
        ("strimzi", STRIMZI.replace("config: {", "config: [{").replace("s: 2}", "s: 2}]"),
         "its configs are a list, not a map"),
        ("strimzi", STRIMZI.replace("replicas: 3", "replicas: 3\n  replicationFactor: 2"),
         "replicationFactor repeats another key"),
        ("strimzi", STRIMZI.replace("kind: KafkaTopic\n", "kind: Kafkatopic\n", 1),
         "there is no kind 'Kafkatopic'"),
        ("strimzi", f"- a\n---\n{STRIMZI}", "the document is a list, not a map"),
        ("jikkou", JIKKOU + "  - shop.more\n", "an item of items is 'shop.more', not a map"),
        ("jikkou", JIKKOU.replace("KafkaTopicList", "V1KafkaTopicList"), "'V1KafkaTopicList'"),
        ("jikkou", JIKKOU.replace("items:", "topics: []\nitems:"), "'topics' has no counterpart"),
        ("kafka-gitops", "topics: {a: [partitions]}\n", "a is a list, not a map"),
        ("topicctl", TOPICCTL.replace("placement: {strategy: in-rack}", "placement: [in-rack]"),
         "placement is a list, not a map"),
        ("julie", JULIE.replace("- name: lost", "- lost"), "an item of topics is 'lost'"),
    ],
)  # fmt: skip
def test_what_has_another_form_is_named(tool: str, text: str, words: str, tmp_path: Path) -> None:
    adoption, _ = convert(tool, text, tmp_path)
    assert words in said(adoption)


def test_topics_that_are_written_already_are_kept(tmp_path: Path) -> None:
    convert("kafka-gitops", KAFKA_GITOPS, tmp_path)
    again, _ = convert(
        "kafka-gitops", KAFKA_GITOPS.replace("partitions: 6", "partitions: 9"), tmp_path
    )
    assert dict(again.texts) == {}
    assert "payments.captured is in the estate already, and is kept" in said(again)


def test_more_in_sync_replicas_than_replicas_are_left_out(tmp_path: Path) -> None:
    text = "topics: {a: {partitions: 1, replication: 1, configs: {min.insync.replicas: 2}}}\n"
    adoption, root = convert("kafka-gitops", text, tmp_path)
    assert read(root)["a"].config == {}
    assert "min.insync.replicas 2 exceeds its 1 replica" in said(adoption)


def test_a_name_that_collides_stays_out(tmp_path: Path) -> None:
    text = "topics: {a.b: {partitions: 1}, a_b: {partitions: 1}}\n"
    adoption, root = convert("kafka-gitops", text, tmp_path)
    assert read(root).keys() == {"a.b"}
    assert "a_b collides with a.b" in said(adoption)
