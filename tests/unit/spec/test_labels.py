"""Labels: their form, their layers, and what reads them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from reconciler.adopt.convert import convert_topics
from reconciler.adopt.draft import open_draft
from reconciler.errors import SpecError
from reconciler.model.cluster import TopicSpec
from reconciler.spec.estate import parse_estate

SCHEMAS = Path(__file__).parents[3] / "schemas"
CLUSTERS = """\
version: 1
defaults: {labels: {tier: silver, env: any}}
profiles: {log: {labels: {kind: log}}}
clusters:
  prod: {defaults: {labels: {env: prod}}}
  lab: {}
"""


def resolve(topic: str, cluster: str = "prod", clusters: str = CLUSTERS) -> TopicSpec:
    files = {"clusters.yaml": clusters.encode(), "shop.yaml": topic.encode()}
    (spec,) = parse_estate(files, "topics").topics_for(cluster)
    return spec


def refuse(topic: str, clusters: str = CLUSTERS) -> list[str]:
    with pytest.raises(SpecError) as refused:
        resolve(topic, clusters=clusters)
    return [f"{f.where} {f.rule}: {f.what}; {f.way_out}" for f in refused.value.findings]


def test_labels_merge_key_by_key_over_all_layers() -> None:
    topic = "topic: a\nprofile: log\nlabels: {pii: 'true'}\noverrides: {lab: {labels: {tier: tin}}}"
    prod, lab = resolve(topic), resolve(topic, "lab")
    assert dict(prod.labels) == {"env": "prod", "kind": "log", "pii": "true", "tier": "silver"}
    assert dict(lab.labels) == {"env": "any", "kind": "log", "pii": "true", "tier": "tin"}
    assert str(prod.where("labels.env")) == "topics/clusters.yaml:5:35"
    assert str(prod.where("labels.pii")) == "topics/shop.yaml:3:15"


def test_null_removes_an_inherited_label() -> None:
    assert dict(resolve("topic: a\nlabels: {tier: null}").labels) == {"env": "prod"}


def test_a_value_may_be_empty_as_in_kubernetes() -> None:
    assert resolve("topic: a\nlabels: {checked: ''}").labels["checked"] == ""


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ("{pii: true}", "value-text: label pii 'true' without quotes is a flag to YAML"),
        ("{cost: 4}", 'write "4" in quotes'),
        ("{tier: }", "value-missing: label tier has no value"),
        ("{a b: x}", "label-form: the label 'a b' is not a key of a label"),
        ("{-a: x}", "label-form"),
        ("{tier: 'g\u00f6ld'}", "label-form: label tier has the value 'g\u00f6ld'"),
        ("{tier: ' gold'}", "label-form"),
        ("{tier: 'a=b'}", "label-form"),
        (f"{{tier: {'x' * 201}}}", "label-form"),
        ("{tier: [gold]}", "value-form: label tier is a list, not text"),
        ("gold", "value-form: labels is 'gold', not a map; write labels: {tier: gold}"),
        ("{" + ", ".join(f"k{n}: x" for n in range(51)) + "}", "labels has 51 keys, more than 50"),
    ],
)
def test_a_label_that_rules_could_misread_is_refused(labels: str, said: str) -> None:
    (found,) = refuse(f"topic: a\nlabels: {labels}")
    assert said in found


@pytest.mark.parametrize("value", ["g\u00f6ld", " gold", "a=b", "x" * 201, "a\n"])
def test_editors_refuse_the_same_values(value: str) -> None:
    schema = json.loads((SCHEMAS / "topic.schema.json").read_text(encoding="utf-8"))
    ((key, form),) = schema["properties"]["labels"]["patternProperties"].items()
    assert re.search(key, "app.acme.io/tier")
    assert not re.search(form["pattern"].replace("$", r"\Z"), value)


KAFKA_TOPIC = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaTopic
metadata:
  name: orders
  labels: {strimzi.io/cluster: prod, app.kubernetes.io/part-of: shop, tier: gold, pii: true}
spec: {partitions: 3, replicas: 3}
"""


def test_labels_of_a_kafka_topic_are_read_except_those_of_software() -> None:
    spec = resolve(KAFKA_TOPIC)
    assert dict(spec.labels) == {"env": "prod", "pii": "true", "tier": "gold"}
    assert str(spec.where("labels.pii")) == "topics/shop.yaml:5:88"


def test_conversion_keeps_the_labels_of_a_kafka_topic() -> None:
    files = {"k.yaml": KAFKA_TOPIC.encode()}
    done = convert_topics(open_draft({}, "topics"), "strimzi", files, lambda *_: None)
    (text,) = (text for text in done.texts.values() if "topic: orders" in text)
    assert 'labels:\n  tier: gold\n  pii: "true"\n' in text
