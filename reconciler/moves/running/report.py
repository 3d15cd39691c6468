"""The progress of a run of moves, in total and for each topic, from the states of its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from reconciler.model.cluster import AnyPlace
from reconciler.model.outcomes import Outcome, OutcomeKind
from reconciler.model.plan import Plan
from reconciler.moves.running.relocations import Relocation, Relocations
from reconciler.moves.running.rows import ENDED_OTHERWISE, Row, Rows, RowState
from reconciler.run.events import MovesSummary
from reconciler.run.ports import ClusterReader
from reconciler.units import count

NAMED = 3


Item = Row | Relocation
"""What a run moves: a partition between brokers, or a replica between log directories."""


def count_states(rows: Iterable[Item]) -> Counter[RowState]:
    """Count rows by state."""
    return Counter(row.state for row in rows)


def describe(rows: Rows, relocations: Relocations) -> str:
    """Say how many rows are in which state."""
    items: Sequence[Item] = [*rows, *relocations]
    noun = items[0].noun if items else Row.noun
    listed = ", ".join(f"{n} {state}" for state, n in sorted(count_states(items).items()))
    return f"{count(len(items), noun)}: {listed}"


def summarise(items: Sequence[Item], reason: str, left: Mapping[str, str]) -> MovesSummary:
    """Count what moves by how far it is. `left` is as in `judge_topics`."""
    states = count_states(items)
    done = states[RowState.DONE]
    flying = states[RowState.UNDER_WAY] + states[RowState.UNCLEAR]
    otherwise = sum(states[state] for state in ENDED_OTHERWISE)
    waiting = len(items) - done - flying - otherwise
    complete = not flying and not waiting
    texts = tuple(text for _, text in sorted(left.items()))
    return MovesSummary(done, flying, waiting, otherwise, "" if complete else reason, texts)


def name_behind(done: Sequence[Row], reader: ClusterReader) -> dict[str, str]:
    """Name topics of which a broker does not show the new rows. Errors: ClusterError.

    It may not show them yet, or not any more. A topic that no broker shows was deleted meanwhile.
    """
    names = sorted({row.place[0] for row in done})
    views = reader.read_views(names) if names else {}
    behind = {}
    known = {name for view in views.values() for name in view}
    for row in (row for row in done if row.place[0] in known):
        topic, partition = row.place
        for broker, view in views.items():
            shown = view.get(topic)
            if shown is None or shown.assignment[partition : partition + 1] != (row.after,):
                behind[topic] = f"broker {broker} does not show the new rows of {topic}"
    return behind


def judge_topics(
    plan: Plan,
    items: Iterable[Item],
    reason: str,
    obstacles: Mapping[AnyPlace, str],
    left: Mapping[str, str],
) -> tuple[Outcome, ...]:
    """Return the outcomes by name.

    `reason` says why the run ended, `obstacles` why single rows are not as planned, and `left` what
    could not be taken back, by topic.

    | rows of the topic                                | outcome       |
    |--------------------------------------------------|---------------|
    | a request without an answer, not seen            | unknown       |
    | some are in flight                               | in flight     |
    | some wait, none is in flight                     | waiting       |
    | the rest is done, some were cancelled or skipped | half done     |
    | none is done, all were cancelled or skipped      | failed        |
    | all as planned, but a config is still lowered    | waiting       |
    | all as planned, a leader lacks records           | half done     |
    | all as planned                                   | done          |
    | all as planned before this run                   | already done  |
    """
    by_topic: dict[str, list[Item]] = {}
    for item in items:
        by_topic.setdefault(item.place[0], []).append(item)
    outcomes = [
        _judge(name, found, _name_causes(found, reason, obstacles), left.get(name, ""))
        for name, found in by_topic.items()
    ]
    outcomes += [
        Outcome(topic.name, OutcomeKind.REFUSED, topic.refusals[0].what, topic.refusals[0].rule)
        for topic in plan.topics
        if topic.refusals
    ]
    return tuple(sorted(outcomes, key=lambda outcome: outcome.topic))


def _name_causes(rows: Iterable[Item], reason: str, obstacles: Mapping[AnyPlace, str]) -> str:
    """Explain why rows of a topic are not done: the reason of the run, and what blocks them."""
    causes = dict.fromkeys(obstacles[row.key] for row in rows if row.key in obstacles)
    return "; ".join([*filter(None, [reason]), *[*causes][:NAMED]])


def _judge(name: str, rows: Sequence[Item], reason: str, left: str) -> Outcome:
    states = Counter(row.state for row in rows)
    done = states[RowState.DONE]
    flying = states[RowState.UNDER_WAY] + states[RowState.UNCLEAR]
    doubtful = sum(row.in_doubt for row in rows)
    waiting = states[RowState.NOT_BEGUN] + states[RowState.FOREIGN] - doubtful
    counted = [
        f"{number} {what}"
        for number, what in (
            (done, "done"),
            (flying, "in flight"),
            (waiting, "waiting"),
            (doubtful, "asked for without an answer"),
        )
        if number
    ]
    said = f"of {count(len(rows), rows[0].noun)}: {', '.join(counted)}" if counted else ""
    unclean = [
        f"partition {row.place[1]}: broker {row.cut_short} became the leader before its copy was "
        "complete (an unclean election), so records may be lost"
        for row in rows
        if row.cut_short is not None
    ]
    why = reason if flying or waiting or doubtful else ""
    parts = [said, *unclean, *_list_endings(rows), why, left]
    text = "; ".join(part for part in parts if part)
    if doubtful:
        return Outcome(name, OutcomeKind.UNKNOWN, text)
    if flying:
        return Outcome(name, OutcomeKind.IN_FLIGHT, text)
    if waiting:
        return Outcome(name, OutcomeKind.WAITING, text)
    if done < len(rows):
        kind = OutcomeKind.HALF_DONE if done else OutcomeKind.FAILED
        return Outcome(name, kind, text)
    if left:
        return Outcome(name, OutcomeKind.WAITING, left)
    if unclean:
        return Outcome(name, OutcomeKind.HALF_DONE, "; ".join(unclean))
    texts = sorted({row.text for row in rows if row.text})
    if all(row.was_done for row in rows):
        return Outcome(name, OutcomeKind.ALREADY_DONE, "; ".join(texts))
    others = sum(row.shown is not None and row.shown.leader != row.preferred for row in rows)
    unled = [f"{count(others, 'partition')} not led by the preferred leader"] if others else []
    return Outcome(name, OutcomeKind.DONE, "; ".join([*unled, *texts]))


def _list_endings(rows: Sequence[Item]) -> list[str]:
    """Name the partitions that ended otherwise, and why."""
    ended = [row for row in rows if row.state in ENDED_OTHERWISE]
    listed = [f"{row.name}: {row.text}" for row in ended[:NAMED]]
    return [*listed, f"{len(ended) - NAMED} more"] if len(ended) > NAMED else listed
