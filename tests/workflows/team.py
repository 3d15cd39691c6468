"""A team's repository, code host and clusters, and the pipelines that connect them on each host."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Protocol

import yaml
from authorized import allow_growth, describe_client, forbid_growth
from confluent_kafka.admin import AdminClient, NewPartitions
from lab import connect_to
from runner_clone import alter

from reconciler.kafka.reader import KafkaReader
from reconciler.sandbox.cluster import Cluster

if TYPE_CHECKING:
    from act import Act
    from code_host import CodeHost, Talk
    from gitlab_local import GitLabLocal
    from runner_clone import Clone, Repository

CLUSTERS = ("dev", "staging", "prod")
"""Each is a stage of its own."""
OWNERS = ("orders", "payments", "search", "web")

Changes = dict[str, dict[str, Any]]


class Ran(Protocol):
    """A run of everything that an event starts: its exit code, and what it printed."""

    @property
    def code(self) -> int: ...

    @property
    def text(self) -> str: ...


class Pipelines(Protocol):
    """What the events of a repository start on a code host. People approve every apply."""

    def plan(self, number: int) -> Ran:
        """Run what a new commit of a request starts."""

    def queue(self, number: int) -> Ran:
        """Run what a request starts that is about to be merged: in a merge queue, or train."""

    def push(self, begin: str = "") -> Ran:
        """Run what a push to main starts, of everything that is not published yet.

        A run that failed continues with the cluster that it failed on.
        """

    def approve(self, cluster: str, fingerprint: str) -> Ran:
        """Approve a plan of that push by its fingerprint."""

    def publish(self) -> None:
        """Let what is committed be on main at the code host."""

    def approve_drift(self, cluster: str, fingerprint: str) -> Ran:
        """Approve a plan of everything that differs by its fingerprint, on main."""

    def reject(self, cluster: str) -> None:
        """Let the approvers of a cluster reject what the next push wants to apply; all if empty."""

    def repeat(self, cluster: str, commit: str, before: str) -> Ran:
        """Run what an earlier push to main started once more, for a cluster at least."""

    def night(self) -> Ran:
        """Run what the schedule starts."""

    def apply_drift(self) -> None:
        """Let the next nights apply what they find."""

    def notify(self, address: str) -> None:
        """Send notifications to a webhook, as JSON."""


class OnGitHub:
    """The workflows of GitHub."""

    def __init__(self, act: Act, repository: Clone, clusters: tuple[str, ...] = CLUSTERS) -> None:
        self._act, self._repository, self._clusters = act, repository, clusters
        act.variables["RECONCILER_CLUSTERS"] = json.dumps(clusters)

    def plan(self, number: int) -> Ran:
        return self._act.pull(number)

    def queue(self, number: int) -> Ran:
        return self._act.queue(number)

    def push(self, begin: str = "") -> Ran:  # noqa: ARG002 # act runs all jobs again
        return self._act.push()

    def approve(self, cluster: str, fingerprint: str) -> Ran:
        before = self._repository.git("rev-parse", "refs/remotes/origin/main")
        return self._act.dispatch(fingerprint, before, cluster=cluster)

    def publish(self) -> None:
        self._act.publish()
        self._repository.merge()

    def approve_drift(self, cluster: str, fingerprint: str) -> Ran:
        return self._act.dispatch(fingerprint, cluster=cluster)

    def reject(self, cluster: str) -> None:
        names = [name for name in self._clusters if name != cluster]
        self._act.variables["RECONCILER_CLUSTERS"] = json.dumps(names)

    def repeat(self, cluster: str, commit: str, before: str) -> Ran:  # noqa: ARG002
        return self._act.repeat(commit, before)

    def night(self) -> Ran:
        return self._act.night()

    def apply_drift(self) -> None:
        self._act.variables["RECONCILER_APPLY_DRIFT"] = json.dumps(CLUSTERS)

    def notify(self, address: str) -> None:
        self._act.secrets["RECONCILER_WEBHOOK"] = address
        self._act.variables["RECONCILER_WEBHOOK_FORMAT"] = "json"


class OnGitLab:
    """The template of GitLab. A stage of the pipeline applies to each cluster."""

    def __init__(
        self, local: GitLabLocal, repository: Clone, clusters: tuple[str, ...] = CLUSTERS
    ) -> None:
        self._local, self._repository, self._clusters = local, repository, clusters
        self._rejected = ""

    def include(self, *, apply_drift: bool = False) -> None:
        """Include the template once for each cluster."""
        common = {"webhook_format": "json", "apply_drift": apply_drift}
        each = [{"cluster": name, "apply_stage": name, **common} for name in self._clusters]
        self._local.include(each, ["test", *self._clusters, "deploy"])

    def plan(self, number: int) -> Ran:
        return self._local.run_pipeline(self._local.merge_request(number))

    def queue(self, number: int) -> Ran:
        return self._local.run_pipeline(self._local.train(number))

    def push(self, begin: str = "") -> Ran:
        first = self._clusters.index(begin) if begin else 0
        started = (name for name in self._clusters[first:] if name != self._rejected)
        self._local.forget()  # jobs of an earlier run have fetched main
        by_hand = (f"apply {name}" for name in started)
        return self._local.run_pipeline(self._local.push(), *by_hand)

    def approve(self, cluster: str, fingerprint: str) -> Ran:
        more = {"FINGERPRINT": fingerprint}
        return self._local.run_job(f"apply {cluster}", self._local.push() | more)

    def publish(self) -> None:
        self._local.publish()

    def approve_drift(self, cluster: str, fingerprint: str) -> Ran:
        more = {"CI_PIPELINE_SOURCE": "web", "FINGERPRINT": fingerprint}
        return self._local.run_job(f"apply {cluster}", more)

    def reject(self, cluster: str) -> None:
        self._rejected = cluster

    def repeat(self, cluster: str, commit: str, before: str) -> Ran:
        return self._local.repeat(f"apply {cluster}", commit, before)

    def night(self) -> Ran:
        return self._local.run_pipeline({"CI_PIPELINE_SOURCE": "schedule"})

    def apply_drift(self) -> None:
        self.include(apply_drift=True)
        self._repository.commit()
        self._local.publish()

    def notify(self, address: str) -> None:
        self._local.variables["RECONCILER_WEBHOOK"] = address


class Team:
    """Their requests, and what is on their clusters."""

    def __init__(
        self,
        clusters: Mapping[str, Cluster],
        repository: Repository,
        host: CodeHost,
        pipelines: Pipelines,
    ) -> None:
        self._clusters, self._repository = clusters, repository
        self.host, self.pipelines = host, pipelines
        self._merged: Changes = {"guards": {"from": "base"}}
        self._open: dict[int, Changes] = {}
        self._write(self._merged)
        repository.commit()
        pipelines.publish()

    def propose(self, number: int, changes: Changes) -> tuple[Talk, Ran]:
        """Open a request that changes topics, or `guards`, and plan it."""
        self._repository.git("switch", "--quiet", "--create", f"request-{number}", "main")
        self._open[number] = changes
        self._write(_lay(self._merged, changes))
        request = self.host.open_request(number, self._repository.commit())
        return request, self.pipelines.plan(number)

    def amend(self, number: int, changes: Changes) -> Ran:
        """Push another commit to a request, and plan it."""
        self._repository.git("switch", "--quiet", f"request-{number}")
        self._open[number] = _lay(self._open[number], changes)
        self._write(_lay(self._merged, self._open[number]))
        self.host.talks[number].head = self._repository.commit()
        return self.pipelines.plan(number)

    def plan_again(self, number: int) -> Ran:
        self._repository.git("switch", "--quiet", f"request-{number}")
        return self.pipelines.plan(number)

    def merge(self, number: int) -> Ran:
        """Merge a request, and run what the push starts; a run that fails can be run again."""
        self._repository.git("switch", "--quiet", "main")
        words = ("--quiet", "--no-ff", "--message", f"Merge {number}", f"request-{number}")
        self._repository.git("merge", *words)
        self._merged = _lay(self._merged, self._open.pop(number))
        self.host.talks[number].merged_as = self._repository.git("rev-parse", "HEAD")
        return self.go_on()

    def go_on(self, begin: str = "") -> Ran:
        """Run what the push of the last merge starts, from a stage on."""
        ran = self.pipelines.push(begin)
        if ran.code == 0:
            self.pipelines.publish()
        return ran

    def forget(self, number: int) -> None:
        """Close a request that was not merged."""
        self._repository.git("switch", "--quiet", "main")
        del self._open[number]
        self.host.talks[number].open = False

    def find_push(self, number: int) -> tuple[str, str]:
        """Return the commit that main had before the merge of a request, and that of the merge."""
        merge = str(self.host.talks[number].merged_as)
        return self._repository.git("rev-parse", f"{merge}^1"), merge

    def sizes(self, name: str) -> list[int]:
        """Return how many partitions a topic has on each cluster; 0 if it does not exist."""
        states = (self._read(cluster).get(name) for cluster in CLUSTERS)
        return [len(state.assignment) if state else 0 for state in states]

    def configs(self, name: str, key: str) -> list[str]:
        """Return the value of a config of a topic on each cluster."""
        return [self._read(cluster)[name].config.get(key, "") for cluster in CLUSTERS]

    def expand_by_hand(self, cluster: str, name: str, partitions: int) -> None:
        admin = self._connect(cluster)  # lives until the answer is here
        admin.create_partitions([NewPartitions(name, partitions)])[name].result(timeout=15)

    def alter_by_hand(self, cluster: str, name: str, key: str, value: str) -> None:
        alter(self._connect(cluster), name, key, value)

    def stop_broker(self, cluster: str, broker: int) -> None:
        self._clusters[cluster].stop_broker(broker)

    def start_broker(self, cluster: str, broker: int) -> None:
        self._clusters[cluster].start_broker(broker)

    def forbid_growth(self, topic: str) -> None:
        """Take the right to expand a topic on staging from the account of the jobs."""
        forbid_growth(self._clusters["staging"], topic)

    def allow_growth(self, topic: str) -> None:
        allow_growth(self._clusters["staging"], topic)

    def _connect(self, cluster: str) -> AdminClient:
        return AdminClient(
            {"bootstrap.servers": self._clusters[cluster].bootstrap_servers, "log_level": 0}
        )

    def _read(self, cluster: str) -> Mapping[str, Any]:
        return KafkaReader(connect_to(self._clusters[cluster])).read_cluster().topics

    def _write(self, wanted: Changes) -> None:
        known: dict[str, dict[str, Any]] = {
            name: {"client": {"bootstrap.servers": cluster.bootstrap_servers}}
            for name, cluster in self._clusters.items()
        }
        known["staging"]["client"] = describe_client(self._clusters["staging"])
        known["prod"]["guards"] = wanted["guards"]
        estate = {"version": 1, "defaults": {"replication_factor": 3}, "clusters": known}
        estate["stages"] = wanted.get("stages", {"order": [[name] for name in CLUSTERS]})["order"]
        self._repository.write("clusters.yaml", yaml.safe_dump(estate, sort_keys=False))
        for owner in OWNERS:
            mine = [spec for name, spec in wanted.items() if name.startswith(f"{owner}.")]
            specs = [spec for spec in mine if "gone" not in spec]
            file = self._repository.directory / "topics" / f"{owner}.yaml"
            file.unlink(missing_ok=True)
            if specs:
                self._repository.write(file.name, yaml.safe_dump_all(specs, sort_keys=False))


def _lay(below: Changes, above: Changes) -> Changes:
    laid = deepcopy(below)
    for name, change in above.items():
        laid[name] = {**laid.get(name, {}), **deepcopy(change)}
    return laid
