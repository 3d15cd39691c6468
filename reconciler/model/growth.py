"""How fast partitions are written and read: what grew between two readings of a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from reconciler.model.cluster import ClusterState, LeaderLog, TopicState

_UNKNOWN = -1


def measure_rates(before: ClusterState, after: ClusterState) -> ClusterState:
    """Add the rates between two readings of one cluster to the later one.

    Both have the time of reading and logs. A write rate is the growth of the leader's log, which is
    exact if the same broker leads and its log lost nothing. Otherwise it is a guess: the growth of
    its end, with the bytes that a record has on average. Where only bytes were read, nobody knows
    what a log lost: it grew by at least so much, and one that shrank or has another leader has no
    rate. All reads are guesses: the growth of what groups committed, without those that went back.
    A topic that was created again meanwhile has no rates, and neither has a partition that is new
    or whose end went back.
    In: `before` is the earlier one. Units: bytes per second.
    """
    seconds = (after.read_at_ms - before.read_at_ms) / 1000
    topics = {}
    for name, topic in after.topics.items():
        was = _find_earlier(before, topic)
        is_cleaned = _is_compacted(topic, after) or _is_compacted(was, before)
        written = [_measure_growth(*logs, is_cleaned=is_cleaned) for logs in _pair_logs(was, topic)]
        topics[name] = replace(
            topic,
            write_bytes_per_s=_list_rates((amount for amount, _ in written), seconds),
            guessed_rates=frozenset(n for n, (_, is_guess) in enumerate(written) if is_guess),
            read_bytes_per_s=_list_rates(_measure_reads(was, topic, before, after), seconds),
        )
    measured_s = max(1, round(seconds))
    return replace(after, topics=MappingProxyType(topics), measured_s=measured_s)


def _find_earlier(before: ClusterState, topic: TopicState) -> TopicState:
    """Return a topic as it was; without logs if it was another one of the same name, or none."""
    was = before.topics.get(topic.name)
    if was is None or (was.topic_id and topic.topic_id and was.topic_id != topic.topic_id):
        return replace(topic, logs=())
    return was


def _is_compacted(topic: TopicState, state: ClusterState) -> bool:
    policy = topic.config.get("cleanup.policy") or state.config_defaults.get("cleanup.policy")
    return "compact" in (policy or "")


def _pair_logs(
    was: TopicState, now: TopicState
) -> Iterable[tuple[LeaderLog | None, LeaderLog | None]]:
    count = len(now.assignment)
    earlier, later = ((*topic.logs, *[None] * count)[:count] for topic in (was, now))
    return zip(earlier, later, strict=True)


def _measure_growth(
    was: LeaderLog | None, now: LeaderLog | None, *, is_cleaned: bool
) -> tuple[float, bool]:
    """Return the bytes that were written, and whether that is a guess."""
    if was is None or now is None or now.end < was.end:
        return _UNKNOWN, False
    grown = now.size_bytes - was.size_bytes
    if was.end < 0:
        return (grown, True) if was.leader == now.leader and grown >= 0 else (_UNKNOWN, False)
    if now.end == was.end:
        return 0, False
    # A leader that deleted nothing since its first record has the bytes of any other.
    is_same = was.leader == now.leader or now.start == 0
    if was.start == now.start and grown >= 0 and is_same and not is_cleaned:
        return grown, False
    average = now.bytes_per_record or was.bytes_per_record
    if is_cleaned:  # which removes records and leaves their offsets
        average = max(average, was.bytes_per_record)
    if not average:
        return _UNKNOWN, False
    # What a log lost makes it grow less, so at least that much was written.
    return max(grown if is_same else 0, (now.end - was.end) * average), True


def _measure_reads(
    was: TopicState, now: TopicState, before: ClusterState, after: ClusterState
) -> Iterable[float]:
    """Yield the bytes that groups read of each partition; nothing if commits were not read."""
    if before.committed_offsets is None or after.committed_offsets is None:
        return
    grown = [0] * len(now.assignment)
    for group, topics in after.committed_offsets.items():
        earlier: Mapping[str, tuple[int, ...]] = before.committed_offsets.get(group, {})
        pairs = zip(earlier.get(now.name, ()), topics.get(now.name, ()), strict=False)
        for number, (start, end) in enumerate(pairs):
            if 0 <= start < end:
                grown[number] += end - start
    for records, (old, new) in zip(grown, _pair_logs(was, now), strict=True):
        if old is None or new is None or new.end < old.end:
            yield _UNKNOWN
            continue
        average = new.bytes_per_record or old.bytes_per_record
        yield records * average if average or not records else _UNKNOWN


def _list_rates(amounts: Iterable[float], seconds: float) -> tuple[int, ...]:
    """Return rates by partition; nothing if none of them is known."""
    rates = tuple(round(a / seconds) if a >= 0 else _UNKNOWN for a in amounts)
    return rates if any(rate >= 0 for rate in rates) else ()
