"""Risks: which changes have one, what it says, and which must be accepted by name."""

from __future__ import annotations

from typing import Any

import pytest
from shorthand import ONE, cluster, diff, may_move, plan, said, spec, topic, unused_cluster

from reconciler.changes.build import assemble_plan
from reconciler.changes.risks import assess_risks, refuse_unaccepted
from reconciler.diff.fields import managed_overrides
from reconciler.errors import Location, Severity
from reconciler.model.cluster import RISKY_FIELDS, AcceptedChange, ClusterState, Risk, TopicSpec
from reconciler.model.plan import RiskNote
from reconciler.model.steps import has_steps

DAY = 86_400_000


def risks(wished: TopicSpec, state: ClusterState) -> list[tuple[Risk, str]]:
    """Return the risks of altering the one topic of a cluster."""
    found = diff(wished, state)
    overrides = managed_overrides(found.state) if found.state else {}
    notes = assess_risks(found, overrides, state.config_defaults)
    return [(note.risk, note.consequence) for note in notes]


def config_risks(
    before: dict[str, str], after: dict[str, str], **defaults: Any
) -> list[tuple[Risk, str]]:
    live = cluster(topic(config=before), defaults=defaults.get("defaults"))
    return risks(spec(config=after), live)


# Data loss.


@pytest.mark.parametrize(
    ("key", "before", "after", "consequence"),
    [
        ("retention.ms", 7 * DAY, 3 * DAY, "records older than 3d (259200000) are deleted"),
        ("retention.ms", -1, DAY, "records older than 1d (86400000) are deleted"),
        ("retention.ms", 10, 0, "records older than 0 are deleted"),
        ("retention.bytes", 2048, 1024, "records beyond 1KiB (1024) are deleted"),
        ("retention.bytes", -5, 1000, "records beyond 1000 are deleted"),
    ],
)
def test_less_retention_loses_records(key: str, before: int, after: int, consequence: str) -> None:
    found = config_risks({key: str(before)}, {key: str(after)})
    assert found == [(Risk.DATA_LOSS, consequence)]


@pytest.mark.parametrize("key", ["retention.ms", "retention.bytes"])
@pytest.mark.parametrize(("before", "after"), [(1, 2), (5, -1), (-1, -2), (0, 1)])
def test_more_retention_or_no_limit_loses_nothing(key: str, before: int, after: int) -> None:
    assert config_risks({key: str(before)}, {key: str(after)}) == []


def test_a_new_override_is_held_against_the_default() -> None:
    default = {"retention.ms": str(7 * DAY)}
    assert len(config_risks({}, {"retention.ms": str(DAY)}, defaults=default)) == 1
    assert config_risks({}, {"retention.ms": str(8 * DAY)}, defaults=default) == []


def test_an_override_that_goes_is_held_against_the_default() -> None:
    default = {"retention.ms": str(7 * DAY)}
    assert config_risks({"retention.ms": "-1"}, {}, defaults=default) == [
        (Risk.DATA_LOSS, "records older than 7d (604800000) are deleted")
    ]
    assert config_risks({"retention.ms": "1"}, {}, defaults=default) == []


@pytest.mark.parametrize(
    ("before", "after", "consequence"),
    [
        ("compact", "delete", "records past the retention are deleted from now on"),
        ("compact", "compact,delete", "records past the retention are deleted from now on"),
        ("delete", "compact", "only the last record of every key is kept from now on"),
        ("delete", "delete,compact", "only the last record of every key is kept from now on"),
    ],
)
def test_another_cleanup_loses_records(before: str, after: str, consequence: str) -> None:
    found = config_risks({"cleanup.policy": before}, {"cleanup.policy": after})
    assert found == [(Risk.DATA_LOSS, consequence)]


@pytest.mark.parametrize(
    ("before", "after"), [("compact,delete", "delete"), ("compact,delete", "compact")]
)
def test_less_cleanup_loses_nothing(before: str, after: str) -> None:
    assert config_risks({"cleanup.policy": before}, {"cleanup.policy": after}) == []


@pytest.mark.parametrize("policy", ["compact", ""])
def test_less_retention_loses_nothing_where_nothing_is_deleted(policy: str) -> None:
    before = {"cleanup.policy": policy, "retention.ms": "2"}
    assert config_risks(before, {"cleanup.policy": policy, "retention.ms": "1"}) == []


def test_less_retention_loses_records_where_deleting_begins() -> None:
    before = {"cleanup.policy": "compact", "retention.ms": "2"}
    found = config_risks(before, {"cleanup.policy": "delete", "retention.ms": "1"})
    assert [consequence for _, consequence in found] == [
        "records older than 1 are deleted",
        "records past the retention are deleted from now on",
    ]


def test_a_policy_that_falls_back_to_the_default_is_seen() -> None:
    default = {"cleanup.policy": "delete"}
    assert len(config_risks({"cleanup.policy": "compact"}, {}, defaults=default)) == 1


@pytest.mark.parametrize(
    ("key", "before", "after", "consequence"),
    [
        (
            "unclean.leader.election.enable",
            "false",
            "true",
            "a replica that lags may become leader, and what it lacks is lost",
        ),
        ("remote.storage.enable", "true", "false", "records in remote storage may be deleted"),
    ],
)
def test_a_switch_is_dangerous_one_way_only(
    key: str, before: str, after: str, consequence: str
) -> None:
    assert config_risks({key: before}, {key: after}) == [(Risk.DATA_LOSS, consequence)]
    assert config_risks({key: after}, {key: before}) == []


def test_a_harmless_config_has_no_risk() -> None:
    assert config_risks({"flush.ms": "2"}, {"flush.ms": "1"}) == []


# Ordering.


def test_more_partitions_move_keys() -> None:
    found = risks(spec(partitions=4), cluster(topic("1 2 3")))
    assert found == [(Risk.ORDERING, "keys move to other partitions")]


def test_a_new_topic_has_no_risks() -> None:
    wished = spec(partitions=1, replication_factor=1, config={"retention.ms": "1"})
    assert risks(wished, cluster(defaults={"retention.ms": "2"})) == []


def test_a_topic_that_stays_has_no_risks() -> None:
    state = cluster(topic(config={"retention.ms": "1"}), defaults={"retention.ms": "2"})
    assert risks(spec(partitions=3, config={"retention.ms": "1"}), state) == []


# What must be accepted by name.


def unaccepted(wished: TopicSpec, state: ClusterState) -> list[str]:
    """Return what the plan refuses for its risk, with the place left out."""
    (planned,) = plan([wished], state).topics
    return [text.partition(": ")[2] for text in said(planned.refusals)]


def test_data_loss_is_refused_unless_acknowledged() -> None:
    wished = spec(config={"retention.ms": str(DAY)})
    assert unaccepted(wished, cluster(topic(config={"retention.ms": "-1"}))) == [
        "records older than 1d (86400000) are deleted (data-loss); "
        "write acknowledge: [data-loss] in the spec if this is intended [risk-not-acknowledged]"
    ]


def test_ordering_is_named_and_not_refused() -> None:
    (planned,) = plan([spec(partitions=4)], cluster(topic("1 2 3"))).topics
    assert planned.refusals == ()
    what = "keys move to other partitions"
    assert planned.risks == (RiskNote(Risk.ORDERING, what, field="partitions"),)


@pytest.mark.parametrize(
    ("live", "wished", "defaults"),
    [
        ("compact", "compact", {}),
        ("delete,compact", "delete,compact", {}),
        ("delete", "compact", {}),
        ("compact", "delete", {}),
        (None, None, {"cleanup.policy": "compact"}),
    ],
)
def test_ordering_of_a_compacted_topic_is_refused(
    live: str | None, wished: str | None, defaults: dict[str, str]
) -> None:
    state = cluster(topic(config={"cleanup.policy": live} if live else {}), defaults=defaults)
    config = {"cleanup.policy": wished} if wished else {}
    asked = spec(partitions=4, config=config, acknowledge=frozenset({"data-loss"}))
    assert unaccepted(asked, state) == [
        "keys move to other partitions, and their old values stay behind (ordering); "
        "write acknowledge: [data-loss, ordering] in the spec if "
        "this is intended [risk-not-acknowledged]"
    ]


def test_each_risk_is_accepted_by_its_own_name() -> None:
    state = cluster(topic(config={"cleanup.policy": "compact"}))
    config = {"cleanup.policy": "delete"}
    for accepted, refused in (("ordering", "data-loss"), ("data-loss", "ordering")):
        wished = spec(partitions=4, config=config, acknowledge=frozenset({accepted}))
        (refusal,) = unaccepted(wished, state)
        assert f"({refused})" in refusal


def test_what_is_acknowledged_is_done_and_said_to_be() -> None:
    wished = spec(config={"retention.ms": "1"}, acknowledge=frozenset({"data-loss"}))
    (planned,) = plan([wished], cluster(topic(config={"retention.ms": "2"}))).topics
    assert planned.refusals == ()
    assert [note.acknowledged for note in planned.risks] == [True]


# What is acknowledged, and needed by no change.

ALL = frozenset({"data-loss", "durability", "ordering", "traffic"})


def unused(wished: TopicSpec, state: ClusterState, **more: Any) -> list[str]:
    """Return the acknowledgements of which the plan notes that nothing needs them."""
    return [
        note.what.removeprefix("no change needs acknowledge: ")
        for planned in plan([wished], state, **more).topics
        for note in planned.notes
        if note.rule == "acknowledge-unused"
    ]


def test_an_acknowledgement_that_nothing_needs_is_noted_where_it_is_written() -> None:
    entry = Location("topics/shop.yaml", 9, 15)
    wished = spec(acknowledge=frozenset({"data-loss"}), fields={"acknowledge.data-loss": entry})
    made = plan([wished], cluster(topic()))
    (note,) = made.topics[0].notes
    assert str(note) == (
        "topics/shop.yaml:9:15: no change needs acknowledge: [data-loss] at topics/shop.yaml:9; "
        "remove it once no cluster needs it [acknowledge-unused]"
    )
    assert (note.severity, made.unchanged) == (Severity.NOTE, 1)
    assert not has_steps(made)


def test_only_the_risks_of_a_change_need_their_acknowledgement() -> None:
    wished = spec(config={"retention.ms": "1"}, partitions=4, acknowledge=ALL)
    assert unused(wished, cluster(topic(config={"retention.ms": "2"}))) == [
        "[durability] at topics/shop.yaml:3",
        "[traffic] at topics/shop.yaml:3",
    ]


def test_no_acknowledgement_of_a_new_a_refused_or_a_deleted_topic_is_noted() -> None:
    compacted = cluster(topic(config={"cleanup.policy": "compact"}))
    assert unused(spec(partitions=1, replication_factor=1, acknowledge=ALL), cluster()) == []
    assert unused(spec(partitions=2, acknowledge=ALL), cluster(topic())) == []
    refused = spec(config={"cleanup.policy": "delete"}, acknowledge=frozenset({"traffic"}))
    assert unused(refused, compacted) == []
    assert unused(spec(absent=True, acknowledge=ALL), unused_cluster(topic()), guards=ONE) == []
    assert unused(spec(absent=True, acknowledge=ALL), cluster()) == []


def test_no_acknowledgement_of_a_topic_with_pending_moves_is_noted() -> None:
    wished = spec(replication_factor=2, acknowledge=ALL)
    diffs = (diff(wished, cluster(topic()), moves=may_move("replication")),)
    (planned,) = assemble_plan("prod", diffs, cluster(topic())).topics
    assert [note.rule for note in planned.notes] == ["moves-pending"]


def test_a_drain_may_need_the_acknowledgement_of_its_traffic() -> None:
    wished = spec(acknowledge=frozenset({"traffic", "ordering"}))
    assert unused(wished, cluster(topic()), excluded={3}) == ["[ordering] at topics/shop.yaml:3"]


def test_an_absent_topic_is_refused_for_its_deletion_alone() -> None:
    state = cluster(topic(config={"retention.ms": "-1"}), defaults={"retention.ms": "1"})
    (planned,) = plan([spec(absent=True)], state).topics
    assert [refusal.rule for refusal in planned.refusals] == ["deletion-budget"]


@pytest.mark.parametrize(
    ("rows", "held"),
    [("1", "its partition and every record in it"), ("1 2", "its 2 partitions and every record")],
)
def test_a_deletion_loses_everything_and_says_so(rows: str, held: str) -> None:
    ((risk, consequence),) = risks(spec(absent=True), cluster(topic(rows)))
    assert risk is Risk.DATA_LOSS
    assert consequence.startswith(f"the topic is deleted permanently, with {held}")


def test_asking_for_a_deletion_acknowledges_it() -> None:
    (planned,) = plan([spec(absent=True)], unused_cluster(topic()), guards=ONE).topics
    assert [note.acknowledged for note in planned.risks] == [True]
    assert planned.refusals == ()


# What is acknowledged for one change only.


def accept(risk: str, field: str, before: str | None, after: str | None) -> AcceptedChange:
    return AcceptedChange(risk, field, before, after, Location("topics/shop.yaml", 9, 5))


LOWERED = cluster(topic(config={"retention.ms": str(7 * DAY)}))


def test_a_change_that_is_acknowledged_is_made() -> None:
    one = accept("data-loss", "config.retention.ms", str(7 * DAY), str(DAY))
    wished = spec(config={"retention.ms": str(DAY)}, accepts=(one,))
    (planned,) = plan([wished], LOWERED).topics
    assert (planned.refusals, planned.notes) == ((), ())
    assert [note.acknowledged for note in planned.risks] == [True]


@pytest.mark.parametrize(
    ("field", "before", "after", "stated"),
    [
        ("config.retention.ms", 7 * DAY, 2 * DAY, "retention.ms 7d → 2d"),
        ("config.retention.ms", 6 * DAY, DAY, "retention.ms 6d → 1d"),
        ("config.retention.ms", None, DAY, "retention.ms not set → 1d"),
        ("config.retention.bytes", 2048, 1024, "retention.bytes 2KiB → 1KiB"),
    ],
)
def test_another_change_is_refused_with_both_and_the_line(
    field: str, before: int | None, after: int, stated: str
) -> None:
    one = accept("data-loss", field, None if before is None else str(before), str(after))
    wished = spec(config={"retention.ms": str(DAY)}, accepts=(one,))
    (planned,) = plan([wished], LOWERED).topics
    assert said(planned.refusals) == [
        "topics/shop.yaml:9:5: records older than 1d (86400000) are deleted (data-loss), and "
        f"topics/shop.yaml:9 acknowledges {stated}, not retention.ms 7d → 1d; write acknowledge: "
        "[data-loss: retention.ms 7d → 1d] in the spec if this is intended [risk-not-acknowledged]"
    ]
    assert planned.notes == ()


def test_each_change_of_a_risk_needs_its_own_entry() -> None:
    live = cluster(topic(config={"retention.ms": "2000", "cleanup.policy": "compact"}))
    one = accept("data-loss", "config.retention.ms", "2000", "1000")
    config = {"retention.ms": "1000", "cleanup.policy": "delete,compact"}
    (refusal,) = unaccepted(spec(config=config, accepts=(one,)), live)
    assert refusal.endswith(
        'write acknowledge: [data-loss: "cleanup.policy compact → delete,compact", '
        "data-loss: retention.ms 2s → 1s] in the spec if this is intended [risk-not-acknowledged]"
    )


def test_a_step_of_a_gradual_change_is_a_change_of_its_own() -> None:
    whole = accept("data-loss", "config.retention.ms", str(7 * DAY), str(DAY))
    wished = spec(config={"retention.ms": str(DAY)}, gradual=2, accepts=(whole,))
    (refusal,) = unaccepted(wished, LOWERED)
    assert "acknowledges retention.ms 7d → 1d, not retention.ms 7d → 4d" in refusal


def test_a_change_that_was_made_needs_its_acknowledgement_no_more() -> None:
    one = accept("ordering", "partitions", "3", "4")
    assert unused(spec(partitions=4, accepts=(one,)), cluster(topic("1 2 3"))) == []
    made = cluster(topic("1 2 3 1"))
    entry = "[ordering: 3 → 4] at topics/shop.yaml:9"
    assert unused(spec(partitions=4, accepts=(one,)), made) == [entry]
    assert unused(spec(partitions=5, accepts=(one,)), made) == [entry]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"retention.ms": "2", "retention.bytes": "2"}, {"retention.ms": "1"}),
        ({"cleanup.policy": "delete"}, {"cleanup.policy": "compact"}),
        ({"min.insync.replicas": "2"}, {"min.insync.replicas": "1"}),
        ({"max.message.bytes": "2"}, {"max.message.bytes": "1"}),
        ({}, {"unclean.leader.election.enable": "true"}),
        ({"remote.storage.enable": "true"}, {"remote.storage.enable": "false"}),
    ],
)
def test_every_risk_names_a_field_that_an_entry_can_name(
    before: dict[str, str], after: dict[str, str]
) -> None:
    defaults = {"unclean.leader.election.enable": "false"}
    state = cluster(topic("1 2 3", config=before), defaults=defaults)
    found = diff(spec(partitions=4, config=after), state)
    notes = assess_risks(found, before, defaults)
    assert len(notes) > 1
    for note in notes:
        assert note.field in {change.path for change in found.changes}
        assert note.field.removeprefix("config.") in RISKY_FIELDS[note.risk]


def test_a_risk_is_refused_where_the_topic_is_written() -> None:
    state = cluster(topic(config={"retention.ms": "2"}))
    wished = spec(config={"retention.ms": "1"})
    found = diff(wished, state)
    note = RiskNote(Risk.DATA_LOSS, "gone")
    (refusal,) = refuse_unaccepted(found, [note], {})
    assert refusal.where == wished.location


def test_a_limit_where_the_one_before_is_not_known_may_lower_it() -> None:
    assert config_risks({}, {"retention.bytes": "5"}) == [
        (Risk.DATA_LOSS, "records beyond 5 are deleted")
    ]


def test_a_limit_that_gives_way_to_an_unknown_default_may_be_lowered() -> None:
    assert config_risks({"retention.ms": "5"}, {}) == [
        (
            Risk.DATA_LOSS,
            "records older than the brokers' own retention.ms, not known here, are deleted",
        )
    ]


# Durability and traffic: named, and never refused.

MIN_INSYNC, BYTES = "min.insync.replicas", "max.message.bytes"


@pytest.mark.parametrize(
    ("key", "before", "after", "risk", "consequence"),
    [
        (MIN_INSYNC, 2, 1, Risk.DURABILITY,
         "a write counts as safe once 1 replica has it, where it took 2"),
        (MIN_INSYNC, 3, 2, Risk.DURABILITY,
         "a write counts as safe once 2 replicas have it, where it took 3"),
        (MIN_INSYNC, 2, 3, Risk.TRAFFIC, "writes with acks=all fail while one broker is down"),
        (BYTES, 2048, 1024, Risk.TRAFFIC,
         "producers of larger batches than 1KiB (1024) fail from now on"),
    ],
)  # fmt: skip
def test_what_producers_will_meet_is_named(
    key: str, before: int, after: int, risk: Risk, consequence: str
) -> None:
    live = cluster(topic("1,2,3", config={key: str(before)}))
    wished = spec(config={key: str(after)})
    assert risks(wished, live) == [(risk, consequence)]
    assert plan([wished], live).topics[0].refusals == ()


@pytest.mark.parametrize(
    ("key", "before", "after"), [(MIN_INSYNC, 1, 2), (MIN_INSYNC, 3, 3), (BYTES, 1024, 2048)]
)
def test_what_producers_gain_by_is_no_risk(key: str, before: int, after: int) -> None:
    live = cluster(topic("1,2,3", config={key: str(before)}))
    assert risks(spec(config={key: str(after)}), live) == []
