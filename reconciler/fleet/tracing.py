"""The history in a lake: each part continues the one before, and holds what is new since then.

| table | a part holds |
|---|---|
| `events`, `trend` | those of the collections since the part before |
| `drift` | what ended since then, and all that is pending |
| `growth` | every topic and cluster from its first collection on |

So a history is read from all of its parts, by `read_history`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import DataFrame

from reconciler.errors import Finding, LakeError
from reconciler.fleet import tables
from reconciler.fleet.caching import computing
from reconciler.fleet.complete import read_collections
from reconciler.fleet.health import BY_COLLECTION, count_health
from reconciler.fleet.history.events import find_events
from reconciler.fleet.history.growth import extend_growth, find_drift, measure_growth, measure_trend
from reconciler.fleet.history.readings import describe_read_topics, number_readings, pick_rows
from reconciler.fleet.lake.attempts import HISTORY, PLAN, Published
from reconciler.fleet.lake.inventory import Keeping, find_chain, find_last_readings
from reconciler.fleet.lake.lake import Lake
from reconciler.fleet.lake.storage import PARQUET

AT_ONCE = 10
"""The most collections that one part compares. A first history of many has several parts."""

MOST_PARTS = 30
"""A history of more parts is made one part when the lake is compacted."""


def trace_collections(
    lake: Lake, *, announce: Callable[[str], None] = lambda _: None, at_once: int = AT_ONCE
) -> Published:
    """Bring the history of a lake up to its latest collection: only new collections are read.

    Returns: the last part, which `read_history` reads with those before.
    Errors: LakeError if there is no collection.
    """
    latest = lake.find_attempt().collection
    chain = find_chain(lake.list_published(), latest)
    while not chain or chain[-1].collection < latest:
        before = chain[-1].collection if chain else ""
        new = [one for one in lake.list_attempts() if before < one.collection <= latest]
        chain.append(_continue(lake, chain, new[:at_once], announce))
    return chain[-1]


def _continue(
    lake: Lake,
    chain: Sequence[Published],
    new: Sequence[Published],
    announce: Callable[[str], None],
) -> Published:
    """Add a part for new collections. It continues the last part of a chain, if there is one."""
    before, last = (chain[-1].collection if chain else None), new[-1].collection
    states = lake.list_attempts()
    needed = set().union(*find_last_readings(states, before).values()) if before else set()
    attempts = [*(one for one in states if one.collection in needed), *new]
    state = read_collections(lake, attempts)
    plans = [one for one in lake.list_attempts(PLAN) if (before or "") < one.collection <= last]
    with computing() as compute, lake.begin(last, HISTORY) as draft:
        numbered = compute(number_readings(state["readings"]))
        topics = compute(describe_read_topics(state, numbered))
        brokers = pick_rows(state["brokers"], numbered)
        announce(f"comparing {len(attempts)} collections")
        events = find_events(topics, brokers, state["readings"], numbered, before)
        draft.append(tables.EVENTS, events)
        announce("measuring growth")
        health = count_health(state, by=BY_COLLECTION)
        trend = compute(measure_trend(topics, brokers, numbered, health, before))
        draft.append(tables.TREND, trend)
        grown = measure_growth(topics, trend)
        if chain:
            grown = extend_growth(lake.read(tables.GROWTH, chain[-1]), grown)
        draft.append(tables.GROWTH, grown)
        announce(f"comparing {len(plans)} plans")
        made, changes = lake.read_each((tables.PLANS, tables.CHANGES), plans).values()
        pending = lake.read(tables.DRIFT, chain[-1]).where("pending") if chain else None
        draft.append(tables.DRIFT, find_drift(made, changes, pending))
        clusters = len({name for one in new for name in one.rows["readings"]})
        made_of = {one.content for one in (*attempts, *plans)}
        return draft.publish(clusters, continues=before, made_of=made_of)


def read_history(lake: Lake, last: Published | None = None) -> Mapping[str, DataFrame]:
    """Return `events`, `trend`, `drift` and `growth` of a lake, from all parts of its history.

    `last` is the last part that counts, the latest unless it is named.
    Errors: LakeError if there is no history, or a part lacks rows.
    """
    chain = find_chain(lake.list_published(), last.collection if last else None)
    if not chain:
        what = f"{lake.root} holds no history of its collections"
        way_out = "start with: reconciler fleet history"
        raise LakeError([Finding("lake-collection-unknown", what, way_out)])
    return _read_chain(lake, chain)


def _read_chain(lake: Lake, chain: Sequence[Published]) -> Mapping[str, DataFrame]:
    added = (tables.EVENTS, tables.TREND, tables.DRIFT)
    frames = lake.read_each(added, chain)
    drift = frames[tables.DRIFT.name]
    counts = ~drift["pending"] | (drift["collection"] == chain[-1].collection)
    frames[tables.DRIFT.name] = drift.where(counts)
    new = {table.name: frames[table.name].select(*table.columns) for table in added}
    return {**new, tables.GROWTH.name: lake.read(tables.GROWTH, chain[-1])}


def fold_history(lake: Lake, until: str | None = None, *, at_least: int = 2) -> Published | None:
    """Make the parts of a history one part, up to the first one of `until` or later.

    The rows stay the same, and later parts continue it as before.
    Returns: the part; None if they are fewer than `at_least`.
    """
    chain = find_chain(lake.list_published())
    later = [number for number, one in enumerate(chain) if one.collection >= (until or "")]
    chain = chain[: later[0] + 1] if until and later else chain
    if len(chain) < at_least:
        return None
    rows = _read_chain(lake, chain)
    with lake.begin(chain[-1].collection, HISTORY) as draft:
        for table in tables.HISTORY:
            draft.append(table, rows[table.name])
        made_of = {each for one in chain for each in one.made_of}
        return draft.publish(chain[-1].clusters, made_of=made_of)


def keep_collections(
    lake: Lake, keeping: Keeping, announce: Callable[[str], None] = lambda _: None
) -> tuple[Published, ...]:
    """Remove the collections that go, with all that was made of them but their history.

    Their events, trend and drift become part of the history of the oldest kept collection first.
    Returns: what was removed.
    """
    trace_collections(lake, announce=announce)
    announce("folding the history")
    fold_history(lake, keeping.oldest)
    removed = lake.remove(keeping.going, announce)
    if lake.form != PARQUET:
        lake.storage.maintain(expire=True)
    return removed
