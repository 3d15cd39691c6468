"""Laws of retention in steps: each keeps its share, all arrive, and none contradicts the others."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, event, given
from hypothesis import strategies as st
from shorthand import CATALOGUE, HERE, cluster, plan, spec, topic

from reconciler.changes.gradual import LOCAL_PARTS, list_limits
from reconciler.model.cluster import TopicSpec
from reconciler.model.plan import TopicImage
from reconciler.model.steps import has_steps

LARGEST = 2**63 - 1
limits = st.integers(0, LARGEST) | st.integers(0, 10_000)
factors = st.integers(2, 10) | st.integers(2, 1_000)
keys = st.sampled_from(sorted(LOCAL_PARTS))
ACCEPTED = frozenset({"data-loss"})


@given(limits, limits, factors, keys)
def test_steps_descend_keep_their_share_and_end_on_the_target(
    found: int, target: int, factor: int, key: str
) -> None:
    steps = list_limits(found, target, factor, key)
    assert steps[-1:] == ((target,) if target < found else ())
    for before, after in zip((found, *steps), steps, strict=False):
        assert target <= after < before
        assert after * factor >= before or after == target == 0


@given(limits, limits, factors, keys)
def test_there_are_as_few_steps_as_there_can_be(
    one: int, other: int, factor: int, key: str
) -> None:
    """No way of fewer steps exists that divides by the factor at most, save to nothing at all."""
    target, found = sorted((max(one, 1), other + 2))
    assume(target < found)
    steps = len(list_limits(found, target, factor, key))
    assert target * factor ** (steps - 1) < found <= target * factor**steps


@given(limits, limits, factors, keys)
def test_the_way_does_not_depend_on_where_it_was_begun(
    found: int, target: int, factor: int, key: str
) -> None:
    first, *rest = list_limits(found, target, factor, key) or (target,)
    assert list(list_limits(first, target, factor, key)) == rest


def apply_to(live: dict[str, str], wished: TopicSpec) -> tuple[TopicImage | None, bool]:
    """Plan on a topic of these overrides; return what comes of it, and whether it is refused."""
    made = plan([wished], cluster(topic(config=live), defaults=_defaults()))
    refused = any(topic.refusals for topic in made.topics)
    if not (refused or has_steps(made)):
        return None, False
    return made.topics[0].after, refused


def _defaults() -> dict[str, str]:
    return {n: key.default for n, key in CATALOGUE.keys.items() if key.default is not None}


amounts = st.one_of(st.integers(-1, 20), st.integers(-1, 10**12)).map(str)
tiers = st.fixed_dictionaries(
    {},
    optional={
        "retention.ms": amounts,
        "retention.bytes": amounts,
        "local.retention.ms": amounts | st.just("-2"),
        "local.retention.bytes": amounts | st.just("-2"),
        "remote.storage.enable": st.just("true"),
        "remote.log.copy.disable": st.just("true"),
        "cleanup.policy": st.sampled_from(["delete", "compact", "compact,delete"]),
    },
)


@given(tiers, tiers, st.integers(2, 5), st.booleans())
def test_every_plan_leads_to_the_next_and_the_last_to_the_spec(
    live: dict[str, str], wished: dict[str, str], factor: int, equal: bool
) -> None:
    """What brokers check across keys holds at every step, where it holds for the spec."""
    if equal:
        wished |= {local: wished[key] for key, local in LOCAL_PARTS.items() if key in wished}
    sound = not CATALOGUE.check_together(wished, lambda _: None)
    gradual = TopicSpec("shop.orders", HERE, config=wished, gradual=factor, acknowledge=ACCEPTED)
    steps = 0
    while True:
        after, refused = apply_to(live, gradual)
        if after is None or refused:
            break
        assert after.config != live
        live, steps = dict(after.config), steps + 1
        if sound:
            assert CATALOGUE.check_together(live, lambda _: None) == []
    assert steps <= 64
    event(f"{'refused' if refused else 'arrived'} after {min(steps, 5)} steps, sound: {sound}")
    at_once, _ = apply_to(live, replace(gradual, gradual=0))
    assert refused or at_once is None


def test_a_law_world_is_gradual() -> None:
    """Guard against a law that never meets a step."""
    after, _ = apply_to(
        {"retention.ms": "8000"},
        spec(config={"retention.ms": "1000"}, gradual=2, acknowledge=ACCEPTED),
    )
    assert after is not None
    assert after.config == {"retention.ms": "4000"}
