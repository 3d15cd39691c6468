"""The needs of a cluster that changes by itself: a request asks for each by one key.

Brokers join and hold nothing, brokers leave their band, and Kafka creates internal topics with too
few replicas. One need at a time, in an order that copies nothing twice: internal topics, brokers
that joined, the band.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from reconciler.diff.brokers import eligible_brokers
from reconciler.diff.notes import INTERNAL_FACTOR, find_thin_topics
from reconciler.errors import UsageError
from reconciler.model.cluster import ClusterState, TopicSpec
from reconciler.model.moves import MovedRows, MoveKind
from reconciler.model.plan import Plan
from reconciler.model.steps import steps_of
from reconciler.moves.asked import KEY, is_over
from reconciler.moves.plan import plan_moves
from reconciler.moves.rebalance import plan_rebalance
from reconciler.spec.entry import ClusterEntry
from reconciler.units import approximate_size, count, name_each

HIDDEN = "cluster-rights"
"""The note of a reading that lacks topics."""


class NeedKind(StrEnum):
    """The next state of the request of a cluster.

    `unknown`: it stays as it is, since something else comes first, or no plan can be made.
    """

    NOTHING = "nothing"
    UNKNOWN = "unknown"
    INTERNAL = "internal"
    JOINED = "joined"
    BAND = "band"


@dataclass(frozen=True, slots=True)
class Need:
    """What a request is to ask for on a cluster, and why.

    `today` is the date in UTC on which the cluster was read. `brokers` joined, and are the only
    ones to take replicas; `factor` is for internal topics. `costs` says what the plan copies.
    `fingerprint` is that of the plan; it is empty if there is none. `shown`: that is the plan which
    the open request shows, and which still holds.
    """

    cluster: str
    today: str
    kind: NeedKind
    why: str
    brokers: tuple[int, ...] = ()
    factor: int | None = None
    costs: str = ""
    fingerprint: str = ""
    shown: bool = False

    @property
    def key(self) -> str:
        """The key of the cluster that asks for it."""
        return INTERNAL_FACTOR if self.kind is NeedKind.INTERNAL else KEY

    @property
    def is_asked(self) -> bool:
        """Whether there is something to ask for."""
        return self.kind not in (NeedKind.NOTHING, NeedKind.UNKNOWN)


def find_need(
    entry: ClusterEntry,
    specs: Iterable[TopicSpec],
    state: ClusterState,
    shown: MovedRows | None = None,
) -> tuple[Need, Plan | None]:
    """Find what a cluster needs, with the plan that its request would show; it has no fingerprint.

    In: all specs of the cluster; `state` as for a rebalance, with the date on which it was read;
    the rows of the plan that its open request shows, which are taken if they still hold.
    """
    specs = tuple(specs)
    kind, why = _find_obstacle(entry, specs, state)
    try:
        for need, plan in () if why else _list_candidates(entry, specs, state, shown):
            if plan.refusals:
                kind, why = NeedKind.UNKNOWN, f"{need.why} No plan: {plan.refusals[0].what}"
                break
            if _moves(plan):
                return replace(need, costs=_say_costs(plan)), plan
    except UsageError as error:  # a load that is not known
        kind, why = NeedKind.UNKNOWN, f"no plan can be made: {error}"
    return Need(entry.name, state.read_on, kind, why or "every broker is inside its band"), None


def _find_obstacle(
    entry: ClusterEntry, specs: tuple[TopicSpec, ...], state: ClusterState
) -> tuple[NeedKind, str]:
    """Explain why no request may be opened now, and what that means; empty if one may be."""
    if entry.moves is None or MoveKind.REBALANCE not in entry.moves.allow:
        return NeedKind.NOTHING, "moves.allow has no rebalance"
    if entry.rebalance is not None and not is_over(entry.rebalance, state.read_on):
        until = entry.rebalance.until
        return NeedKind.NOTHING, f"clusters.yaml already asks for a rebalance until {until}"
    if not state.user_topics:
        return NeedKind.NOTHING, "it has no topics"
    if any(note.rule == HIDDEN for note in state.notes):
        # A broker whose topics are hidden would look as if it had joined.
        return (
            NeedKind.UNKNOWN,
            "topics are hidden from the account, so it is not known which brokers joined",
        )
    if state.reassignments:
        return NeedKind.UNKNOWN, "replicas are being moved"
    pending = plan_moves(entry, specs, state)
    if _moves(pending) or pending.refusals or any(topic.refusals for topic in pending.topics):
        return NeedKind.UNKNOWN, "the estate asks for other moves, which come first"
    return NeedKind.NOTHING, ""


def _list_candidates(
    entry: ClusterEntry,
    specs: tuple[TopicSpec, ...],
    state: ClusterState,
    shown: MovedRows | None,
) -> Iterator[tuple[Need, Plan]]:
    """Yield what the cluster may need, the first things first, with the plan of each."""
    usual, thin = find_thin_topics(state)
    allowed = entry.moves is not None and MoveKind.REPLICATION in entry.moves.allow
    if thin and allowed and entry.internal_replication_factor is None:
        listed = ", ".join(f"{name} has {factor}" for name, factor in thin.items())
        why = f"Internal topics have fewer replicas than the {usual} of most topics: {listed}."
        raised = replace(entry, internal_replication_factor=usual)
        need = Need(entry.name, state.read_on, NeedKind.INTERNAL, why, factor=usual)
        yield need, plan_moves(raised, specs, state)
    held = {b for topic in state.user_topics.values() for row in topic.assignment for b in row}
    able = eligible_brokers(state.brokers, entry.exclude_brokers)
    joined = tuple(broker.id for broker in able if broker.id not in held)
    if joined and held:
        hold = "holds" if len(joined) == 1 else "hold"
        why = f"{name_each('Broker', joined)} {hold} no replica of any topic."
        need = Need(entry.name, state.read_on, NeedKind.JOINED, why, joined)
        yield (
            need,
            plan_rebalance(entry, specs, state, brokers=joined, aim=entry.balance, approved=shown),
        )
    plan = plan_rebalance(entry, specs, state, aim=entry.balance, approved=shown)
    bands = plan.moves.balance.bands if plan.moves and plan.moves.balance else ()
    outside = sorted({broker for band in bands for broker in band.outside})
    aim = entry.balance
    why = f"{name_each('Broker', outside)} left the band of {aim.within_percent:g} % around "
    why += f"the share of {' and '.join(aim.by)}."
    yield Need(entry.name, state.read_on, NeedKind.BAND, why), plan


def _moves(plan: Plan) -> bool:
    return any(map(steps_of, plan.topics))


def _say_costs(plan: Plan) -> str:
    if plan.moves is None:
        return ""
    copied = f"{count(plan.moves.replicas, 'replica')} copied"
    if plan.moves.forecast is not None and plan.moves.replicas:
        copied += f", {approximate_size(plan.moves.forecast.copied_bytes)}"
    return f"{copied}, {count(plan.moves.leader_changes, 'preferred leader')} changed"
