"""Which topics of an estate a plan is about: owned, ignored, named, or changed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from shorthand import HERE, cluster, said, spec, topic

from reconciler.api.planning import build_plan, load_estate
from reconciler.errors import Finding, Location, Severity, SpecError
from reconciler.model.cluster import AcceptedChange, Guards, TopicSpec
from reconciler.model.plan import Commit, Scope
from reconciler.planfile.codec import decode_plan, encode_plan, fingerprint_plan
from reconciler.show.github import render_github
from reconciler.show.markdown.page import render_markdown
from reconciler.show.text import render_text
from reconciler.spec.changes import Changes, ClusterThen
from reconciler.spec.entry import ClusterEntry
from reconciler.spec.estate import Estate

LIVE = cluster(
    topic("1", "shop.orders"),
    topic("1", "shop.old"),
    topic("1", "pay.captured"),
    topic("1", "_schemas"),
    defaults={"flush.ms": "1"},
)


def load(root: Path, clusters: str, **files: str) -> Estate:
    """Load an estate with one cluster `prod`, about which `clusters` says more."""
    text = f"version: 1\nclusters: {{prod: {{{clusters}}}}}\n"
    for name, content in {"clusters": text, **files}.items():
        (root / f"{name}.yaml").write_text(content)
    return load_estate(root)


@pytest.mark.parametrize(
    ("clusters", "glob", "unmanaged"),
    [
        ("", "*", ("_schemas", "pay.captured", "shop.old")),
        ('ignore: ["_*"]', "*", ("pay.captured", "shop.old")),
        ('owns: ["shop.*"]', "*", ("shop.old",)),
        ('owns: ["shop.*", "_*"], ignore: ["_*"]', "*", ("shop.old",)),
        ('owns: ["shop.*"]', "pay.*", ()),
        ("", "pay.*", ("pay.captured",)),
    ],
)
def test_only_what_is_the_estates_business_is_unmanaged(
    clusters: str, glob: str, unmanaged: tuple[str, ...], tmp_path: Path
) -> None:
    estate = load(tmp_path, clusters, shop="topic: shop.orders\npartitions: 1")
    plan = build_plan(estate, "prod", LIVE, topics=glob)
    assert (plan.unmanaged, plan.live_topics) == (unmanaged, 4)


STRIMZI = """\
apiVersion: kafka.strimzi.io/v1
kind: {kind}
metadata:
  name: {name}
  labels: {{strimzi.io/cluster: {cluster}}}
  annotations: {{strimzi.io/managed: "{managed}"}}
spec: {{partitions: 1, replicas: 1}}
"""


def list_noted(estate: Estate, cluster_name: str, glob: str = "*") -> list[str]:
    """List the rules of a plan's notes."""
    return [note.rule for note in build_plan(estate, cluster_name, LIVE, topics=glob).notes]


@pytest.mark.parametrize(
    "document",
    [
        STRIMZI.format(kind="KafkaUser", name="ana", cluster="prod", managed="true"),
        STRIMZI.format(kind="KafkaTopic", name="x", cluster="prod", managed="false"),
    ],
)
def test_a_document_that_is_in_no_plan_is_noted_by_none(document: str, tmp_path: Path) -> None:
    estate = load(tmp_path, "", other=document)
    assert len(estate.findings) == 1
    assert list_noted(estate, "prod") == []


@pytest.mark.parametrize(
    ("kafka_version", "noted"), [("99.0", ["kafka-version-newer"]), ("4.1", [])]
)
def test_a_note_on_the_version_of_another_cluster_is_not_shown(
    kafka_version: str, noted: list[str], tmp_path: Path
) -> None:
    clusters = f'kafka_version: "99.0"}}, two: {{kafka_version: "{kafka_version}"'
    estate = load(tmp_path, clusters, a="topic: shop.orders")
    assert list_noted(estate, "prod") == ["kafka-version-newer"]
    assert list_noted(estate, "two") == noted


def test_hidden_topics_are_noted_where_replicas_are_placed(tmp_path: Path) -> None:
    note = Finding("cluster-rights", "only some topics are seen", severity=Severity.NOTE)
    hidden = replace(LIVE, notes=(note,))
    for partitions, noted in ((1, ()), (2, (note,))):
        estate = load(tmp_path, "", shop=f"topic: shop.orders\npartitions: {partitions}")
        assert build_plan(estate, "prod", hidden).notes == noted


def test_a_collision_with_a_live_topic_of_others_is_seen(tmp_path: Path) -> None:
    estate = load(tmp_path, 'owns: ["pay_*"]', pay="topic: pay_captured\npartitions: 1")
    (planned,) = build_plan(estate, "prod", LIVE).topics
    assert "name-collides-with-live" in {refusal.rule for refusal in planned.refusals}


def change(estate: Estate, *names: str, **then: TopicSpec) -> Changes:
    """Return changes since a base that had all topics of an estate but some, and `then`."""
    specs = {s.name: s for s in estate.topics_for("prod") if s.name not in names}
    prod = ClusterThen(estate.clusters["prod"], {**specs, **then})
    return Changes("main", "1a2b3c4", {"prod": prod})


def write_changes(root: Path) -> Estate:
    """Write an estate of three files, of which each topic would change LIVE."""
    new = "partitions: 2\nreplication_factor: 1"
    return load(
        root,
        "",
        shop=f"topic: shop.orders\n{new}",
        both=f"topic: b.one\n{new}\n---\ntopic: b.two\n{new}",
        pay=f"topic: pay.new\n{new}",
    )


def test_only_topics_that_changed_are_planned(tmp_path: Path) -> None:
    estate = write_changes(tmp_path)
    (one, two) = (s for s in estate.topics_for("prod") if s.name in ("b.one", "b.two"))
    then = {"b.one": replace(one, partitions=1), "b.two": replace(two, config={"flush.ms": "2"})}
    plan = build_plan(estate, "prod", LIVE, changes=change(estate, **then))
    assert [topic.name for topic in plan.topics] == ["b.one", "b.two"]
    assert (plan.files, plan.unmanaged) == (1, ("_schemas", "pay.captured", "shop.old"))
    assert said(plan.notes) == [
        "only specs that changed since main (1a2b3c4) are planned: 2 of 4 topics [plan-scope]"
    ]


def test_where_topics_cannot_be_compared_every_topic_is_planned(tmp_path: Path) -> None:
    everything = Changes("main", "1a2b3c4", everything="clusters.yaml at main has errors")
    plan = build_plan(write_changes(tmp_path), "prod", LIVE, changes=everything)
    assert [topic.name for topic in plan.topics] == ["b.one", "b.two", "pay.new", "shop.orders"]
    assert said(plan.notes) == [
        "clusters.yaml at main has errors, so every topic is planned [plan-scope]"
    ]


@pytest.mark.parametrize(
    ("now", "then", "touched"),
    [
        ({}, {}, False),
        ({"owner": "new", "description": "new", "location": Location("b.yaml", 7)}, {}, False),
        ({"fields": {"partitions": Location("b.yaml", 7)}}, {}, False),
        ({"partitions": 3}, {"partitions": 2}, True),
        ({"config": {"flush.ms": "1"}}, {}, True),
        ({"absent": True}, {}, True),
        ({}, {"absent": True}, True),
        ({"acknowledge": frozenset({"ordering"})}, {}, True),
        ({"gradual": 2}, {}, True),
    ],
)
def test_a_topic_changed_if_it_asks_for_something_else(
    now: dict[str, Any], then: dict[str, Any], touched: bool
) -> None:
    entry = ClusterEntry("prod", HERE)
    before = {"prod": ClusterThen(entry, {"a": replace(spec("a"), **then)})}
    assert Changes("main", "1a2b3c4", before).touch(replace(spec("a"), **now), entry) is touched


def test_an_acknowledgement_of_another_change_is_a_change_and_its_place_is_none() -> None:
    entry, one = (
        ClusterEntry("prod", HERE),
        AcceptedChange("ordering", "partitions", "6", "9", HERE),
    )
    before = {"prod": ClusterThen(entry, {"a": spec("a", accepts=(one,))})}
    changes = Changes("main", "1a2b3c4", before)
    moved, other = one._replace(where=Location("b.yaml", 7)), one._replace(after="12")
    assert not changes.touch(spec("a", accepts=(moved,)), entry)
    assert changes.touch(spec("a", accepts=(other,)), entry)


def test_a_topic_of_a_new_cluster_or_of_another_set_of_configs_changed() -> None:
    entry = ClusterEntry("prod", HERE)
    changes = Changes("main", "1a2b3c4", {"prod": ClusterThen(entry, {"a": spec("a")})})
    assert changes.touch(spec("a"), ClusterEntry("new", HERE))
    assert changes.touch(spec("a"), replace(entry, known_configs=frozenset({"flush.ms"})))
    assert not changes.touch(spec("a"), replace(entry, guards=Guards(30), strategy="striped"))


def test_topics_that_left_their_files_and_live_on_are_named(tmp_path: Path) -> None:
    estate = write_changes(tmp_path)
    gone = {name: spec(name) for name in ("shop.old", "never.created", "_schemas")}
    plan = build_plan(estate, "prod", LIVE, changes=change(estate, **gone))
    assert said(plan.notes)[1:2] == [
        "unmanaged since main (1a2b3c4): _schemas, shop.old; nothing is done to them; "
        "to delete one, write a document with state: absent, and raise guards.max_deletes "
        "[topics-left]"
    ]


def test_what_is_out_of_scope_still_takes_room(tmp_path: Path) -> None:
    """The live topics lead on broker 1 only, so the new one does not."""
    estate = write_changes(tmp_path)
    (planned,) = build_plan(estate, "prod", LIVE, changes=change(estate, "pay.new")).topics
    assert planned.after is not None
    assert {leader for (leader,) in planned.after.assignment} == {2, 3}


def test_a_collision_with_a_spec_out_of_scope_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="name-collides"):
        load(tmp_path, "", a="topic: a.b", b="topic: a_b")


@pytest.mark.parametrize(
    ("then", "words"),
    [
        (frozenset(), "acknowledged"),
        (frozenset({"data-loss"}), "acknowledged before this request"),
    ],
)
def test_a_plan_says_whether_a_risk_was_acknowledged_before(
    then: frozenset[str], words: str, tmp_path: Path
) -> None:
    text = "topic: a\nconfig: {retention.ms: 1h}\nacknowledge: [data-loss]"
    estate = load(tmp_path, "", a=text)
    live = cluster(topic("1", "a", config={"retention.ms": "7200000"}), defaults={"flush.ms": "1"})
    was = spec("a", acknowledge=then)
    made = build_plan(estate, "prod", live, changes=change(estate, a=was))
    assert f"are deleted; {words}\n" in render_text(made)
    comment = render_markdown(made)
    assert f"> - **data-loss**, {words}: records older than" in comment
    assert f"| data-loss, {words} |" in comment
    assert f"are deleted ({words})\n" in render_github(made)
    encoded = encode_plan(made)
    assert decode_plan(encoded) == made
    (risk,) = json.loads(encoded)["resource_changes"][0]["risks"]
    assert risk["acknowledged_before"] is bool(then)
    assert fingerprint_plan(made) == fingerprint_plan(build_plan(estate, "prod", live))


def test_a_plan_keeps_its_commit(tmp_path: Path) -> None:
    estate = load(tmp_path, "", a="topic: a")
    commit = Commit("ab" * 20)
    assert build_plan(estate, "prod", LIVE, commit=commit).commit == commit


def test_a_plan_tells_what_it_was_limited_to(tmp_path: Path) -> None:
    estate = load(tmp_path, "", a="topic: a")
    changes = Changes("main", "1a2b3c4")
    plan = build_plan(estate, "prod", LIVE, topics="shop.*", changes=changes)
    assert plan.scope == Scope("shop.*", "main")
    assert build_plan(estate, "prod", LIVE).scope == Scope()


@pytest.mark.parametrize(("owns", "refused"), [("", False), ('owns: ["shop.*"], ', True)])
def test_a_share_is_one_of_the_topics_that_are_owned(
    owns: str, refused: bool, tmp_path: Path
) -> None:
    """Twelve topics are less than half of forty, and more than half of the twenty owned."""
    names = [f"{team}.{n}" for team in ("shop", "pay") for n in range(20)]
    live = cluster(*(topic("1", name) for name in names), defaults={"flush.ms": "1"})
    changed = "---\n".join(f"topic: shop.{n}\nconfig: {{flush.ms: 2ms}}\n" for n in range(12))
    clusters = f"{owns}guards: {{max_changed: 50%}}"
    plan = build_plan(load(tmp_path, clusters, shop=changed), "prod", live)
    assert bool(plan.refusals) is refused
