"""Refusals of what a cluster cannot do, because its brokers do not offer the request for it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType

from reconciler.errors import Finding, Severity
from reconciler.model.cluster import TopicSpec
from reconciler.model.plan import Plan
from reconciler.model.requests import MOVING, KafkaRequest
from reconciler.model.steps import Verb, steps_of

_NEEDED: Mapping[Verb, tuple[tuple[KafkaRequest, ...], str]] = MappingProxyType(
    {
        Verb.CREATE: ((KafkaRequest.CREATE_TOPICS,), "topics cannot be created through Kafka"),
        Verb.EXPAND: (
            (KafkaRequest.CREATE_PARTITIONS,),
            "partitions cannot be added through Kafka",
        ),
        Verb.CONFIGURE: (
            (KafkaRequest.ALTER_CONFIGS,),
            "configs of existing topics cannot be changed through Kafka",
        ),
        Verb.REORDER: (MOVING, "replicas cannot be moved through Kafka"),
        Verb.MOVE: (MOVING, "replicas cannot be moved through Kafka"),
        Verb.RELOCATE: (
            (
                KafkaRequest.LIST_REASSIGNMENTS,
                KafkaRequest.DESCRIBE_LOG_DIRS,
                KafkaRequest.ALTER_LOG_DIRS,
            ),
            "replicas cannot be moved between log directories",
        ),
        Verb.ELECT: ((KafkaRequest.ELECT_LEADERS,), "leaders cannot be elected through Kafka"),
        Verb.DELETE: (
            (KafkaRequest.TOPIC_IDS, KafkaRequest.DELETE_TOPICS),
            "topics cannot be deleted by their ids, and a deletion by name could delete another "
            "topic",
        ),
    }
)
"""What each kind of step needs, and what cannot be done without it."""

ANOTHER_WAY = "do it with the tools of the service, then plan again"


def explain_unmovable(unoffered: Collection[KafkaRequest]) -> str:
    """Say why no plan can move replicas; empty if the brokers offer what that takes."""
    requests, impossible = _NEEDED[Verb.MOVE]
    return _explain([request for request in requests if request in unoffered], impossible)


def _explain(lacking: Collection[KafkaRequest], impossible: str) -> str:
    return f"the brokers do not offer {' and '.join(lacking)}, so {impossible}" if lacking else ""


def refuse_unoffered(
    spec: TopicSpec, path: str, verb: Verb, unoffered: Collection[KafkaRequest]
) -> Iterator[Finding]:
    """Refuse a change of a topic that needs a request which the brokers do not offer.

    `path` is the field that changes.
    """
    requests, impossible = _NEEDED[verb]
    lacking = [request for request in requests if request in unoffered]
    if what := _explain(lacking, impossible):
        yield Finding("request-unoffered", what, ANOTHER_WAY, spec.where(path))


def list_needed(plan: Plan) -> frozenset[KafkaRequest]:
    """List the requests without which a plan of moves or elections must not begin."""
    verbs = {step.verb for topic in plan.topics for step in steps_of(topic)}
    needed = {request for verb in verbs for request in _NEEDED[verb][0]}
    if plan.moves is not None:
        # Without elections and cordons, replicas move all the same.
        needed.discard(KafkaRequest.ELECT_LEADERS)
        if plan.moves.min_insync or _is_throttled(plan):
            needed.add(KafkaRequest.ALTER_CONFIGS)
    return frozenset(needed)


def check_offered(plan: Plan, unoffered: Collection[KafkaRequest]) -> Iterator[Finding]:
    """Refuse a plan of moves or elections that needs a request which the brokers do not offer.

    A plan of changes is not refused as a whole: `refuse_unoffered` refuses topics of it.
    """
    lacking = list_needed(plan) & set(unoffered)
    if lacking:
        yield _refuse(plan, lacking)
    elif (
        plan.moves is not None
        and plan.moves.leader_changes
        and KafkaRequest.ELECT_LEADERS in unoffered
    ):
        what = (
            f"the brokers of {plan.cluster} do not offer {KafkaRequest.ELECT_LEADERS}, so leaders "
            "stay where they are until the brokers elect others by themselves"
        )
        yield Finding("request-unoffered", what, severity=Severity.NOTE)


def _refuse(plan: Plan, lacking: frozenset[KafkaRequest]) -> Finding:
    impossible, way_out = _NEEDED[Verb.MOVE][1], ANOTHER_WAY
    if plan.moves is None:
        impossible = _NEEDED[Verb.ELECT][1]
    elif plan.moves.directories and lacking.intersection(_NEEDED[Verb.RELOCATE][0]):
        impossible = _NEEDED[Verb.RELOCATE][1]
    elif not lacking.intersection(MOVING):
        impossible = "throttles and min.insync.replicas cannot be set while replicas move"
        if _is_throttled(plan):
            way_out = f"write rate: unlimited, or {ANOTHER_WAY}"
    named = " and ".join(request for request in KafkaRequest if request in lacking)
    what = f"the brokers of {plan.cluster} do not offer {named}, so {impossible}"
    return Finding("request-unoffered", what, way_out)


def _is_throttled(plan: Plan) -> bool:
    moves = plan.moves
    return bool(moves and moves.copies_data and moves.policy.rate_bytes_per_s is not None)
