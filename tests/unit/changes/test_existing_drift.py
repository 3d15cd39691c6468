"""Topics outside the scope of a plan that differ from their specs: what every format shows."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from shorthand import HERE, cluster, said, spec, topic

from reconciler.changes.plan import plan_cluster
from reconciler.diff.guards import list_refusals
from reconciler.model.cluster import Guards, TopicSpec
from reconciler.model.plan import Plan
from reconciler.model.steps import has_steps
from reconciler.planfile.codec import decode_plan, encode_plan, fingerprint_plan
from reconciler.show.github import render_github
from reconciler.show.markdown.page import render_markdown
from reconciler.show.text import render_text
from reconciler.spec.changes import Changes, ClusterThen
from reconciler.spec.entry import ClusterEntry

PROD = ClusterEntry("prod", HERE)
LIVE = cluster(
    topic("1,2 2,3", "grown", config={"retention.ms": "1", "flush.ms": "2", "segment.ms": "3"}),
    topic("1,2 2,3", "old"),
    topic("1,2 2,3", "same"),
    defaults={"retention.ms": "604800000", "flush.ms": "9", "segment.ms": "9"},
)
NEW = spec("new", partitions=1, replication_factor=1)
OTHERS = (
    spec("grown", partitions=1, config={"retention.ms": "86400000"}, owner="shop"),
    spec("missing", partitions=3, replication_factor=2),
    spec("old", absent=True),
    spec("same", partitions=2),
)


def plan(*others: TopicSpec, entry: ClusterEntry = PROD, **more: Any) -> Plan:
    """Plan `new`, which a request adds, next to topics that it does not change."""
    before = ClusterThen(entry, {each.name: each for each in others})
    changes = Changes("main", "1a2b3c4", {"prod": before})
    return plan_cluster(entry, [NEW, *others], LIVE, changes=changes, **more)


MADE = plan(*OTHERS)


def test_every_difference_outside_the_scope_is_listed_and_nothing_else() -> None:
    listed = {each.name: (each.action, each.owner) for each in MADE.existing_drift}
    assert listed == {
        "grown": ("update", "shop"),
        "missing": ("create", None),
        "old": ("delete", None),
    }
    fields = MADE.existing_drift[0].differs
    assert [(field.path, field.before, field.after) for field in fields] == [
        ("config.flush.ms", "2", None),
        ("config.retention.ms", "1", "86400000"),
        ("config.segment.ms", "3", None),
        ("partitions", 2, 1),
    ]


def test_it_neither_blocks_the_plan_nor_is_part_of_it() -> None:
    """Fewer partitions, and a deletion that nothing allows, would be refused in its scope."""
    assert [each.name for each in MADE.topics] == ["new"]
    assert has_steps(MADE)
    assert list_refusals(MADE) == ()
    assert fingerprint_plan(MADE) == fingerprint_plan(plan())
    assert MADE.unchanged == 0


def test_without_changes_everything_is_in_scope() -> None:
    whole = plan_cluster(PROD, [NEW, *OTHERS], LIVE)
    assert whole.existing_drift == ()
    assert {each.name for each in whole.topics} == {"new", "grown", "missing", "old"}


def test_a_glob_limits_what_is_listed() -> None:
    assert [each.name for each in plan(*OTHERS, topics="m*").existing_drift] == ["missing"]


def test_a_config_that_is_not_on_offer_is_no_drift() -> None:
    entry = replace(PROD, known_configs=frozenset({"retention.ms"}))
    (grown,) = plan(OTHERS[0], entry=entry).existing_drift
    assert [field.path for field in grown.differs] == ["config.retention.ms", "partitions"]


def test_the_text_lists_it_behind_the_changes() -> None:
    text = render_text(MADE)
    place = f"{HERE.file}:{HERE.line}"
    assert text.index("+ create    new") < text.index("Existing drift")
    assert "Existing drift of 3 other topics, which this plan leaves as is:\n" in text
    words = "flush.ms 2 → unset, retention.ms 1 → 1d (86400000), segment.ms 3 → unset"
    assert f"grown                            {words}, and 1 more {place} · shop\n" in text
    assert "missing                          does not exist                 " in text
    assert "old                              exists, and its spec has state: absent " in text
    assert "1 to create · existing drift of 3 other topics\n" in text


def test_a_plan_of_nothing_does_not_claim_that_all_is_as_specified() -> None:
    changes = Changes("main", "1a2b3c4", {"prod": ClusterThen(PROD, {s.name: s for s in OTHERS})})
    made = plan_cluster(PROD, OTHERS, LIVE, changes=changes)
    closing = "No changes. 0 topics as specified · existing drift of 3 other topics\n"
    assert closing in render_text(made)
    assert "all as specified" not in render_markdown(made)
    assert render_github(made).endswith("prod: no changes · existing drift of 3 other topics\n")


def test_many_topics_are_counted_in_the_text() -> None:
    many = [spec(f"t{n:02}", partitions=1, replication_factor=1) for n in range(22)]
    text = render_text(plan(*many))
    assert "t19" in text
    assert "t20" not in text
    assert "2 more topics; --format json lists all\n" in text


def test_the_comment_folds_it() -> None:
    comment = render_markdown(MADE)
    _, _, folded = comment.partition("<summary>Existing drift of 3 other topics, which this plan ")
    table, _, _ = folded.partition("</details>")
    place = f"`{HERE.file}:{HERE.line}`"
    assert f"| `missing` |  | does not exist | {place} |" in table
    assert "| `grown` | `shop` | flush.ms 2 → unset, retention.ms" in table
    assert "· existing drift of 3 other topics" in comment.partition("\n\n")[2].partition("\n")[0]


@pytest.mark.parametrize("number", [20, 3000])
def test_a_comment_on_much_drift_keeps_to_its_limit_and_says_what_is_left_out(number: int) -> None:
    many = [spec(f"shop.topic-{n}", partitions=1, replication_factor=1) for n in range(number)]
    comment = render_markdown(plan(*many))
    assert len(comment.encode()) <= 65_536
    assert f"existing drift of {number:,} other topics" in comment
    assert ("what differs in 3,000 topics with existing drift" in comment) is (number == 3000)
    assert "+&nbsp;create" in comment


def test_json_has_every_field_and_a_plan_file_keeps_it() -> None:
    encoded = encode_plan(MADE)
    assert decode_plan(encoded) == MADE
    grown, missing, old = json.loads(encoded)["existing_drift"]
    assert (grown["name"], grown["actions"], grown["owner"]) == ("grown", ["update"], "shop")
    assert grown["differs"][1] == {
        "path": "config.retention.ms",
        "before": "1",
        "after": "86400000",
        "where": {"file": HERE.file, "line": HERE.line, "column": HERE.column},
    }
    assert (missing["actions"], old["actions"]) == (["create"], ["delete"])


def test_the_guards_count_only_what_the_plan_changes() -> None:
    """Two deletions are pending from before, and this request asks for one."""
    entry = replace(PROD, guards=Guards(max_changed_percent=0, max_deletes=1))
    before = {name: spec(name, absent=True) for name in ("grown", "old")}
    changes = Changes("main", "1a2b3c4", {"prod": ClusterThen(entry, before)})
    specs = [*before.values(), spec("same", absent=True)]
    made = plan_cluster(entry, specs, LIVE, changes=changes)
    (same,) = made.topics
    assert "deletion-budget" not in {refusal.rule for refusal in same.refusals}
    whole = plan_cluster(entry, specs, LIVE)
    assert "deletion-budget" in {rule.rule for each in whole.topics for rule in each.refusals}


@pytest.mark.parametrize(
    ("percent", "way_out"),
    [
        (50, "split the change, into several requests or with --topic, or raise max_changed in"),
        (0, "raise max_changed in clusters.yaml if this is intended"),
    ],
)
def test_the_advice_of_a_guard_can_be_followed_in_a_request(percent: int, way_out: str) -> None:
    """Of six changes, a request of five passes. At 0 %, no part of a change passes."""
    entry = replace(PROD, guards=Guards(max_changed_percent=percent))
    live = cluster(*(topic("1", f"t{n}") for n in range(6)), defaults={"flush.ms": "9"})
    was = {f"t{n}": spec(f"t{n}") for n in range(6)}
    asked = {name: replace(each, config={"flush.ms": "1"}) for name, each in was.items()}

    def request(number: int) -> Plan:
        """Plan a request that changes the first topics, and leaves the others as they were."""
        names = sorted(was)[:number]
        specs = {**was, **{name: asked[name] for name in names}}
        changes = Changes("main", "1a2b3c4", {"prod": ClusterThen(entry, was)})
        return plan_cluster(entry, specs.values(), live, changes=changes)

    (refusal,) = said(request(6).refusals)
    assert f"; {way_out}" in refusal
    assert bool(request(5).refusals) is (percent == 0)
