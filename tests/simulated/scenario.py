"""A plan of moves on a simulated cluster, and a play of faults that follows from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from simulated.cluster import KilledError, SimulatedCluster

from reconciler.errors import ClusterError, Location, StalePlanError
from reconciler.model.cluster import Broker, Place, Replicas, ThrottleSide
from reconciler.model.moves import MIN_INSYNC, MoveKind, MovePolicy, PlannedDrain, PlannedMoves
from reconciler.model.plan import Plan, PlannedTopic, TopicImage
from reconciler.moves.running.run import run_moves
from reconciler.run.ending import Applied

HERE = Location("topics/shop.yaml", 3)
EXTRA = "other"
"""A topic that is not in the plan: others move it, and throttle it."""


def plan_moves(
    rows: Mapping[str, tuple[tuple[Replicas, Replicas], ...]],
    *,
    rate: int | None = 20,
    at_once: tuple[int, int] = (4, 2),
    keep_free: int = 0,
    min_insync: Mapping[str, int] | None = None,
    configs: Mapping[str, Mapping[str, str]] | None = None,
    brokers: int = 5,
    drains: tuple[PlannedDrain, ...] = (),
) -> Plan:
    """Return a plan of moves. `rows` holds the row before and after, by topic and partition."""
    policy = MovePolicy(frozenset(MoveKind), rate, *at_once, keep_free)
    moves = PlannedMoves(
        policy=policy,
        replicas=sum(len(set(new) - set(old)) for each in rows.values() for old, new in each),
        least_replicas=0,
        leader_changes=0,
        min_insync=MappingProxyType(dict(min_insync or {})),
        drains=drains,
    )
    topics = tuple(
        PlannedTopic(
            name,
            HERE,
            TopicImage(f"id-{name}", tuple(old for old, _ in each), (configs or {}).get(name, {})),
            TopicImage(f"id-{name}", tuple(new for _, new in each), (configs or {}).get(name, {})),
        )
        for name, each in sorted(rows.items())
    )
    return Plan(
        cluster="prod",
        cluster_id="cluster-1",
        brokers=tuple(Broker(number) for number in range(1, brokers + 1)),
        topics=topics,
        moves=moves,
    )


def build_cluster(
    plan: Plan,
    *,
    sizes: Mapping[Place, int] | None = None,
    lags: Mapping[int, float] | None = None,
    configs: Mapping[str, Mapping[str, str]] | None = None,
) -> SimulatedCluster:
    """Return a cluster in the state before a plan."""
    moves = plan.moves
    assert moves is not None
    befores = {t.name: t.before.assignment for t in plan.topics if t.before}
    lags = lags or {broker.id: 0.0 for broker in plan.brokers}
    cluster = SimulatedCluster(
        {**befores, EXTRA: ((1, 2), (2, 3))}, sizes or {}, lags, configs or {}
    )
    for topic in plan.topics:
        assert topic.before
        assert topic.after
        pairs = zip(topic.before.assignment, topic.after.assignment, strict=True)
        for number, (old, new) in enumerate(pairs):
            if old != new:
                cluster.plan_rows[topic.name, number] = new
                cluster.old_rows[topic.name, number] = old
    cluster.limited = moves.policy.rate_bytes_per_s is not None
    cluster.at_once_cluster = moves.policy.at_once_cluster
    cluster.at_once_broker = moves.policy.at_once_broker
    cluster.lowered = set(moves.min_insync)
    return cluster


Runner = "Callable[..., Applied]"


@dataclass
class Play:
    """One plan, its cluster, and what happened: the runs, and their ends.

    `permanent` is a default rate that somebody else has set, to stay.
    """

    plan: Plan
    cluster: SimulatedCluster
    runner: Callable[..., Applied] = run_moves
    permanent: int | None = None
    ends: list[str] = field(default_factory=list)
    notes: list[object] = field(default_factory=list)
    last: Applied | None = None

    def run(self, *, stop_after_s: float | None = None, **options: float | None) -> Applied | None:
        """Run the plan once. Returns None if the run was killed, or refused to begin."""
        cluster = self.cluster
        cluster.run_number += 1
        cluster.holds_lock = True
        self.last = None
        try:
            applied = self.runner(
                self.plan,
                cluster,
                cluster,
                cluster.clock,
                self.notes.append,
                lease=cluster,
                writing=cluster.writing,
                stop_after_s=stop_after_s,
                **options,
            )
        except (KilledError, KeyboardInterrupt, ClusterError, StalePlanError) as error:
            self.ends.append(type(error).__name__ + f": {error}"[:100])
            return None
        self.ends.append(f"{applied.moves}")
        free = len(cluster.touched | cluster.cancelled)
        if applied.moves and applied.moves.ended_otherwise > free and not cluster.broker_died:
            cluster.violations.append(f"{applied.moves.ended_otherwise} rows are given up")
        for broker in applied.moves.emptied if applied.moves else ():
            if stored := cluster.list_stored(broker):
                cluster.violations.append(f"broker {broker} is called empty, with {stored}")
        self.last = applied
        return applied


FAULTS = (
    *("lost", "unanswered", "late", "not done", "error", "kill", "kill after"),
    *("interrupt", "interrupt after", "lock"),
)


def make_play(seed: int, runner: Callable[..., Applied] = run_moves) -> Play:
    """Make a plan and a cluster with faults, all of it from a seed."""
    dice = random.Random(seed)
    ids = range(1, 6)
    rows: dict[str, tuple[tuple[Replicas, Replicas], ...]] = {}
    lowered: dict[str, int] = {}
    configs: dict[str, dict[str, str]] = {}
    images: dict[str, dict[str, str]] = {}
    for name in ("a", "b", "c")[: dice.randint(1, 3)]:
        grows = dice.random() < 0.35
        length = 1 if grows else dice.choice((2, 3))
        pairs = []
        for _ in range(dice.randint(1, 4)):
            old = tuple(dice.sample(ids, length))
            pairs.append((old, _alter(old, dice, grows=grows)))
        rows[name] = tuple(pairs)
        if grows:
            lowered[name] = 1
            if dice.random() < 0.7:
                configs[name] = {MIN_INSYNC: "2"}
                images[name] = {MIN_INSYNC: "2"}
        dice.random()
    if all(old == new for pairs in rows.values() for old, new in pairs):
        rows["a"] = (((1, 2), (3, 2)), *rows["a"][1:])
        lowered.pop("a", None)
        configs.pop("a", None)
        images.pop("a", None)
    rate = None if dice.random() < 0.1 else dice.choice((10, 30))
    at_once = (dice.randint(1, 5), dice.randint(1, 3))
    of_drain = random.Random(f"drain {seed}")
    kind = of_drain.choice(DRAINS)
    drains = _draw_drains(of_drain, kind, rows)
    plan = plan_moves(
        rows, rate=rate, at_once=at_once, min_insync=lowered, configs=images, drains=drains
    )
    sizes = {
        (t, n): dice.choice((0, 40, 300)) for t, each in rows.items() for n in range(len(each))
    }
    lag = dice.choice((0.0, 0.0, 2.0, 6.0))
    lags = {broker: dice.random() * lag for broker in ids}
    play = Play(plan, build_cluster(plan, sizes=sizes, lags=lags, configs=configs), runner)
    if kind == "refused":
        play.cluster.refused_cordons = {drain.broker for drain in drains}
    if kind == "dead":
        for drain in drains:
            play.cluster.kill_broker(drain.broker)
        play.cluster._publish()
        play.cluster.at(of_drain.uniform(20, 2000), lambda: _revive(play.cluster))
    _set_default(play, rate, random.Random(f"default {seed}"))
    _schedule_lists(play.cluster, random.Random(f"lists {seed}"), sorted(rows))
    _schedule(play.cluster, dice, rate, changes_rates=play.permanent is None)
    _schedule_recreation(play.cluster, random.Random(f"topics {seed}"), rows)
    return play


DRAINS = ("", "", "", "cordon", "cordon", "cordon", "before 4.3", "refused", "dead")
"""Whether a plan drains a broker, and how that is cordoned, or not."""


def _set_default(play: Play, rate: int | None, dice: random.Random) -> None:
    """Let a quarter of the clusters have a default rate that somebody else set to stay."""
    if dice.random() < 0.25:
        play.permanent = rate or dice.choice((10, 30))
        if dice.random() < 0.5:
            play.permanent -= 3
        play.cluster.set_default(play.permanent)
        play.cluster.sleep(10)  # until every broker shows it


def _schedule_recreation(
    cluster: SimulatedCluster,
    dice: random.Random,
    rows: Mapping[str, Sequence[tuple[Replicas, Replicas]]],
) -> None:
    """Let a topic of a tenth of the plans be deleted and created again in the middle."""
    if dice.random() < 0.1:
        name = dice.choice(sorted(rows))
        made = tuple(pair[dice.randrange(2)] for pair in rows[name])
        config = dice.choice(({}, {MIN_INSYNC: "1"}))
        start_s = dice.uniform(1, 90)
        cluster.at(start_s, lambda: cluster.recreate_topic(name, made, config))


def _draw_drains(
    dice: random.Random, kind: str, rows: dict[str, tuple[tuple[Replicas, Replicas], ...]]
) -> tuple[PlannedDrain, ...]:
    """Draw a broker to drain, of those that do not hold EXTRA; no new row in `rows` has it then."""
    if not kind:
        return ()
    broker = dice.choice((4, 5))
    for name, pairs in rows.items():
        rows[name] = tuple((old, _leave(old, new, broker, dice)) for old, new in pairs)
    return (PlannedDrain(broker, cordon=kind in ("cordon", "refused")),)


def _leave(old: Replicas, new: Replicas, broker: int, dice: random.Random) -> Replicas:
    able = [b for b in range(1, 6) if b != broker and b not in new]
    other = dice.choice([b for b in able if b not in old] or able)
    return tuple(other if b == broker else b for b in new)


def _revive(cluster: SimulatedCluster) -> None:
    for broker, alive in cluster.alive.items():
        if not alive:
            cluster.revive_broker(broker)


def _alter(old: Replicas, dice: random.Random, *, grows: bool) -> Replicas:
    others = [broker for broker in range(1, 6) if broker not in old]
    if grows:
        return (*old, *dice.sample(others, 2))
    what = dice.choice(("move", "move", "swap", "shrink", "all", "same"))
    if what == "move":
        new = list(old)
        new[dice.randrange(len(new))] = dice.choice(others)
        return tuple(new)
    if what == "swap":
        return (*old[1:], old[0])
    if what == "shrink":
        return old[:-1]
    return tuple(dice.sample(others, 2)) if what == "all" else old


def _schedule(
    cluster: SimulatedCluster, dice: random.Random, rate: int | None, *, changes_rates: bool
) -> None:
    """Plan what fails and who acts, all of it over a few minutes and some hundred calls."""
    for _ in range(dice.choice((0, 1, 2, 4))):
        cluster.faults[dice.randint(1, 120)] = dice.choice(FAULTS)
    places = list(cluster.plan_rows)
    for _ in range(dice.choice((0, 0, 1, 2))):
        place = dice.choice(places)
        start_s = dice.uniform(1, 90)
        broker = dice.randint(1, 5)
        match dice.choice(("broker", "controller", "cancel", "foreign", "rate", "pause", "unset")):
            case "broker":
                cluster.at(start_s, lambda broker=broker: cluster.kill_broker(broker))
                cluster.at(
                    start_s + dice.uniform(5, 200), lambda b=broker: cluster.revive_broker(b)
                )
            case "controller":
                cluster.at(start_s, cluster.freeze_controller)
                cluster.at(start_s + dice.uniform(1, 90), cluster.thaw_controller)
            case "cancel":
                cluster.at(start_s, lambda place=place: cluster.cancel_by_hand(place))
            case "foreign" if dice.random() < 0.5:
                cluster.at(start_s, lambda: cluster.move_by_hand((EXTRA, 0), (4, 5)))
            case "foreign":
                cluster.at(start_s, lambda place=place: cluster.move_by_hand(place, (5, 1, 4)))
            case "rate" | "pause" | "unset" if not changes_rates:
                pass
            case "rate":
                cluster.at(start_s, lambda: cluster.change_rate(7))
            case "pause":
                cluster.at(start_s, lambda: cluster.change_rate(0))
                cluster.at(start_s + dice.uniform(5, 100), lambda: cluster.change_rate(rate or 50))
            case _:
                cluster.at(start_s, lambda: cluster.change_rate(None))


def _schedule_lists(cluster: SimulatedCluster, dice: random.Random, topics: list[str]) -> None:
    """Let another tool throttle replicas at some time, and perhaps never clean up."""
    if dice.random() > 0.4:
        return
    topic, entries = dice.choice([(EXTRA, "0:1"), (EXTRA, "*"), (dice.choice(topics), "9:1")])
    start_s = dice.choice((0, dice.uniform(1, 90)))
    cluster.at(start_s, lambda: cluster.list_by_hand(topic, entries))
    if dice.random() < 0.6:
        cluster.at(start_s + dice.uniform(20, 400), lambda: cluster.list_by_hand(topic, None))


def play_out(play: Play, dice: random.Random) -> Applied | None:
    """Run the plan until the faults are over, then calm the cluster, and run it twice more."""
    cluster = play.cluster
    for _ in range(3):
        stop_after_s = dice.choice((None, 40.0, 400.0, 2000.0))
        end = cluster.now_s + 3000
        cluster.kill_run_at(2900)
        applied = play.run(stop_after_s=stop_after_s)
        assert cluster.now_s < end, (play.ends, cluster.violations)
        cluster.events = [event for event in cluster.events if event[0] < end - 200]
        cluster.sleep(dice.choice((0.0, 5.0, 60.0)))
        if applied and applied.succeeded:
            break
    calm(cluster)
    for _ in range(2):
        # A run that does not end is killed, and then something is left to find.
        cluster.kill_run_at(2900)
        applied = play.run()
        cluster.events.clear()
    return applied


def calm(cluster: SimulatedCluster) -> None:
    """End all faults, and let everybody else clean up after themselves.

    Nobody runs the plan meanwhile, so a rate that somebody has removed is not set again.
    """
    limited, cluster.limited = cluster.limited, cluster.limited and bool(cluster.rates)
    cluster.faults.clear()
    cluster.events.clear()
    cluster.thaw_controller()
    _revive(cluster)
    cluster.sleep(200)
    for topic in list(cluster.strange):
        cluster.list_by_hand(topic, None)
    rates = set(cluster.rates.values())
    if 0 in rates:
        cluster.change_rate(50)
    for _ in range(100):
        if not _list_foreign(cluster):
            break
        cluster.sleep(20)
    busy = any(each.in_flight for partitions in cluster.topics.values() for each in partitions)
    if not busy and not cluster.permanent:
        cluster.change_rate(None)
    cluster.sleep(40)
    if limited and not cluster.limited:
        cluster.limited, cluster.disturbed_s = True, cluster.now_s


def _list_foreign(cluster: SimulatedCluster) -> list[Place]:
    return [
        (topic, number)
        for topic, partitions in cluster.topics.items()
        for number, each in enumerate(partitions)
        if each.in_flight and cluster.plan_rows.get((topic, number)) != each.target
    ]


def find_faults(play: Play) -> list[str]:
    """Return what is not as it must be at the end of a play."""
    cluster, plan = play.cluster, play.plan
    found = list(cluster.violations)
    for (topic, number), row in cluster.plan_rows.items():
        if topic in cluster.recreated:
            continue
        each = cluster.topics[topic][number]
        free = (topic, number) in cluster.touched | cluster.cancelled
        if each.replicas != row and not free:
            found.append(f"{topic} {number} is {each.replicas}, not {row}")
        if each.replicas == row and each.leader != row[0] and not free:
            found.append(f"{topic} {number} is led by {each.leader}, not {row[0]}")
        if each.in_flight and not free:
            found.append(f"{topic} {number} is in flight")
    for name, config in cluster.recreated.items():
        if cluster.configs[name] != config:
            found.append(f"{name} was created again with {config}, and has {cluster.configs[name]}")
    for topic in plan.topics:
        if topic.name in cluster.recreated:
            continue
        after = topic.after
        assert after is not None
        config = cluster.configs[topic.name]
        if config.get(MIN_INSYNC) != after.config.get(MIN_INSYNC):
            found.append(f"{topic.name} has {MIN_INSYNC} {config.get(MIN_INSYNC)}")
        found += [
            f"{topic.name} has {side} list {config[side.list_key]}"
            for side in ThrottleSide
            if side.list_key in config
        ]
    kept = {} if play.permanent is None else dict.fromkeys(ThrottleSide, play.permanent)
    if cluster.rates != kept:
        found.append(f"the rate is {cluster.rates}, not {kept}")
    return [*found, *_find_faults_of_drains(play)]


def _find_faults_of_drains(play: Play) -> Iterator[str]:
    """Name brokers that are not cordoned as planned, or whose emptiness is not reported."""
    cluster, moves = play.cluster, play.plan.moves
    assert moves is not None
    wanted = moves.cordons - cluster.refused_cordons
    if cluster.cordoned != wanted:
        yield f"brokers {sorted(cluster.cordoned)} are cordoned, not {sorted(wanted)}"
    said = play.last.moves if play.last else None
    if said is None or said.ended_otherwise:
        return
    for drain in moves.drains:
        if (drain.broker in said.emptied) == bool(cluster.list_stored(drain.broker)):
            yield f"broker {drain.broker} stores {cluster.list_stored(drain.broker)}: {said}"
