"""Laws of the comment: it fits whatever is planned, tells every danger, and hides nothing."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import THOROUGH, choose
from worlds import World, worlds

from reconciler.codehost.comments import write_plan
from reconciler.codehost.host import Run
from reconciler.codehost.seals import read_seal
from reconciler.errors import Finding, Location
from reconciler.model.cluster import Broker, Risk
from reconciler.model.plan import Plan, PlannedTopic, RefusedField, RiskNote, TopicImage
from reconciler.model.steps import is_deletion, steps_of
from reconciler.planfile.codec import fingerprint_plan
from reconciler.show.markdown.page import COMMENT_LIMIT, render_markdown

RULES = ("partitions-never-shrink", "replication-stays", "risk-not-acknowledged")
TIMES = (1, 20, 300, 2_000) if THOROUGH else (1, 20, 100)
WORDS = st.text(st.sampled_from("ab_|`<@→*"), max_size=8)


@st.composite
def large_plans(draw: st.DrawFn) -> Plan:
    """Draw plans of up to thousands of topics: a few kinds of topic, each many times."""
    topics: list[PlannedTopic] = []
    for kind in range(draw(st.integers(1, 4))):
        times = draw(st.sampled_from(TIMES))
        stem = draw(WORDS) + "n" * draw(st.sampled_from((1, 20, 200)))
        value = "v" * draw(st.sampled_from((1, 100, 30_000)))
        says = draw(WORDS) + "s" * draw(st.sampled_from((1, 100)))
        before = TopicImage("id", ((1, 2),) * draw(st.integers(1, 60)), {"k": "1"})
        after = TopicImage("id", before.assignment + ((2, 1),) * 3, {"k": value})
        risk = draw(st.sampled_from((Risk.ORDERING, Risk.DATA_LOSS)))
        risky, refused = draw(st.booleans()), draw(st.booleans())
        for n in range(times):
            place = Location(f"topics/{kind}-{n % 70}.yaml", n + 1)
            note = RiskNote(risk, f"{says}{n}", n % 2 == 0)
            refusal = Finding(RULES[n % 3], f"{says}{n}", says, place)
            field = RefusedField("config.k", "1", value, place)
            topics.append(
                PlannedTopic(
                    f"{stem}-{kind}-{n}",
                    place,
                    before,
                    before if refused else after,
                    (note,) if risky else (),
                    (refusal,) if refused else (),
                    refused_change=(field,) if refused else (),
                )
            )
    strangers = tuple(f"stranger-{n}" for n in range(draw(st.sampled_from((0, 10, 5_000)))))
    nodes = (Broker(1, "a"), Broker(2, "b"))
    return Plan("prod", None, nodes, tuple(topics), unmanaged=strangers)


def assert_fits(plan: Plan, text: str, limit: int) -> None:
    assert len(text.encode()) <= limit
    assert text.startswith("<!-- reconciler:plan cluster=")
    assert f"`{fingerprint_plan(plan)}`" in text
    assert text.count("<details>") == text.count("</details>")
    fences = re.findall(r"^(`{3,})(\w*)$", text, re.MULTILINE)
    assert [bool(language) for _, language in fences] == [True, False] * (len(fences) // 2)


def assert_tells_every_danger(plan: Plan, text: str) -> None:
    for topic in plan.topics:
        for refusal in topic.refusals:
            assert f"`{refusal.rule}`" in text
        for note in topic.risks if steps_of(topic) else ():
            if is_deletion(topic):
                assert "deleted for good" in text
                continue
            kind = (
                f"**{note.risk}**, ack"
                if note.acknowledged
                else f"**{note.risk}, not acknowledged**"
            )
            assert kind in text


@settings(max_examples=choose(6, 25))
@given(large_plans())
def test_every_plan_fits_and_tells_its_dangers(plan: Plan) -> None:
    text = render_markdown(plan, saved="plan.json")
    assert_fits(plan, text, COMMENT_LIMIT)
    assert_tells_every_danger(plan, text)


@settings(max_examples=choose(6, 25))
@given(large_plans())
def test_every_comment_fits_with_its_seal_and_rows(plan: Plan) -> None:
    run = Run(None, "https://ci.shop.example/runs/7", "a" * 40, None)  # type: ignore[arg-type]
    text = write_plan(plan, run)
    assert_fits(plan, text, COMMENT_LIMIT)
    assert_tells_every_danger(plan, text)
    seal = read_seal(text)
    assert seal is not None
    assert seal.fingerprint == fingerprint_plan(plan)


@given(worlds())
def test_what_is_not_left_out_by_name_is_there(world: World) -> None:
    plan = world.plan()
    text = render_markdown(plan)
    assert_fits(plan, text, COMMENT_LIMIT)
    assert_tells_every_danger(plan, text)
    assert "Left out" not in text
    for topic in plan.topics:
        assert f"`{topic.name}`" in text


@given(worlds())
def test_the_order_of_the_specs_means_nothing(world: World) -> None:
    turned = replace(world, specs=tuple(reversed(world.specs)))
    assert render_markdown(turned.plan()) == render_markdown(world.plan())
