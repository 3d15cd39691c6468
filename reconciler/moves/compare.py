"""The bytes that each aim of a rebalance would copy, and the balance that it reaches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from reconciler.diff.brokers import eligible_brokers
from reconciler.diff.notes import assume_defaults
from reconciler.model.cluster import ClusterState, TopicSpec
from reconciler.model.moves import LOAD_FIELDS, LoadAim, LoadKind
from reconciler.moves.by_load import measure_farthest
from reconciler.moves.load_table import is_known
from reconciler.moves.movable import MovableTopics
from reconciler.moves.rebalance import plan_rebalance
from reconciler.spec.entry import ClusterEntry

BANDS = (5.0, 10.0, 20.0)
"""The bands, in percent, that the wanted loads are compared with."""

_LOADS: tuple[tuple[LoadKind, ...], ...] = (
    (LoadKind.COUNT,),
    (LoadKind.DISK,),
    (LoadKind.WRITE,),
    (LoadKind.DISK, LoadKind.WRITE),
)
"""The loads that are compared."""


@dataclass(frozen=True, slots=True)
class ComparedChoice:
    """What a rebalance with these options would do.

    `unknown` names the loads of which no amount is known: there is no plan then. `refused_by` holds
    the rules that refuse it. `copied_bytes` is None if a size is not known, and `seconds` as in
    `Forecast`. `farthest` says, by load, how far the farthest broker is from its share afterwards.
    Units: parts of the share.
    """

    options: str
    unknown: tuple[LoadKind, ...] = ()
    refused_by: tuple[str, ...] = ()
    replicas: int = 0
    copied_bytes: int | None = None
    leader_changes: int = 0
    seconds: int | None = None
    farthest: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class ComparedChoices:
    """The choices of a rebalance of one cluster. `farthest` is that of today.

    `within_percent` is the band of all choices that name no other. `wanted` are the options that
    the command line or the cluster asks for.
    """

    cluster: str
    wanted: str
    within_percent: float
    farthest: Mapping[str, float]
    choices: tuple[ComparedChoice, ...]


def compare_rebalances(
    entry: ClusterEntry,
    specs: Iterable[TopicSpec],
    state: ClusterState,
    wanted: LoadAim,
    *,
    topics: str = "*",
    brokers: Collection[int] = (),
    max_bytes: int | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> ComparedChoices:
    """Plan a rebalance with each choice, and measure it. `say` takes the options of each in turn.

    In: as for `plan_rebalance`; `wanted` is the aim that is compared in several bands.
    Errors: UsageError as there.
    """
    by_name = {spec.name: spec for spec in specs}
    known = {kind for kind in LOAD_FIELDS if is_known(state, kind)} | {LoadKind.COUNT}
    able = {broker.id for broker in eligible_brokers(state.brokers, entry.exclude_brokers)}
    diffs = tuple(MovableTopics(entry, by_name, assume_defaults(entry, state)).choose(topics))

    def measure(after: Mapping[str, tuple[tuple[int, ...], ...]]) -> Mapping[str, float]:
        moved = {name: after.get(name, topic.assignment) for name, topic in state.topics.items()}
        live = {n: replace(topic, assignment=moved[n]) for n, topic in state.topics.items()}
        rows = [replace(diff, rows=moved[diff.spec.name], given={}) for diff in diffs]
        return measure_farthest(entry, rows, replace(state, topics=live), able, known)

    choices = []
    for options, aim in list_choices(wanted):
        say(options)
        kinds = () if aim is None else aim.by
        # What followers fetch, their leaders send.
        needed = {*kinds, *([LoadKind.WRITE] if LoadKind.READ in kinds else [])}
        if unknown := tuple(kind for kind in LoadKind if kind in needed - known):
            choices.append(ComparedChoice(options, unknown))
            continue
        plan = plan_rebalance(
            entry,
            by_name.values(),
            state,
            topics=topics,
            brokers=brokers,
            max_bytes=max_bytes,
            aim=aim,
        )
        if plan.moves is None:
            raise AssertionError("a rebalance is a plan of moves")
        forecast = plan.moves.forecast
        after = {topic.name: topic.after.assignment for topic in plan.topics if topic.after}
        refusals = [*plan.refusals, *(each for topic in plan.topics for each in topic.refusals)]
        choices.append(
            ComparedChoice(
                options,
                refused_by=tuple(sorted({finding.rule for finding in refusals})),
                replicas=plan.moves.replicas,
                copied_bytes=forecast.copied_bytes if forecast and not forecast.unknown else None,
                leader_changes=plan.moves.leader_changes,
                seconds=forecast.seconds if forecast else None,
                farthest=measure(after),
            )
        )
    return ComparedChoices(
        entry.name, _name(wanted.by), wanted.within_percent, measure({}), tuple(choices)
    )


def list_choices(wanted: LoadAim) -> Iterator[tuple[str, LoadAim | None]]:
    """Yield options and aims: each load, every topic even, leaders alone, and the wanted bands."""
    within = wanted.within_percent
    loads = dict.fromkeys((*_LOADS, wanted.by))
    yield from ((_name(by), LoadAim(by, within)) for by in loads)
    yield "--even-topics", None
    led = tuple(kind for kind in wanted.by if kind is not LoadKind.DISK) or (LoadKind.COUNT,)
    yield f"{_name(led)} --leaders-only", LoadAim(led, within, leaders_only=True)
    for band in BANDS:
        if band != within:
            yield f"{_name(wanted.by)} --within {band:g}%", LoadAim(wanted.by, band)


def _name(by: Iterable[LoadKind]) -> str:
    return f"--by {','.join(by)}"
