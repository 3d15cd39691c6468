"""`reconciler schema`: print the JSON Schemas of the file formats."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import click

from reconciler.cli.options import Command


def _topic() -> dict[str, Any]:
    from reconciler.spec.json_schema import build_topic_schema

    return build_topic_schema()


def _clusters() -> dict[str, Any]:
    from reconciler.spec.json_schema import build_clusters_schema

    return build_clusters_schema()


def _baseline() -> dict[str, Any]:
    from reconciler.spec.json_schema import build_baseline_schema

    return build_baseline_schema()


def _plan() -> dict[str, Any]:
    from reconciler.planfile.plan_document import PlanDocument

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **PlanDocument.model_json_schema(mode="serialization"),
        "title": "A plan of reconciler",
    }


def _snapshot() -> dict[str, Any]:
    from reconciler.planfile.snapshot_document import SnapshotDocument

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **SnapshotDocument.model_json_schema(),
        "title": "A snapshot of a Kafka cluster, for reconciler",
    }


def _moves() -> dict[str, Any]:
    from reconciler.planfile.moves_in_flight import MovesDocument

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **MovesDocument.model_json_schema(mode="serialization"),
        "title": "Moves in flight on a Kafka cluster, as reconciler reports them",
    }


def _health() -> dict[str, Any]:
    from reconciler.planfile.health_document import HealthDocument

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **HealthDocument.model_json_schema(mode="serialization"),
        "title": "The health of a Kafka cluster, as reconciler reports it",
    }


def _validation() -> dict[str, Any]:
    from reconciler.planfile.validation import ValidationDocument

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **ValidationDocument.model_json_schema(mode="serialization"),
        "title": "What reconciler validate finds",
    }


def _get() -> dict[str, Any]:
    from reconciler.planfile.inventory_documents import build_get_schema

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **build_get_schema(),
        "title": "What a Kafka cluster has, as reconciler get prints it",
    }


def _describe() -> dict[str, Any]:
    from reconciler.planfile.inventory_documents import build_describe_schema

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **build_describe_schema(),
        "title": "A topic or a broker of a Kafka cluster, as reconciler describe prints it",
    }


def _history() -> dict[str, Any]:
    from reconciler.planfile.history import HistoryDocument

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **HistoryDocument.model_json_schema(mode="serialization"),
        "title": "What earlier runs of reconciler did on a Kafka cluster",
    }


SCHEMAS: Mapping[str, Callable[[], dict[str, Any]]] = MappingProxyType(
    {
        "topic": _topic,
        "clusters": _clusters,
        "baseline": _baseline,
        "plan": _plan,
        "snapshot": _snapshot,
        "moves": _moves,
        "health": _health,
        "validation": _validation,
        "get": _get,
        "describe": _describe,
        "history": _history,
    }
)
"""Every format by name. schemas/ holds each as `<name>.schema.json`."""


@click.command(cls=Command)
@click.argument("name", type=click.Choice(list(SCHEMAS)))
def command(name: str) -> None:
    """Print the JSON Schema of a file format, for editors and other tools."""
    click.echo(render_schema(name), nl=False)


def render_schema(name: str) -> str:
    """Return a schema as the text of its file."""
    return json.dumps(SCHEMAS[name](), indent=2, ensure_ascii=False) + "\n"
