"""Every table of the page, declared once: what it asks the lake, and what it shows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial

from reconciler.changes.due import EXPIRED, IDLE
from reconciler.errors import Severity
from reconciler.fleet.health import FAULTS
from reconciler.fleet.lake.attempts import PLANNED
from reconciler.fleet.page.contents import (
    MOST_CLUSTERS,
    MOST_COLLECTIONS,
    ClusterLine,
    FleetPage,
    Kept,
    Row,
    Standing,
    cut,
    describe_change_row,
    say_share,
    say_value,
    say_when,
)
from reconciler.fleet.page.pictures import (
    Axis,
    draw_axis,
    draw_bar,
    draw_dumbbell,
    draw_mark,
    draw_sparkline,
)
from reconciler.fleet.page.table import Cell, Column, Table, amount, number, say_number, text, words
from reconciler.units import approximate_duration

MOST_TOPICS = 2_000
MOST_RULES = 100
MOST_MATRIX_ROWS = 150
MOST_BROKERS_NAMED = 8

PROBLEMS = dict(
    zip(FAULTS, ("offline", "below min.insync.replicas", "under-replicated"), strict=True)
)
"""The name of each fault of a partition on the page, worst first."""

ACTIONS = ("refuse", "delete", "update", "create")
"""The actions of a plan on a topic, the most urgent first. The others are remarks."""

_VALUES = ("value", "usual")
"""The evidence that holds values of the config named by `key`."""


def _rank(column: str, values: Iterable[str]) -> str:
    """Return SQL for the place of a value among these; an unknown one comes first."""
    cases = (f"WHEN '{value}' THEN {place}" for place, value in enumerate(values, 1))
    return f"CASE {column} {' '.join(cases)} ELSE 0 END"


_SEVERITY = _rank("severity", Severity)
_CHANGE = """cluster, topic, action, steps, partitions_before, partitions_after, config_before,
    config_after, refused_change, risks, refusals, reasons, file, line"""
_OWNERS = "SELECT cluster, topic, owner, labels FROM {specs}"

_CLUSTER = Column("cluster", "Cluster", lambda row: Cell(row["cluster"]), "brief", links=True)
_CLUSTER_CHOICES = replace(_CLUSTER, choices=True)
_TOPIC = text("topic", "Topic", "name")
_OWNER = text("owner", "Owner", "brief", missing="–", choices=True)


def _list(values: Iterable[object] | None) -> str:
    return ", ".join(map(str, values or ()))


def _list_some(brokers: Sequence[int]) -> str:
    left = len(brokers) - MOST_BROKERS_NAMED
    named = _list(brokers[:MOST_BROKERS_NAMED])
    return f"{named}, and {left} more" if left > 0 else named or "–"


PARTITION_PROBLEMS = Table(
    "problems",
    "Topics with problems",
    (
        text("problem", "Problem", "brief", choices=True),
        _CLUSTER_CHOICES,
        _TOPIC,
        _OWNER,
        number("affected", "Partitions affected"),
        number("partitions", "Partitions"),
        words("lagging", "Brokers not in sync", lambda row: _list_some(row["lagging"]), "brief"),
    ),
    query=" UNION ALL ".join(
        f"SELECT cluster, topic, '{said}' AS problem, {place} AS place, {name} AS affected, lagging"
        f" FROM {{unhealthy}} WHERE {name} > 0"
        for place, (name, said) in enumerate(PROBLEMS.items())
    )
    + " ORDER BY place, affected DESC, cluster, topic",
    lookups=(_OWNERS, "SELECT cluster, topic, partitions FROM {topics}"),
    note="{shown} of {total} rows, the worst first; {left} left out."
    " reconciler fleet audit --format json shows all.",
    empty="Every partition has a leader, and every replica is in sync.",
)


def _pick_brokers_down(page: FleetPage) -> Kept[Row]:
    """Return the brokers that are down, of the clusters whose brokers are on the page."""
    down = (
        {"cluster": cluster.name, **asdict(broker)}
        for cluster in page.clusters.rows
        for broker in cluster.brokers
        if not broker.alive
    )
    return Kept(tuple(down), page.health.brokers_down)


BROKERS_DOWN = Table(
    "brokers-down",
    "Brokers that are down",
    (
        _CLUSTER_CHOICES,
        Column("broker", "Broker", lambda row: Cell(str(row["id"])), numeric=True),
        text("rack", "Rack", "brief", missing="–"),
        number("leaders", "Preferred leaders"),
        number("replicas", "Replicas"),
        amount("size", "Size", of="size_bytes"),
    ),
    pick=_pick_brokers_down,
    note="{left} left out: reconciler fleet audit shows them.",
    empty="Every broker is alive.",
)


def _describe_cluster(cluster: ClusterLine) -> Row:
    drifts = [drift for drift in cluster.drifts if drift is not None]
    plan = asdict(cluster.plan) if cluster.plan else {}
    size = {
        "topics": cluster.topics,
        "partitions": cluster.partitions,
        "brokers": cluster.broker_count,
    }
    return {
        "cluster": cluster.name,
        "health": cluster.health,
        # A cluster that was not read has no plan: the column of health says why.
        "standing": cluster.standing if cluster.read else Standing.UNPLANNED,
        "drifts": cluster.drifts,
        "grown": drifts[-1] - drifts[0] if drifts else None,
        **plan,
        **(size if cluster.read else {}),
    }


def _pick_clusters(page: FleetPage) -> Kept[Row]:
    return Kept(tuple(map(_describe_cluster, page.clusters.rows)), page.clusters.total)


def _pick_unreadable(page: FleetPage) -> Kept[Row]:
    """Return the clusters that were not read or not planned, and why."""
    rows = (
        {"cluster": one.name, "standing": one.standing, "rule": rule, "reason": reason}
        for one in page.clusters.rows
        if one.trouble and one.plan is None
        for rule, reason in [one.trouble]
    )
    return Kept(tuple(rows))


def _state(key: str, title: str, of: str) -> Column:
    """Return a column of states, each with its sign."""

    def show(row: Row) -> Cell:
        return Cell(str(row[of]), draw_mark(row[of]))

    return Column(key, title, show, "brief", choices=True)


UNREADABLE = Table(
    "unreadable",
    "Clusters that could not be read or planned",
    (
        _CLUSTER,
        _state("state", "State", "standing"),
        text("rule", "Rule", "brief"),
        text("reason", "Reason", "long"),
    ),
    pick=_pick_unreadable,
    empty="Every cluster was read and planned.",
)


def _pick_planned(page: FleetPage) -> Kept[Row]:
    rows = _pick_clusters(page).rows
    return Kept(tuple(row for row in rows if "changed" in row))


def _compare_skews(page: FleetPage) -> tuple[Column, ...]:
    """Return the columns of skews before and after: in pictures of one scale, and in numbers."""
    columns = [_CLUSTER]
    for noun in ("leaders", "replicas"):
        before, after = f"{noun}_before", f"{noun}_after"
        numbers = (row[name] for row in _pick_planned(page).rows for name in (before, after))
        scale = Axis(max((n for n in numbers if n is not None), default=0))
        show = partial(_draw_gain, before=before, after=after, scale=scale)
        drawn = Column(f"{noun}-gain", noun.title(), show, "wide", numeric=True)
        columns += [
            replace(drawn, above=draw_axis(scale)),
            number(f"{noun}-before", f"{noun.title()} before", of=before),
            number(f"{noun}-after", f"{noun.title()} after", of=after),
        ]
    return tuple(columns)


def _draw_gain(row: Row, before: str, after: str, scale: Axis) -> Cell:
    was, will_be = row[before], row[after]
    if was is None or will_be is None:
        return Cell("–")
    return Cell("", draw_dumbbell(was, will_be, scale), sort_by=was - will_be)


SKEW = Table(
    "skew",
    "Skew before and after the plans",
    _compare_skews,
    pick=_pick_planned,
    intro="Max − min over the brokers of a cluster: the ring is now, the dot is after the plan.",
    empty="There are no plans.",
)


def _pick_drift(page: FleetPage) -> Kept[Row]:
    """Return the totals of the plans of each collection, the latest first."""
    return Kept(tuple(map(asdict, reversed(page.drift))))


def _show_drift(row: Row) -> Cell:
    drift = row["changed"] + row["refused"]
    return Cell(say_share(drift, drift + row["unchanged"]))


DRIFT = Table(
    "drift-table",
    "The same in numbers",
    (
        words("collection", "Collection", lambda row: say_when(row["collection"])),
        number("pending", "To change", of="changed"),
        number("refused", "Refused"),
        number("unchanged", "As specified"),
        Column("drift", "Drift", _show_drift, numeric=True),
        number("planned", "Clusters planned"),
        number("unplanned", "Not planned"),
    ),
    pick=_pick_drift,
    empty="No plans yet.",
)


def _show_growth(row: Row) -> Cell:
    grown = row["grown"]
    if grown is None:
        return Cell("–")
    return Cell(f"{grown:+,}" if grown else "±0", draw_sparkline(row["drifts"]), sort_by=grown)


CLUSTERS = Table(
    "clusters",
    "Clusters and their plans",
    (
        _CLUSTER,
        _state("health", "Health", "health"),
        _state("state", "Plan", "standing"),
        number("pending", "To change", of="changed"),
        number("refused", "Refused"),
        number("unchanged", "As specified"),
        number("unmanaged", "Unmanaged"),
        Column("drift", "Drift over time", _show_growth, numeric=True),
        number("topics", "Topics"),
        number("partitions", "Partitions"),
        number("brokers", "Brokers"),
    ),
    pick=_pick_clusters,
    note="{shown} of {total} clusters, the worst first; {left} left out.",
)


def _list_risks(row: Row) -> str:
    return _list(risk for risk in row["risks"] or () if risk != "none")


def _list_reasons(row: Row) -> str:
    pairs = zip(row["reasons"] or (), row["refusals"] or (), strict=True)
    return "; ".join(f"{cut(what)} [{rule}]" for what, rule in pairs)


def _say_place(row: Row) -> str:
    return f"{row['file']}:{row['line']}" if row["file"] else ""


CHANGES = Table(
    "changes",
    "Changes and refusals",
    (
        _TOPIC,
        _CLUSTER,
        _OWNER,
        text("action", "Action", choices=True),
        words("change", "Change", lambda row: cut(describe_change_row(row)), "long"),
        words("risks", "Risks", _list_risks, "brief"),
        words("reasons", "Reasons", _list_reasons, "long"),
        words("file", "File", _say_place, "brief"),
    ),
    query=f"SELECT {_CHANGE} FROM {{changes}}"
    f" ORDER BY {_rank('action', ACTIONS)}, array_size(risks) DESC NULLS LAST, cluster, topic",
    lookups=(_OWNERS,),
    note="{shown} of {total} changes, refusals first; {left} left out.",
    empty="No change.",
)


def _list_move_reasons(row: Row) -> str:
    failed = [f"{row['error']} [{row['status']}]"] if row["status"] != PLANNED else []
    return "; ".join(map(cut, [*failed, *(row["refusals"] or ())]))


MOVES = Table(
    "moves",
    "Plans of moves",
    (
        _CLUSTER,
        number("moving", "Topics", of="changed"),
        number("moving-partitions", "Partitions", of="partitions"),
        number("copies", "Replicas to copy", of="replicas"),
        amount("bytes", "To copy", of="copied_bytes"),
        amount("time", "Time", approximate_duration, of="seconds"),
        amount("peak", "Fullest disk", "{:.0%}".format, of="peak_share"),
        words("drained", "Brokers to drain", lambda row: _list(row["drained"]) or "–", "brief"),
        number("moves-refused", "Refused", of="refused"),
        words("moves-reasons", "Reasons", _list_move_reasons, "long"),
    ),
    # The plans that say something.
    query="""
    SELECT cluster, status, error, coalesce(changed, 0) AS changed,
        coalesce(partitions, 0) AS partitions, coalesce(replicas, 0) AS replicas,
        coalesce(copied_bytes, 0) AS copied_bytes, seconds, peak_share, drained,
        coalesce(refused, 0) AS refused, refusals
    FROM {move_plans} m
    WHERE status <> 'planned' OR m.changed <> 0 OR cordons <> 0 OR m.refused <> 0
        OR array_size(refusals) <> 0
    ORDER BY m.copied_bytes DESC NULLS FIRST, cluster""",
    note="{shown} of {total} clusters, those that copy the most first; {left} left out.",
    empty="Nothing is to be moved.",
)


def _list_skews(page: FleetPage) -> tuple[Column, ...]:
    rows = page.rows("topics")

    def draw(key: str, title: str, of: str) -> Column:
        most = max((row[of] for row in rows), default=0)
        show = lambda row: Cell(f"{row[of]:,}", draw_bar(row[of], most))  # noqa: E731
        return Column(key, title, show, numeric=True)

    return (
        _TOPIC,
        _CLUSTER,
        _OWNER,
        number("partitions", "Partitions"),
        draw("leaders", "Leader skew", "leader_skew"),
        draw("replicas", "Replica skew", "replica_skew"),
        text("plan", "Plan", of="action", missing="–"),
    )


UNEVEN_TOPICS = Table(
    "topics",
    "Least even topics",
    _list_skews,
    query="SELECT * FROM {uneven_topics}"
    " ORDER BY leader_skew DESC, replica_skew DESC, cluster, topic",
    lookups=(_OWNERS, "SELECT cluster, topic, action FROM {changes}"),
    intro=(
        "Skew is max − min over the living brokers: the difference between the fullest and the "
        "emptiest one."
    ),
    note="{shown} of {total} topics, the least even first; {left} left out.",
    empty="Every topic is as even as possible: max − min is at most one.",
)


def _show_replication(row: Row) -> Cell:
    least, most = row.get("least") or 0, row.get("most") or 0
    return Cell(str(least) if least == most else f"{least}–{most}", sort_by=least)


def _list_overrides(row: Row) -> str:
    pairs = sorted(each.split("=", 1) for each in row.get("overrides") or ())
    return _list(f"{key} {say_value(key, cut(value))}" for key, value in pairs)


def _list_labels(row: Row) -> str:
    labels = row.get("labels") or {}
    return cut(_list(f"{key}: {value}".rstrip() for key, value in sorted(labels.items())))


def _say_difference(row: Row) -> str:
    return cut(describe_change_row(row)) if "action" in row else ""


def _say_last_change(row: Row) -> str:
    return say_when(row["first_seen"]) if "first_seen" in row else "–"


INVENTORY = Table(
    "inventory",
    "Topics",
    (
        _TOPIC,
        _CLUSTER_CHOICES,
        _OWNER,
        words("labels", "Labels", _list_labels, "brief"),
        number("partitions", "Partitions"),
        Column("replication", "Replication", _show_replication, numeric=True),
        amount("size", "Size", of="size_bytes"),
        words("overrides", "Overrides", _list_overrides, "long"),
        words("differs", "Differs from its spec", _say_difference, "long"),
        words("changed", "Last seen change", _say_last_change, "brief"),
        text("event", "Change", "brief", missing="–", choices=True),
    ),
    query="SELECT cluster, topic, partitions FROM {topics} WHERE NOT internal"
    " ORDER BY partitions DESC NULLS LAST, cluster, topic",
    lookups=(
        _OWNERS,
        """SELECT cluster, topic, min(array_size(replicas)) AS least,
            max(array_size(replicas)) AS most, sum(size_bytes) AS size_bytes
        FROM {partitions} GROUP BY cluster, topic""",
        """SELECT cluster, topic, array_agg(concat(config, '=', coalesce(value, ''))) AS overrides
        FROM {configs} GROUP BY cluster, topic""",
        f"SELECT {_CHANGE} FROM {{changes}}",
        """SELECT cluster, topic, max(first_seen) AS first_seen,
            max_by(event, concat(first_seen, event)) AS event
        FROM {events} GROUP BY cluster, topic""",
    ),
    most=MOST_TOPICS,
    intro="Without internal topics. Overrides are the configs that a topic sets itself;"
    " replication is a range if its partitions differ.",
    note="{shown} of {total} topics, those with the most partitions first; {left} left out."
    " The lake's table topics has all: docs/reference/lake.md.",
    empty="There are no topics.",
)

TREND = Table(
    "trend",
    "Trends over the collections",
    (
        words("collection", "Collection", lambda row: say_when(row["seen"]), "brief"),
        number("clusters", "Clusters read"),
        number("offline", "Offline"),
        number("unwritable", "Below min.insync.replicas"),
        number("under-replicated", "Under-replicated", of="under_replicated"),
        number("brokers-down", "Brokers down", of="brokers_down"),
        number("topics", "Topics"),
        number("partitions", "Partitions"),
        amount("size", "Size", of="size_bytes"),
    ),
    query="""
    SELECT seen, count(*) AS clusters, sum(topics) AS topics, sum(partitions) AS partitions,
        sum(size_bytes) AS size_bytes, sum(offline) AS offline, sum(unwritable) AS unwritable,
        sum(under_replicated) AS under_replicated, sum(brokers_down) AS brokers_down
    FROM {trend} GROUP BY seen ORDER BY seen DESC""",
    most=MOST_COLLECTIONS,
    empty="No history of this collection yet: reconciler fleet history --lake DIR.",
)

CAUSES = Table(
    "causes",
    "Findings by cause",
    (
        number("rank", "Rank"),
        text("cause", "Cause", "long"),
        number("findings", "Findings"),
        number("clusters", "Clusters"),
    ),
    query="""
    SELECT cause, min(rank) AS rank, count(*) AS findings, count(DISTINCT cluster) AS clusters
    FROM {findings} WHERE cause IS NOT NULL GROUP BY cause
    ORDER BY rank, findings DESC, cause""",
    most=MOST_RULES,
    empty="No finding.",
)

RULES = Table(
    "rules",
    "Findings by rule",
    (
        text("severity", "Severity", choices=True),
        text("rule", "Rule", "brief"),
        number("findings", "Findings"),
        number("clusters", "Clusters"),
    ),
    query=f"""
    SELECT severity, rule, count(*) AS findings, count(DISTINCT cluster) AS clusters
    FROM {{findings}} GROUP BY severity, rule
    ORDER BY {_SEVERITY}, findings DESC, rule""",
    most=MOST_RULES,
    empty="No finding.",
)


def _turn_rules(rows: Sequence[Row]) -> Sequence[Row]:
    """Return a row per cluster, with its findings by rule."""
    found: dict[str, dict[str, int]] = {}
    for row in rows:
        found.setdefault(row["cluster"], {})[row["rule"]] = row["findings"]
    # The rules come with the most severe first: so do the clusters that break them most.
    rules = list(dict.fromkeys(row["rule"] for row in rows))[:MOST_RULES]
    order = {name: tuple(-of.get(rule, 0) for rule in rules) for name, of in found.items()}
    return [
        {"cluster": name, "findings": sum(found[name].values()), "by_rule": found[name]}
        for name in sorted(found, key=lambda name: (order[name], name))
    ]


def _list_rules(page: FleetPage) -> tuple[Column, ...]:
    """Return a column per rule; a cell without findings is empty."""

    def count(rule: str) -> Column:
        def show(row: Row) -> Cell:
            return Cell(say_number(row["by_rule"][rule])) if rule in row["by_rule"] else Cell()

        return Column(rule, rule, show, "upright", numeric=True)

    rules = (count(row["rule"]) for row in page.rows("rules"))
    return (_CLUSTER, number("all", "All rules", of="findings"), *rules)


MATRIX = Table(
    "matrix",
    "Findings by rule and cluster",
    _list_rules,
    query=f"""
    SELECT cluster, rule, count(*) AS findings,
        sum(count(*)) OVER (PARTITION BY severity, rule) AS of_rule
    FROM {{findings}} GROUP BY cluster, severity, rule
    ORDER BY {_SEVERITY}, of_rule DESC, rule""",
    arrange=_turn_rules,
    most=MOST_MATRIX_ROWS,
    note="{shown} of {total} clusters, the most severe rules first; {left} left out."
    " reconciler fleet audit --cluster NAME shows the others.",
    empty="No finding.",
)


def _spell_values(row: Row) -> tuple[Mapping[str, str], str]:
    """Return evidence and message with readable values of the config that they are about."""
    evidence, what = row["evidence"] or {}, row["what"]
    key = evidence.get("key")
    if key is None:
        return {name: say_value(name, held) for name, held in evidence.items()}, what
    said = {
        name: say_value(key, held) if name in _VALUES else held for name, held in evidence.items()
    }
    for name in _VALUES:
        if name in evidence:
            what = re.sub(rf"\b{re.escape(evidence[name])}\b", lambda _: said[name], what)  # noqa: B023
    return said, what


def _list_evidence(row: Row) -> str:
    evidence, _ = _spell_values(row)
    return cut(_list(f"{name} {held}" for name, held in sorted(evidence.items())))


def _list_findings(page: FleetPage) -> tuple[Column, ...]:
    """Return the columns of findings. Without a rank, there are no causes either."""
    columns = (
        text("severity", "Severity", choices=True),
        _CLUSTER_CHOICES,
        text("topic", "Topic, broker or config", "name"),
        _OWNER,
        text("rule", "Rule", "brief", choices=True),
        words("what", "What", lambda row: cut(_spell_values(row)[1]), "long"),
        words("evidence", "Evidence", _list_evidence, "long"),
        text("way_out", "What to do", "long"),
    )
    if all(row["rank"] is None for row in page.rows("findings")):
        return columns
    return (
        number("rank", "Rank"),
        *columns,
        text("cause", "Cause", "long"),
        text("fixed_by", "Fixed by", "brief", missing="–", choices=True),
    )


FINDINGS = Table(
    "findings",
    "Findings",
    _list_findings,
    query=f"""
    SELECT cluster, coalesce(topic, subject) AS topic, rule, severity, evidence, what, way_out,
        owner, cause, fixed_by, rank
    FROM {{findings}} f
    ORDER BY rank NULLS LAST, {_SEVERITY}, rule, cluster, f.topic NULLS FIRST""",
    note="{shown} of {total} findings, the most urgent first; {left} left out."
    " reconciler fleet audit --format json shows all.",
    empty="No finding.",
)


def _show_term(row: Row) -> str:
    """Return the date or the duration of the spec."""
    evidence = row["evidence"]
    return cut(evidence.get("expires") or evidence.get("idle_after") or "–")


def _show_write(row: Row) -> str:
    """Return the last write, or that it is not known: it was not read, or there is no record."""
    return row["evidence"].get("last_written") or "unknown"


DUE = Table(
    "due",
    "Topics that are due",
    (
        _CLUSTER_CHOICES,
        _TOPIC,
        _OWNER,
        text("rule", "Rule", "brief", choices=True),
        words("after", "Expired on, or idle for", _show_term),
        words("last-write", "Last write", _show_write),
        words("readers", "Read by", lambda row: cut(row["evidence"].get("read_by") or "–"), "long"),
        words("file", "File", _say_place, "brief"),
    ),
    query=f"""
    SELECT cluster, topic, owner, rule, evidence, file, line FROM {{findings}}
    WHERE rule IN ('{EXPIRED}', '{IDLE}') ORDER BY owner NULLS FIRST, cluster, topic""",
    note="{shown} of {total} topics that are due; {left} left out."
    " reconciler fleet audit --format json shows all.",
    empty="No topic is due.",
)

NEXT_LEADERS = Table(
    "next-leaders",
    "Leaders that one broker takes over",
    (
        _CLUSTER,
        number("broker", "If a broker is lost", of="next_leaders_most"),
        number("broker-bound", "Bound", of="next_leaders_bound"),
        number("rack", "If a rack is lost", of="rack_next_leaders_most"),
        number("rack-bound", "Bound", of="rack_next_leaders_bound"),
    ),
    query="""
    SELECT cluster, next_leaders_most, next_leaders_bound, rack_next_leaders_most,
        rack_next_leaders_bound
    FROM {balance} WHERE kind = 'cluster' AND next_leaders_most IS NOT NULL
    ORDER BY greatest(
        next_leaders_most - next_leaders_bound, rack_next_leaders_most - rack_next_leaders_bound
    ) DESC NULLS LAST, cluster""",
    most=MOST_CLUSTERS,
    note="{shown} of {total} clusters, the farthest from their bounds first; {left} left out.",
    empty="This audit counted no next leaders.",
)

TABLES = (
    *(PARTITION_PROBLEMS, BROKERS_DOWN, UNREADABLE, SKEW, DRIFT, CLUSTERS, CHANGES, MOVES),
    *(UNEVEN_TOPICS, INVENTORY, TREND, CAUSES, MATRIX, RULES, FINDINGS, DUE, NEXT_LEADERS),
)
