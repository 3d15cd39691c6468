"""What is refused of a whole plan: the share of live topics that it may change."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from shorthand import cluster, may_move, plan, rows, said, spec, topic

from reconciler.changes.guards import ALWAYS, count_allowed, guard_changes, refuse_changes
from reconciler.changes.plan import plan_cluster
from reconciler.diff.guards import list_refusals
from reconciler.errors import Finding, Location, PlanFileError, RefusedPlanError, Severity
from reconciler.model.cluster import Broker, Guards
from reconciler.model.plan import Plan
from reconciler.model.requests import KafkaRequest
from reconciler.moves.elections import assemble_elections
from reconciler.moves.plan import plan_moves
from reconciler.planfile.codec import decode_plan, encode_plan, fingerprint_plan
from reconciler.show.github import list_outputs, render_github
from reconciler.show.markdown.page import render_markdown
from reconciler.show.text import render_text
from reconciler.spec.entry import ClusterEntry

GUARD = Location("topics/clusters.yaml", 9, 20)
LIVE = 40
SAID = (
    "the plan changes 21 of 40 live topics (52%), and max_changed: 50% allows 20; split the "
    "change, into several requests or with --topic, or raise max_changed in clusters.yaml if "
    "this is intended [guard-max-changed]"
)


def change(number: int, *, create: int = 0) -> Plan:
    """Plan so many changes of config, and new topics, on a cluster of 40 topics."""
    live = [topic("1 2", f"shop.t{index:02}") for index in range(LIVE)]
    wished = [spec(f"shop.t{index:02}", config={"segment.ms": "60000"}) for index in range(number)]
    new = [spec(f"shop.new{n}", partitions=1, replication_factor=1) for n in range(create)]
    return plan([*wished, *new], cluster(*live))


def guard(made: Plan, percent: int | None) -> Plan:
    found = guard_changes(made, (), Guards(max_changed_percent=percent), LIVE, GUARD)
    return refuse_changes(made, found, ())


def test_up_to_the_share_a_plan_passes() -> None:
    made = change(20, create=30)
    assert guard(made, 50) == made


def test_above_the_share_the_whole_plan_is_refused() -> None:
    refused = guard(change(21), 50)
    assert [str(refusal) for refusal in refused.refusals] == [f"{GUARD}: {SAID}"]
    assert refused.topics == change(21).topics


def test_without_a_guard_everything_may_change() -> None:
    made = change(40)
    assert guard(made, None) == made


@pytest.mark.parametrize(
    ("percent", "live", "allowed"),
    [(30, 100, 30), (30, 99, 29), (30, 10, ALWAYS), (30, 0, ALWAYS), (100, 8, 8), (0, 100, 0)],
)
def test_a_few_changes_pass_whatever_the_share_unless_it_is_zero(
    percent: int, live: int, allowed: int
) -> None:
    assert count_allowed(percent, live) == allowed


def test_at_zero_nothing_that_exists_changes_and_new_topics_come() -> None:
    assert guard(change(1), 0).refusals
    assert not guard(change(0, create=3), 0).refusals


def test_what_is_refused_anyway_does_not_count() -> None:
    made = change(21)
    refusal = guard(made, 50).refusals[0]
    first = replace(made.topics[0], refusals=(refusal,))
    assert not guard(replace(made, topics=(first, *made.topics[1:])), 50).refusals


def test_skipping_leaves_the_refusal_of_the_whole() -> None:
    refused = guard(change(21), 50)
    assert list_refusals(refused, skip_refused=True) == refused.refusals
    of_topic = replace(refused.topics[0], refusals=refused.refusals)
    both = replace(refused, topics=(of_topic,))
    assert list_refusals(both, skip_refused=True) == refused.refusals
    assert len(list_refusals(both)) == 2


def test_it_is_kept_in_the_plan_file_and_in_the_fingerprint() -> None:
    refused = guard(change(21), 50)
    assert decode_plan(encode_plan(refused)) == refused
    assert fingerprint_plan(refused) != fingerprint_plan(change(21))


def test_a_refusal_taken_out_of_the_file_is_noticed() -> None:
    kept = json.loads(encode_plan(guard(change(21), 50)))
    with pytest.raises(PlanFileError, match="plan-tampered"):
        decode_plan(json.dumps({**kept, "refusals": []}))


def test_every_rendering_says_it_first() -> None:
    refused = guard(change(21), 50)
    lines = render_text(refused).splitlines()
    assert lines[2].split() == ["x", "refuse", "the", "whole", "plan", f"{GUARD.file}:{GUARD.line}"]
    assert lines[3].strip() == (
        "The plan changes 21 of 40 live topics (52%), and max_changed: 50% allows 20."
    )
    assert "21 to configure, refused as a whole" in render_text(refused)
    assert render_github(refused).startswith(
        "::error file=topics/clusters.yaml,line=9,col=20,title=guard-max-changed::"
    )
    assert list_outputs(refused)["refused"] == "1"
    page = render_markdown(refused)
    assert "> [!CAUTION]\n> **The entire plan is refused.** The plan changes 21 of 40" in page
    assert page.index("**The entire plan is refused.**") < page.index("shop.t00")
    assert "To apply exactly this" not in page


def test_apply_refuses_before_it_reads_anything() -> None:
    from reconciler.apply.engine import run_plan

    refused = guard(change(21), 50)
    unused: object = None
    with pytest.raises(RefusedPlanError, match="guard-max-changed"):
        run_plan(refused, unused, unused, unused, skip_refused=True)  # type: ignore[arg-type]


# The audit topic, without which apply does nothing.

AUDITED = ClusterEntry(
    "prod", GUARD, audit_topic="audit", fields={"audit_topic": GUARD}, moves=may_move()
)
ORDERS = spec("orders", config={"segment.ms": "60000"})
AUDIT = spec("audit", partitions=1, replication_factor=1)
MISSING = (
    f"{GUARD}: audit_topic audit is not on prod, so apply would refuse this plan; write a spec for "
    "it and plan it as well, or remove audit_topic [audit-topic]"
)


def test_a_plan_that_could_not_be_recorded_is_refused() -> None:
    refused = plan_cluster(AUDITED, [ORDERS], cluster(topic("1", "orders")))
    assert [str(refusal) for refusal in refused.refusals] == [MISSING]
    assert [field.path for field in refused.topics[0].refused_change] == ["config.segment.ms"]


def test_a_plan_that_creates_the_audit_topic_is_no_error() -> None:
    state = cluster(topic("1", "orders"))
    assert plan_cluster(AUDITED, [ORDERS, AUDIT], state).refusals == ()
    left_out = plan_cluster(AUDITED, [ORDERS, AUDIT], state, topics="orders")
    assert [str(refusal) for refusal in left_out.refusals] == [MISSING]


def test_an_audit_topic_that_exists_and_a_plan_without_changes_pass() -> None:
    live = topic("1", "orders")
    assert plan_cluster(AUDITED, [ORDERS], cluster(live, topic("1", "audit"))).refusals == ()
    assert plan_cluster(AUDITED, [spec("orders")], cluster(live)).refusals == ()


def test_a_record_needs_a_request_that_makes_it_the_only_one() -> None:
    state = cluster(topic("1", "orders"), topic("1", "audit"))
    state = replace(state, unoffered=frozenset({KafkaRequest.INIT_PRODUCER_ID}))
    assert said(plan_cluster(AUDITED, [ORDERS], state).refusals) == [
        f"{GUARD}: the brokers of prod do not offer InitProducerId, so no record can be written to "
        "audit_topic audit exactly once; remove audit_topic, and keep the journal of apply "
        "instead [request-unoffered]"
    ]
    unaudited = replace(AUDITED, audit_topic=None)
    assert plan_cluster(unaudited, [ORDERS], state).refusals == ()


def test_an_account_that_may_not_see_all_topics_only_gets_a_note() -> None:
    what = "the account may see only some topics"
    blind = Finding("cluster-rights", what, "", severity=Severity.NOTE)
    state = replace(cluster(topic("1", "orders")), notes=(blind,))
    made = plan_cluster(AUDITED, [ORDERS], state)
    assert made.refusals == ()
    (note,) = (note for note in made.notes if note.rule == "audit-topic")
    assert note.what.startswith("it is not known whether audit_topic audit exists")


def test_plans_of_moves_and_of_elections_are_recorded_as_well() -> None:
    behind = topic("1 2", "orders", leaders=(1, 3), in_sync=rows("1 2"))
    nodes = (Broker(1), Broker(2), Broker(3))
    elected = assemble_elections(AUDITED, [], cluster(behind, nodes=nodes))
    raised = plan_moves(AUDITED, [spec("orders", replication_factor=2)], cluster(behind))
    for made in (elected, raised):
        assert MISSING in [str(refusal) for refusal in made.refusals]


# The lock, which apply takes before its first change.

UNOFFERED = Finding("lock-unavailable", "the brokers do not offer JoinGroup", "use --no-lock")
LOCKABLE = ClusterEntry("prod", GUARD, moves=may_move())


def test_a_plan_that_no_apply_could_lock_for_is_refused_whatever_its_kind() -> None:
    behind = topic("1 2", "orders", leaders=(1, 3), in_sync=rows("1 2"))
    nodes = (Broker(1), Broker(2), Broker(3))
    plain, led = (
        replace(state, notes=(UNOFFERED,))
        for state in (cluster(topic("1", "orders")), cluster(behind, nodes=nodes))
    )
    changed = plan_cluster(LOCKABLE, [ORDERS], plain)
    elected = assemble_elections(LOCKABLE, [], led)
    raised = plan_moves(LOCKABLE, [spec("orders", replication_factor=2)], led)
    for made in (changed, elected, raised):
        assert UNOFFERED in made.refusals
        assert UNOFFERED not in made.notes
    assert [field.path for field in changed.topics[0].refused_change] == ["config.segment.ms"]


def test_what_may_be_the_settings_of_one_run_refuses_nothing_and_no_changes_need_no_lock() -> None:
    state = cluster(topic("1", "orders"))
    warned = replace(UNOFFERED, severity=Severity.WARNING)
    made = plan_cluster(LOCKABLE, [ORDERS], replace(state, notes=(warned,)))
    assert made.refusals == ()
    assert warned in made.notes
    assert (
        plan_cluster(LOCKABLE, [spec("orders")], replace(state, notes=(UNOFFERED,))).refusals == ()
    )
