"""The findings of an audit, computed again in plain Python from the rows of a lake."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import chain
from math import ceil, floor
from statistics import median
from typing import Any

from recomputed_messages import IN_SYNC, THROTTLES, UNCLEAN, Found

Row = dict[str, Any]
Broken = Iterator[tuple[str, int, Row]]
About = Iterator[tuple[str, Any, int, Row]]

# As clusters.yaml has them: the others inherit three replicas and have no policy.
POLICY = {"trouble-topics": 2}
FACTOR = {"trouble-piled": 2, "trouble-tilted": 2, "trouble-ring": 2, "trouble-full": 1}
FACTOR["trouble-loads"] = 2
BALANCED_BY_LOAD = {"trouble-loads": 15}
LOADS = {"disk": "size_bytes", "write": "rate_bytes_per_s"}
DRAINED = {"trouble-moves": {4}}
SECOND_STAGE = {"trouble-stage-a", "trouble-stage-b", "trouble-stage-c"}


def beyond(part: float, percent: int, whole: float) -> bool:
    return part * 100 > percent * whole


def count_misplaced(leaders: list[int]) -> int:
    """Count the leaders that must move so that no two brokers differ by more than one."""
    even, extra = divmod(sum(leaders), len(leaders))
    ranked = sorted(leaders, reverse=True)
    wanted = [even + 1] * extra + [even] * (len(leaders) - extra)
    return sum(max(has - wants, 0) for has, wants in zip(ranked, wanted, strict=True))


def rise(part: int, brokers: int) -> int:
    return ceil(part / brokers) if brokers > 0 else 0


class Cluster:
    """A cluster that was read."""

    def __init__(self, reading: Row, now: Mapping[str, list[Row]]) -> None:
        self.name = name = reading["cluster"]
        self.reading, self.defaults = reading, reading["defaults"]
        self.drained = DRAINED.get(name, set())
        self.brokers = [row for row in now["brokers"] if row["cluster"] == name]
        self.able = [
            row["id"]
            for row in self.brokers
            if row["alive"] and not row["cordoned"] and row["id"] not in self.drained
        ]
        self.alive = {row["id"] for row in self.brokers if row["alive"]}
        placed = (row for row in self.brokers if row["alive"] or row["rack"] is not None)
        self.rack_of = {row["id"]: row["rack"] or "" for row in placed}
        self.room = Counter(self.rack_of[broker] for broker in self.able)
        self.specs = {row["topic"]: row for row in now["specs"] if row["cluster"] == name}
        self.configs: dict[str, dict[str, str]] = defaultdict(dict)
        for row in now["configs"]:
            if row["cluster"] == name:
                self.configs[row["topic"]][row["config"]] = row["value"] or ""
        self.rows: dict[str, list[Row]] = defaultdict(list)
        for row in now["partitions"]:
            if row["cluster"] == name:
                self.rows[row["topic"]].append(row)
        topics = [row for row in now["topics"] if row["cluster"] == name]
        self.use = {row["topic"]: row for row in topics}
        internal = {row["topic"]: row["internal"] for row in topics}
        self.users = {topic: rows for topic, rows in self.rows.items() if not internal[topic]}

    def in_force(self, topic: str, key: str) -> str | None:
        return self.configs[topic].get(key, self.defaults.get(key))

    def is_rackless(self, topic: str) -> bool:
        spec = self.specs.get(topic)
        return spec is not None and json.loads(spec["spec"])["rack_aware"] is False

    def is_crowded(self, replicas: list[int]) -> bool:
        """Return whether replicas could be spread better over the racks."""
        known = [self.rack_of[broker] for broker in replicas if broker in self.rack_of]
        racks = set(self.rack_of.values())
        if len(racks) < 2:
            return False
        held = Counter(dict.fromkeys(racks, 0))
        held.update(known)
        taken = Counter(self.rack_of[broker] for broker in replicas if broker in self.able)
        levels = sorted(held[rack] for rack in racks if taken[rack] < self.room[rack])
        for _ in range(len(replicas) - len(known) if levels else 0):
            levels[0] += 1
            levels.sort()
        return bool(levels) and max(held.values()) - levels[0] > 1


class Judge:
    """Computes the findings of a collection."""

    def __init__(self, now: Mapping[str, list[Row]], before: list[Row], since: str) -> None:
        self.now, self.before, self.since = now, before, since
        read = [row for row in now["readings"] if row["status"] == "read"]
        self.clusters = [Cluster(row, now) for row in read]

    def find(self) -> Iterator[Found]:
        for row in self.now["readings"]:
            if row["status"] != "read":
                values = {**row, "error": row["error"] or row["status"]}
                yield Found("cluster-unread", row["cluster"], None, row["cluster"], 1, values)
        for cluster in self.clusters:
            for topic in cluster.rows:
                for rule, affected, values in chain(
                    self.judge_health(cluster, topic),
                    (judge_safety if topic in cluster.users else judge_internal)(cluster, topic),
                    judge_evenness(cluster, topic) if topic in cluster.users else (),
                    self.judge_growth(cluster, topic) if topic in cluster.users else (),
                ):
                    yield Found(rule, cluster.name, topic, topic, affected, values)
            for rule, subject, affected, values in chain(
                judge_brokers(cluster),
                judge_cluster(cluster),
                judge_takeovers(cluster),
                judge_loads(cluster) if cluster.name in BALANCED_BY_LOAD else (),
            ):
                yield Found(rule, cluster.name, None, str(subject), affected, values)
            yield from judge_names(cluster)
        yield from self.compare_by_cluster()
        yield from self.compare_by_owner()
        yield from self.find_missing()

    def judge_health(self, cluster: Cluster, topic: str) -> Broken:
        rows = cluster.rows[topic]
        needed = int(cluster.in_force(topic, IN_SYNC) or 1)
        dark = [row for row in rows if row["leader"] is not None and row["leader"] < 0]
        still = [row for row in rows if not row["moving"]]
        short = [row for row in still if len(row["in_sync"]) < len(row["replicas"])]
        stopped = [
            row
            for row in rows
            if row not in dark and row["in_sync"] is not None
            if len(row["in_sync"]) < min(needed, len({*row["replicas"], *row["in_sync"]}))
        ]
        astray = [
            row
            for row in still
            if row["leader"] is not None and row["leader"] >= 0
            if row["leader"] != row["replicas"][0]
        ]
        moving = [row for row in rows if row["moving"]]
        where = ("cluster", "topic", "partition", "replicas", "moving")
        then = [[row[key] for key in where] for row in self.before if row["topic"] == topic]
        stalled = [row for row in moving if [row[key] for key in where] in then]
        crowded = [row for row in rows if cluster.is_crowded(row["replicas"])]
        if cluster.is_rackless(topic):
            crowded = []
        for rule, name, found in (
            ("partition-offline", "offline", dark),
            ("partition-unwritable", "unwritable", stopped),
            ("partition-under-replicated", "under_replicated", short),
            ("partition-moving", "moving", moving),
            ("leader-not-preferred", "off_preferred", astray),
            ("move-stalled", "stalled", stalled),
            ("rack-violation", "rack_violations", crowded),
        ):
            if found:
                values = {name: len(found), "partitions": len(rows), "min_in_sync": needed}
                yield rule, len(found), {**values, "since": self.since}
        factors = {len(row["replicas"]) for row in rows}
        if len(factors) > 1 and not moving:
            values = {"least": min(factors), "most": max(factors)}
            yield "replication-uneven", len(rows), values
        lists = {key: cluster.configs[topic].get(key) for key in THROTTLES}
        if not moving and any(lists.values()):
            shown = "; ".join(held for held in lists.values() if held)
            yield "throttle-left", len(rows), {**lists, "lists": shown}

    def judge_growth(self, cluster: Cluster, topic: str) -> Broken:
        """Yield a topic whose growth of a day, thirty times over, fills the disks of brokers."""
        free = {
            row["id"]: sum(one["usable_bytes"] for one in row["log_directories"])
            for row in cluster.brokers
            if row["log_directories"] is not None
        }
        size = sum(row["size_bytes"] or 0 for row in cluster.rows[topic])
        then = sum(
            row["size_bytes"] or 0
            for row in self.before
            if (row["cluster"], row["topic"]) == (cluster.name, topic)
        )
        held: Counter[int] = Counter()
        for row in cluster.rows[topic]:
            held.update(dict.fromkeys(row["replicas"], row["size_bytes"] or 0))
        growth = max(size - then, 0) / size if size else 0
        coming = {b: floor(has * growth * 30) for b, has in held.items() if b in free}
        full = [(more - free[b], b, more) for b, more in coming.items() if more > free[b]]
        if full:
            _, broker, more = max(full)
            values = {"broker": broker, "coming_bytes": more, "free_bytes": free[broker]}
            shown = {"coming": more, "free": free[broker]}
            values |= {name: f"{n / 2**30:.1f} GiB" for name, n in shown.items()}
            yield "topic-fills-disk", len(full), {**values, "seen_from": "growth"}

    def compare_by_cluster(self) -> Iterator[Found]:
        names = {topic for cluster in self.clusters for topic in cluster.users}
        for topic in names:
            peers = [(cluster, topic) for cluster in self.clusters if topic in cluster.users]
            for cluster, _, key, values in find_unusual(peers, 3, 60):
                spec = cluster.specs.get(topic)
                wished = spec and dict(spec["config"]).get(key)
                if spec is None or cluster.configs[topic].get(key) != wished:
                    yield Found("config-differs-by-cluster", cluster.name, topic, key, 1, values)

    def compare_by_owner(self) -> Iterator[Found]:
        for cluster in self.clusters:
            by_owner: dict[str, list[tuple[Cluster, str]]] = defaultdict(list)
            for topic in cluster.users:
                if topic in cluster.specs and cluster.specs[topic]["owner"] is not None:
                    by_owner[cluster.specs[topic]["owner"]].append((cluster, topic))
            for peers in by_owner.values():
                for _, topic, key, values in find_unusual(peers, 5, 80):
                    yield Found("config-differs-by-owner", cluster.name, topic, key, 1, values)

    def find_missing(self) -> Iterator[Found]:
        for second in (True, False):
            stage = [one for one in self.clusters if (one.name in SECOND_STAGE) == second]
            for topic in {topic for cluster in stage for topic in cluster.users}:
                having = [cluster for cluster in stage if topic in cluster.users]
                written = any(topic in cluster.specs for cluster in having)
                if len(stage) < 3 or len(having) * 100 < 60 * len(stage):
                    continue
                for cluster in stage:
                    if cluster not in having and (not written or topic in cluster.specs):
                        values = {"on": len(having), "of": len(stage)}
                        rule = "topic-missing-in-stage"
                        yield Found(rule, cluster.name, topic, topic, len(having), values)


def find_unusual(
    peers: list[tuple[Cluster, str]], fewest: int, percent: int
) -> Iterator[tuple[Cluster, str, str, Row]]:
    """Yield what has another value in force than so many percent of its peers."""
    for key in {key for cluster, topic in peers for key in cluster.configs[topic]}:
        values = [(cluster, topic, cluster.in_force(topic, key)) for cluster, topic in peers]
        known = [one for one in values if one[2] is not None]
        votes = Counter(value for _, _, value in known)
        usual, agreeing = max(votes.items(), key=lambda vote: (vote[1], vote[0]))
        if len(known) >= fewest and agreeing * 100 >= percent * len(known):
            for cluster, topic, value in known:
                if value != usual:
                    shown = {"key": key, "value": value, "usual": usual}
                    counts = {"agreeing": agreeing, "voting": len(known)}
                    yield cluster, topic, key, {**shown, **counts}


def judge_safety(cluster: Cluster, topic: str) -> Broken:
    rows, spec = cluster.rows[topic], cluster.specs.get(topic)
    factors = [len(row["replicas"]) for row in rows]
    least, count = min(factors), len(rows)
    needed = int(cluster.in_force(topic, IN_SYNC) or 1)
    wished = spec["replication_factor"] if spec else None
    asked = wished or FACTOR.get(cluster.name, 3)
    factor = {"replication_factor": least, "brokers": len(cluster.able), IN_SYNC: needed}
    if least < POLICY.get(cluster.name, 0):
        yield "replication-below-policy", count, {**factor, "asked": POLICY[cluster.name]}
    elif least < asked:
        yield "replication-below-default", count, {**factor, "asked": asked}
    if least == 1 and len(cluster.able) > 1:
        yield "replication-single", count, factor
    if least > 1 and needed >= least:
        yield "min-in-sync-equals-replication", count, factor
    if least > 2 and needed == 1:
        yield "min-in-sync-one", count, factor
    if least > 1 and cluster.in_force(topic, UNCLEAN) == "true":
        yield "unclean-election-on", count, {**factor, UNCLEAN: "true"}
    if (wished or max(factors)) > len(cluster.able):
        most = wished or max(factors)
        yield "replication-above-brokers", count, {**factor, "replication_factor": most}
    if spec is None:
        yield "topic-unmanaged", count, {"partitions": count}
    elif spec["owner"] is None:
        yield "topic-unowned", count, {"file": spec["file"]}
    yield from judge_use(cluster, topic)


def judge_use(cluster: Cluster, topic: str) -> Broken:
    used, written = cluster.use[topic], cluster.specs.get(topic)
    spec = json.loads(written["spec"]) if written else {}
    read_at = datetime.fromisoformat(cluster.reading["read_at"])
    wrote, readers = used["last_write_ms"], used["readers"]
    at = None if wrote is None else datetime.fromtimestamp(wrote / 1000, UTC)
    shown = at and f"{at:%Y-%m-%d %H:%M} UTC"
    others = f" and {len(readers) - 3} more" if readers and len(readers) > 3 else ""
    read = f"read by {', '.join(readers[:3])}{others}" if readers else ""
    values = {"last_written": shown, "read_by": None if readers is None else ", ".join(readers)}
    values["use"] = used["use_unknown"] or (
        f"last written {shown}; {read or 'no consumer group is active on it'}"
    )
    idle_ms = spec.get("idle_after_ms")
    if spec.get("expires") and spec["expires"] <= f"{read_at:%Y-%m-%d}":
        yield "topic-expired", 1, {**values, "expires": spec["expires"]}
    elif idle_ms and at and readers == [] and read_at - at >= timedelta(milliseconds=idle_ms):
        yield "topic-idle", 1, {**values, "idle_after": f"{idle_ms // 86_400_000}d"}


def judge_internal(cluster: Cluster, topic: str) -> Broken:
    def count(rows: list[Row]) -> int:
        return min(len(row["replicas"]) for row in rows)

    others = sorted(map(count, cluster.users.values()))
    least, rows = count(cluster.rows[topic]), cluster.rows[topic]
    if others and least < (usual := others[(len(others) - 1) // 2]):
        values = {"replication_factor": least, "usual": usual}
        yield "internal-replication-low", len(rows), values


def hold(cluster: Cluster, rows: Iterable[Row]) -> tuple[list[int], list[int]]:
    """Count preferred leaders and replicas of the brokers that take new replicas."""
    rows = list(rows)
    leaders = Counter(row["replicas"][0] for row in rows)
    replicas = Counter(broker for row in rows for broker in row["replicas"])
    return [leaders[b] for b in cluster.able], [replicas[b] for b in cluster.able]


def describe(name: str, held: list[int]) -> Row:
    least, most = min(held), max(held)
    values = {f"{name}_least": least, f"{name}_most": most, "skew": most - least}
    return {**values, "brokers": len(held)}


def share_out(leaders: list[int], partitions: int) -> Row:
    misplaced = count_misplaced(leaders)
    share = f"{100 * misplaced / partitions:.1f}%"
    values = {"misplaced": misplaced, "misplaced_share": share, "partitions": partitions}
    return {**describe("leaders", leaders), **values}


def judge_evenness(cluster: Cluster, topic: str) -> Broken:
    rows = cluster.rows[topic]
    leaders, replicas = hold(cluster, rows)
    misplaced, skew = count_misplaced(leaders), max(replicas) - min(replicas)
    if beyond(misplaced, 10, len(rows)):
        yield "topic-leaders-uneven", misplaced, share_out(leaders, len(rows))
    every = sum(len(row["replicas"]) for row in rows)
    if skew > 1 and beyond(skew * len(cluster.able), 20, every):
        yield "topic-replicas-uneven", skew, describe("replicas", replicas)
    sizes = [row["size_bytes"] for row in rows if row["size_bytes"] is not None]
    most, least = max(sizes, default=0), min(sizes, default=0)
    if most >= 2**30 and most >= 10 * least:
        values = {"largest_bytes": most, "smallest_bytes": least}
        values |= {"most": f"{most / 2**30:.1f}", "least": f"{least / 2**30:.1f}"}
        yield "topic-partitions-uneven", most // 2**30, values


def judge_brokers(cluster: Cluster) -> About:
    rows = chain.from_iterable(cluster.rows.values())
    held = Counter(broker for row in rows for broker in row["replicas"])
    cordoned = {row["id"] for row in cluster.brokers if row["cordoned"]}
    racks = {row["id"]: row["rack"] for row in cluster.brokers}
    for broker in {*held, *racks}:
        values = {"broker": broker, "replicas": held[broker], "rack": racks.get(broker)}
        if held[broker] and broker not in cluster.alive:
            yield "broker-gone", broker, held[broker], values
        if held[broker] and broker in cluster.drained:
            yield "drain-unfinished", broker, held[broker], values
        if broker in cordoned & cluster.alive - cluster.drained:
            yield "cordon-left", broker, held[broker], values
        if held[broker] > 4_000:
            values["limit"] = 4_000
            yield "broker-partitions-many", broker, held[broker] - 4_000, values
    for row in cluster.brokers:
        for one in row["log_directories"] or ():
            if one["replicas"] > 2_000:
                where = f"{row['id']}:{one['path']}"
                values = {"limit": 2_000, "broker": row["id"], **one}
                yield "directory-partitions-many", where, one["replicas"] - 2_000, values
        for path in (row["failed_directories"] or ()) if row["alive"] else ():
            values = {"broker": row["id"], "path": path}
            yield "directory-offline", f"{row['id']}:{path}", 1, values


def judge_cluster(cluster: Cluster) -> About:
    racks = list(cluster.rack_of.values())
    counts = {"brokers": len(racks), "without_rack": racks.count("")}
    if 0 < racks.count("") < len(racks):
        yield "rack-unknown", cluster.name, racks.count(""), counts
    if len(racks) > 1 and not any(racks):
        yield "rack-none", cluster.name, len(racks), counts
    every = cluster.reading["throttle_rates"] or ()
    default = {r["side"]: r["bytes_per_s"] for r in every if r["source"] == "cluster-default"}
    low, high = default.get("leader"), default.get("follower")
    of_moves = low is not None and high == (low + 1 if low else 0)
    left = {"broker", "cluster-default"} if of_moves else {"broker"}
    rates = [rate for rate in every if rate["source"] in left]
    moving = any(row["moving"] for row in chain.from_iterable(cluster.rows.values()))
    if rates and not moving:
        limited = len({rate["broker"] for rate in rates})
        values = {"lowest_bytes_per_s": min(rate["bytes_per_s"] for rate in rates)}
        yield "throttle-rate-left", cluster.name, limited, {**values, "brokers": limited}
    rows = list(chain.from_iterable(cluster.users.values()))
    leaders, replicas = hold(cluster, rows)
    if len(rows) >= 10 * len(cluster.able) and cluster.name not in BALANCED_BY_LOAD:
        misplaced, skew = count_misplaced(leaders), max(replicas) - min(replicas)
        if beyond(misplaced, 5, len(rows)):
            yield "leaders-uneven", cluster.name, misplaced, share_out(leaders, len(rows))
        if skew > 1 and beyond(skew, 20, sum(replicas) / len(replicas)):
            mean = floor(sum(replicas) / len(replicas) + 0.5)
            yield (
                "replicas-uneven",
                cluster.name,
                skew,
                {**describe("replicas", replicas), "mean": mean},
            )
    named = [(cluster.rack_of[b], led) for b, led in zip(cluster.able, leaders, strict=True)]
    each = sum(led for rack, led in named if rack) / max(sum(1 for rack, _ in named if rack), 1)
    for rack in {rack for rack, _ in named if rack}:
        part, led = each * cluster.room[rack], sum(n for where, n in named if where == rack)
        if each >= 10 and beyond(abs(led - part), 20, part):
            values = {"rack": rack, "leaders": led, "part": floor(part + 0.5)}
            values["brokers"] = cluster.room[rack]
            yield "racks-uneven", rack, int(abs(led - part)), values


def count_takeovers(cluster: Cluster) -> Iterator[tuple[str, Counter[tuple[Any, int]], int]]:
    """Yield what each broker takes over of a lost broker, and of a rack, and the least possible."""
    rows = list(chain.from_iterable(cluster.users.values()))
    pairs: Counter[tuple[int, int]] = Counter()
    by_rack: Counter[tuple[str, int]] = Counter()
    apart: Counter[int] = Counter()
    for row in rows:
        living = [broker for broker in row["replicas"] if broker in cluster.alive]
        if not living or living[0] not in cluster.able:
            continue
        leader, *others = living
        rack = cluster.rack_of[leader]
        outside = [broker for broker in others if cluster.rack_of[broker] != rack]
        if others and others[0] in cluster.able:
            pairs[leader, others[0]] += 1
            apart[leader] += len(outside) == len(others)
        if rack and outside and outside[0] in cluster.able:
            by_rack[rack, outside[0]] += 1
    able = len(cluster.able)
    lost: Counter[Any] = Counter()
    for (leader, _), count in pairs.items():
        lost[leader] += count
    bounds = [
        max(rise(count, able - 1), rise(apart[b], able - cluster.room[cluster.rack_of[b]]))
        for b, count in lost.items()
    ]
    racks: Counter[str] = Counter()
    for (rack, _), count in by_rack.items():
        racks[rack] += count
    rack_bounds = [rise(count, able - cluster.room[rack]) for rack, count in racks.items()]
    yield "", pairs, max(bounds, default=0)
    yield "rack_", by_rack, max(rack_bounds, default=0)


def judge_takeovers(cluster: Cluster) -> About:
    """Yield the most leaders that one broker takes over beyond the least possible, if too many."""
    partitions, able = sum(map(len, cluster.users.values())), len(cluster.able)
    for prefix, taken, bound in count_takeovers(cluster):
        most = max(taken.values(), default=0)
        if partitions < 10 * able or not beyond((most - bound) * able, 20, partitions):
            continue
        lost = max(str(lost) for (lost, _), count in taken.items() if count == most)
        takers = [b for (of, b), count in taken.items() if (str(of), count) == (lost, most)]
        values = {f"{prefix}next_leaders_most": most, f"{prefix}next_leaders_bound": bound}
        rule = prefix.replace("_", "-") + "next-leaders-uneven"
        yield rule, cluster.name, most - bound, {**values, "lost": lost, "taker": min(takers)}


def fill_in(cluster: Cluster, column: str) -> list[tuple[Row, int]] | None:
    """Return every partition with its amount, known or estimated; None if none is known."""
    known = {
        t: [r[column] for r in rows if r[column] is not None] for t, rows in cluster.rows.items()
    }
    usual = median([median(amounts) for amounts in known.values() if amounts] or [-1])
    if usual < 0:
        return None
    return [
        (row, round(median(known[topic] or [usual])) if row[column] is None else row[column])
        for topic, rows in cluster.rows.items()
        for row in rows
    ]


def add_up(held: list[tuple[Row, int]]) -> Counter[int]:
    """Return the load of each broker."""
    loads: Counter[int] = Counter()
    for row, amount in held:
        for broker in row["replicas"]:
            loads[broker] += amount
    return loads


def bound_rack(copies: int, rack: str, cluster: Cluster, anywhere: bool) -> tuple[int, int]:
    """Return the fewest and the most replicas of a row that a rack may hold."""
    room, others = cluster.room[rack], cluster.room.total() - cluster.room[rack]
    if anywhere:
        return max(copies - others, 0), min(room, copies)
    # The racks take turns until all replicas have a place; in the last turn, any of them may.
    turns = range(copies + 1)
    last = next(n for n in turns if sum(min(r, n) for r in cluster.room.values()) >= copies)
    full = sum(min(size, last) for size in cluster.room.values()) == copies
    return min(room, last if full else last - 1), min(room, last)


def fill_racks(room: Row, low: Row, high: Row, total: int) -> dict[str, Fraction]:
    """Fill all racks to one level, by capacity and within bounds: exact, between two steps."""

    def fill(level: Fraction) -> dict[str, Fraction]:
        return {rack: min(max(level * room[rack], low[rack]), high[rack]) for rack in room}

    steps = sorted({Fraction(of[rack], room[rack]) for of in (low, high) for rack in room})
    above = next(step for step in steps if sum(fill(step).values()) >= total)
    below = max((step for step in steps if step < above), default=above)
    before, after = (sum(fill(step).values()) for step in (below, above))
    part = Fraction(total - before, after - before) if after > before else Fraction(1)
    return fill(below + (above - below) * part)


def share_load(cluster: Cluster, held: list[tuple[Row, int]], sizes: Mapping[int, int]) -> Row:
    """Return the share of each broker that takes replicas."""
    room: Counter[str] = Counter()
    for broker in cluster.able:
        room[cluster.rack_of[broker]] += sizes[broker]
    low, high, total = Counter(dict.fromkeys(room, 0)), Counter(dict.fromkeys(room, 0)), 0
    for row, amount in held:
        anywhere = cluster.is_rackless(row["topic"])
        copies = sum(broker in cluster.able for broker in row["replicas"])
        total += amount * copies
        for rack in room:
            fewest, most = bound_rack(copies, rack, cluster, anywhere)
            low[rack] += amount * fewest
            high[rack] += amount * most
    filled = fill_racks(room, low, high, total)
    return {
        broker: Fraction(filled[rack]) / room[rack] * sizes[broker]
        for broker in cluster.able
        for rack in [cluster.rack_of[broker]]
    }


def judge_loads(cluster: Cluster) -> About:
    """Yield the brokers outside their bands, and those with a directory outside its own."""
    within = BALANCED_BY_LOAD[cluster.name]
    directories = {row["id"]: row["log_directories"] for row in cluster.brokers}
    sizes = {b: sum(one["total_bytes"] for one in of) for b, of in directories.items()}
    for load, column in LOADS.items():
        held = fill_in(cluster, column) or []
        loads = add_up(held)
        shares = share_load(cluster, held, sizes if load == "disk" else dict.fromkeys(sizes, 1))
        for broker, share in shares.items():
            part = share * within / 100
            least, most = floor(share - part), ceil(share + part)
            if not least <= loads[broker] <= most:
                off = round(100 * (loads[broker] - round(share)) / round(share))
                values = {"broker": broker, "amount": loads[broker], "share": round(share)}
                values |= {"least": least, "most": most, "off": f"{off:+d}"}
                end = "/s" if load == "write" else ""
                values |= {
                    f"{name}_said": say_bytes(values[name]) + end for name in ("amount", "share")
                }
                rule = f"broker-{'writes' if end else 'disk'}-uneven"
                yield rule, broker, abs(off), values
    for broker in cluster.able:
        each = {
            one["path"]: one["total_bytes"] - one["usable_bytes"] for one in directories[broker]
        }
        parts = {
            one["path"]: Fraction(sum(each.values()) * one["total_bytes"], sizes[broker])
            for one in directories[broker]
        }
        offs = {path: used / parts[path] - 1 for path, used in each.items()}
        path = max(offs, key=lambda path: (abs(offs[path]), offs[path]))
        off = offs[path]
        if abs(off) * 100 > within:
            values = {"broker": broker, "path": path, "used_bytes": each[path]}
            values |= {"share_bytes": round(parts[path]), "off": f"{round(off * 100):+d}"}
            values |= {
                f"{name}_said": f"{values[f'{name}_bytes'] / 2**30:.1f} GiB"
                for name in ("used", "share")
            }
            yield "broker-directories-uneven", broker, round(abs(off) * 100), values


def say_bytes(amount: int) -> str:
    unit = next(n for n in range(5) if amount < 1024 ** (n + 1))
    number = str(amount) if not unit else f"{amount / 1024**unit:.1f}"
    return f"{number} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[unit]}"


def judge_names(cluster: Cluster) -> Iterator[Found]:
    for topic in cluster.users:
        metric = topic.replace(".", "_")
        others = sorted(t for t in cluster.users if t != topic and t.replace(".", "_") == metric)
        if others:
            values = {"metric": metric, "others": ", ".join(others[:5])}
            yield Found("name-collision", cluster.name, topic, topic, len(others), values)
