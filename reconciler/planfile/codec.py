"""A plan as canonical JSON, sealed, and back.

The fingerprint covers the effects of the plan and its inputs: the cluster, the racks of the brokers
that get replicas, each topic's change, risks and refusals, and the refusals of the plan itself; in
a plan of moves also its limits. It does not cover the rest of the cluster, the balance, the cost of
moves, or the commit of the specs. So the same plan made again has the same fingerprint. The seal
covers every field of one file, also those of a newer minor format.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from hashlib import sha256
from itertools import zip_longest
from typing import TYPE_CHECKING

from pydantic import ValidationError

from reconciler.errors import Finding, PlanFileError
from reconciler.files import DuplicateKeyError, ReplacedError, load_json
from reconciler.model.moves import (
    BrokerTraffic,
    DirectoryPeak,
    Forecast,
    MovePolicy,
    PlannedDrain,
    PlannedMoves,
)
from reconciler.model.plan import Commit, DriftedTopic, Plan, PlannedTopic, TopicImage
from reconciler.model.steps import Verb, brokers_of, steps_of
from reconciler.planfile.document import (
    FORMAT_VERSION,
    OLD_STEPS,
    READABLE,
    Action,
    ChangeDocument,
    ClusterDocument,
    CommitDocument,
    DrainDocument,
    DriftDocument,
    ForecastDocument,
    ImageDocument,
    MovePolicyDocument,
    PlanDocument,
    PlannedMovesDocument,
    ResourceDocument,
    SummaryDocument,
    TotalsDocument,
)
from reconciler.planfile.totals import Totals, count_by_owner

if TYPE_CHECKING:
    from collections.abc import Mapping

_ACTIONS: dict[Verb, Action] = {Verb.CREATE: "create", Verb.DELETE: "delete"}
"""Terraform's words for steps; every other step is an update."""


def encode_plan(plan: Plan) -> str:
    """Encode a plan as one line of canonical JSON: equal plans, equal bytes."""
    document = _document(plan).model_dump(mode="json")
    if plan.moves is None:
        del document["moves"]
    for name in ("agreed", "stages"):
        if not document[name]:
            del document[name]
    document["fingerprint"] = fingerprint_plan(plan)
    return _canonical({**document, "seal": _seal(document)}) + "\n"


def decode_plan(text: str, source: str = "plan") -> Plan:
    """Decode a plan file. Errors: PlanFileError if it is malformed, too new, or tampered with."""
    raw = _load(text, source)
    document = _parse(raw, source)
    plan = _plan(document)
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
    derived = _document(plan)
    counts = {**dict.fromkeys(map(str, Verb), 0), **document.summary.model_dump()}
    return (
        document.resource_changes == derived.resource_changes
        and all(counts[name] == number for name, number in derived.summary.model_dump().items())
        and document.totals in (derived.totals, None)  # None before format 2.5
    )


def fingerprint_plan(plan: Plan) -> str:
    """Return the SHA-256, in hex, of the plan's effects and inputs."""
    from pydantic_core import to_jsonable_python

    used = {b for topic in plan.topics for step in steps_of(topic) for b in brokers_of(step)}
    topics: list[list[object]] = []
    for topic in plan.topics:
        if _is_untouched(plan, topic):
            continue
        resource, deletion = _resource(topic), topic.deletion
        rules = [finding.rule for finding in resource.refusals]
        # The end offsets stand for the usage behind a deletion: a write changes them, while a
        # record that expires does not.
        usage = [] if deletion is None else [deletion.unused_for_ms, deletion.ends]
        change = resource.change if plan.fingerprint_format == 1 else _list_bound(plan, topic)
        bound = ("risk", "consequence", "acknowledged")
        risks = [{name: getattr(note, name) for name in bound} for note in topic.risks]
        topics.append([resource.name, change, risks, rules, *usage])
    essence: dict[str, object] = {
        "format": str(plan.fingerprint_format),
        "cluster": [plan.cluster, plan.cluster_id],
        "brokers": [[broker.id, broker.rack] for broker in plan.brokers if broker.id in used],
        "topics": topics,
    }
    if plan.refusals:
        essence["refusals"] = [refusal.rule for refusal in plan.refusals]
    if plan.moves is not None:
        # What people approve: how fast, how much at a time, and which guarantees are lowered. Sizes
        # change all the time, so the forecast is left out.
        essence["moves"] = [_policy(plan.moves.policy), dict(plan.moves.min_insync)]
        if plan.moves.drains:
            # Only what is asked of the brokers: the topics on them are among the topics above.
            essence["drains"] = [[drain.broker, drain.cordon] for drain in plan.moves.drains]
    return _digest(to_jsonable_python(essence))


def _is_untouched(plan: Plan, topic: PlannedTopic) -> bool:
    """Return whether a topic is in a plan of changes only for its notes, which come and go."""
    counts = plan.fingerprint_format == 1 or plan.moves is not None
    return not counts and topic.before == topic.after and not topic.refusals


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


def _seal(document: Mapping[str, object]) -> str:
    """Return the SHA-256, in hex, of a document without its own seal."""
    return _digest({key: value for key, value in document.items() if key != "seal"})


def _digest(value: object) -> str:
    # Surrogates come from files that are not our plans: these fail as tampered with.
    return sha256(_canonical(value).encode(errors="surrogatepass")).hexdigest()


def summarise(plan: Plan) -> SummaryDocument:
    """Count a plan's topics."""
    verbs = Counter(step.verb for topic in plan.topics for step in steps_of(topic))
    counts = {
        **{str(verb): verbs[verb] for verb in Verb},
        "refused": sum(bool(topic.refusals) for topic in plan.topics),
        "unchanged": plan.unchanged,
        "live": plan.live_topics,
        "files": plan.files,
    }
    return SummaryDocument.model_validate(counts)


def _total(plan: Plan) -> TotalsDocument:
    by_owner = count_by_owner(plan.topics)
    owners = [{"owner": owner, **asdict(totals)} for owner, totals in by_owner.items()]
    total = asdict(sum(by_owner.values(), Totals()))
    return TotalsDocument.model_validate({**total, "by_owner": owners})


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
    version = raw.get("format_version")
    major = version.partition(".")[0] if isinstance(version, str) else None
    if major is not None and major not in READABLE:
        known = " and ".join(f"{number}.x" for number in READABLE)
        what = f"{source} has format_version {version}, this reconciler reads {known}"
        way_out = "use the reconciler that made it, or make the plan again"
        raise _refuse("plan-version", what, way_out)
    try:
        return PlanDocument.model_validate(_name_steps(raw) if major == "1" else raw)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the document"
        raise _refuse("plan-form", f"{source} is not a plan: {place}: {first['msg']}") from error
    except KeyError as error:
        what = f"{source} names the rule {error}, which this reconciler does not have"
        raise _refuse("plan-form", what) from error


def _name_steps(raw: Mapping[str, object]) -> Mapping[str, object]:
    """Return a document of 1.x with the steps of today. Its seal covers the old names.

    What is malformed stays as it is: the model refuses it.
    """
    resources = raw.get("resource_changes")
    if not isinstance(resources, list):
        return raw
    renamed = []
    for resource in resources:
        steps = resource.get("steps") if isinstance(resource, dict) else None
        if isinstance(steps, list) and all(isinstance(step, str) for step in steps):
            renamed.append({**resource, "steps": [OLD_STEPS.get(step, step) for step in steps]})
        else:
            renamed.append(resource)
    return {**raw, "resource_changes": renamed}


def _document(plan: Plan) -> PlanDocument:
    commit = plan.commit
    return PlanDocument(
        format_version=FORMAT_VERSION,
        fingerprint_format=plan.fingerprint_format,
        fingerprint="0" * 64,
        seal="0" * 64,
        commit=CommitDocument(sha=commit.sha, dirty=commit.dirty) if commit else None,
        scope=plan.scope,
        cluster=ClusterDocument(
            name=plan.cluster,
            cluster_id=plan.cluster_id,
            brokers=plan.brokers,
            excluded=plan.excluded,
            balance_before=plan.balance_before,
            balance_after=plan.balance_after,
            levels=plan.levels,
            weighed=plan.weighed,
        ),
        resource_changes=tuple(map(_resource, plan.topics)),
        summary=summarise(plan),
        totals=_total(plan),
        unmanaged=plan.unmanaged,
        notes=plan.notes,
        refusals=plan.refusals,
        alerts=plan.alerts,
        existing_drift=tuple(map(_drift, plan.existing_drift)),
        agreed=plan.agreed,
        stages=plan.stages,
        moves=_moves(plan.moves) if plan.moves else None,
    )


def _drift(topic: DriftedTopic) -> DriftDocument:
    return DriftDocument(
        name=topic.name,
        actions=(topic.action,),
        differs=topic.differs,
        where=topic.location,
        owner=topic.owner,
    )


def _moves(moves: PlannedMoves) -> PlannedMovesDocument:
    return PlannedMovesDocument(
        policy=_policy(moves.policy),
        replicas=moves.replicas,
        least_replicas=moves.least_replicas,
        leader_changes=moves.leader_changes,
        drains=tuple(
            DrainDocument.model_validate(drain, from_attributes=True) for drain in moves.drains
        ),
        made_by=moves.made_by,
        min_insync=dict(moves.min_insync),
        forecast=ForecastDocument.model_validate(moves.forecast, from_attributes=True)
        if moves.forecast
        else None,
    )


def _policy(policy: MovePolicy) -> MovePolicyDocument:
    return MovePolicyDocument(
        allow=tuple(sorted(policy.allow)),
        rate_bytes_per_s=policy.rate_bytes_per_s,
        at_once_cluster=policy.at_once_cluster,
        at_once_broker=policy.at_once_broker,
        keep_free_percent=policy.keep_free_percent,
        max_bytes=policy.max_bytes,
    )


def _resource(topic: PlannedTopic) -> ResourceDocument:
    steps = tuple(step.verb for step in steps_of(topic))
    action: Action = _ACTIONS.get(steps[0], "update") if steps else "no-op"
    return ResourceDocument(
        address=f"kafka_topic.{topic.name}",
        name=topic.name,
        change=ChangeDocument(
            actions=(action,), before=_image(topic.before), after=_image(topic.after)
        ),
        steps=steps,
        where=topic.location,
        risks=topic.risks,
        refusals=topic.refusals,
        notes=topic.notes,
        balance_before=topic.balance_before,
        balance_after=topic.balance_after,
        deletion=topic.deletion,
        refused_change=topic.refused_change,
        owner=topic.owner,
        description=topic.description,
        explicit=topic.explicit,
    )


def _image(image: TopicImage | None) -> ImageDocument | None:
    if image is None:
        return None
    return ImageDocument(
        topic_id=image.topic_id,
        partitions=len(image.assignment),
        replication_factor=max(map(len, image.assignment), default=0),
        assignment=image.assignment,
        config=dict(image.config),
        leaders=image.leaders,
    )


def _plan(document: PlanDocument) -> Plan:
    cluster, commit = document.cluster, document.commit
    return Plan(
        cluster=cluster.name,
        cluster_id=cluster.cluster_id,
        brokers=cluster.brokers,
        topics=tuple(map(_planned, document.resource_changes)),
        unchanged=document.summary.unchanged,
        files=document.summary.files,
        live_topics=document.summary.live,
        unmanaged=document.unmanaged,
        notes=document.notes,
        refusals=document.refusals,
        alerts=document.alerts,
        balance_before=cluster.balance_before,
        balance_after=cluster.balance_after,
        levels=cluster.levels,
        weighed=cluster.weighed,
        excluded=cluster.excluded,
        commit=Commit(commit.sha, commit.dirty) if commit else None,
        scope=document.scope,
        moves=_read_moves(document.moves) if document.moves else None,
        fingerprint_format=document.fingerprint_format,
        existing_drift=tuple(
            DriftedTopic(topic.name, topic.where, topic.actions[0], topic.differs, topic.owner)
            for topic in document.existing_drift
        ),
        agreed=document.agreed,
        stages=document.stages,
    )


def _read_moves(moves: PlannedMovesDocument) -> PlannedMoves:
    policy, forecast = moves.policy, moves.forecast
    return PlannedMoves(
        policy=MovePolicy(
            allow=frozenset(policy.allow),
            rate_bytes_per_s=policy.rate_bytes_per_s,
            at_once_cluster=policy.at_once_cluster,
            at_once_broker=policy.at_once_broker,
            keep_free_percent=policy.keep_free_percent,
            max_bytes=policy.max_bytes,
        ),
        replicas=moves.replicas,
        least_replicas=moves.least_replicas,
        leader_changes=moves.leader_changes,
        drains=tuple(PlannedDrain(**dict(drain)) for drain in moves.drains),
        made_by=moves.made_by,
        min_insync=moves.min_insync,
        forecast=_read_forecast(forecast) if forecast else None,
    )


def _read_forecast(forecast: ForecastDocument) -> Forecast:
    return Forecast(
        copied_bytes=forecast.copied_bytes,
        sizes=forecast.sizes,
        unknown=forecast.unknown,
        seconds=forecast.seconds,
        default_rate=forecast.default_rate,
        least_rate=forecast.least_rate,
        traffic=tuple(BrokerTraffic(t.broker, t.in_bytes, t.out_bytes) for t in forecast.traffic),
        peaks=tuple(
            DirectoryPeak(p.broker, p.path, p.total_bytes, p.used_bytes, p.peak_bytes)
            for p in forecast.peaks
        ),
    )


def _planned(resource: ResourceDocument) -> PlannedTopic:
    return PlannedTopic(
        name=resource.name,
        location=resource.where,
        before=_read_image(resource.change.before),
        after=_read_image(resource.change.after),
        risks=resource.risks,
        refusals=resource.refusals,
        notes=resource.notes,
        balance_before=resource.balance_before,
        balance_after=resource.balance_after,
        deletion=resource.deletion,
        refused_change=resource.refused_change,
        owner=resource.owner,
        description=resource.description,
        explicit=resource.explicit,
    )


def _read_image(image: ImageDocument | None) -> TopicImage | None:
    if image is None:
        return None
    return TopicImage(image.topic_id, image.assignment, image.config, image.leaders)
