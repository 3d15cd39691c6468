"""What is made from the code is up to date in the tree, and fits what it describes."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import jsonschema
import pytest
import yaml
from yamlcore import CCoreLoader

ROOT = Path(__file__).parent.parent.parent
GENERATOR = runpy.run_path(str(ROOT / "schemas" / "generate.py"))


def test_generated_files_are_what_the_code_says() -> None:
    outdated = GENERATOR["find_outdated"]()
    assert not outdated, "run: python schemas/generate.py"


@pytest.mark.parametrize("name", ["topic", "clusters"])
def test_schemas_keep_to_what_old_editors_read(name: str) -> None:
    text = (ROOT / "schemas" / f"{name}.schema.json").read_text()
    jsonschema.Draft7Validator.check_schema(json.loads(text))
    for keyword in ("prefixItems", "unevaluatedProperties", "dependentSchemas", "$dynamicRef"):
        assert f'"{keyword}"' not in text


def test_schemas_accept_the_example_estate() -> None:
    for path in sorted((ROOT / "topics").rglob("*.yaml")):
        name = "clusters" if path.name == "clusters.yaml" else "topic"
        schema = json.loads((ROOT / "schemas" / f"{name}.schema.json").read_text())
        for document in yaml.load_all(path.read_text(), CCoreLoader):
            jsonschema.validate(document, schema, jsonschema.Draft7Validator)


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ({"topic": "a", "partitons": 3}, []),
        ({"topic": "a", "partitions": 0}, ["partitions"]),
        ({"topic": "a b"}, ["topic"]),
        ({"topic": "a", "config": {"retention.ms": "7y"}}, ["config", "retention.ms"]),
        ({"topic": "a", "config": {"retenton.ms": 1}}, ["config"]),
        ({"topic": "a", "config": {"compression.type": "zip"}}, ["config", "compression.type"]),
        ({"topic": "a", "acknowledge": ["fire"]}, ["acknowledge", 0]),
        ({"topic": "a", "assignment": [[]]}, ["assignment"]),
    ],
)
def test_the_topic_schema_underlines_mistakes(
    document: dict[str, object], where: list[str | int]
) -> None:
    schema = json.loads((ROOT / "schemas" / "topic.schema.json").read_text())
    (error,) = jsonschema.Draft7Validator(schema).iter_errors(document)
    assert list(error.absolute_path) == where
