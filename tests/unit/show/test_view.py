"""The view of a plan: its numbers, by verb and by owner, and what becomes of each topic."""

from __future__ import annotations

import pytest
from shorthand import HERE, ONE, cluster, plan, rows, spec, topic, unused_cluster

from reconciler.model.steps import Verb
from reconciler.moves.elections import assemble_elections
from reconciler.planfile.totals import Totals
from reconciler.show.view import TopicView, view_plan
from reconciler.show.wording import Tone
from reconciler.spec.entry import ClusterEntry

LIVE = unused_cluster(
    *(topic("1,2 2,3", name) for name in ("gone", "grown", "shrunk", "same", "stranger"))
)
VIEW = view_plan(
    plan(
        [
            spec("gone", absent=True, owner="shop"),
            spec("grown", partitions=4, config={"flush.ms": "5"}, owner="shop"),
            spec("made", partitions=2, replication_factor=3, owner="audit"),
            spec("same"),
            spec("shrunk", partitions=1, owner="audit"),
        ],
        LIVE,
        guards=ONE,
    )
)


ELECTED = view_plan(
    assemble_elections(
        ClusterEntry("lab", HERE), [], cluster(topic("1,2", leaders=(2,), in_sync=rows("1,2")))
    )
)


def show(name: str) -> TopicView:
    return next(topic for topic in VIEW.topics if topic.name == name)


def test_the_totals_of_the_owners_are_those_of_the_plan() -> None:
    assert VIEW.by_owner == {
        "audit": Totals(1, 0, 2, 0, 6, 0, topics_changed=1),
        "shop": Totals(0, 1, 2, 2, 4, 4, topics_changed=2),
    }
    assert list(VIEW.by_owner) == ["audit", "shop"]
    assert sum(VIEW.by_owner.values(), Totals()) == VIEW.totals


def test_totals_show_what_is_added_and_removed_of_a_noun() -> None:
    totals = Totals(partitions_added=1200, partitions_removed=2, replicas_removed=3)
    nouns = ("topic", "partition", "replica")
    assert [totals.show(noun) for noun in nouns] == ["", "+1,200 −2", "−3"]


@pytest.mark.parametrize(
    ("name", "action", "words"),
    [
        ("gone", "delete", "delete 2 partitions, 4 replicas"),
        ("grown", "update", "expand 2 → 4 partitions, configure flush.ms"),
        ("made", "create", "create 2 partitions × 3 replicas"),
        ("shrunk", "refuse", ""),
    ],
)
def test_a_topic_in_a_line(name: str, action: str, words: str) -> None:
    assert (show(name).action, show(name).words) == (action, words)


def test_every_verb_has_a_sign_and_a_tone() -> None:
    changed = (*VIEW.changed, *ELECTED.changed)
    assert {step.verb: (step.sign, step.tone) for topic in changed for step in topic.steps} == {
        Verb.CREATE: ("+", Tone.ADD),
        Verb.EXPAND: ("~", Tone.CHANGE),
        Verb.CONFIGURE: ("~", Tone.TUNE),
        Verb.ELECT: ("~", Tone.TUNE),
        Verb.DELETE: ("-", Tone.REMOVE),
    }
