"""What every plan says of its cluster and scope, whether it changes topics or moves replicas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from reconciler.diff.drains import raise_internal_topics
from reconciler.diff.moving import PLAN_MOVES, allow_moves, note_moves
from reconciler.diff.refusals import BY_SERVICE
from reconciler.diff.requests import explain_unmovable
from reconciler.errors import Finding, Severity
from reconciler.model.cluster import ClusterState, TopicSpec
from reconciler.model.moves import LoadKind, MoveKind
from reconciler.model.plan import Plan
from reconciler.model.steps import brokers_of, steps_of
from reconciler.spec.changes import Changes
from reconciler.spec.configs import choose_catalogue
from reconciler.spec.entry import ClusterEntry
from reconciler.units import approximate_duration, count

LEFT_SHOWN = 10
OBJECTIONS_NAMED = 3
_SHORT_S = 300
INTERNAL_FACTOR = "internal_replication_factor"
"""The key of a cluster for the replicas of topics internal to Kafka."""


def assume_defaults(entry: ClusterEntry, state: ClusterState) -> ClusterState:
    """Give a state without defaults those of its Kafka version, with a note.

    A cluster reports its defaults with the configs of any topic, so only a snapshot that was
    written by hand has none.
    """
    if state.config_defaults or not state.topics:
        return state
    release = choose_catalogue(state.kafka_version or entry.kafka_version)
    defaults = {n: key.default for n, key in release.keys.items() if key.default is not None}
    what = f"the snapshot has no config_defaults, so those of Kafka {release.version} are assumed"
    note = Finding("snapshot-assumed", what, severity=Severity.NOTE)
    return replace(state, config_defaults=defaults, notes=(*state.notes, note))


def concerns(note: Finding, plan: Plan) -> bool:
    """Return whether a note is about something in a plan.

    Other notes are not lost: `validate` shows those of an estate, `snapshot` those of a cluster.
    """
    if note.severity is not Severity.NOTE:
        return True
    match note.rule:
        case "document-kind" | "topic-not-managed":
            return False  # a document that no plan has a topic of
        case "policy-baseline" | "placement-keys":
            return False  # the same in every plan
        case "kafka-version-newer" | "kafka-version-older" | "service-likely" | "service-mover":
            return False  # `entry.notes` repeats these for the cluster
        case "cluster-rights":  # hidden topics matter only to placement: their load is unknown
            return any(brokers_of(step) for topic in plan.topics for step in steps_of(topic))
        case "groups-unseen":  # no plan of changes weighs by reads
            return False
        case "sizes-unseen":  # a snapshot has it, whatever it is used for
            return plan.weighed is not None or plan.moves is not None
        case _:
            return True


def mute_notes(entry: ClusterEntry, notes: Iterable[Finding]) -> tuple[Finding, ...]:
    """Leave out the notes on a cluster that clusters.yaml mutes, and say how many of which rule.

    A warning or an error stays, whatever its rule.
    """
    notes = tuple(notes)
    muted = [n for n in notes if n.severity is Severity.NOTE and n.rule in entry.mute]
    if not muted:
        return notes
    rules = Counter(note.rule for note in muted)
    listed = ", ".join(f"{number:,} {rule}" for rule, number in sorted(rules.items()))
    what = f"{count(len(muted), 'note')} muted by clusters.yaml: {listed}"
    line = Finding("notes-muted", what, where=entry.where("mute"), severity=Severity.NOTE)
    return (*(note for note in notes if note not in muted), line)


def note_traffic(state: ClusterState, kinds: Collection[LoadKind]) -> Iterator[Finding]:
    """Note how long the rates of some kinds were measured, and which of them are guesses.

    Rates that a snapshot has from elsewhere were not measured, and nothing is known of them.
    """
    if not state.measured_s:
        return
    window = approximate_duration(state.measured_s)
    way_out = ""
    if state.measured_s < _SHORT_S:
        way_out = "that is little: measure for longer with snapshot --measure 10m"
    if LoadKind.WRITE in kinds:
        what = f"writes were measured over {window}"
        guessed = sum(len(topic.guessed_rates) for topic in state.topics.values())
        if guessed:
            if guessed == 1:
                what += "; the rate of 1 partition is a guess: its log lost records meanwhile, or "
                what += "is compacted"
            else:
                what += f"; the rates of {guessed:,} partitions are guesses: their logs lost "
                what += "records meanwhile, or are compacted"
        yield Finding("rates-measured", what, way_out, severity=Severity.NOTE)
    if LoadKind.READ in kinds and state.committed_offsets is not None:
        what = (
            f"reads are guesses, from what groups committed over {window}: consumers that do not "
            "commit are not counted, and reads from followers count for leaders"
        )
        yield Finding("rates-measured", what, way_out, severity=Severity.NOTE)


def note_scope(changes: Changes, chosen: int, topics: int, others: int = 0) -> Iterator[Finding]:
    """Return a note on topics outside the plan.

    In: the number of topics whose specs are planned, of those that may be, and of others that move
    because of a key of the cluster, such as a drain.
    """
    if changes.everything:
        what = f"{changes.everything}, so every topic is planned"
    else:
        since = changes.since
        what = f"only specs that changed since {since} are planned: {chosen:,} of {topics:,} topics"
        if others:
            what += f", and {others:,} other{'s that move' if others > 1 else ' that moves'}"
            what += " because clusters.yaml changed"
    yield Finding("plan-scope", what, severity=Severity.NOTE)


def note_left(changes: Changes, specs: Iterable[TopicSpec], plan: Plan) -> Iterator[Finding]:
    """Return a note on live topics that left the estate. In: all specs of the cluster."""
    left = sorted(changes.list_left(plan.cluster, specs).intersection(plan.unmanaged))
    if left:
        what = f"unmanaged since {changes.since}: {name_some(left)}; nothing is done to them"
        way_out = "to delete one, write a document with state: absent, and raise guards.max_deletes"
        yield Finding("topics-left", what, way_out, severity=Severity.NOTE)


def note_unused_rows(objections: Sequence[str]) -> Iterator[Finding]:
    """Say why the rows of an approved plan are not used, if there are objections."""
    if objections:
        more = len(objections) - OBJECTIONS_NAMED
        named = "; ".join(objections[:OBJECTIONS_NAMED])
        named += f"; and {more:,} more" if more > 0 else ""
        what = f"the approved rows are not used: {named}"
        yield Finding("approved-rows", what, severity=Severity.NOTE)


def name_some(names: Sequence[str]) -> str:
    more = f" and {len(names) - LEFT_SHOWN:,} more" if len(names) > LEFT_SHOWN else ""
    return ", ".join(names[:LEFT_SHOWN]) + more


def note_unregistered(entry: ClusterEntry, state: ClusterState) -> Iterator[Finding]:
    """Note the ids in clusters.yaml that no broker has. What they ask for is done already."""
    known = {broker.id for broker in state.brokers}
    excluded = entry.exclude_brokers - entry.drain_brokers
    keys: dict[str, Collection[int]] = {
        "capacity": entry.capacity.keys(),
        "drain_brokers": entry.drain_brokers,
        "exclude_brokers": excluded,
    }
    for key, ids in keys.items():
        gone = sorted(set(ids) - known)
        if not gone:
            continue
        listed = ", ".join(map(str, gone))
        brokers = f"no broker {listed} is" if len(gone) == 1 else f"no brokers {listed} are"
        line = "the line" if len(gone) == len(ids) else f"{listed} from {key}"
        what = f"{brokers} registered: removed already, or a typo"
        way_out = f"remove {line}"
        if not state.lists_fenced:
            have = "has" if len(gone) == 1 else "have"
            what = f"{brokers} alive or {have} replicas: stopped, removed already, or a typo"
            way_out += ", unless such a broker will join"
        yield Finding("broker-not-registered", what, way_out, entry.where(key), Severity.NOTE)


def note_failed_directories(entry: ClusterEntry, state: ClusterState) -> Iterator[Finding]:
    """Warn of log directories that are offline, where they were read, and of the replicas there."""
    failed = state.failed_directories
    offline: Counter[int] = Counter()
    for topic in state.topics.values():
        offline.update(chain.from_iterable(state.find_offline(topic)))
    for broker, paths in sorted(failed.items()):
        many = len(paths) > 1
        directories = "log directories" if many else "log directory"
        what = (
            f"{directories} {', '.join(paths)} of broker {broker} {'are' if many else 'is'} offline"
        )
        if offline[broker]:
            are = "is" if offline[broker] == 1 else "are"
            what += f", and {count(offline[broker], 'replica')} there {are} not in sync"
        way_out = "replace the disk and restart the broker"
        if not (entry.why_no_rows or explain_unmovable(state.unoffered)):
            way_out += "; or move these replicas to other brokers: "
            way_out += "reconciler rebalance --offline-replicas"
        yield Finding(
            "directory-offline",
            what,
            way_out,
            entry.location,
            Severity.WARNING,
        )


def find_thin_topics(state: ClusterState) -> tuple[int, Mapping[str, int]]:
    """Return how many replicas most topics have, and the internal ones that have fewer."""
    least = {
        name: min(map(len, topic.assignment))
        for name, topic in sorted(state.topics.items())
        if topic.assignment
    }
    others = sorted(least[name] for name in least.keys() & state.user_topics.keys())
    usual = others[(len(others) - 1) // 2] if others else 0
    return usual, {n: least[n] for n in least if state.topics[n].internal and least[n] < usual}


def note_internal_topics(entry: ClusterEntry, state: ClusterState) -> Iterator[Finding]:
    """Note internal topics with fewer replicas than most other topics, unless a key raises them."""
    usual, thin = find_thin_topics(state)
    if entry.internal_replication_factor is not None or not thin:
        return
    listed = ", ".join(f"{name} has {factor}" for name, factor in thin.items())
    way_out = f"write {INTERNAL_FACTOR}: {usual} below this cluster in clusters.yaml"
    if entry.moves is None or MoveKind.REPLICATION not in entry.moves.allow:
        way_out += f", {allow_moves([MoveKind.REPLICATION], entry.moves, entry.service)}"
    way_out += f", and plan it with {PLAN_MOVES}"
    if entry.why_no_rows or explain_unmovable(state.unoffered):
        way_out = BY_SERVICE
    yield Finding(
        "internal-replication",
        f"internal topics have fewer replicas than most topics, which have {usual}: {listed}",
        way_out,
        entry.location,
        Severity.NOTE,
    )


def note_pending_internal(entry: ClusterEntry, state: ClusterState) -> Iterator[Finding]:
    """Name the internal topics that a plan of moves will raise, in a plan that does not raise
    them."""
    factor, where = entry.internal_replication_factor, entry.where(INTERNAL_FACTOR)
    if names := [spec.name for spec in raise_internal_topics(factor, where, state)]:
        what, on = f"{INTERNAL_FACTOR} {factor}", ", ".join(names)
        pending, unmade = f"{what} is pending for {on}", f"{what} is not made for {on}"
        yield note_moves(pending, unmade, where, state.unoffered)


def note_pending_drains(entry: ClusterEntry, state: ClusterState) -> Iterator[Finding]:
    """Name the brokers that a plan of moves will drain, in a plan of changes."""
    for number in sorted(entry.drain_brokers):
        held = {
            name: sum(number in row for row in topic.assignment)
            for name, topic in state.topics.items()
        }
        topics = sum(map(bool, held.values()))
        if topics:
            what = f"broker {number} will be drained, and holds "
            what += f"{count(sum(held.values()), 'replica')} of {count(topics, 'topic')}"
            yield note_moves(what, what, entry.where("drain_brokers"), state.unoffered)
