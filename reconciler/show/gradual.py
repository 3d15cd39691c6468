"""The steps of gradual changes in a plan: how far each one lowers a limit, and what remains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reconciler.changes.gradual import GRADUAL_KEYS, list_limits
from reconciler.model.cluster import Risk, TopicSpec
from reconciler.model.plan import Plan, PlannedTopic
from reconciler.show.wording import view_configs


@dataclass(frozen=True, slots=True)
class GradualStep:
    """The step by which a plan lowers a limit of a topic, from `before` to `after`.

    `target` is the limit of the spec. A limit of None is not set: that of the brokers applies.
    """

    topic: str
    key: str
    before: str | None
    after: str | None
    target: str | None
    factor: int

    @property
    def left(self) -> tuple[str | None, ...]:
        """The limits of the later steps; none if this step reaches the target."""
        if self.after == self.target:
            return ()
        if self.after is None or self.target is None:  # only brokers know that limit
            return (self.target,)
        limits = list_limits(int(self.after), int(self.target), self.factor, self.key)
        return tuple(map(str, limits))

    def count_from(self, start: str) -> tuple[int, int] | None:
        """Return which step of how many this is, if the limit was `start` before the first one.

        None if no step from there leads here, since the limit was changed by other means.
        """
        try:
            limits = list_limits(int(start), int(self.target or ""), self.factor, self.key)
        except ValueError:
            return None
        numbers = {str(limit): number for number, limit in enumerate(limits, 1)}
        return (numbers[self.after], len(limits)) if self.after in numbers else None


def list_gradual_steps(plan: Plan, specs: Iterable[TopicSpec]) -> Iterator[GradualStep]:
    """Yield the steps of gradual changes that a plan makes or refuses. In: specs of its cluster."""
    gradual = {spec.name: spec for spec in specs if spec.gradual}
    for topic in plan.topics:
        if topic.name not in gradual:
            continue
        spec = gradual[topic.name]
        # The risk knows the limits of the brokers: a step from a limit that is not set lowers it.
        lowered = {note.field for note in topic.risks if note.risk is Risk.DATA_LOSS}
        for key, before, after in _list_configs(topic):
            if key in GRADUAL_KEYS and f"config.{key}" in lowered:
                target = spec.config.get(key)
                yield GradualStep(topic.name, key, before, after, target, spec.gradual)


def _list_configs(topic: PlannedTopic) -> Iterator[tuple[str, str | None, str | None]]:
    """Yield the configs that change, or whose change is refused: the key and both values."""
    for field in topic.refused_change:
        before, after = (None if v is None else str(v) for v in (field.before, field.after))
        yield field.path.removeprefix("config."), before, after
    if topic.before and topic.after and not topic.refused_change:
        for view in view_configs(topic.before.config, topic.after.config):
            yield view.name, view.before, view.after
