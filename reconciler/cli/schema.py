"""`reconciler schema`: print the JSON Schemas of the file formats."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from types import MappingProxyType, ModuleType
from typing import Any

import click

from reconciler.cli.options import Command
from reconciler.errors import UsageError, say_install


def _publish(schema: Mapping[str, Any], title: str) -> dict[str, Any]:
    """Return a schema with its dialect and a title."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": title}


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

    return _publish(PlanDocument.model_json_schema(mode="serialization"), "A plan of reconciler")


def _snapshot() -> dict[str, Any]:
    from reconciler.planfile.snapshot_document import SnapshotDocument

    return _publish(
        SnapshotDocument.model_json_schema(), "A snapshot of a Kafka cluster, for reconciler"
    )


def _moves() -> dict[str, Any]:
    from reconciler.planfile.moves_in_flight import MovesDocument

    return _publish(
        MovesDocument.model_json_schema(mode="serialization"),
        "Moves in flight on a Kafka cluster, as reconciler reports them",
    )


def _health() -> dict[str, Any]:
    from reconciler.planfile.health_document import HealthDocument

    return _publish(
        HealthDocument.model_json_schema(mode="serialization"),
        "The health of a Kafka cluster, as reconciler reports it",
    )


def _validation() -> dict[str, Any]:
    from reconciler.planfile.validation import ValidationDocument

    return _publish(
        ValidationDocument.model_json_schema(mode="serialization"), "What reconciler validate finds"
    )


def _get() -> dict[str, Any]:
    from reconciler.planfile.inventory_documents import build_get_schema

    return _publish(build_get_schema(), "What a Kafka cluster has, as reconciler get prints it")


def _describe() -> dict[str, Any]:
    from reconciler.planfile.inventory_documents import build_describe_schema

    return _publish(
        build_describe_schema(),
        "A topic or a broker of a Kafka cluster, as reconciler describe prints it",
    )


def _history() -> dict[str, Any]:
    from reconciler.planfile.history import HistoryDocument

    return _publish(
        HistoryDocument.model_json_schema(mode="serialization"),
        "What earlier runs of reconciler did on a Kafka cluster",
    )


def _answer(build: Callable[[ModuleType], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    """Return a schema of `answers`, which is imported when it is built."""

    def build_answer() -> dict[str, Any]:
        from reconciler.cli import answers

        return build(answers)

    return build_answer


def _fleet(build: Callable[[ModuleType], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    """Return a schema made of tables of the lake, which Spark declares."""

    def build_answer() -> dict[str, Any]:
        if find_spec("pyspark") is None:
            what = "this schema is made of tables of Spark, and pyspark is not installed"
            raise UsageError(f"{what}; {say_install('fleet')}")
        return _answer(build)()

    return build_answer


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
        "grants": _answer(
            lambda a: a.build_schema(
                a.GrantsAnswer | a.GrantsCheckAnswer, "The rights of the two accounts of a cluster"
            )
        ),
        "doctor": _answer(
            lambda a: a.build_schema(
                a.DoctorAnswer, "The parts of a repository's setup that are done"
            )
        ),
        "owners": _answer(lambda a: a.build_schema(a.OwnersAnswer, "Who owns which topics")),
        "simulate": _answer(
            lambda a: a.build_schema(a.StrategiesAnswer | a.CountsAnswer, "A simulated placement")
        ),
        "compare": _answer(
            lambda a: a.build_schema(a.ChoicesAnswer, "What each choice of a rebalance would cost")
        ),
        "rehearse": _answer(lambda a: a.build_schema(a.RehearsalAnswer, "A rehearsed plan")),
        "sandbox": _answer(lambda a: a.build_schema(a.SandboxAnswer, "The throwaway cluster")),
        "fleet-plan": _fleet(lambda a: a.build_fleet_plan()),
        "fleet-audit": _fleet(lambda a: a.build_fleet_audit()),
        "fleet-history": _fleet(lambda a: a.build_fleet_history()),
        "fleet-lake": _answer(lambda a: a.build_schema(a.Holdings, "The collections of a lake")),
    }
)
"""Every format by name. schemas/ holds each as `<name>.schema.json`."""


@click.command(cls=Command)
@click.argument("name", type=click.Choice(list(SCHEMAS)))
def command(name: str) -> None:
    """Print the JSON Schema of a file format or of an answer, for editors and other tools."""
    click.echo(render_schema(name), nl=False)


def render_schema(name: str) -> str:
    """Return a schema as the text of its file."""
    return json.dumps(SCHEMAS[name](), indent=2, ensure_ascii=False) + "\n"
