"""Plan files: their form, their seal, and what a file that is not one is told."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from formats import load_validator
from shorthand import HERE, NOW_MS, ONE, brokers, cluster, plan, rows, spec, topic, unused_cluster

from reconciler.cli.schema import render_schema
from reconciler.errors import Finding, PlanFileError, Severity
from reconciler.model.cluster import ClusterState
from reconciler.model.health import HealthCounts
from reconciler.model.plan import Commit, Plan, PlannedTopic, Scope, TopicImage
from reconciler.planfile.approval import list_new_rows
from reconciler.planfile.codec import decode_plan, encode_plan, fingerprint_plan

LIVE = cluster(
    topic("1,2 2,3", "grown"),
    topic("1,2 2,3", "shrunk"),
    topic("1", "tuned", config={"flush.ms": "1", "segment.ms": "9"}),
    topic("1", "same"),
    topic("1", "stranger"),
    nodes=brokers("a", "b", "c"),
)
SPECS = (
    spec("made", partitions=2, replication_factor=2, config={"retention.ms": "1"}),
    spec("grown", partitions=4, acknowledge=frozenset({"ordering"})),
    spec("shrunk", partitions=1),
    spec("tuned", config={"flush.ms": "2"}),
    spec("same", partitions=1),
)
NOTE = Finding("estate-empty", "a note ü", where=HERE, severity=Severity.NOTE)
SCOPE = Scope("*", "main")
DRIFT = {
    "name": "a",
    "actions": ["create"],
    "differs": [],
    "where": {"file": "a.yaml", "line": 1},
    "owner": None,
}
COMMIT = Commit("1a2b3c4d5e" * 4)
MADE = plan(SPECS, LIVE, excluded=[3], files=2, notes=[NOTE])
PLAN = replace(MADE, commit=COMMIT, scope=SCOPE)


def test_stages_are_kept_and_are_not_part_of_the_fingerprint() -> None:
    staged = replace(PLAN, stages=(("dev",), ("prod", "eu")))
    assert decode_plan(encode_plan(staged)) == staged
    assert "stages" not in document()
    kept = json.loads(encode_plan(staged))
    assert kept["stages"] == [["dev"], ["prod", "eu"]]
    assert kept["fingerprint"] == document()["fingerprint"]
    load_validator("plan").validate(kept)


def test_health_is_kept_sealed_and_not_part_of_the_fingerprint() -> None:
    ill = replace(PLAN, health=HealthCounts(offline=4, under_replicated=118))
    text = encode_plan(ill)
    assert decode_plan(text) == ill
    assert fingerprint_plan(ill) == fingerprint_plan(PLAN)
    assert "health" not in json.loads(encode_plan(PLAN))
    with pytest.raises(PlanFileError, match="seal"):
        decode_plan(text.replace('"offline":4', '"offline":0'))


def document() -> dict[str, Any]:
    """Return the document of `PLAN`, fresh, to be spoilt."""
    return dict(json.loads(encode_plan(PLAN)))


def change(name: str, doc: dict[str, Any]) -> dict[str, Any]:
    found = [r for r in doc["resource_changes"] if r["name"] == name]
    return dict(found[0])["change"]


def sealed(doc: dict[str, Any]) -> dict[str, Any]:
    """Seal a document: the hash of its canonical form without the seal."""
    rest = {key: value for key, value in doc.items() if key != "seal"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return {**rest, "seal": sha256(text.encode()).hexdigest()}


def refusal(text: str) -> str:
    """Return what reading a file says."""
    with pytest.raises(PlanFileError) as error:
        decode_plan(text, "plan.json")
    return str(error.value)


TAMPERED = (
    "plan.json does not match its own fingerprint: it was changed after it was made; "
    "make the plan again [plan-tampered]"
)


UNSEALED = TAMPERED.replace("fingerprint", "seal")

# The form.


def test_a_plan_comes_back_as_it_was() -> None:
    assert decode_plan(encode_plan(PLAN)) == PLAN


def test_a_plan_is_one_line_of_sorted_compact_json() -> None:
    text = encode_plan(PLAN)
    assert (
        text
        == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        + "\n"
    )


def test_text_is_kept_as_it_is_written() -> None:
    assert "a note ü" in encode_plan(PLAN)


def test_white_space_does_not_matter() -> None:
    assert decode_plan(json.dumps(document(), indent=2)) == PLAN


@pytest.mark.parametrize(
    ("name", "action", "steps"),
    [
        ("made", "create", ["create"]),
        ("grown", "update", ["expand"]),
        ("tuned", "update", ["configure"]),
        ("shrunk", "no-op", []),
    ],
)
def test_actions_are_terraforms_words_and_steps_are_verbs(
    name: str, action: str, steps: list[str]
) -> None:
    (found,) = (r for r in document()["resource_changes"] if r["name"] == name)
    assert (found["change"]["actions"], found["steps"]) == ([action], steps)
    assert (found["address"], found["type"]) == (f"kafka_topic.{name}", "kafka_topic")


def test_after_holds_every_row_old_ones_included() -> None:
    after = change("grown", document())["after"]
    assert after["assignment"][:2] == [[1, 2], [2, 3]]
    assert (after["partitions"], after["replication_factor"]) == (4, 2)


def test_what_does_not_exist_is_null_before() -> None:
    assert change("made", document())["before"] is None


def test_the_summary_counts_topics() -> None:
    assert document()["summary"] == {
        "create": 1,
        "expand": 1,
        "configure": 1,
        "reorder": 0,
        "move": 0,
        "relocate": 0,
        "elect": 0,
        "delete": 0,
        "refused": 1,
        "unchanged": 1,
        "live": 5,
        "files": 2,
    }


def test_the_document_validates_against_its_own_json_schema() -> None:
    load_validator("plan").validate(document())


def test_the_json_schema_names_the_fields_of_an_image() -> None:
    image = json.loads(render_schema("plan"))["$defs"]["ImageDocument"]
    assert {"assignment", "config", "leaders", "partitions"} <= image["properties"].keys()
    assert "leaders" not in image["required"]


# The seal.


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("partitions", 3),
        ("replication_factor", 1),
        ("assignment", [[1, 2], [2, 3], [1, 2], [1, 2]]),
        ("config", {"flush.ms": "1"}),
        ("topic_id", "id-other"),
    ],
)
@pytest.mark.parametrize("image", ["before", "after"])
def test_an_image_that_was_changed_is_seen(image: str, field: str, value: object) -> None:
    doc = document()
    change("grown", doc)[image][field] = value
    assert refusal(json.dumps(doc)) == TAMPERED


@pytest.mark.parametrize("name", ["made", "grown", "shrunk"])
def test_an_image_that_was_taken_out_is_seen(name: str) -> None:
    doc = document()
    change(name, doc)["after"] = None if name != "shrunk" else change("grown", doc)["after"]
    assert refusal(json.dumps(doc)) == TAMPERED


def test_actions_that_were_changed_are_seen() -> None:
    doc = document()
    change("made", doc)["actions"] = ["no-op"]
    assert refusal(json.dumps(doc)) == TAMPERED


def test_steps_that_were_changed_are_seen() -> None:
    doc = document()
    doc["resource_changes"][0]["steps"] = []
    assert refusal(json.dumps(doc)) == TAMPERED


def test_a_topic_that_was_taken_out_is_seen() -> None:
    doc = document()
    del doc["resource_changes"][0]
    assert refusal(json.dumps(doc)) == TAMPERED


def test_a_refusal_that_was_taken_out_is_seen() -> None:
    doc = document()
    (shrunk,) = (r for r in doc["resource_changes"] if r["name"] == "shrunk")
    shrunk["refusals"] = []
    assert refusal(json.dumps(doc)) == TAMPERED


def test_a_risk_that_was_acknowledged_afterwards_is_seen() -> None:
    doc = document()
    (grown,) = (r for r in doc["resource_changes"] if r["name"] == "grown")
    grown["risks"][0]["acknowledged"] = False
    assert refusal(json.dumps(doc)) == TAMPERED


@pytest.mark.parametrize("field", ["name", "cluster_id"])
def test_another_cluster_is_seen(field: str) -> None:
    doc = document()
    doc["cluster"][field] = "other"
    assert refusal(json.dumps(doc)) == TAMPERED


def test_a_summary_that_was_changed_is_seen() -> None:
    doc = document()
    doc["summary"]["refused"] = 0
    assert refusal(json.dumps(doc)) == TAMPERED


def test_totals_that_were_changed_are_seen() -> None:
    doc = document()
    doc["totals"]["by_owner"][0]["topics_added"] += 1
    assert refusal(json.dumps(sealed(doc))) == TAMPERED


def test_totals_are_counted_for_all_and_for_each_owner() -> None:
    wished = [
        spec("free", partitions=1, replication_factor=1),
        spec("made", partitions=2, replication_factor=3, owner="audit"),
        spec("grown", partitions=5, owner="shop"),
        spec("kept", owner="idle"),
    ]
    made = plan(wished, cluster(topic("1,2 2,3", "grown"), topic("1,2 2,3", "kept")))
    doc = json.loads(encode_plan(made))
    none = dict.fromkeys(("topics_removed", "partitions_removed", "replicas_removed"), 0)
    keys = ("topics_added", "partitions_added", "replicas_added", "topics_changed")

    def count(*numbers: int) -> dict[str, int]:
        return {**dict(zip(keys, numbers, strict=True)), **none}

    assert doc["totals"] == {
        **count(2, 6, 13, 3),
        "by_owner": [
            {"owner": "audit", **count(1, 2, 6, 1)},
            {"owner": "shop", **count(0, 3, 6, 1)},
            {"owner": None, **count(1, 1, 1, 1)},
        ],
    }
    load_validator("plan").validate(doc)
    assert decode_plan(encode_plan(made)) == made


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("commit", None),
        ("commit", {"sha": "f" * 40, "dirty": False}),
        ("commit", {"sha": COMMIT.sha, "dirty": True}),
        ("notes", []),
        ("unmanaged", []),
        ("existing_drift", [DRIFT]),
        ("scope", {"topics": "*", "changed_since": None}),
        ("format_version", "1.9"),
        ("novelty", 1),
    ],
)
def test_what_the_fingerprint_does_not_cover_is_sealed(field: str, value: object) -> None:
    doc = document()
    doc[field] = value
    assert refusal(json.dumps(doc)) == UNSEALED


def test_the_brokers_of_a_plan_are_sealed() -> None:
    doc = document()
    doc["cluster"]["excluded"] = []
    assert refusal(json.dumps(doc)) == UNSEALED


def test_a_file_without_its_seal_is_refused() -> None:
    doc = document()
    del doc["seal"]
    assert refusal(json.dumps(doc)).startswith("plan.json is not a plan: seal: Field required; ")


def test_the_plan_of_another_commit_has_the_same_fingerprint() -> None:
    """The merge job plans afresh, at another commit than the pull request."""
    other = replace(PLAN, commit=Commit("f" * 40, dirty=True))
    assert fingerprint_plan(other) == fingerprint_plan(PLAN)


@pytest.mark.parametrize("sha", ["HEAD", "--all", "1a2b3c4", "g" * 40])
def test_what_is_no_commit_is_refused(sha: str) -> None:
    doc = document()
    doc["commit"]["sha"] = sha
    assert refusal(json.dumps(sealed(doc))).startswith("plan.json is not a plan: commit.sha: ")


def test_the_fingerprint_does_not_cover_the_rest_of_the_cluster() -> None:
    elsewhere = replace(PLAN, unmanaged=("x",), live_topics=9, unchanged=4, balance_after=None)
    assert fingerprint_plan(elsewhere) == fingerprint_plan(PLAN)


@pytest.mark.parametrize("field", ["cluster", "cluster_id"])
def test_the_fingerprint_covers_the_cluster(field: str) -> None:
    assert fingerprint_plan(replace(PLAN, **{field: "other"})) != fingerprint_plan(PLAN)


def test_the_fingerprint_is_the_same_everywhere() -> None:
    """It is printed, compared and kept in other systems: a change of it is a change of format."""
    empty = Plan(cluster="c", cluster_id=None, brokers=(), topics=())
    expected = "14ba7d5c41e421818f2f409299e62d73ebdd31fccb04f80a699c340f6cebfc1b"
    assert fingerprint_plan(empty) == expected


def moved_rows(state: ClusterState, **rows_now: str) -> ClusterState:
    """Return a cluster some of whose topics were moved to other brokers."""
    moved = {n: replace(state.topics[n], assignment=rows(text)) for n, text in rows_now.items()}
    return replace(state, topics={**state.topics, **moved})


def replanned(state: ClusterState) -> Plan:
    """Return what a merge plans on a changed cluster, with the approved rows."""
    return plan(SPECS, state, excluded=[3], proposed=list_new_rows(PLAN))


@pytest.mark.parametrize("name", ["grown", "shrunk", "tuned", "same", "stranger"])
def test_an_approval_survives_replicas_that_move(name: str) -> None:
    row = "2,1 1,2" if name in ("grown", "shrunk") else "2"
    made = replanned(moved_rows(LIVE, **{name: row}))
    assert fingerprint_plan(made) == fingerprint_plan(PLAN)


@pytest.mark.parametrize(
    "state",
    [
        moved_rows(LIVE, tuned="1 2"),
        moved_rows(LIVE, grown="1,2 2,3 3,1"),
        moved_rows(LIVE, grown="1 2"),
        replace(LIVE, topics={**LIVE.topics, "tuned": replace(LIVE.topics["tuned"], topic_id="x")}),
        replace(LIVE, brokers=brokers("a", "z", "c")),
    ],
)
def test_an_approval_covers_what_new_partitions_rest_on(state: ClusterState) -> None:
    """The number of partitions and of replicas, the id of the topic, and the racks."""
    assert fingerprint_plan(replanned(state)) != fingerprint_plan(PLAN)


def test_an_approval_survives_a_config_that_stays_as_it_is() -> None:
    """A run of moves lowers min.insync.replicas, and raises it again."""
    tuned = PLAN.topics[[topic.name for topic in PLAN.topics].index("tuned")]
    assert tuned.before is not None
    assert tuned.after is not None
    key = {"min.insync.replicas": "1"}
    before, after = (
        replace(image, config={**image.config, **key}) for image in (tuned.before, tuned.after)
    )
    same = replace(tuned, before=before, after=after)
    held = replace(PLAN, topics=tuple(same if t is tuned else t for t in PLAN.topics))
    assert fingerprint_plan(held) == fingerprint_plan(PLAN)
    lowered = replace(tuned, before=before)
    other = replace(PLAN, topics=tuple(lowered if t is tuned else t for t in PLAN.topics))
    assert fingerprint_plan(other) != fingerprint_plan(PLAN)


def test_an_approval_survives_a_note_on_a_topic_that_stays_as_it_is() -> None:
    """Notes on pending moves come and go with them."""
    image = TopicImage("id-same", rows("1"), {})
    noted = PlannedTopic("same", HERE, image, image, notes=(NOTE,))
    with_note = replace(PLAN, topics=tuple(sorted((*PLAN.topics, noted), key=lambda t: t.name)))
    assert fingerprint_plan(with_note) == fingerprint_plan(PLAN)
    refused = replace(noted, refusals=(Finding("deletion-budget", "no"),))
    assert fingerprint_plan(replace(PLAN, topics=(*PLAN.topics, refused))) != fingerprint_plan(PLAN)


# Deletions.


DOOMED = unused_cluster(topic("1,2 2,3"), ends=(4, 0), records=3, newest_ms=NOW_MS - 8 * 86_400_000)
DELETION = plan([spec(absent=True)], DOOMED, guards=ONE)


def test_a_deletion_is_terraforms_delete() -> None:
    doc = json.loads(encode_plan(DELETION))
    (resource,) = doc["resource_changes"]
    assert (resource["change"]["actions"], resource["change"]["after"]) == (["delete"], None)
    assert resource["steps"] == ["delete"]
    assert resource["deletion"] == {
        "unused_for_ms": 604_800_000,
        "ends": [4, 0],
        "records": 3,
        "newest_ms": NOW_MS - 8 * 86_400_000,
    }
    assert doc["summary"]["delete"] == 1
    load_validator("plan").validate(doc)


def test_a_deletion_survives_its_file() -> None:
    assert decode_plan(encode_plan(DELETION)) == DELETION


@pytest.mark.parametrize(("field", "value"), [("ends", [4, 1]), ("unused_for_ms", 0)])
def test_what_a_deletion_rests_on_is_sealed(field: str, value: object) -> None:
    doc = json.loads(encode_plan(DELETION))
    doc["resource_changes"][0]["deletion"][field] = value
    assert refusal(json.dumps(doc)) == TAMPERED


def test_a_change_cannot_be_turned_into_a_deletion() -> None:
    doc = document()
    change("tuned", doc)["after"] = None
    assert refusal(json.dumps(doc)) == TAMPERED


def test_records_that_expire_leave_the_fingerprint_as_it_was_and_a_write_does_not() -> None:
    fewer = unused_cluster(topic("1,2 2,3"), ends=(4, 0), emptied=True)
    fewer = replace(fewer, config_defaults={"retention.ms": "604800000"})
    written = unused_cluster(topic("1,2 2,3"), ends=(4, 1), records=3)
    prints = [
        fingerprint_plan(plan([spec(absent=True)], state, guards=ONE))
        for state in (DOOMED, fewer, written)
    ]
    assert prints[0] == prints[1] != prints[2]


# What is no plan.


@pytest.mark.parametrize("text", ["", "{", "plan", "[" * 100_000, "9" * 5_000])
def test_what_is_no_json_is_refused(text: str) -> None:
    said = refusal(text)
    assert said.startswith("plan.json is not JSON: ")
    assert said.endswith("; make the plan again [plan-form]")


@pytest.mark.parametrize("text", ["null", "[]", "7", '"x"', "NaN"])
def test_json_of_another_form_is_refused(text: str) -> None:
    assert refusal(text).startswith("plan.json is not a plan: the document is not a map")


@pytest.mark.parametrize("key", ["seal", "cluster_id", "partitions"])
def test_a_key_that_is_there_twice_is_refused(key: str) -> None:
    """Readers differ in which of the two counts: a person, a policy and apply must not."""
    text = encode_plan(PLAN)
    doubled = text.replace(f'"{key}":', f'"{key}":"shown","{key}":')
    assert json.loads(doubled) == json.loads(text)
    assert refusal(doubled) == (
        f"plan.json is not a plan: keys appear twice in one object: {key}; "
        "make the plan again [plan-form]"
    )


def test_a_missing_part_is_named() -> None:
    doc = document()
    del doc["resource_changes"][1]["change"]
    assert refusal(json.dumps(doc)) == (
        "plan.json is not a plan: resource_changes.1.change: Field required; "
        "make the plan again [plan-form]"
    )


def test_a_file_without_a_format_is_refused() -> None:
    doc = document()
    del doc["format_version"]
    assert refusal(json.dumps(doc)) == (
        "plan.json is not a plan: format_version: Field required; make the plan again [plan-form]"
    )


@pytest.mark.parametrize("version", ["2.7", "0.9", "10.0"])
def test_another_major_format_is_refused(version: str) -> None:
    doc = document()
    doc["format_version"] = version
    assert refusal(json.dumps(doc)) == (
        f"plan.json has format_version {version}, this reconciler reads 1.x; "
        "use the reconciler that made it, or make the plan again [plan-version]"
    )


@pytest.mark.parametrize("version", [1, None, "1", "1.0.0", ""])
def test_a_malformed_format_is_refused(version: object) -> None:
    doc = document()
    doc["format_version"] = version
    assert refusal(json.dumps(doc)).endswith(("[plan-form]", "[plan-version]"))


def test_a_newer_minor_format_is_read_and_its_new_fields_are_skipped() -> None:
    doc = document()
    doc["format_version"] = "1.7"
    doc["resource_changes"][0]["novelty"] = doc["novelty"] = 1
    assert decode_plan(json.dumps(sealed(doc))) == PLAN


def test_a_rule_that_nobody_knows_is_refused() -> None:
    doc = document()
    (shrunk,) = (r for r in doc["resource_changes"] if r["name"] == "shrunk")
    shrunk["refusals"][0]["rule"] = "no-such-rule"
    assert refusal(json.dumps(doc)) == (
        "plan.json names the rule 'no-such-rule', which this reconciler does not have; "
        "make the plan again [plan-form]"
    )


def test_half_a_character_is_refused() -> None:
    doc = document()
    doc["cluster"]["name"] = "\ud800"
    assert refusal(json.dumps(doc)) == TAMPERED


@pytest.mark.parametrize("value", [1e400, "x", None, 10**30, -1.5, [[1]]])
def test_a_broker_id_that_is_none_is_refused(value: object) -> None:
    doc = document()
    change("grown", doc)["after"]["assignment"][0][0] = value
    assert refusal(json.dumps(doc)).endswith(("[plan-form]", "[plan-tampered]"))
