"""Deletions: asked for, allowed, and certain to hit nothing that is used; else refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from shorthand import CATALOGUE, HERE, NOW_MS, ONE, cluster, diff, said, spec, topic, unused_cluster

from reconciler.changes.topics import diff_topics
from reconciler.diff.fields import FieldChange
from reconciler.model.cluster import ClusterState, Guards
from reconciler.model.plan import Deletion
from reconciler.spec.configs import choose_catalogue

DAY = 86_400_000
GONE = spec(absent=True)


def refusals(state: ClusterState, guards: Guards = ONE) -> list[str]:
    return [str(refusal) for refusal in diff(GONE, state, guards=guards).refusals]


def rules(*, config: dict[str, str] | None = None, **found: Any) -> list[str]:
    """Return the rules that refuse to delete a topic used like this."""
    state = unused_cluster(topic(config=config or {}), **found)
    return [refusal.rule for refusal in diff(GONE, state, guards=ONE).refusals]


def test_an_unused_topic_is_deleted() -> None:
    state = unused_cluster(topic(), ends=(4, 0, 2), records=5, newest_ms=NOW_MS - 8 * DAY)
    found = diff(GONE, state, guards=ONE)
    assert found.changes == (FieldChange("topic", "shop.orders", None),)
    assert found.refusals == ()
    assert found.deletion == Deletion(7 * DAY, (4, 0, 2), 5, NOW_MS - 8 * DAY)


def test_a_topic_that_is_not_there_is_as_it_should_be() -> None:
    found = diff(GONE, cluster(), guards=ONE)
    assert (found.changes, found.refusals, found.deletion) == ((), (), None)


def test_brokers_that_delete_no_topics_are_not_asked_to() -> None:
    settings = {"delete.topic.enable": "false"}
    state = replace(unused_cluster(topic()), broker_settings=settings)
    assert refusals(state) == [
        f"{HERE}: brokers refuse to delete topics: delete.topic.enable is not true on all of them; "
        "set delete.topic.enable=true on all brokers and controllers first, or remove the document "
        "from the estate [deletion-disabled]"
    ]


def test_a_config_on_which_brokers_disagree_proves_no_age() -> None:
    """Records are gone, and who knows whether retention took them."""
    live = topic(config={}, disputed={"retention.ms": {1: "-1", 2: None}})
    state = unused_cluster(live, emptied=True)
    state = replace(state, config_defaults={"retention.ms": str(8 * DAY)})
    assert [refusal.rule for refusal in diff(GONE, state, guards=ONE).refusals] == [
        "deletion-unseen"
    ]


# The budget.


def test_without_a_budget_nothing_is_deleted_and_nothing_else_is_said() -> None:
    assert refusals(unused_cluster(topic(), groups=("g",)), Guards()) == [
        "topics/shop.yaml:3:1: state: absent asks to delete it, and the cluster's plans may delete "
        "nothing; write guards: {max_deletes: 1} for the cluster in clusters.yaml, or remove the "
        "document from the estate [deletion-budget]"
    ]


def test_guards_that_nobody_handed_over_allow_nothing() -> None:
    (found,) = diff_topics([GONE], unused_cluster(topic()), CATALOGUE)
    assert [refusal.rule for refusal in found.refusals] == ["deletion-budget"]


@pytest.mark.parametrize(("most", "refused"), [(1, 2), (2, 0), (3, 0)])
def test_of_too_many_deletions_none_is_done(most: int, refused: int) -> None:
    state = unused_cluster(topic(name="a"), topic(name="b"), topic(name="c"))
    specs = [spec("a", absent=True), spec("b", absent=True), spec("c"), spec("d", absent=True)]
    found = diff_topics(specs, state, CATALOGUE, (), Guards(max_deletes=most))
    refusals = said(refusal for each in found for refusal in each.refusals)
    assert (
        refusals
        == [
            f"{HERE}: 2 topics are to be deleted, and max_deletes of the cluster is 1; "
            "none is deleted; plan at most 1 at a time, in several requests or with --topic, or "
            "raise max_deletes [deletion-budget]"
        ]
        * refused
    )


# Use.


@pytest.mark.parametrize(
    ("groups", "what"),
    [
        (("billing",), "active consumer group billing uses it"),
        (("a", "b"), "active consumer groups a, b use it"),
        (("a", "b", "c", "d", "e"), "active consumer groups a, b, c and 2 more use it"),
    ],
)
def test_active_groups_keep_a_topic_and_are_named(groups: tuple[str, ...], what: str) -> None:
    (refusal,) = refusals(unused_cluster(topic(), groups=groups))
    assert refusal == (
        f"topics/shop.yaml:3:1: {what}; stop its consumers, or have them read something else, "
        "and plan again [deletion-in-use]"
    )


@pytest.mark.parametrize(
    ("age_ms", "said"),
    [
        (7 * DAY - 1, "6d ago"),
        (DAY, "1d ago"),
        (DAY - 1, "23h ago"),
        (59 * 60_000, "59min ago"),
        (59_999, "59s ago"),
        (0, "0s ago"),
        (-1, "which is in the future"),
        (-(10**16), "which is in the future"),
    ],
)
def test_a_young_record_keeps_a_topic(age_ms: int, said: str) -> None:
    (refusal,) = refusals(unused_cluster(topic(), newest_ms=NOW_MS - age_ms, records=1))
    assert said in refusal
    assert refusal.endswith("[deletion-written]")


def test_a_record_as_old_as_asked_for_does_not() -> None:
    assert rules(newest_ms=NOW_MS - 7 * DAY, records=1) == []


def test_unused_for_is_that_of_the_cluster() -> None:
    state = unused_cluster(topic(), newest_ms=NOW_MS - DAY, records=1)
    assert refusals(state, replace(ONE, unused_for_ms=DAY)) == []
    (refusal,) = refusals(state, replace(ONE, unused_for_ms=DAY + 1))
    assert "1d ago, and unused_for is 86400001" in refusal


def test_what_nobody_looked_at_is_not_deleted() -> None:
    assert refusals(cluster(topic())) == [
        f"{HERE}: it is not known who uses it; plan on the cluster itself: a snapshot "
        "does not hold that [deletion-unseen]"
    ]


def test_what_cannot_be_seen_is_not_deleted() -> None:
    state = unused_cluster(topic(), unseen="no rights", way_out="grant them", groups=("g",))
    assert [line.partition("1: ")[2] for line in refusals(state)] == [
        "active consumer group g uses it; stop its consumers, or have them read something else, "
        "and plan again [deletion-in-use]",
        "no rights; grant them [deletion-unseen]",
    ]


# Records that are gone before anybody looked.


@pytest.mark.parametrize(
    ("config", "refused"),
    [
        ({"retention.ms": str(7 * DAY)}, False),
        ({"retention.ms": str(7 * DAY - 1)}, True),
        ({"retention.ms": "-1"}, True),
        ({}, True),
        ({"retention.ms": str(7 * DAY), "cleanup.policy": "compact"}, True),
        ({"retention.ms": str(7 * DAY), "cleanup.policy": "compact,delete"}, False),
        ({"retention.ms": str(7 * DAY), "retention.bytes": "0"}, True),
        ({"retention.ms": str(7 * DAY), "retention.bytes": "1024"}, False),
    ],
)
def test_records_that_expired_count_as_old_as_their_retention(
    config: dict[str, str], refused: bool
) -> None:
    expected = ["deletion-unseen"] if refused else []
    assert rules(config=config, emptied=True, ends=(9, 0, 0)) == expected


def test_a_retention_by_default_counts_as_well() -> None:
    state = replace(
        unused_cluster(topic(), emptied=True), config_defaults={"retention.ms": str(7 * DAY)}
    )
    assert refusals(state) == []


def test_a_retention_that_the_service_does_not_offer_counts_as_well() -> None:
    live = topic(config={"retention.ms": str(DAY)})
    state = replace(
        unused_cluster(live, emptied=True), config_defaults={"retention.ms": str(7 * DAY)}
    )
    catalogue = choose_catalogue(None, frozenset({"cleanup.policy"}))
    (found,) = diff_topics([GONE], state, catalogue, (), ONE)
    (refusal,) = map(str, found.refusals)
    assert "retention.ms is 1d, unused_for 7d" in refusal


# The topic itself.


def test_a_topic_of_kafkas_own_is_not_deleted() -> None:
    state = unused_cluster(topic(internal=True))
    assert [r.rule for r in diff(GONE, state, guards=ONE).refusals] == ["deletion-internal"]
    assert "deletion-internal" in [r.rule for r in diff(GONE, state).refusals]


def test_a_topic_under_reassignment_is_not_deleted() -> None:
    (refusal,) = refusals(unused_cluster(topic(reassigning=frozenset({2, 0}))))
    assert "its partitions 0, 2 are being reassigned" in refusal


def test_a_topic_whose_id_is_not_known_is_not_deleted() -> None:
    (refusal,) = refusals(unused_cluster(topic(topic_id=None)))
    assert refusal.endswith("plan on the cluster itself [deletion-unseen]")
