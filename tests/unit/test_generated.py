"""What is made from the code is up to date in the tree, and fits what it describes."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import jsonschema
import pytest
import yaml
from formats import load_validator
from yamlcore import CCoreLoader

from reconciler.api.planning import load_estate
from reconciler.errors import SpecError
from reconciler.model.cluster import Risk

ROOT = Path(__file__).parent.parent.parent
GENERATOR = runpy.run_path(str(ROOT / "schemas" / "generate.py"))


def test_generated_files_are_what_the_code_says() -> None:
    outdated = GENERATOR["find_outdated"]()
    assert not outdated, "run: python schemas/generate.py"


def test_the_glossary_says_what_a_word_means_and_where_it_appears() -> None:
    page = (ROOT / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")
    for risk in Risk:
        if risk is not Risk.NONE:
            assert f"| `{risk}` | describe: `risk`, plan: `risk`, topic: `acknowledge` |" in page
    assert re.search(
        r"^\| risk \| A possible cost of a change.*lake: `changes.risks`", page, re.MULTILINE
    )


@pytest.mark.parametrize("name", ["topic", "clusters"])
def test_schemas_keep_to_what_old_editors_read(name: str) -> None:
    text = (ROOT / "schemas" / f"{name}.schema.json").read_text()
    jsonschema.Draft7Validator.check_schema(json.loads(text))
    for keyword in ("prefixItems", "unevaluatedProperties", "dependentSchemas", "$dynamicRef"):
        assert f'"{keyword}"' not in text


def test_schemas_accept_the_example_estate() -> None:
    for path in sorted((ROOT / "topics").rglob("*.yaml")):
        name = "clusters" if path.name == "clusters.yaml" else "topic"
        for document in yaml.load_all(path.read_text(), CCoreLoader):
            load_validator(name).validate(document)


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ({"topic": "a", "partitons": 3}, []),
        ({"topic": "a", "partitions": 0}, ["partitions"]),
        ({"topic": "a b"}, ["topic"]),
        ({"topic": "a", "config": {"retention.ms": "7y"}}, ["config", "retention.ms"]),
        ({"topic": "a", "config": {"retenton.ms": 1}}, ["config"]),
        ({"topic": "a", "config": {"min.insync.replica": 1}}, ["config"]),
        ({"topic": "a", "config": {"mni.insync.replicas": 1}}, ["config"]),
        ({"topic": "a", "config": {"compression.type": "zip"}}, ["config", "compression.type"]),
        ({"topic": "a", "acknowledge": ["fire"]}, ["acknowledge", 0]),
        ({"topic": "a", "acknowledge": [{"ordering": "six"}]}, ["acknowledge", 0]),
        ({"topic": "a", "assignment": [[]]}, ["assignment"]),
    ],
)
def test_the_topic_schema_underlines_mistakes(
    document: dict[str, object], where: list[str | int]
) -> None:
    (error,) = load_validator("topic").iter_errors(document)
    assert list(error.absolute_path) == where


TOO_LARGE = 2**31


@pytest.mark.parametrize(
    "more",
    [
        {"topic": "__consumer_offsets"},
        {"description": " "},
        *({"owner": owner} for owner in ("", "a ", "a  b", "-a", "a!", "orders\u2010team")),
        {"clusters": [" "]},
        {"assignment": [[TOO_LARGE]]},
        {"assignment": {"0": [TOO_LARGE]}},
        {"assignment": {"100000": [1]}},
        {"overrides": {"prod": {}}},
        {"config": {"retention.ms": -2}},
        {"config": {"retention.ms": "-2"}},
        {"config": {"retention.ms": "-1d"}},
        {"config": {"retention.ms": 2**64}},
        {"config": {"segment.bytes": TOO_LARGE}},
        {"config": {"segment.bytes": "-5"}},
        {"config": {"min.insync.replicas": 0}},
        {"config": {"min.cleanable.dirty.ratio": 1.5}},
        {"config": {"min.cleanable.dirty.ratio": "half"}},
        {"config": {"min.cleanable.dirty.ratio": "-0.5"}},
    ],
    ids=str,
)
def test_what_the_topic_schema_underlines_validation_refuses(
    more: dict[str, object], tmp_path: Path
) -> None:
    check_refused("topic", {"topic": "orders.events", **more}, tmp_path)


@pytest.mark.parametrize(
    "more",
    [
        {"audit_topic": "orders events"},
        {"audit_topic": "__consumer_offsets"},
        {"cluster_id": "a b"},
        {"cluster_id": " "},
        {"description": " "},
        {"exclude_brokers": [TOO_LARGE]},
        {"exclude_brokers": [-1]},
        {"capacity": {str(TOO_LARGE): 2}},
        {"capacity": {"1": 0}},
        {"kafka_version": "4.1000"},
        {"guards": {"max_changed": "101%"}},
        {"client": {"security.protocol": "SASL_TLS"}},
        {"client": {"sasl.mechanism": "plain"}},
        {"client": {"socket.timeout.ms": "soon"}},
        {"client": {"socket.timeout.ms": 9}},
    ],
    ids=str,
)
def test_what_the_clusters_schema_underlines_validation_refuses(
    more: dict[str, object], tmp_path: Path
) -> None:
    check_refused("clusters", {"version": 1, "clusters": {"prod": more}}, tmp_path)


@pytest.mark.parametrize(
    "stages", [[], [[]], ["prod"], [["prod"], ["prod", "prod"]], [["prod"]] * 6]
)
def test_stages_that_the_clusters_schema_underlines_validation_refuses(
    stages: list[object], tmp_path: Path
) -> None:
    document = {"version": 1, "clusters": {"prod": {}}, "stages": stages}
    check_refused("clusters", document, tmp_path)


def check_refused(name: str, document: dict[str, object], estate: Path) -> None:
    """Hold a document, alone in an estate, against its schema and against validation."""
    assert not load_validator(name).is_valid(document)
    (estate / "clusters.yaml").write_text('{"version": 1, "clusters": {"prod": {}}}')
    (estate / f"{name}.yaml").write_text(json.dumps(document))
    with pytest.raises(SpecError):
        load_estate(estate)


def test_schemas_take_what_is_at_the_edge() -> None:
    most = TOO_LARGE - 1
    for name, document in (
        ("topic", {"topic": "a", "assignment": {"99999": [0, most]}, "owner": "@a &b."}),
        ("topic", {"topic": "a", "description": " a "}),
        ("clusters", {"version": 1, "owners": ["@a/b", "a+b@c.example"], "clusters": {}}),
        ("topic", {"topic": "a", "config": {"retention.ms": "-1", "local.retention.ms": "-2"}}),
        ("topic", {"topic": "a", "config": {"segment.bytes": most, "message.format.version": 2.8}}),
        ("topic", {"topic": "a", "config": {"min.cleanable.dirty.ratio": "1e-1"}}),
        ("clusters", {"version": 1, "clusters": {"a": {"capacity": {str(most): 1}}}}),
        ("clusters", {"version": 1, "clusters": {"a": {"exclude_brokers": [0, most]}}}),
        (
            "clusters",
            {"version": 1, "clusters": {"a": {"client": {"security.protocol": "Sasl_SSL"}}}},
        ),
    ):
        load_validator(name).validate(document)
