"""Configs that a managed service keeps to itself: live ones are named and left alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reconciler.errors import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from reconciler.diff.topics import TopicDiff
    from reconciler.model import ClusterState, TopicState


def leave_unoffered(state: ClusterState, offered: Collection[str] | None) -> ClusterState:
    """Take the overrides out of a state that are not among the configs on offer; None: all are.

    A topic that is to be deleted keeps them: its retention tells how old lost records were.
    """
    if offered is None:
        return state
    topics = {
        name: topic if name in state.usage else _leave(topic, offered)
        for name, topic in state.topics.items()
    }
    return replace(state, topics=topics)


def note_unoffered(
    diffs: Iterable[TopicDiff], state: ClusterState, offered: Collection[str] | None
) -> tuple[TopicDiff, ...]:
    """Note beside each diff what was left alone of its topic. In: the state as it was read."""
    if offered is None:
        return tuple(diffs)
    return tuple(_note(diff, state.topics.get(diff.spec.name), offered) for diff in diffs)


def _leave(topic: TopicState, offered: Collection[str]) -> TopicState:
    if all(key in offered for key in (*topic.config, *topic.disputed)):
        return topic
    kept = {key: value for key, value in topic.config.items() if key in offered}
    disputed = {key: told for key, told in topic.disputed.items() if key in offered}
    return replace(topic, config=kept, disputed=disputed)


def _note(diff: TopicDiff, live: TopicState | None, offered: Collection[str]) -> TopicDiff:
    left = sorted(live.config.keys() - set(offered)) if live else []
    notes = [
        Finding(
            "not-managed",
            f"{key} is set on the topic and is none of known_configs, so it is left alone",
            "name it there if it is to be managed",
            diff.spec.location,
            Severity.NOTE,
        )
        for key in left
    ]
    return replace(diff, notes=(*diff.notes, *notes)) if notes else diff
