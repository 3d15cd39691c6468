"""The progress of a planned topic, from the brokers' views: done, steps left, or stale.

One comparison answers four questions: is the plan stale, was it applied before, how far did a lost
or failed request get, and does a broker show the result yet. Only a state that apply itself passes
through is continued: any other state means that someone else changed the topic. Brokers answer
before the others know, and disagree for a moment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from reconciler.apply.kinds import kind_of, split_step
from reconciler.diff.fields import managed_overrides
from reconciler.errors import ClusterError, Finding
from reconciler.model.cluster import EMPTY, Assignment, TopicState, is_left_to_brokers, meets_row
from reconciler.model.plan import PlannedTopic, TopicImage
from reconciler.model.steps import Step, Verb, is_deletion, steps_of
from reconciler.run.ports import Clock, ClusterReader
from reconciler.units import count

LAGS_S = (0.5, 1.0, 2.0)  # for configs that arrive after their topic

MOST_ROWS = 3
"""The number of partitions on other brokers to name; of more, only the count is given."""

SINCE = "since the plan was made"


@dataclass(frozen=True, slots=True)
class Remaining:
    """Steps from the live state to the planned one; `moved` is the reason why there are none.

    `lags`: the view may only be late. A broker shows a new topic a moment before its configs.
    `elsewhere`: all that moved are new replicas, which are on other brokers than planned; counts
    and configs are those after the last step.
    """

    steps: tuple[Step, ...] = ()
    moved: tuple[Finding, ...] = ()
    lags: bool = False
    elsewhere: bool = False

    @property
    def is_done(self) -> bool:
        """Nothing is left and nothing moved."""
        return not self.steps and not self.moved


@dataclass(frozen=True, slots=True)
class _Stage:
    """A state that apply passes through: the steps that lead there, and those that are left."""

    image: TopicImage
    done: tuple[Step, ...]
    left: tuple[Step, ...]


def compare_state(
    topic: PlannedTopic, live: TopicState | None, *, with_config: bool = True
) -> Remaining:
    """Compare a planned topic with its live state.

    `with_config` false leaves configs out, for a view that did not ask for them.
    """
    steps = steps_of(topic)  # once: a run compares thousands of topics with every broker's view
    if steps and steps[0].verb is Verb.DELETE:
        return _compare_deletion(topic, live)
    if not steps or topic.after is None:
        return Remaining()
    if live is None:
        if topic.before is None:
            return Remaining(steps)
        return Remaining(moved=(_moved(topic, f"it was deleted {SINCE}"),))
    now = _pick_keys(topic, managed_overrides(live))
    stages = list(_list_stages(topic, steps))
    rested_on = [first for step in steps if (first := kind_of(step).rests_on(step)) is not None]
    first_row = min(rested_on, default=None)
    # From the end, since a view without configs does not tell the last stages apart.
    for stage in reversed(stages):
        same_rows = first_row is None or _has_rows(live, stage.image.assignment, first_row)
        same_config = stage.image.config == now or not with_config
        shown = all(kind_of(step).is_shown(step, live) for step in stage.done)
        if same_rows and same_config and shown:
            resized = tuple(_name_resized_rows(topic, live, stage.left))
            return Remaining(moved=resized) if resized else Remaining(stage.left)
    moved: list[Finding] = []
    if first_row is not None:
        counts = {len(stage.image.assignment) for stage in stages}
        moved += _name_moved_rows(topic, topic.after, live, counts, first_row)
    *earlier, last = (stage.image for stage in stages)
    is_counted = any(step.placed for step in steps) and _has_counts(
        live, last.assignment, first_row
    )
    elsewhere = is_counted and (last.config == now or not with_config)
    lags = False
    if with_config and not elsewhere and (is_counted or not moved):  # configs may come later
        late = now.items() < topic.after.config.items()
        lags = late if topic.before is None else any(image.config == now for image in earlier)
    moved += _name_moved_keys(topic, now) if with_config and not elsewhere else ()
    return Remaining(moved=tuple(moved), lags=lags, elsewhere=elsewhere)


def merge_views(
    topic: PlannedTopic, views: Iterable[TopicState | None], *, with_config: bool = True
) -> Remaining:
    """Compare with what several brokers show: the most advanced view counts.

    A topic or partition that one broker lacks may only not have reached it yet. If brokers of
    equal partition count differ, one that shows foreign rows outweighs the others; a foreign config
    takes two of them, since a restarted broker may show those of a deleted topic. A topic to be
    deleted exists as long as any broker shows it: one that lags may not know it yet.
    """
    shown = [view for view in views if view is not None]
    newest = max((len(view.assignment) for view in shown), default=0)
    candidates: list[TopicState | None] = [v for v in shown if len(v.assignment) == newest]
    found = [compare_state(topic, view, with_config=with_config) for view in candidates or [None]]
    if with_config:
        found = _confirm_configs(topic, candidates, found) or found
    return min(found, key=lambda remaining: (not remaining.moved, len(remaining.steps)))


def _confirm_configs(
    topic: PlannedTopic, views: Iterable[TopicState | None], found: Iterable[Remaining]
) -> list[Remaining]:
    """Omit views that are the only one to show a foreign config."""
    shown = list(zip(views, found, strict=False))
    said = Counter(finding for _, remaining in shown for finding in remaining.moved)
    return [
        remaining
        for view, remaining in shown
        if all(said[finding] > 1 for finding in remaining.moved)
        or compare_state(topic, view, with_config=False).moved
    ]


def _compare_deletion(topic: PlannedTopic, live: TopicState | None) -> Remaining:
    """Return the deletion if the topic is still there, and as large as it was.

    Another check verifies that it is the same topic and unused: views do not show that.
    """
    then = len(topic.before.assignment) if topic.before else 0
    if live is None:
        return Remaining()
    if len(live.assignment) != then:
        found = len(live.assignment)
        return Remaining(moved=(_moved(topic, f"partitions: {then} → {found} {SINCE}"),))
    return Remaining(steps_of(topic))


def _list_stages(topic: PlannedTopic, steps: Sequence[Step]) -> Iterator[_Stage]:
    """List the states that apply passes through, from before its first request to the end."""
    before = topic.before
    image = TopicImage(None, (), EMPTY)
    if before:
        image = TopicImage(None, before.assignment, _pick_keys(topic, before.config))
    done: list[Step] = []
    todo = list(steps)
    if before:
        yield _Stage(image, (), tuple(todo))
    while todo:
        part, rest = split_step(todo[0])
        todo[:1] = [rest] if rest else []
        done.append(part)
        image = kind_of(part).take_effect(part, image)
        yield _Stage(image, tuple(done), tuple(todo))


def _pick_keys(topic: PlannedTopic, config: Mapping[str, str]) -> Mapping[str, str]:
    """Pick the configs that the plan sets or unsets; all configs of a topic that it creates."""
    if topic.before is None:
        return dict(config)
    altered = _list_altered(topic)
    return {key: value for key, value in config.items() if key in altered}


def _list_altered(topic: PlannedTopic) -> set[str]:
    """List the configs that the plan sets or unsets on a topic that exists."""
    before = topic.before.config if topic.before else EMPTY
    after = topic.after.config if topic.before and topic.after else before
    return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


def _moved(topic: PlannedTopic, what: str) -> Finding:
    return Finding("plan-stale", f"{topic.name}: {what}", "plan again", topic.location)


def _has_rows(live: TopicState, planned: Assignment, first: int) -> bool:
    """Return whether a topic has as many partitions as planned, and the same rows from `first`.

    Of rows that the brokers place, only the number of replicas is planned.
    """
    found = live.assignment
    if len(found) != len(planned) or not is_left_to_brokers(planned):
        return len(found) == len(planned) and found[first:] == planned[first:]
    return all(map(meets_row, found[first:], planned[first:]))


def _has_counts(live: TopicState, planned: Assignment, first: int | None) -> bool:
    """Return whether the planned partitions from `first` have their replicas, on any brokers."""
    found, wanted = live.assignment[first:], planned[first:]
    return [*map(len, found)] == [*map(len, wanted)]


def _name_resized_rows(
    topic: PlannedTopic, live: TopicState, left: Iterable[Step]
) -> Iterator[Finding]:
    """Name the first partition that has not as many replicas as those that are to be added."""
    wanted = next(filter(None, (kind_of(step).replicas_each(step) for step in left)), None)
    for number, row in enumerate(live.assignment if wanted else ()):
        if len(row) != wanted:
            what = (
                f"partition {number} has {count(len(row), 'replica')} by now, and new partitions "
                f"are planned with {wanted}"
            )
            way_out = "apply again once its replicas have moved, or plan again"
            yield Finding("plan-stale", f"{topic.name}: {what}", way_out, topic.location)
            return


def _name_moved_rows(
    topic: PlannedTopic, after: TopicImage, live: TopicState, counts: set[int], first: int
) -> Iterator[Finding]:
    """Name a partition count that no run of apply leaves, or partitions on other brokers.

    Those before `first` may be on any.
    """
    planned, found = len(after.assignment), len(live.assignment)
    if found not in counts:
        then = len(topic.before.assignment) if topic.before else 0
        what = f"partitions: {then} → {found} {SINCE} (planned: {planned})"
        created = f"it was created {SINCE} with {count(found, 'partition')} (planned: {planned})"
        yield _moved(topic, what if topic.before else created)
        return
    rows = zip(after.assignment[first:], live.assignment[first:], strict=False)
    pairs = enumerate(rows, first)
    others = [(number, *pair) for number, pair in pairs if not meets_row(pair[1], pair[0])]
    for number, wanted, row in others[:MOST_ROWS]:
        what = f"partition {number} is on brokers {list(row)}, not {list(wanted)}"
        if len(row) != len(wanted):
            what = f"partition {number} has {count(len(row), 'replica')}, not {len(wanted)}"
        yield _moved(topic, what)
    if len(others) > MOST_ROWS:
        more = count(len(others) - MOST_ROWS, "more partition")
        resized = all(len(row) != len(wanted) for _, wanted, row in others)
        how = "with another number of replicas" if resized else "on other brokers than planned"
        yield _moved(topic, f"{more} {how}")


def _name_moved_keys(topic: PlannedTopic, now: Mapping[str, str]) -> Iterator[Finding]:
    """Name each config that is not as it was, or not as it is to be created."""
    after = _pick_keys(topic, topic.after.config if topic.after else EMPTY)
    before = _pick_keys(topic, topic.before.config) if topic.before else after
    for key in sorted({*before, *after, *now}):
        then, found, wanted = (config.get(key, "not set") for config in (before, now, after))
        if found == then:
            continue
        what = f"{key}: {then} → {found} {SINCE} (planned: {wanted})"
        created = f"it was created {SINCE} with {key} {found} (planned: {wanted})"
        yield _moved(topic, what if topic.before else created)


def compare_views(
    reader: ClusterReader, clock: Clock, topics: Mapping[str, PlannedTopic]
) -> dict[str, Remaining]:
    """Ask all brokers what is left to do; the most advanced view counts.

    A new topic that still lacks configs is looked at again: brokers show those a moment later.
    Errors: ClusterError if no broker answers.
    """
    found = _compare_once(reader, topics)
    for pause in LAGS_S:
        lagging = {name: topics[name] for name, remaining in found.items() if remaining.lags}
        if not lagging:
            break
        clock.sleep(pause)
        found |= _compare_once(reader, lagging)
    return found


def _compare_once(
    reader: ClusterReader, topics: Mapping[str, PlannedTopic]
) -> dict[str, Remaining]:
    if not topics:
        return {}
    views = _read_views(reader, topics, topics)
    found = {
        name: merge_views(topic, [view.get(name) for view in views])
        for name, topic in topics.items()
    }
    return found | _find_replaced(reader, topics, found)


def compare_slowest_views(
    reader: ClusterReader, topics: Mapping[str, PlannedTopic]
) -> dict[str, Remaining]:
    """Ask all brokers again; the least advanced view counts.

    A view with a foreign state may only lag, so a topic has changed only if all views agree. A
    topic that is created carries its configs with it, so only altered ones are asked for. Errors:
    ClusterError if no broker answers.
    """
    configured = {name for name, topic in topics.items() if _list_altered(topic)}
    views = _read_views(reader, topics, configured)
    found: dict[str, Remaining] = {}
    for name, topic in topics.items():
        if topic.before is None and any(name not in view for view in views):
            found[name] = Remaining(steps_of(topic))  # a new topic: most polls end here
            continue
        with_config = name in configured
        each = [compare_state(topic, v.get(name), with_config=with_config) for v in views]
        if all(remaining.is_done for remaining in each):
            found[name] = Remaining()
        elif all(remaining.moved for remaining in each):
            found[name] = each[0]
        else:
            # A view on the way says what it lacks. If there is none, some views are done and the
            # others show a foreign state: all steps count as left until they agree.
            on_the_way = (remaining for remaining in each if remaining.steps)
            found[name] = next(on_the_way, Remaining(steps_of(topic)))
    return found | _find_replaced(reader, topics, found)


def _find_replaced(
    reader: ClusterReader, topics: Mapping[str, PlannedTopic], found: Mapping[str, Remaining]
) -> dict[str, Remaining]:
    """Return deleted topics whose name the brokers still show: another topic has that name now.

    An active producer causes this if brokers create topics automatically.
    """
    shown = [n for n, t in topics.items() if not found[n].is_done and is_deletion(t)]
    ids = reader.read_topic_ids(shown) if shown else {}
    planned = {name: before.topic_id for name in ids if (before := topics[name].before)}
    return {name: Remaining() for name, found_id in ids.items() if found_id != planned.get(name)}


def _read_views(
    reader: ClusterReader, names: Collection[str], with_config: Collection[str]
) -> Sequence[Mapping[str, TopicState]]:
    """Return each broker's view. Errors: ClusterError if no broker answers."""
    views = reader.read_views(names, with_config)
    if not views:  # no answer must not count as no topic
        what = "no broker answers when asked what it shows of the plan's topics"
        raise ClusterError([Finding("connect-lost", what, "check that the brokers are healthy")])
    return tuple(views.values())
