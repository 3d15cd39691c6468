"""Laws of plans between log directories: sound, a second one is empty, order plays no part."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from shorthand import may_move

from reconciler.errors import Location
from reconciler.model.cluster import Broker, ClusterState, LogDirectory, StoredReplica, TopicState
from reconciler.model.moves import DirectoryAim, PlannedDirectories
from reconciler.model.plan import Plan
from reconciler.moves.directories import plan_directories
from reconciler.planfile.codec import decode_plan, encode_plan
from reconciler.spec.entry import ClusterEntry

ENTRY = ClusterEntry("prod", Location("topics/clusters.yaml", 2), moves=may_move())
TOTAL = 10**6


@st.composite
def states(draw: st.DrawFn) -> ClusterState:
    """Draw a broker with two to four directories, and what each of them holds."""
    paths = [f"/d{number}" for number in range(draw(st.integers(2, 4)))]
    sizes = draw(st.lists(st.integers(0, 20_000), min_size=1, max_size=16))
    stored = {
        ("t", number): StoredReplica(draw(st.sampled_from(paths)), size)
        for number, size in enumerate(sizes)
    }
    totals = draw(st.sampled_from(([TOTAL] * 4, [TOTAL, 2 * TOTAL, TOTAL, 3 * TOTAL])))
    held: Counter[str] = Counter()
    for each in stored.values():
        held[each.path] += each.size_bytes
    directories = tuple(
        LogDirectory(path, total, total - held[path])
        for path, total in zip(paths, totals, strict=False)
    )
    topic = TopicState("t", "id", ((1,),) * len(sizes), size_bytes=tuple(sizes))
    state = ClusterState("c", (Broker(1),), {"t": topic}, {"a": "b"})
    return replace(state, directories={1: directories}, stored={1: stored})


def plan(state: ClusterState, aim: DirectoryAim) -> tuple[Plan, PlannedDirectories]:
    made = plan_directories(ENTRY, (), state, aim)
    assert made.moves is not None
    assert made.moves.directories is not None
    return made, made.moves.directories


def take_effect(state: ClusterState, planned: PlannedDirectories) -> ClusterState:
    stored = dict(state.stored[1])
    for copy in planned.copies:
        replica = stored[copy.topic, copy.partition]
        assert replica.path == copy.source
        stored[copy.topic, copy.partition] = replica._replace(path=copy.target)
    return replace(state, stored={1: stored})


def measure(state: ClusterState) -> Counter[str]:
    held: Counter[str] = Counter()
    for each in state.stored[1].values():
        held[each.path] += each.size_bytes
    return held


@given(states(), st.sampled_from((2.0, 10.0, 40.0)))
def test_a_plan_is_sound_and_nearer_to_the_shares(state: ClusterState, within: float) -> None:
    made, planned = plan(state, DirectoryAim(evens=True, within_percent=within))
    assert decode_plan(encode_plan(made)) == made
    after = measure(take_effect(state, planned))
    assert {band.path: band.after for band in planned.bands} == {
        band.path: after[band.path] for band in planned.bands
    }
    copied = sum(copy.size_bytes for copy in planned.copies)
    if not planned.unreached:
        assert planned.least_bytes <= copied
        assert all(band.low <= band.after <= band.high for band in planned.bands)
    outside = [
        sum(max(band.low - held, held - band.high, 0) for band, held in pairs)
        for pairs in (
            [(band, band.before) for band in planned.bands],
            [(band, band.after) for band in planned.bands],
        )
    ]
    assert outside[1] <= outside[0]


@given(states())
def test_a_second_plan_is_empty(state: ClusterState) -> None:
    aim = DirectoryAim(evens=True)
    _, planned = plan(state, aim)
    _, again = plan(take_effect(state, planned), aim)
    assert again.copies == ()


@given(states(), st.data())
def test_an_emptied_directory_holds_nothing(state: ClusterState, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from([each.path for each in state.directories[1]]))
    evens = data.draw(st.booleans())
    aim = DirectoryAim(evens=evens, emptied=frozenset({(1, path)}))
    made, planned = plan(state, aim)
    assert made.refusals == ()
    left = take_effect(state, planned).stored[1].values()
    assert path not in {each.path for each in left}
    if not evens:
        assert {copy.source for copy in planned.copies} <= {path}
        assert planned.least_bytes == sum(copy.size_bytes for copy in planned.copies)


@given(states(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_plays_no_part(state: ClusterState, dice: object) -> None:
    items = list(state.stored[1].items())
    dice.shuffle(items)  # type: ignore[attr-defined]
    shuffled = replace(state, stored={1: dict(items)})
    aim = DirectoryAim(evens=True)
    assert encode_plan(plan(shuffled, aim)[0]) == encode_plan(plan(state, aim)[0])
