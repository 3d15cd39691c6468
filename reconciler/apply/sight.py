"""What the brokers show of planned topics: brokers answer before the others know, and disagree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.apply.remaining import Remaining, find_in_views, find_remaining
from reconciler.errors import ClusterError, Finding
from reconciler.model import AlterConfig
from reconciler.plan import is_deletion, steps_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from reconciler.model import PlannedTopic, TopicState
    from reconciler.ports import Clock, ClusterReader


LAGS_S = (0.5, 1.0, 2.0)


def look(
    reader: ClusterReader, clock: Clock, topics: Mapping[str, PlannedTopic]
) -> dict[str, Remaining]:
    """Ask all brokers what is left to do; the most advanced view counts.

    A new topic that still lacks configs is looked at again: brokers show those a moment later.
    Errors: ClusterError where no broker answers.
    """
    found = _look_once(reader, topics)
    for pause in LAGS_S:
        lagging = {name: topics[name] for name, remaining in found.items() if remaining.lags}
        if not lagging:
            break
        clock.sleep(pause)
        found |= _look_once(reader, lagging)
    return found


def _look_once(reader: ClusterReader, topics: Mapping[str, PlannedTopic]) -> dict[str, Remaining]:
    if not topics:
        return {}
    views = _read_views(reader, topics, topics)
    found = {
        name: find_in_views(topic, [view.get(name) for view in views])
        for name, topic in topics.items()
    }
    return found | _find_replaced(reader, topics, found)


def look_everywhere(
    reader: ClusterReader, topics: Mapping[str, PlannedTopic]
) -> dict[str, Remaining]:
    """Ask all brokers again; the least advanced view counts.

    One that shows something foreign may be one that lags, so a topic has moved only where all of
    them say so. A topic that is created carries its configs with it, so only altered ones are
    asked for. Errors: ClusterError where no broker answers.
    """
    configured = {name for name, topic in topics.items() if _alters_config(topic)}
    views = _read_views(reader, topics, configured)
    found = {
        name: _least_advanced(
            topic,
            [find_remaining(topic, v.get(name), with_config=name in configured) for v in views],
        )
        for name, topic in topics.items()
    }
    return found | _find_replaced(reader, topics, found)


def _find_replaced(
    reader: ClusterReader, topics: Mapping[str, PlannedTopic], found: Mapping[str, Remaining]
) -> dict[str, Remaining]:
    """Return what is deleted although brokers show its name: another topic has it by now.

    A producer that is still about can bring that, where brokers create topics by themselves.
    """
    shown = [n for n, t in topics.items() if is_deletion(t) and not found[n].is_done]
    ids = reader.read_topic_ids(shown) if shown else {}
    return {name: Remaining() for name in ids if ids[name] != _planned_id(topics[name])}


def _planned_id(topic: PlannedTopic) -> str | None:
    return topic.before.topic_id if topic.before else None


def _read_views(
    reader: ClusterReader, names: Collection[str], with_config: Collection[str]
) -> Sequence[Mapping[str, TopicState]]:
    """Return what each broker shows. Errors: ClusterError, lest silence be taken for absence."""
    views = reader.read_views(names, with_config)
    if not views:
        what = "no broker answers when asked what it shows of the plan's topics"
        raise ClusterError([Finding("connect-lost", what, "check that the brokers are well")])
    return tuple(views.values())


def _least_advanced(topic: PlannedTopic, found: Sequence[Remaining]) -> Remaining:
    if all(remaining.is_done for remaining in found):
        return Remaining()
    if all(remaining.moved for remaining in found):
        return found[0]
    on_the_way = (remaining for remaining in found if remaining.steps)
    return next(on_the_way, Remaining(steps_of(topic)))


def _alters_config(topic: PlannedTopic) -> bool:
    return any(isinstance(step, AlterConfig) for step in steps_of(topic))
