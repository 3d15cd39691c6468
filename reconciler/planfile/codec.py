"""A plan as canonical JSON, sealed, and back.

The fingerprint covers the effects of the plan and its inputs: the cluster, the racks of the brokers
that get replicas, each topic's change, risks and refusals, and the refusals of the plan itself; in
a plan of moves also its limits. It does not cover the rest of the cluster, the balance, the cost of
moves, or the commit of the specs. So the same plan made again has the same fingerprint. The seal
covers every field of one file, also those of a newer minor format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from itertools import zip_longest

from pydantic import ValidationError

from reconciler.errors import Finding, PlanFileError
from reconciler.files import DuplicateKeyError, ReplacedError, load_json
from reconciler.model.plan import Plan, PlannedTopic, TopicImage
from reconciler.model.steps import brokers_of, steps_of
from reconciler.planfile.documents import describe_error
from reconciler.planfile.plan_document import (
    FORMAT_VERSION,
    ImageDocument,
    MovePolicyDocument,
    PlanDocument,
)


def encode_plan(plan: Plan) -> str:
    """Encode a plan as one line of canonical JSON: equal plans, equal bytes."""
    document = PlanDocument.write(plan).dump()
    document["fingerprint"] = fingerprint_plan(plan)
    return _canonical({**document, "seal": _seal(document)}) + "\n"


def decode_plan(text: str, source: str = "plan") -> Plan:
    """Decode a plan file. Errors: PlanFileError if it is malformed, too new, or tampered with."""
    raw = _load(text, source)
    document = _parse(raw, source)
    plan: Plan = document.read()
    # An edit of the effects is reported before any other: the fingerprint is what people approved.
    if fingerprint_plan(plan) != document.fingerprint or not _is_derived(document, plan):
        raise _refuse_tampered(source, "fingerprint")
    if _seal(raw) != document.seal:
        raise _refuse_tampered(source, "seal")
    return plan


def _refuse_tampered(source: str, mark: str) -> PlanFileError:
    what = f"{source} does not match its own {mark}: it was changed after it was made"
    return _refuse("plan-tampered", what)


def _is_derived(document: PlanDocument, plan: Plan) -> bool:
    """Return whether actions, steps and counts follow from the images.

    Apply does not read them, but policies and people do: they must not be misled.
    """
    derived = PlanDocument.write(plan)
    # A newer minor format may count more.
    return (
        document.resource_changes == derived.resource_changes
        and document.summary.model_dump().items() >= derived.summary.model_dump().items()
        and document.totals == derived.totals
    )


def fingerprint_plan(plan: Plan) -> str:
    """Return the SHA-256, in hex, of the plan's effects and inputs."""
    from pydantic_core import to_jsonable_python

    used = {b for topic in plan.topics for step in steps_of(topic) for b in brokers_of(step)}
    topics: list[list[object]] = []
    for topic in plan.topics:
        if _is_untouched(plan, topic):
            continue
        deletion, rules = topic.deletion, [finding.rule for finding in topic.refusals]
        # The end offsets stand for the usage behind a deletion: a write changes them, while a
        # record that expires does not.
        usage = [] if deletion is None else [deletion.unused_for_ms, deletion.ends]
        bound = ("risk", "consequence", "acknowledged")
        risks = [{name: getattr(note, name) for name in bound} for note in topic.risks]
        topics.append([topic.name, _list_bound(plan, topic), risks, rules, *usage])
    essence: dict[str, object] = {
        "format": "2",  # of this content: other content has another number
        "cluster": [plan.cluster, plan.cluster_id],
        "brokers": [[broker.id, broker.rack] for broker in plan.brokers if broker.id in used],
        "topics": topics,
    }
    if plan.refusals:
        essence["refusals"] = [refusal.rule for refusal in plan.refusals]
    if plan.moves is not None:
        # What people approve: how fast, how much at a time, and which guarantees are lowered. Sizes
        # change all the time, so the forecast is left out.
        policy = MovePolicyDocument.write(plan.moves.policy).dump()
        essence["moves"] = [policy, dict(plan.moves.min_insync)]
        if plan.moves.drains:
            # Only what is asked of the brokers: the topics on them are among the topics above.
            essence["drains"] = [[drain.broker, drain.cordon] for drain in plan.moves.drains]
    return _digest(to_jsonable_python(essence))


def _is_untouched(plan: Plan, topic: PlannedTopic) -> bool:
    """Return whether a topic is in a plan of changes only for its notes, which come and go."""
    return plan.moves is None and topic.before == topic.after and not topic.refusals


def _list_bound(plan: Plan, topic: PlannedTopic) -> list[object]:
    """List what an approval binds of a topic before and after: what the plan changes or rests on.

    Replicas may move, and other configs change, before a plan of changes is applied: a drain takes
    hours. Apply asks for the same, in `compare_state`.
    """
    before, after = topic.before, topic.after
    # Moves and elections rest on all rows of the topic.
    if plan.moves is not None or before is None or before.leaders:
        return [_image(before), _image(after)]
    bound: list[object] = [before.topic_id, len(before.assignment)]
    if after is None:
        return [*bound, None]
    keys = before.config.keys() | after.config.keys()
    altered = {
        key: [before.config.get(key), after.config.get(key)]
        for key in keys
        if before.config.get(key) != after.config.get(key)
    }
    rows = enumerate(zip_longest(before.assignment, after.assignment))
    changed = [[number, *pair] for number, pair in rows if pair[0] != pair[1]]
    return [*bound, after.topic_id, altered, changed]


def _image(image: TopicImage | None) -> Mapping[str, object] | None:
    return ImageDocument.write(image).dump() if image else None


def _seal(document: Mapping[str, object]) -> str:
    """Return the SHA-256, in hex, of a document without its own seal."""
    return _digest({key: value for key, value in document.items() if key != "seal"})


def _digest(value: object) -> str:
    # Surrogates come from files that are not our plans: these fail as tampered with.
    return sha256(_canonical(value).encode(errors="surrogatepass")).hexdigest()


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _refuse(rule: str, what: str, way_out: str = "make the plan again") -> PlanFileError:
    return PlanFileError([Finding(rule, what, way_out)])


def _load(text: str, source: str) -> Mapping[str, object]:
    try:
        raw = load_json(text)
    except DuplicateKeyError as error:
        raise _refuse("plan-form", f"{source} is not a plan: {error}") from error
    except ReplacedError as error:
        what = f"{source} is not a plan: {error.what}"
        raise _refuse("plan-form", what, error.way_out) from error
    except (ValueError, RecursionError) as error:
        raise _refuse("plan-form", f"{source} is not JSON: {error}") from error
    if not isinstance(raw, dict):
        raise _refuse("plan-form", f"{source} is not a plan: the document is not a map of keys")
    return raw


def _parse(raw: Mapping[str, object], source: str) -> PlanDocument:
    version, ours = raw.get("format_version"), FORMAT_VERSION.partition(".")[0]
    if isinstance(version, str) and version.partition(".")[0] != ours:
        what = f"{source} has format_version {version}, this reconciler reads {ours}.x"
        way_out = "use the reconciler that made it, or make the plan again"
        raise _refuse("plan-version", what, way_out)
    try:
        return PlanDocument.model_validate(raw)
    except ValidationError as error:
        raise _refuse("plan-form", f"{source} is not a plan: {describe_error(error)}") from error
    except KeyError as error:
        what = f"{source} names the rule {error}, which this reconciler does not have"
        raise _refuse("plan-form", what) from error
