"""From the options of the command line to plans: load once, read in parallel, plan each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from reconciler.api.connections import find_cluster
from reconciler.api.planning import build_moves, build_plan, load_estate, read_cluster
from reconciler.api.snapshots import read_snapshot
from reconciler.cli.base import find_changes, read_base, refuse_other_files
from reconciler.cli.git import GitError, read_commit
from reconciler.cli.plans import read_accepted, read_approval
from reconciler.cli.terminal import print_error, print_note, working
from reconciler.errors import ClusterError, Finding, ReconcilerError, Severity, UsageError
from reconciler.model.cluster import ClusterState
from reconciler.model.moves import LoadKind, MoveKind
from reconciler.model.plan import Commit, Plan, list_unmatched
from reconciler.spec.base import Base
from reconciler.spec.changes import Changes
from reconciler.spec.services import APACHE, spell_moves
from reconciler.units import count

if TYPE_CHECKING:
    from reconciler.planfile.approval import Approval
    from reconciler.spec.estate import Estate

AT_ONCE = 8
"""The number of clusters to read in parallel."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request for plans: the estate, its clusters, its topics, and the options."""

    estate: Path
    clusters: tuple[str, ...]
    all_clusters: bool = False
    bootstrap_servers: str | None = None
    topic: str = "*"
    changed_since: str | None = None
    against: Path | None = None
    by: LoadKind | None = None
    approved: Path | None = None
    moves: bool = False
    base: str | None = None
    only: Path | None = None

    @property
    def is_many(self) -> bool:
        """Return whether the request is for several clusters, even if the estate has only one."""
        return self.all_clusters or len(set(self.clusters)) > 1

    def check(self) -> None:
        """Refuse contradictory options, before anything is read. Errors: UsageError."""
        if self.all_clusters and self.clusters:
            raise UsageError("--all-clusters and --cluster exclude each other")
        if not self.all_clusters and not self.clusters:
            raise UsageError("name the cluster: --cluster NAME, or --all-clusters")
        if self.against is not None and self.bootstrap_servers is not None:
            raise UsageError("--against plans on a file; leave --bootstrap-servers out")
        if self.moves and self.by not in (None, LoadKind.COUNT):
            raise UsageError("--moves balances replicas by count; leave --by out")
        if self.moves and self.only is not None:
            raise UsageError("--only is for changes of topics; leave --moves out")
        for option, given in (
            ("--against", self.against),
            ("--bootstrap-servers", self.bootstrap_servers),
            ("--approved", self.approved),
            ("--only", self.only),
        ):
            if self.is_many and given is not None:
                raise UsageError(f"{option} is about one cluster; name only that with --cluster")


class Planned(NamedTuple):
    """A plan, and the state of the cluster that it is based on."""

    cluster: str
    state: ClusterState
    plan: Plan


class Failed(NamedTuple):
    """A cluster without a plan, and the error. `state` is set if only planning failed."""

    cluster: str
    error: ReconcilerError
    state: ClusterState | None = None


class Made(NamedTuple):
    """The plans and the failures of several clusters, in the order of the command line."""

    plans: tuple[Planned, ...]
    failures: tuple[Failed, ...] = ()


@dataclass(frozen=True, slots=True)
class Planner:
    """A loaded estate, and everything else that plans on its clusters need."""

    wanted: Wanted
    estate: Estate
    clusters: tuple[str, ...]
    changes: Changes | None
    commit: Commit | None
    base: Base | None = None
    approval: Approval | None = None
    only: frozenset[str] | None = None

    def make_plan(self, cluster: str) -> Planned:
        """Read one cluster and plan; show the progress if this is slow."""
        with working(f"reading {cluster}"):
            state = self._read(cluster)
        return self._plan(cluster, state)

    def make_plans(self) -> Made:
        """Plan on all clusters. If there are several, a failure does not stop the others."""
        if not self.wanted.is_many:
            return Made((self.make_plan(self.clusters[0]),))
        return self.try_plans()

    def try_plans(self) -> Made:
        """Plan on all clusters, which are read in parallel, and keep the errors."""
        read = self._read_all()
        plans, failures = [], []
        for name in self.clusters:
            found = read[name]
            if isinstance(found, ReconcilerError):
                failures.append(Failed(name, found))
                continue
            try:
                plans.append(self._plan(name, found))
            except ReconcilerError as error:
                failures.append(Failed(name, error, found))
        return Made(tuple(plans), tuple(failures))

    def _read_all(self) -> Mapping[str, ClusterState | ReconcilerError]:
        from reconciler.side_by_side import run_side_by_side

        read: dict[str, ClusterState | ReconcilerError] = {}
        with working(f"reading {', '.join(self.clusters)}") as say:

            def take(found: tuple[str, ClusterState | ReconcilerError]) -> None:
                read[found[0]] = found[1]
                waiting = [name for name in self.clusters if name not in read]
                say(f"reading {', '.join(waiting)}" if waiting else "planning")

            run_side_by_side(self._try_to_read, self.clusters, AT_ONCE, take)
        return read

    def _read(self, cluster: str) -> ClusterState:
        if self.wanted.against is not None:
            return read_snapshot(self.wanted.against)
        servers = self.wanted.bootstrap_servers
        try:
            client = self._choose_client(cluster)
            return read_cluster(
                self.estate,
                cluster,
                bootstrap_servers=servers,
                client=client,
                with_sizes=self.wanted.by is LoadKind.DISK,
                with_moves=self.wanted.moves,
                plan=partial(self._build_moves, cluster),
            )
        except ClusterError as error:
            raise ClusterError([*error.findings, *self._note_client(cluster)]) from error

    def _choose_client(self, cluster: str) -> Mapping[str, str] | None:
        """Choose the client of a cluster: the one of the base, if there is one.

        Errors: ClusterError for a cluster that the base does not have.
        """
        # A pull request that chooses its client can send the secrets of the job to any server.
        if self.base is None:
            return None
        if entry := self.base.entries.get(cluster):
            refuse_other_files(self.wanted.estate, self.base, cluster)
            return entry.client
        what = (
            f"{cluster} is not in clusters.yaml at {self.base.short}, so nothing connects "
            "to it before this is merged"
        )
        way_out = "merge its entry first, then plan its topics"
        where = find_cluster(self.estate, cluster).location
        raise ClusterError([Finding("client-new", what, way_out, where)])

    def _note_client(self, cluster: str) -> Iterator[Finding]:
        """Yield a warning if the client of a cluster is another one than that of the base."""
        if self.base is None or cluster not in self.base.entries:
            return
        entry, used = find_cluster(self.estate, cluster), self.base.entries[cluster].client
        differing = [n for n in {*entry.client, *used} if entry.client.get(n) != used.get(n)]
        if differing:
            names = ", ".join(sorted(differing))
            what = f"{cluster} is read with its client at {self.base.short}, which differs in"
            if self.wanted.against is not None:
                what = f"the client of {cluster} is not that of {self.base.short}: it differs in"
            way_out = "the client written here is used as soon as this is merged; review it"
            severity = Severity.WARNING
            yield Finding("client-changed", f"{what} {names}", way_out, entry.location, severity)

    def _plan(self, cluster: str, state: ClusterState) -> Planned:
        plan = (
            self._build_moves(cluster, state) if self.wanted.moves else self._build(cluster, state)
        )
        loosened = self.estate.loosened.get(cluster, ())
        plan = replace(plan, alerts=(*self._note_client(cluster), *loosened, *plan.alerts))
        return Planned(cluster, state, plan)

    def _build_moves(self, cluster: str, state: ClusterState) -> Plan:
        return build_moves(
            self.estate,
            cluster,
            state,
            topics=self.wanted.topic,
            changes=self.changes,
            commit=self.commit,
            approved=self.approval,
        )

    def _build(self, cluster: str, state: ClusterState) -> Plan:
        wanted = self.wanted
        return build_plan(
            self.estate,
            cluster,
            state,
            topics=wanted.topic,
            changes=self.changes,
            only=self.only,
            commit=self.commit,
            by=wanted.by,
            approved=self.approval,
        )

    def _try_to_read(self, cluster: str) -> tuple[str, ClusterState | ReconcilerError]:
        try:
            return cluster, self._read(cluster)
        except ReconcilerError as error:
            return cluster, error


def report_failures(made: Made) -> None:
    """Report each cluster that could not be planned, with the reason, and count the others."""
    for failed in made.failures:
        print_error(str(failed.error), f"{failed.cluster}: ")
    if made.failures:
        every = count(len(made.plans) + len(made.failures), "cluster")
        print_note(f"{len(made.plans)} of {every} planned")


def load_planner(wanted: Wanted) -> Planner:
    """Load an estate, and choose the clusters, the topics and the commits of a request.

    Errors: SpecError; UsageError for an unknown cluster, a cluster that allows no moves if these
    are wanted, a glob that no topic matches, or if git fails; PlanFileError for a malformed
    approval.
    """
    base = read_base(wanted.estate, wanted.base) if wanted.base is not None else None
    estate = load_estate(wanted.estate, base)
    for name in wanted.clusters:
        find_cluster(estate, name)
    if wanted.all_clusters and not estate.declared:
        raise UsageError("clusters.yaml names no cluster; add one, or pass --cluster sandbox")
    clusters = estate.declared if wanted.all_clusters else tuple(dict.fromkeys(wanted.clusters))
    if wanted.moves:
        clusters = _choose_moving(estate, clusters, all_clusters=wanted.all_clusters)
    # A glob without a match would always report "no changes", as if the topics were in sync.
    names = [spec.name for cluster in clusters for spec in estate.topics_for(cluster)]
    if wanted.topic != "*" and (unmatched := list_unmatched(names, wanted.topic)):
        where = ", ".join(clusters)
        raise UsageError(f"no topic that goes to {where} matches --topic {unmatched[0]!r}")
    changes = None
    if wanted.changed_since is not None:
        changes = find_changes(wanted.estate, clusters, wanted.changed_since)
    commit = None
    try:
        commit = read_commit(wanted.estate)
    except GitError as error:
        # An estate without version control is fine; then the plan names no commit.
        if error.is_surprising:
            print_note(f"the plan names no commit of its specs: {error}")
    approval = read_approval(wanted.approved) if wanted.approved else None
    only = _read_only(wanted.only, clusters) if wanted.only else None
    return Planner(wanted, estate, clusters, changes, commit, base, approval, only)


def _read_only(path: Path, clusters: tuple[str, ...]) -> frozenset[str]:
    accepted = read_accepted(path)
    if clusters != (accepted.cluster,):
        others = ", ".join(clusters)
        raise UsageError(f"--only has topics of {accepted.cluster}, not of {others}")
    return frozenset(accepted.topics)


def _choose_moving(
    estate: Estate, clusters: tuple[str, ...], *, all_clusters: bool
) -> tuple[str, ...]:
    """Choose the clusters that allow moves. One that is named and does not is an error."""
    moving = tuple(name for name in clusters if estate.clusters[name].moves is not None)
    rest = [name for name in clusters if name not in moving]
    if all_clusters and not moving:
        way_out = spell_moves(APACHE, [MoveKind.REPLICATION], "below one in clusters.yaml")
        raise UsageError(f"no cluster allows moves; {way_out}")
    if rest and not all_clusters:
        if why := next(filter(None, (estate.clusters[name].why_no_rows for name in rest)), ""):
            raise UsageError(f"{why}, so reconciler moves none; use the service's own tools")
        what = f"{', '.join(rest)} {'allows' if len(rest) == 1 else 'allow'} no moves"
        told = (str(found) for name in rest for found in estate.loosened.get(name, ()))
        service = estate.clusters[rest[0]].service
        where = f"below clusters.{rest[0]} in clusters.yaml"
        way_out = spell_moves(service, [MoveKind.REPLICATION], where)
        what = f"{what}; {way_out}"
        raise UsageError("\n".join([what, *told]))
    return moving
