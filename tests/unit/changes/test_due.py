"""Topics that are due: what is reported, with what is known of their use."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from shorthand import HERE, NOW_MS, cluster, spec, topic

from reconciler.changes.plan import plan_cluster
from reconciler.errors import SpecError
from reconciler.model.cluster import TopicSpec, TopicUsage
from reconciler.planfile.codec import fingerprint_plan
from reconciler.policy.policy import Policy
from reconciler.show.text import render_text
from reconciler.spec.entry import ClusterEntry
from reconciler.spec.estate import parse_estate
from reconciler.units import DAY

TODAY = "2027-01-15"
"""The date of NOW_MS."""


def note(
    wished: TopicSpec,
    policy: Policy | None = None,
    today: str = TODAY,
    **used: Any,
) -> list[str]:
    """Return the notes of the plan of one live topic."""
    usage = {"shop.orders": TopicUsage(NOW_MS, **used)} if used else {}
    state = replace(cluster(topic()), usage=usage, read_on=today)
    made = plan_cluster(ClusterEntry("prod", HERE, policy=policy or Policy()), [wished], state)
    return [f"{n.severity}: {n.what} [{n.rule}]" for t in made.topics for n in t.notes]


OLD = {"newest_ms": NOW_MS - 100 * DAY, "records": 5, "ends": (5,)}


@pytest.mark.parametrize(
    ("used", "said"),
    [
        (OLD, "last written 2026-10-07 08:00 UTC, 100d ago; no consumer group is active on it"),
        ({**OLD, "groups": ("a", "b", "c", "d")}, "100d ago; read by a, b, c and 1 more"),
        ({"ends": (0,)}, "it holds no record, so its last write is not known; no consumer group"),
        ({"unseen": "groups cannot be read"}, "groups cannot be read"),
        ({}, "it is not known who uses it"),
    ],
)
def test_an_expired_topic_is_named_with_its_use(used: dict[str, Any], said: str) -> None:
    (found,) = note(spec(expires=TODAY), **used)
    assert found.startswith(f"warning: it expired on {TODAY}: ")
    assert said in found
    assert found.endswith("[topic-expired]")


def test_a_topic_expires_on_its_date_and_not_before() -> None:
    assert note(spec(expires="2027-01-16"), **OLD) == []
    assert note(spec(expires=TODAY), today="", **OLD) == []
    assert note(spec(expires=TODAY, absent=True), **OLD) == []


def test_an_idle_topic_is_named_if_it_is_certain_that_nobody_uses_it() -> None:
    wished = spec(idle_after_ms=90 * DAY)
    assert note(wished, **OLD) == [
        "warning: it has been idle for more than 90d: last written 2026-10-07 08:00 UTC, 100d ago; "
        "no consumer group is active on it [topic-idle]"
    ]
    assert note(spec(idle_after_ms=101 * DAY), **OLD) == []
    assert note(wished, **{**OLD, "groups": ("a",)}) == []
    assert note(wished, ends=(0,)) == []
    assert note(wished, unseen="no answer") == []
    assert note(wished) == []


def test_a_topic_that_is_both_is_named_once() -> None:
    (found,) = note(spec(expires=TODAY, idle_after_ms=DAY), **OLD)
    assert "[topic-expired]" in found


def test_topics_are_spared_by_pattern() -> None:
    spared = Policy(exempt=MappingProxyType({"topic-idle": ("*.orders",)}))
    assert note(spec(idle_after_ms=DAY), spared, **OLD) == []
    (found,) = note(spec(idle_after_ms=DAY, expires=TODAY), spared, **OLD)
    assert "[topic-expired]" in found
    both = Policy(exempt=MappingProxyType({"topic-idle": ("*",), "topic-expired": ("*",)}))
    assert note(spec(idle_after_ms=DAY, expires=TODAY), both, **OLD) == []


def test_what_is_due_changes_no_plan_and_no_fingerprint() -> None:
    entry, wished = ClusterEntry("prod", HERE), spec(expires=TODAY, owner="shop")
    state = replace(cluster(topic()), read_on=TODAY)
    due, bare = (plan_cluster(entry, [s], state) for s in (wished, replace(wished, expires=None)))
    assert fingerprint_plan(due) == fingerprint_plan(bare)
    text = render_text(due)
    assert "= keep      shop.orders" in text
    assert "No changes." in text


CLUSTERS = b"""
version: 1
defaults: {idle_after: 90d}
policy: {exempt: {topic-idle: ['*.dlq', '*.retry']}}
clusters: {prod: {}, lab: {}}
"""


def read(text: str, name: str = "prod") -> TopicSpec:
    files = {"clusters.yaml": CLUSTERS, "a.yaml": text.encode()}
    (found,) = parse_estate(files, "topics").topics_for(name)
    return found


def test_both_are_written_in_a_spec_and_idle_after_is_inherited() -> None:
    text = "topic: a\nexpires: 2027-03-31\noverrides: {lab: {idle_after: null, expires: null}}"
    prod, lab = read(text), read(text, "lab")
    assert (prod.expires, prod.idle_after_ms) == ("2027-03-31", 90 * DAY)
    assert (lab.expires, lab.idle_after_ms) == (None, None)
    assert str(prod.where("expires")) == "topics/a.yaml:2:10"


@pytest.mark.parametrize(
    "written", ["expires: 31.3.2027", "expires: 2027-02-30", "expires: soon", "idle_after: 90"]
)
def test_another_form_is_refused(written: str) -> None:
    with pytest.raises(SpecError) as refused:
        read(f"topic: a\n{written}")
    (found,) = refused.value.findings
    assert found.rule in ("value-form", "config-unit")
    assert "2027-03-31" in found.way_out or "90d" in found.way_out or "ms" in found.way_out
