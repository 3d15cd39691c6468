"""Defaults and profiles: what several topics share."""

from __future__ import annotations

from reconciler.adopt.desired import DesiredTopic
from reconciler.adopt.profiles import extract_shared

COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.2"}
ZSTD = {"compression.type": "zstd", "retention.ms": "604800000"}


def wishes(*configs: dict[str, str], replication: int = 3) -> list[DesiredTopic]:
    return [DesiredTopic(f"t{n}", 1, replication, config) for n, config in enumerate(configs)]


def test_what_most_topics_have_is_a_default() -> None:
    found = extract_shared(wishes(*[{"min.insync.replicas": "2"}] * 3, {}))
    assert found.config == {"min.insync.replicas": "2"}
    assert found.replication_factor == 3


def test_what_half_of_the_topics_have_is_no_default() -> None:
    assert extract_shared(wishes(*[{"flush.ms": "1"}] * 3, {}, {}, {})).config == {}


def test_configs_that_stand_together_become_a_profile_named_after_them() -> None:
    found = extract_shared(wishes(*[COMPACTED] * 6, *[ZSTD] * 6))
    assert found.profiles == {"compacted": COMPACTED, "zstd-keep-7d": ZSTD}


def test_the_shared_part_of_different_configs_becomes_a_profile() -> None:
    others = [COMPACTED | {"flush.ms": str(n)} for n in range(6)]
    assert extract_shared(wishes(*others, *[{}] * 6)).profiles == {"compacted": COMPACTED}


def test_a_profile_that_saves_nothing_is_not_made() -> None:
    assert extract_shared(wishes(COMPACTED, COMPACTED, {}, {}, {})).profiles == {}


def test_one_topic_shares_nothing() -> None:
    assert extract_shared(wishes(COMPACTED)).replication_factor is None
