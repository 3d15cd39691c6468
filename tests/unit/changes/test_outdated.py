"""What a branch no longer asks for: deletions, and topics that no spec names."""

from __future__ import annotations

from dataclasses import replace

from shorthand import HERE, cluster, may_move, plan, said, spec, topic, unused_cluster

from reconciler.changes.outdated import find_outdated
from reconciler.model.cluster import Guards, TopicSpec
from reconciler.model.moves import AskedRebalance, LoadAim
from reconciler.model.plan import Plan
from reconciler.moves.asked import plan_asked
from reconciler.moves.plan import assemble_moves
from reconciler.policy.patterns import NamePattern
from reconciler.policy.policy import Baseline, BrokenLimit, Policy
from reconciler.spec.changes import Changes, ClusterThen
from reconciler.spec.entry import ClusterEntry

PROD = ClusterEntry("prod", HERE, guards=Guards(max_deletes=1))
DOOMED = spec("old", absent=True)
DELETION = plan([DOOMED], unused_cluster(topic("1 2 3", "old")), guards=PROD.guards)


def branch(*specs: TopicSpec, entry: ClusterEntry = PROD) -> Changes:
    then = ClusterThen(entry, {each.name: each for each in specs})
    return Changes("refs/remotes/origin/main", "1a2b3c4d5e6f" + "0" * 28, {"prod": then})


def find(made: Plan, *specs: TopicSpec, at: Changes, entry: ClusterEntry = PROD) -> list[str]:
    return said(find_outdated(made, entry, specs, at))


def test_a_deletion_is_one_that_the_branch_still_asks_for() -> None:
    assert find(DELETION, DOOMED, at=branch(replace(DOOMED, description="why"))) == []
    for now in (branch(), branch(spec("old", partitions=3))):
        (text,) = find(DELETION, DOOMED, at=now)
        assert text == (
            "origin/main (1a2b3c4d5e) asks for something else for old; run apply by hand on that "
            "branch, which plans what it asks for now [plan-outdated]"
        )
    fewer = replace(PROD, guards=Guards(max_deletes=0))
    (text,) = find(DELETION, DOOMED, at=branch(DOOMED, entry=fewer))
    assert "has tighter guards than this plan: guards.max_deletes (0 → 1)" in text


def test_a_shorter_baseline_of_the_branch_leaves_the_plan_as_it_is() -> None:
    known = Baseline({BrokenLimit("policy-name", "old"): ""})
    here = replace(PROD, policy=Policy(name=NamePattern("[a-z]"), baseline=known))
    there = replace(here, policy=replace(here.policy, baseline=None))
    assert find(DELETION, DOOMED, at=branch(DOOMED, entry=there), entry=here) == []


def test_topics_without_steps_are_not_compared() -> None:
    made = plan([spec("a", partitions=1), DOOMED], cluster(topic("1 2 3", "a")))
    assert made.topics  # refused
    assert find(made, spec("a", partitions=1), at=branch()) == []


def test_a_topic_that_no_spec_names_is_moved_only_while_none_does() -> None:
    entry = ClusterEntry("prod", HERE, moves=may_move())
    made = assemble_moves(entry, [spec("b", replication_factor=2)], cluster(topic("1", "b")))
    assert find(made, at=branch(entry=entry), entry=entry) == []
    (text,) = find(made, at=branch(spec("b"), entry=entry), entry=entry)
    assert "asks for something else for b" in text


def test_a_rebalance_is_one_that_the_branch_still_asks_for() -> None:
    """Other moves do not depend on what it asks for."""
    plain = ClusterEntry("prod", HERE, moves=may_move())
    asks = replace(plain, rebalance=AskedRebalance(LoadAim(), "2026-12-13"))
    state = replace(cluster(topic("1,2 1,2 1,2", "b")), read_on="2026-12-01")
    made = plan_asked(asks, [], state)
    assert made.moves is not None
    assert made.moves.balance is not None
    assert find(made, at=branch(entry=asks), entry=asks) == []
    for other in (plain, replace(asks, rebalance=AskedRebalance(LoadAim(), "2026-12-20"))):
        (text,) = find(made, at=branch(entry=other), entry=asks)
        assert "has another rebalance for prod" in text
    moves = assemble_moves(plain, [spec("b", replication_factor=3)], state)
    wished = spec("b", replication_factor=3)
    assert find(moves, wished, at=branch(wished, entry=asks), entry=plain) == []
