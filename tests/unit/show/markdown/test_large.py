"""Plans too long for a comment: what is told all the same, and what is named as left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from shorthand import brokers

from reconciler.errors import Finding, Location
from reconciler.model.cluster import Risk
from reconciler.model.plan import Plan, PlannedTopic, RefusedField, RiskNote, TopicImage
from reconciler.show.markdown.marks import prose
from reconciler.show.markdown.page import COMMENT_LIMIT, render_markdown
from reconciler.show.view import view_plan
from reconciler.units import count

SIX = brokers("a", "a", "b", "b", "c", "c")


def many(
    changes: int, refusals: int = 0, *, name: str = "team-{0:02}.domain.events-{1}"
) -> Iterable[PlannedTopic]:
    """Yield topics that grow, every third at the risk of losing data too, and refused ones."""
    before = TopicImage("id", ((1, 2, 3),) * 6, {"retention.ms": "604800000"})
    after = TopicImage("id", ((1, 2, 3),) * 9, {"retention.ms": "86400000"})
    for n in range(changes):
        risks = [RiskNote(Risk.ORDERING, "keys move to other partitions", acknowledged=n % 2 == 0)]
        if n % 3 == 0:
            risks.append(
                RiskNote(
                    Risk.DATA_LOSS,
                    f"records older than {n % 90 + 1}d are deleted",
                    acknowledged=True,
                )
            )
        where = Location(f"topics/team-{n % 60:02}.yaml", n + 1)
        named = name.format(n % 60, n)
        yield PlannedTopic(named, where, before, after, tuple(risks))
    for n in range(refusals):
        where = Location("topics/refused.yaml", n + 1)
        what = f"{n + 2} → {n + 1} partitions: Kafka cannot remove partitions"
        refusal = Finding("partitions-never-shrink", what, f"put {n + 2} back", where)
        yield PlannedTopic(f"refused-{n}", where, before, before, (), (refusal,))


def big_plan(changes: int, refusals: int, **more: str) -> Plan:
    topics = sorted(many(changes, refusals, **more), key=lambda planned: planned.name)
    return Plan("prod-eu", "5L6g3nShT-eMCtK--X86sw", SIX, tuple(topics), files=60)


def varied_plan() -> Plan:
    """Return 2,000 topics of many names, the half of them risky or refused in many ways."""
    before = TopicImage("id", ((1, 2, 3),) * 6, {"retention.ms": "604800000"})
    grown = TopicImage("id", ((1, 2, 3),) * 9, before.config)
    turned = TopicImage("id", before.assignment, {"retention.ms": "3600000"})
    reasons = [
        (
            "partitions-never-shrink",
            "{0} → 6 partitions: Kafka cannot remove partitions",
            "put {0} back",
        ),
        ("replication-stays", "replication_factor 3 → 2: changing it moves replicas", "put 3 back"),
        ("rf-le-brokers", "replication_factor {0} exceeds the 6 brokers", "use at most 6"),
    ]
    topics = []
    for n in range(2_000):
        name = f"{AREAS[n % 7]}.{THINGS[n % 11]}.{VERBS[n % 13]}{n // 1001}.v{n % 3}-{n % 2}"
        where = Location(f"topics/{AREAS[n % 7]}/{THINGS[n % 11]}.yaml", n + 1)
        risks: tuple[RiskNote, ...] = ()
        refusals: tuple[Finding, ...] = ()
        after: TopicImage | None = turned
        match n % 10:
            case 0 | 1:
                rule, what, way_out = reasons[n % 3]
                size = 7 + n % 20
                refusals = (Finding(rule, what.format(size), way_out.format(size), where),)
            case 2 | 3 | 4:
                note = f"records older than {1 + n % 30}d are deleted"
                risks = (RiskNote(Risk.DATA_LOSS, note, acknowledged=True),)
            case 5 | 6:
                risks = (RiskNote(Risk.ORDERING, "keys move", acknowledged=n % 3 == 0),)
                after = grown
        topics.append(PlannedTopic(name, where, before, after, risks, refusals))
    return Plan("prod", "id", SIX, tuple(sorted(topics, key=lambda topic: topic.name)), files=77)


AREAS = ("shop", "payments", "logistics", "search", "web-tracking", "crm", "fraud")
THINGS = ("orders", "refunds", "clicks", "prices", "stock", "parcels", "carts", "users", "mails")
THINGS += ("vouchers", "sessions")
VERBS = ("created", "changed", "deleted", "captured", "settled", "failed", "retried", "archived")
VERBS += ("audited", "joined", "merged", "split", "scored")


def find_untold(made: Plan, text: str) -> list[str]:
    """List the refusals and risks that no line tells with its reason and its topic."""
    lines: dict[str, set[str]] = {}
    for line_says, names in read_lines(text):
        for name in names:
            lines.setdefault(name, set()).add(line_says)
    wanted = [
        (prose(what), topic.name)
        for topic in made.topics
        for what in (
            *(refusal.what for refusal in topic.refusals),
            *(note.consequence for note in topic.risks),
        )
    ]
    assert wanted
    return [
        f"{name}: {what}"
        for what, name in wanted
        if not any(what in says for says in lines.get(name, ()))
    ]


def read_lines(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each line with the names on it, those of one stem taken apart."""
    for line in text.splitlines():
        names = []
        for spelt in re.findall(r"`([^`]+)`", line):
            stem, brace, ends = spelt.partition("{")
            names += [stem + end for end in ends.rstrip("}").split(",")] if brace else [spelt]
        yield line, names


def test_two_thousand_varied_changes_tell_every_risk_and_refusal_with_its_reason() -> None:
    made = varied_plan()
    assert len({topic.name for topic in made.topics}) == 2_000
    text = render_markdown(made, saved="plan.json")
    assert len(text.encode()) <= COMMENT_LIMIT
    assert find_untold(made, text) == []
    (left_out,) = [line for line in text.splitlines() if line.startswith("**Left out")]
    assert "risk" not in left_out
    assert "refused" not in left_out


OWNERS = ("orders-team", "payments-team", "search-team", "web-team", None)


def new_topics(number: int, **more: Any) -> Iterator[PlannedTopic]:
    """Yield new topics of several owners and of many sizes, each with its configs."""
    for n in range(number):
        row = (1, 2, 3)[: n % 3 + 1]
        config = {"retention.ms": str(3_600_000 * (n + 1)), "compression.type": "zstd"}
        image = TopicImage(None, (row,) * (1 + n % 24), config)
        name = f"{AREAS[n % 7]}.{THINGS[n % 11]}.{VERBS[n % 13]}-v{n}"
        where = Location(f"topics/{AREAS[n % 7]}.yaml", n + 1)
        yield PlannedTopic(name, where, None, image, owner=OWNERS[n % len(OWNERS)], **more)


def grown_topics(number: int) -> Iterator[PlannedTopic]:
    """Yield topics that grow, each with its own consequence."""
    before = TopicImage("id", ((1, 2, 3),) * 6, {})
    for n in range(number):
        after = TopicImage("id", ((1, 2, 3),) * (7 + n % 5), {})
        note = RiskNote(Risk.ORDERING, f"keys of consumer {n} move to other partitions")
        where = Location("topics/grown.yaml", n + 1)
        yield PlannedTopic(f"grown.topic-{n}", where, before, after, (note,), owner="web-team")


def read_sizes(text: str) -> dict[str, str]:
    """Return the size of each topic in the list of changes."""
    sizes = {}
    for line, names in read_lines(text):
        said = re.fullmatch(r"- (\d[^`]+): `.*", line)
        sizes.update(dict.fromkeys(names if said else (), said[1] if said else ""))
    return sizes


def size_of(topic: PlannedTopic) -> str:
    rows = topic.after.assignment if topic.after else ()
    if topic.before is None:
        return f"{count(len(rows), 'partition')} × {count(len(rows[0]), 'replica')}"
    was = len(topic.before.assignment)
    added = count(sum(map(len, rows[was:])), "replica")
    return f"{was} → {len(rows)} partitions, {added} added"


@pytest.mark.parametrize("grown", [0, 400])
def test_eight_hundred_new_topics_keep_the_counts_of_each_and_of_every_owner(grown: int) -> None:
    topics = (*new_topics(800), *grown_topics(grown))
    made = Plan("prod", None, SIX, tuple(sorted(topics, key=lambda topic: topic.name)))
    text = render_markdown(made)
    assert len(text.encode()) <= COMMENT_LIMIT
    assert read_sizes(text) == {topic.name: size_of(topic) for topic in topics}
    for owner, totals in view_plan(made).by_owner.items():
        numbers = " | ".join(totals.show(noun) or "–" for noun in ("topic", "partition", "replica"))
        name = f"`{owner}`" if owner else "no owner"
        assert f"| {name} | {totals.topics_changed} | {numbers} |" in text
    assert f"Size: {view_plan(made).totals.words}." in text
    assert "**Left out to fit:** " in text
    left_out = text.partition("**Left out to fit:** ")[2]
    assert f"the table of {800 + grown:,} changes" in left_out
    assert "sizes" not in left_out
    assert "owner" not in left_out


def test_sizes_are_in_the_order_of_their_numbers() -> None:
    text = render_markdown(Plan("prod", None, SIX, tuple(new_topics(800))))
    sizes = list(dict.fromkeys(read_sizes(text).values()))
    expected = sorted({(n % 24 + 1, n % 3 + 1) for n in range(800)})
    assert sizes == [f"{count(p, 'partition')} × {count(r, 'replica')}" for p, r in expected]


def test_counts_come_before_the_details_of_refusals_and_risks() -> None:
    before = TopicImage("id", ((1, 2, 3),) * 6, {})
    refusal = Finding("replication-stays", "replication_factor 3 → 2", "put 3 back")
    field = RefusedField("config.flush.ms", None, "9" * 60, Location("topics/refused.yaml", 1))
    refused = [
        PlannedTopic(
            f"refused.topic-{n}",
            Location("topics/refused.yaml", n + 1),
            before,
            before,
            refusals=(refusal,),
            refused_change=(replace(field, after=f"{field.after}{n}"),),
        )
        for n in range(250)
    ]
    made = Plan("prod", None, SIX, (*new_topics(800), *refused))
    text = render_markdown(made)
    assert len(text.encode()) <= COMMENT_LIMIT
    assert find_untold(made, text) == []
    assert read_sizes(text).keys() >= {topic.name for topic in new_topics(800)}
    assert "the changes of 250 refused topics" in text.partition("**Left out to fit:** ")[2]


@pytest.mark.slow
def test_two_thousand_refusals_are_told_by_reason() -> None:
    before = TopicImage("id", ((1, 2, 3),) * 6, {})
    topics = [
        PlannedTopic(
            f"team-{n % 40:02}.events-{n:04}",
            Location("topics/all.yaml", n + 1),
            before,
            before,
            refusals=(Finding("replication-stays", f"replication_factor {n % 9 + 4} → 3"),),
        )
        for n in range(2_000)
    ]
    made = Plan("prod", None, SIX, tuple(topics))
    text = render_markdown(made)
    assert len(text.encode()) <= COMMENT_LIMIT
    assert find_untold(made, text) == []


def lower_retention(value: Callable[[int], str]) -> Plan:
    """Return a plan that refuses to lower the retention of 2,000 topics to these values."""
    before = TopicImage("id", ((1, 2, 3),) * 6, {"retention.ms": "604800000"})
    default = Location("topics/clusters.yaml", 3)
    topics = [
        PlannedTopic(
            f"team-{n % 40:02}.events-{n:04}",
            Location("topics/all.yaml", n + 1),
            before,
            before,
            refusals=(Finding("risk-not-acknowledged", "old records are deleted", "say so"),),
            refused_change=(RefusedField("config.retention.ms", "604800000", value(n), default),),
        )
        for n in range(2_000)
    ]
    return Plan("prod", None, SIX, tuple(topics))


@pytest.mark.slow
def test_one_default_that_2000_topics_refuse_is_shown_once_with_every_name() -> None:
    made = lower_retention(lambda _: "86400000")
    text = render_markdown(made)
    assert len(text.encode()) <= COMMENT_LIMIT
    assert find_untold(made, text) == []
    says = "`retention.ms` 7d (604800000) → 1d (86400000) `topics/clusters.yaml:3`"
    assert text.count(says) == 1
    assert "Left out" not in text


def test_changes_that_do_not_fit_are_named_as_left_out() -> None:
    made = lower_retention(str)
    text = render_markdown(made)
    assert len(text.encode()) <= COMMENT_LIMIT
    assert find_untold(made, text) == []
    assert "**Left out to fit:** the changes of 2,000 refused topics." in text


def test_two_thousand_changes_keep_every_refusal_and_every_risk() -> None:
    made = big_plan(1_900, 100)
    text = render_markdown(made, saved="plan.json")
    assert len(text.encode()) <= COMMENT_LIMIT
    assert find_untold(made, text) == []
    assert "> - **data-loss**, acknowledged in 634 topics: for example " in text
    assert "> - **ordering, not acknowledged** in 950 topics: keys move" in text
    assert "> - **ordering**, acknowledged in 950 topics: keys move" in text
    assert "<summary>&#126; expand 1,900 topics</summary>" in text
    assert "**Left out to fit:** the table of 1,900 changes; the details of 1," in text
    assert "`reconciler show plan.json` shows all of it" in text


def test_names_that_alone_would_not_fit_are_counted() -> None:
    made = big_plan(1_900, 100, name="{0}-{1}." + "x" * 200)
    text = render_markdown(made)
    assert len(text.encode()) <= COMMENT_LIMIT
    assert "and 624 more" in text
    assert "most names of 1,900 topics at risk" in text


def test_many_of_a_kind_are_folded_below_a_line_that_counts_them() -> None:
    text = render_markdown(big_plan(60, 21))
    alert, _, rest = text.partition("<details>")
    assert "and 11 more" in alert
    assert "and 20 more" in rest.partition("<details>")[0]
    assert "<summary>21 refused topics</summary>" in text
    assert "<summary>60 changes</summary>" in text
    assert "Left out" not in render_markdown(big_plan(60, 21), limit=1 << 20)


def test_a_wider_limit_tells_more() -> None:
    made = big_plan(300, 0)
    wide = render_markdown(made, limit=1 << 20)
    assert len(wide) > len(render_markdown(made))
    assert "Left out" not in wide


def test_details_are_a_beginning_of_the_list_with_the_risky_first() -> None:
    calm = [
        PlannedTopic(p.name.replace("team", "calm"), p.location, p.before, p.after)
        for p in many(200)
    ]
    made = Plan("prod", None, SIX, (*calm, *many(60)))
    text = render_markdown(made)
    detailed = re.findall(r"<summary><code>([a-z]+)-", text)
    assert detailed.count("team") == 60
    assert 0 < detailed.count("calm") < 200
