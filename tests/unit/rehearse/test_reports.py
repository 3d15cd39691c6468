"""Reports: what a rehearsal says of itself, and when it counts as gone well."""

from __future__ import annotations

import json
from dataclasses import replace

from shorthand import brokers, cluster, plan, spec, topic

from reconciler.model.outcomes import Outcome, OutcomeKind
from reconciler.model.plan import Balance, Spread
from reconciler.rehearse.markdown import render_rehearsal_comment
from reconciler.rehearse.rehearsal import Rehearsal, encode_rehearsal
from reconciler.rehearse.setup import prepare_setup
from reconciler.rehearse.text import render_rehearsal
from reconciler.styling import strip_colours

BOTH = frozenset({"data-loss", "ordering"})
STATE = cluster(
    topic("1,2", config={"retention.ms": "700000"}), topic("2", "audit"), nodes=brokers("a", "b")
)
PLAN = plan(
    [
        spec(partitions=2, config={"retention.ms": "100000"}, gradual=2, acknowledge=BOTH),
        spec("new", partitions=3, replication_factor=2),
        spec("audit", partitions=0),
    ],
    STATE,
)
WELL = Rehearsal(
    plan=PLAN,
    setup=prepare_setup(PLAN, STATE, "4.4.0"),
    kafka_version="4.4.0",
    outcomes=(Outcome("new", OutcomeKind.DONE), Outcome("shop.orders", OutcomeKind.DONE)),
    differences={},
    pending=(),
    balance_before=Balance(Spread(1, 1), Spread(1, 2)),
    balance_after=Balance(Spread(3, 3), Spread(5, 5)),
    seconds={"start": 2.04, "set up": 0.5, "apply": 1.0},
    planned_again=True,
)
REFUSED = Outcome("new", OutcomeKind.FAILED, "the brokers refuse it: no | such thing")


def test_a_rehearsal_as_text() -> None:
    assert render_rehearsal(WELL).splitlines() == [
        "rehearsal of prod · Kafka 4.4.0 · 2 brokers in 2 racks · 2 topics of 3 replicas set up",
        "",
        "done          new                                create 3 partitions × 2 replicas",
        "done          shop.orders                        expand 1 → 2 partitions, "
        "configure retention.ms",
        "",
        "All replicas and overrides of the applied topics are as planned.",
        "A second plan changes nothing.",
        "Measured on the brokers: leaders 1 → 3, replicas 1..2 → 5 per broker.",
        "It took 2.0 s to start, 0.5 s to set up, 1.0 s to apply.",
        "",
        "Rehearsed: 2 done. The throwaway cluster was removed.",
    ]


def test_what_went_wrong_is_said_in_every_form() -> None:
    bad = replace(WELL, outcomes=(REFUSED,), differences={"audit": ("it is not there",)})
    assert "failed        new" in render_rehearsal(bad)
    assert "differs       audit: it is not there" in render_rehearsal(bad)
    comment = render_rehearsal_comment(bad)
    assert "### Rehearsal for `prod` found trouble" in comment
    assert "- `audit`: it is not there" in comment
    assert "the brokers refuse it: no &#124; such thing |" in comment
    document = json.loads(encode_rehearsal(bad))
    assert (document["succeeded"], document["outcomes"][0]["kind"]) == (False, "failed")


def test_colours_and_long_names_leave_columns_as_they_are() -> None:
    names = ("new", "shop.orders", "a-team.with-a-long-name.and-a-topic.v2")
    outcomes = tuple(Outcome(name, OutcomeKind.REFUSED, "see above", "guard") for name in names)
    bad = replace(WELL, outcomes=outcomes, differences={"audit": ("it is not there",)})
    plain = render_rehearsal(bad)
    assert strip_colours(render_rehearsal(bad, colour=True)) == plain
    refused = [line for line in plain.splitlines() if line.endswith("see above [guard]")]
    assert len({line.index("see above") for line in refused}) == 1
    assert [line.split()[1] for line in refused] == list(names)


def test_it_went_well_only_where_everything_did() -> None:
    assert WELL.succeeded
    assert not replace(WELL, outcomes=(REFUSED,)).succeeded
    assert not replace(WELL, differences={"audit": ("it is not there",)}).succeeded
    assert not replace(WELL, interrupted=True).succeeded


def test_only_steps_that_a_plan_announced_may_be_left() -> None:
    announced = replace(WELL, pending=("shop.orders",))
    assert announced.succeeded
    assert "A second plan continues shop.orders, and changes nothing else." in render_rehearsal(
        announced
    )
    surprising = replace(WELL, pending=("new", "shop.orders"))
    assert not surprising.succeeded
    assert "A second plan would still change new." in render_rehearsal(surprising)


def test_what_failed_is_still_to_do_and_no_surprise() -> None:
    failed = replace(WELL, outcomes=(REFUSED, WELL.outcomes[1]), pending=("new",))
    assert failed.unexpected == ()
    assert "A second plan retries what failed, and changes nothing else." in render_rehearsal(
        failed
    )
    both = replace(failed, pending=("new", "shop.orders"))
    assert "A second plan continues shop.orders, and retries what failed." in render_rehearsal(both)


def test_a_long_comment_counts_what_it_leaves_out() -> None:
    many = tuple(Outcome(f"t{n:03}", OutcomeKind.DONE) for n in range(150))
    comment = render_rehearsal_comment(replace(WELL, outcomes=(*many, REFUSED)))
    assert "| failed | `new` |" in comment
    assert "51 more rows are not shown." in comment


def test_failures_come_first() -> None:
    again = Outcome("audit", OutcomeKind.ALREADY_DONE)
    late = Outcome("shop.orders", OutcomeKind.FAILED, "no")
    rehearsal = replace(WELL, outcomes=(again, WELL.outcomes[0], late))
    lines = render_rehearsal(rehearsal).splitlines()[2:5]
    assert [line.split("  ")[0] for line in lines] == ["failed", "already done", "done"]
    rows = [row for row in render_rehearsal_comment(rehearsal).splitlines() if row[:1] == "|"]
    assert [row.split(" | ")[0] for row in rows[2:]] == ["| failed", "| already done", "| done"]
