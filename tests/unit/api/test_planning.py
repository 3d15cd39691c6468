"""Which topics of an estate a plan is about: owned, ignored, named, or changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from shorthand import cluster, topic

from reconciler.api import build_plan, load_estate

if TYPE_CHECKING:
    from pathlib import Path

    from reconciler.spec import Estate

LIVE = cluster(
    topic("1", "shop.orders"),
    topic("1", "shop.old"),
    topic("1", "pay.captured"),
    topic("1", "_schemas"),
)


def load(root: Path, clusters: str, **files: str) -> Estate:
    """Load an estate with one cluster `prod`, about which `clusters` says more."""
    text = f"version: 1\nclusters: {{prod: {{{clusters}}}}}\n"
    for name, content in {"clusters": text, **files}.items():
        (root / f"{name}.yaml").write_text(content)
    return load_estate(root)


@pytest.mark.parametrize(
    ("clusters", "glob", "unmanaged"),
    [
        ("", "*", ("_schemas", "pay.captured", "shop.old")),
        ('ignore: ["_*"]', "*", ("pay.captured", "shop.old")),
        ('owns: ["shop.*"]', "*", ("shop.old",)),
        ('owns: ["shop.*", "_*"], ignore: ["_*"]', "*", ("shop.old",)),
        ('owns: ["shop.*"]', "pay.*", ()),
        ("", "pay.*", ("pay.captured",)),
    ],
)
def test_only_what_is_the_estates_business_is_unmanaged(
    clusters: str, glob: str, unmanaged: tuple[str, ...], tmp_path: Path
) -> None:
    estate = load(tmp_path, clusters, shop="topic: shop.orders\npartitions: 1")
    plan = build_plan(estate, "prod", LIVE, topics=glob)
    assert (plan.unmanaged, plan.live_topics) == (unmanaged, 4)


def test_a_collision_with_a_live_topic_of_others_is_seen(tmp_path: Path) -> None:
    estate = load(tmp_path, 'owns: ["pay_*"]', pay="topic: pay_captured\npartitions: 1")
    (planned,) = build_plan(estate, "prod", LIVE).topics
    assert "name-collides-with-live" in {refusal.rule for refusal in planned.refusals}
