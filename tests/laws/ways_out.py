"""The edits that ways out name, made on the documents of a small estate.

Every clause of a way out has to be in EDITS, or in OUTSIDE, which edits no spec.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from shorthand import cluster

from reconciler.api.planning import build_moves, build_plan, load_estate
from reconciler.diff.guards import list_refusals
from reconciler.errors import Finding, SpecError
from reconciler.model.cluster import ClusterState

Edit = Callable[..., object]

Document = dict[str, Any]
CONSENT = "risk-not-acknowledged"
NAME = "orders"
MIN_INSYNC = "min.insync.replicas"
COUNTS = ("partitions", "replication_factor")


@dataclass(frozen=True)
class World:
    """An estate of one topic file, and the cluster that it is for. It may plan moves."""

    topics: tuple[Document, ...]
    clusters: Document = field(default_factory=dict)
    state: ClusterState = field(default_factory=cluster)
    moves: bool = False

    @property
    def spec(self) -> Document:
        """The document that the edits are about."""
        return self.topics[0]

    def set(self, key: str, value: object) -> None:
        """Write a config."""
        self.spec["config"] = {**self.spec.get("config", {}), key: value}

    def judge(self, root: Path) -> list[Finding]:
        """Return what validation refuses; where that is nothing, what a plan refuses."""
        estate = root / "topics"
        estate.mkdir(exist_ok=True)
        clusters = {"version": 1, "clusters": {"prod": {}}, **self.clusters}
        (estate / "clusters.yaml").write_text(yaml.safe_dump(clusters))
        (estate / "orders.yaml").write_text(yaml.safe_dump_all(self.topics, sort_keys=False))
        try:
            loaded = load_estate(estate)
        except SpecError as error:
            return list(error.findings)
        build = build_moves if self.moves else build_plan
        return list(list_refusals(build(loaded, "prod", self.state)))


def put_back(world: World, found: Finding, number: str, min_insync: str | None) -> None:
    key = "partitions" if found.rule == "partitions-never-shrink" else "replication_factor"
    world.spec[key] = int(number)
    if min_insync:
        world.set(MIN_INSYNC, int(min_insync))


_JUDGED = rf"^(?:{NAME}: |the topic '{NAME}' on .*?: )?([a-z]+(?:\.[a-z]+)+) "
"""The config that a finding is about, with the topic before it or not."""


def use_limit(world: World, found: Finding, limit: str, along: str | None) -> None:
    """Write a limit where the rule looks: a count, or the config that the finding begins with."""
    keys = dict.fromkeys(("rf-le-brokers", "policy-replication"), "replication_factor")
    keys["policy-partitions"] = "partitions"
    value = int(limit) if limit.isdigit() else limit
    if found.rule in keys:
        world.spec[keys[found.rule]] = value
    else:
        (key,) = re.findall(_JUDGED, found.what)
        world.set(key, value)
    if along == ", and as many replicas":
        world.spec["replication_factor"] = value
    elif along:
        world.set(MIN_INSYNC, value)


def exempt(world: World, found: Finding) -> None:
    world.clusters["policy"]["exempt"] = {found.rule: [NAME]}


def ask_fewer(world: World, found: Finding, number: str) -> None:
    """Take partitions off a topic until its owner keeps a quota, or the topic itself."""
    (noun,) = re.findall(r"ask for [\d,]+ (\w+) on", found.what)
    if noun == "topics":
        world.spec["state"] = "absent"
        return
    each = world.spec["replication_factor"] if noun == "replicas" else 1
    world.spec["partitions"] -= -(-int(number) // each)


def write_quota(world: World, _: Finding, noun: str, number: str) -> None:
    clusters = world.clusters.setdefault("clusters", {"prod": {}})
    policy = clusters["prod"].setdefault("policy", {})
    policy.setdefault("per_owner", {})[noun] = int(number)


def write_label_quota(world: World, _: Finding, label: str, noun: str, number: str) -> None:
    clusters = world.clusters.setdefault("clusters", {"prod": {}})
    policy = clusters["prod"].setdefault("policy", {})
    policy.setdefault("per_label", {}).setdefault(label, {})[noun] = int(number)


def write_label(world: World, found: Finding, value: str) -> None:
    (key,) = re.findall(r"label (\w+)", found.what)
    world.spec["labels"] = {**world.spec.get("labels", {}), key: yaml.safe_load(value)}


def write_row(world: World, found: Finding, row: str, min_insync: str | None) -> None:
    (number,) = re.findall(r"assignment of partition (\d+)", found.what)
    world.spec["assignment"][int(number)] = [int(broker) for broker in row.split(", ")]
    if min_insync:
        world.set(MIN_INSYNC, int(min_insync))


def replace_broker(world: World, found: Finding, able: str) -> None:
    ((number, broker),) = re.findall(r"partition (\d+) is assigned to broker (\d+)", found.what)
    row = world.spec["assignment"][int(number)]
    row[row.index(int(broker))] = next(b for b in map(int, able.split(", ")) if b not in row)


def list_live_rows(world: World, _: Finding, min_insync: str | None) -> None:
    world.spec["assignment"] = list(map(list, world.state.topics[NAME].assignment))
    if min_insync:
        world.set(MIN_INSYNC, int(min_insync))


def keep_tier(world: World, _: Finding, local: str | None) -> None:
    world.set("remote.storage.enable", value=True)
    world.set("remote.log.copy.disable", value=True)
    for unit in ("ms", "bytes") if local else ():
        world.set(f"local.retention.{unit}", -2)


def write_in_profile(world: World, _: Finding, key: str) -> None:
    world.clusters["profiles"] = {"log": {"config": {key: "1d"}}}
    world.spec["profile"] = "log"


def write_in_defaults(world: World, found: Finding) -> None:
    if found.rule == "create-needs-counts":
        world.clusters["defaults"] = dict.fromkeys(COUNTS, 1)
    else:
        world.clusters["defaults"] = {"config": {"retention.ms": "1d"}}


def go_down_from_a_limit(world: World, _: Finding, key: str) -> None:
    world.set(key, "7d")
    world.spec["gradual"] = False


def write_guard(world: World, _: Finding, most: str) -> None:
    world.clusters["clusters"] = {"prod": {"guards": {"max_deletes": int(most)}}}


def lower_guard(world: World, _: Finding, to_retention: str | None) -> None:
    retention = world.state.topics[NAME].config.get("retention.ms")
    limit = f"{retention}ms" if to_retention else "1ms"
    world.clusters["clusters"]["prod"]["guards"]["unused_for"] = limit


def write_moves(world: World, _: Finding, kinds: str) -> None:
    moves = {"allow": kinds.split(", "), "rate": "30MiB"}
    world.clusters.setdefault("clusters", {"prod": {}})["prod"]["moves"] = moves


def replicate(
    world: World,
    found: Finding,
    factor: str,
    min_insync: str | None,
    kinds: str | None,
    kind: str | None,
) -> None:
    world.spec["replication_factor"] = int(factor)
    if min_insync:
        world.set(MIN_INSYNC, int(min_insync))
    if kinds:
        write_moves(world, found, kinds)
    if kind:
        allow_moves(world, found, kind)


def allow_moves(world: World, _: Finding, kind: str) -> None:
    allowed = world.clusters["clusters"]["prod"]["moves"]["allow"]
    allowed[:] = sorted({*allowed, *kind.split(" and ")})


def write_other(world: World, found: Finding) -> None:
    """Write a topic of another name instead: an estate has one at least."""
    (spec,) = (spec for spec in world.topics if found.what.startswith(f"{spec['topic']}: "))
    spec |= {"topic": f"new-{spec['topic']}", "state": "present", **dict.fromkeys(COUNTS, 1)}


def write_counts(world: World, _: Finding, partitions: str, factor: str) -> None:
    del world.spec["assignment"]
    world.spec.update(zip(COUNTS, map(int, (partitions, factor)), strict=True))


def place_ourselves(world: World, _: Finding) -> None:
    world.clusters["clusters"]["prod"]["placement"] = "reconciler"


def keep_broker(world: World, _: Finding, brokers: str) -> None:
    drained = world.clusters["clusters"]["prod"]["drain_brokers"]
    drained[:] = [broker for broker in drained if str(broker) not in brokers.split(", ")]


def lay_over(document: Document, written: str) -> None:
    """Write keys into a document, at any depth."""
    for key, value in yaml.safe_load(written).items():
        if isinstance(value, dict) and isinstance(document.get(key), dict):
            lay_over(document[key], yaml.safe_dump(value))
        else:
            document[key] = value


def remove_config(world: World, _: Finding) -> None:
    """Remove the configs where they are written: in the topic, or in what it inherits."""
    (world.spec if "config" in world.spec else world.clusters["defaults"]).pop("config")


ALONG = rf"(?:, with {MIN_INSYNC} (\d+))?"
EDITS: Mapping[str, Edit] = {
    r"remove it": remove_config,
    r"write overrides: (\{.*\})": lambda w, _, keys: lay_over(w.spec, f"overrides: {keys}"),
    r"write clusters: (\{.*\})": lambda w, _, keys: lay_over(w.clusters, f"clusters: {keys}"),
    rf"put (\d+) back{ALONG}": put_back,
    r"write config: (\{.*\})": lambda w, _, keys: lay_over(w.spec, f"config: {keys}"),
    rf"use at (?:most|least) (\w+)(, for {MIN_INSYNC} as well|, with {MIN_INSYNC} \d+"
    r"|, and as many replicas)?": use_limit,
    rf"keep {MIN_INSYNC} (\d+) until then": lambda w, _, value: w.set(MIN_INSYNC, int(value)),
    r"more replicas for a new topic": lambda w, _: w.spec.update(
        replication_factor=w.spec["config"][MIN_INSYNC]
    ),
    r"exempt a topic that has more already|exempt it"
    r"|exempt topics from quota-per-(?:owner|label)": exempt,
    r"ask for (\d+) fewer in new topics": ask_fewer,
    r"write policy: \{per_owner: \{(\w+): (\d+)\}\} for prod in clusters.yaml": write_quota,
    r"write policy: \{per_label: \{(\w+=\w+): \{(\w+): (\d+)\}\}\} for prod in clusters.yaml": (
        write_label_quota
    ),
    r"(?:use )?(gold|silver)": write_label,
    r"(?:write labels: )?\{\w+: (gold|silver)\}": write_label,
    r"write the owner of each": lambda w, _: w.spec.update(owner="a team"),
    rf"write \[([\d, ]+)\]{ALONG}": write_row,
    r"(?:start it first; )?brokers that can take replicas: ([\d, ]+)": replace_broker,
    rf"list the rows of the live partitions again{ALONG}": list_live_rows,
    r"write replication_factor: null": lambda w, _: w.spec.update(replication_factor=None),
    r"write acknowledge: \[(.+)\] in the spec if this is intended": lambda w, _, risks: (
        w.spec.update(acknowledge=yaml.safe_load(f"[{risks}]"))
    ),
    r"write rack_aware: false in the spec": lambda w, _: w.spec.update(rack_aware=False),
    r"write (remote\S+): true next to it": lambda w, _, key: w.set(key, True),
    r"write (remote\S+): false": lambda w, _, key: w.set(key, False),
    r"keep remote.storage.enable: true with remote.log.copy.disable: true"
    r"(, and local.retention.ms and local.retention.bytes -2)?": keep_tier,
    r"write (\S+) in the spec instead": lambda w, _, name: w.spec.update(topic=name),
    r"write ([a-z_]+(?: and replication_factor)?) in the topic, its profile": lambda w, _, keys: (
        w.spec.update(dict.fromkeys(keys.split(" and "), 1))
    ),
    r"remove it from the topic(?:; allowed are .*)?": lambda w, _: w.spec.pop("config"),
    r"write (\S+) in its config, its profile": lambda w, _, key: w.set(key, "1d"),
    r"write (\S+) in its profile": write_in_profile,
    r"the defaults": write_in_defaults,
    r"write (owner|description): .*": lambda w, _, key: w.spec.update({key: "a team"}),
    r"(?:use )?(zstd|lz4)": lambda w, _, value: w.set("compression.type", value),
    r"remove the count": lambda w, _: [w.spec.pop(key, None) for key in COUNTS],
    r"write guards: \{max_deletes: (\d+)\} for the cluster in clusters.yaml": write_guard,
    r"write moves: \{allow: \[(.+)\], rate: 30MiB\} below this cluster in clusters.yaml": (
        write_moves
    ),
    r"add (\w+) to moves.allow of this cluster in clusters.yaml": allow_moves,
    rf"(?:write|keep) replication_factor: (\d+){ALONG}"
    r"(?: and write moves: \{allow: \[(.+)\], rate: 30MiB\} below this cluster in clusters.yaml"
    r"| and add (.+) to moves.allow of this cluster in clusters.yaml)?"
    r"(?:, then give .* with reconciler plan --moves)?": replicate,
    r"remove ([\d, ]+) from drain_brokers": keep_broker,
    r"correct the brokers and loads of the rebalance": lambda w, _: w.clusters["clusters"]["prod"][
        "rebalance"
    ].pop("brokers"),
    r"remove it from clusters.yaml": lambda w, _: w.clusters["clusters"]["prod"].pop("rebalance"),
    r"write partitions: (\d+) and replication_factor: (\d+) instead": write_counts,
    r"placement: reconciler below prod in clusters.yaml": place_ourselves,
    r"lower guards.unused_for of the cluster( to its retention.ms)?": lower_guard,
    r"remove the document from the estate": write_other,
    r"set cleanup.policy to delete": lambda w, _: w.set("cleanup.policy", "delete"),
    r"remote.storage.enable to false": lambda w, _: w.set("remote.storage.enable", False),
    r"use -2(?:, which follows retention.ms)?": lambda w, _: w.set("local.retention.ms", -2),
    r"(?:0 to )?(\d+)(?:: nothing is copied any more)?": lambda w, _, value: w.set(
        "local.retention.ms", int(value)
    ),
    r"lower the first": lambda w, _: w.set("min.compaction.lag.ms", 0),
    r"raise the second": lambda w, _: w.set("max.compaction.lag.ms", "7d"),
    r"first write an explicit (\S+) with gradual: false, and apply it: later steps start there": (
        go_down_from_a_limit
    ),
    r"keep gradual: false, to change it in one step": lambda w, _: w.spec.update(gradual=False),
}
OUTSIDE = (
    r"create a new topic and move its producers and consumers",
    r"reassign a topic that has \w+ already",
    r"have the policy allow .*",
    r"add brokers",
    r"assign it to other brokers",
    r"stop its producers and wait",
    r"delete it by hand",
    r"wait until the reassignment has ended",
    r"cancel it, and plan again",
    r"set broker.rack on (?:it|them)",
    r"set \S+=true on all brokers and controllers first",
    r"choose another name",
    r"plan again once the replicas on brokers? .* are in sync",
    r"make both equal",
    r"(?:change it|give .*) with the service's own tools",
)
"""What edits no spec: what somebody does on the cluster, or decides."""

_CLAUSES = re.compile(r"[,;]? or ")
_ALREADY = re.compile(r"(.*); ((?:exempt|reassign) a topic that has \w+ already.*)")


def list_edits(way_out: str) -> Iterator[tuple[Edit, tuple[str, ...]]]:
    """Yield the edits that a way out names. Fails for a clause that nobody knows."""
    for clause in _CLAUSES.split(way_out):
        matches = ((edit, re.fullmatch(pattern, clause)) for pattern, edit in EDITS.items())
        found = next(((edit, match.groups()) for edit, match in matches if match), None)
        known = found or any(re.fullmatch(pattern, clause) for pattern in OUTSIDE)
        assert known, f"no edit is known for {clause!r} of {way_out!r}"
        if found:
            yield found


def follow_ways(world: World, root: Path, rule: str) -> Iterator[list[Finding]]:
    """Follow each way out of a rule, and yield what is refused at its end.

    A rule may be broken several times, as by each row of an assignment: the same way is taken out
    of all of them. A risk that an edit brings is then acknowledged, as the finding asks.
    """
    broken = [found for found in world.judge(root) if found.rule == rule]
    ways = [list(list_edits(_choose_half(world, found.way_out))) for found in broken]
    for number in range(min(map(len, ways))):
        edited = _copy(world)
        for found, way in zip(broken, ways, strict=True):
            edit, groups = way[number]
            edit(edited, found, *groups)
        refused = edited.judge(root)
        yield _acknowledge(edited, refused).judge(root) if _asks_consent(refused) else refused


def _choose_half(world: World, way_out: str) -> str:
    """Return the half of a way out that is for a topic that is live, or not, where it has two."""
    halves = _ALREADY.fullmatch(way_out)
    return way_out if halves is None else halves[2 if NAME in world.state.topics else 1]


def _asks_consent(refused: Iterable[Finding]) -> bool:
    return CONSENT in {found.rule for found in refused}


def _acknowledge(world: World, refused: Iterable[Finding]) -> World:
    """Acknowledge what one finding asks for: it names every risk of the topic."""
    agreed = _copy(world)
    asked = next(found for found in refused if found.rule == CONSENT)
    ((edit, groups),) = list_edits(asked.way_out)
    edit(agreed, asked, *groups)
    return agreed


def _copy(world: World) -> World:
    return replace(world, topics=deepcopy(world.topics), clusters=deepcopy(world.clusters))
