"""A season of a team: four owners, twenty topics, three clusters in three stages.

Every cluster is a real one of its own. It is one test, because each request begins where the one
before it left the clusters.
"""

from __future__ import annotations

import json
from collections import Counter
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from act import Act
from code_host import serve
from code_hosts import WebhookHost
from confluent_kafka.admin import AdminClient, NewPartitions
from lab import connect_to
from runner_clone import Repository, alter

from reconciler.kafka import KafkaReader
from reconciler.sandbox import start_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from act import Ran
    from code_host import Talk
    from code_hosts import GitHubHost

    from reconciler.sandbox import Cluster

CLUSTERS = ("dev", "staging", "prod")
OWNERS = ("orders", "payments", "search", "web")
FACTS = ("created", "changed", "closed", "audit", "errors")
TWENTY = {
    f"{owner}.{fact}": {
        "topic": f"{owner}.{fact}",
        "owner": f"{owner}-team",
        "partitions": 6,
        "config": {"retention.ms": "7d"},
    }
    for owner in OWNERS
    for fact in FACTS
}
GROWN = {"partitions": 9, "acknowledge": ["ordering"]}

Changes = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def clusters() -> Iterator[Mapping[str, Cluster]]:
    with (
        start_cluster(brokers=3) as dev,
        start_cluster(brokers=3) as staging,
        start_cluster(brokers=3, racks=3) as prod,
    ):
        yield dict(zip(CLUSTERS, (dev, staging, prod), strict=True))


class Team:
    """Their repository, its code host, and their clusters."""

    def __init__(
        self, clusters: Mapping[str, Cluster], repository: Repository, github: GitHubHost, act: Act
    ) -> None:
        self.clusters, self.repository = clusters, repository
        self.github, self.act = github, act
        self._merged: Changes = {"guards": {"from": "base"}}
        self._open: dict[int, Changes] = {}
        act.variables["RECONCILER_CLUSTERS"] = json.dumps(CLUSTERS)
        self._write(self._merged)
        repository.commit()
        repository.merge()

    def propose(self, number: int, changes: Changes) -> tuple[Talk, Ran]:
        """Open a request that changes topics, or `guards`, and plan it."""
        self.repository.git("switch", "--quiet", "--create", f"request-{number}", "main")
        self._open[number] = changes
        self._write(_lay(self._merged, changes))
        request = self.github.open_request(number, self.repository.commit())
        return request, self.act.pull(number)

    def plan_again(self, number: int) -> Ran:
        self.repository.git("switch", "--quiet", f"request-{number}")
        return self.act.pull(number)

    def merge(self, number: int) -> Ran:
        """Merge a request, and run what the push starts; a run that fails can be run again."""
        self.repository.git("switch", "--quiet", "main")
        words = ("--quiet", "--no-ff", "--message", f"Merge {number}", f"request-{number}")
        self.repository.git("merge", *words)
        self._merged = _lay(self._merged, self._open.pop(number))
        self.github.talks[number].merged_as = self.repository.git("rev-parse", "HEAD")
        ran = self.act.push()
        if ran.code == 0:
            self.repository.merge()
        return ran

    def sizes(self, name: str) -> list[int]:
        """Return how many partitions a topic has on each cluster."""
        return [len(self._read(cluster)[name].assignment) for cluster in CLUSTERS]

    def configs(self, name: str, key: str) -> list[str]:
        """Return the value of a config of a topic on each cluster."""
        return [self._read(cluster)[name].config.get(key, "") for cluster in CLUSTERS]

    def expand_by_hand(self, cluster: str, name: str, partitions: int) -> None:
        admin = self._connect(cluster)  # lives until the answer is here
        admin.create_partitions([NewPartitions(name, partitions)])[name].result(timeout=15)

    def alter_by_hand(self, cluster: str, name: str, key: str, value: str) -> None:
        alter(self._connect(cluster), name, key, value)

    def _connect(self, cluster: str) -> AdminClient:
        return AdminClient(
            {"bootstrap.servers": self.clusters[cluster].bootstrap_servers, "log_level": 0}
        )

    def _read(self, cluster: str) -> Mapping[str, Any]:
        return KafkaReader(connect_to(self.clusters[cluster])).read_cluster().topics

    def _write(self, wanted: Changes) -> None:
        known: dict[str, dict[str, Any]] = {
            name: {"client": {"bootstrap.servers": cluster.bootstrap_servers}}
            for name, cluster in self.clusters.items()
        }
        known["prod"]["guards"] = wanted["guards"]
        estate = {"version": 1, "defaults": {"replication_factor": 3}, "clusters": known}
        estate["stages"] = [[name] for name in CLUSTERS]
        self.repository.write("clusters.yaml", yaml.safe_dump(estate, sort_keys=False))
        for owner in OWNERS:
            if specs := [spec for name, spec in wanted.items() if name.startswith(f"{owner}.")]:
                self.repository.write(f"{owner}.yaml", yaml.safe_dump_all(specs, sort_keys=False))


def _lay(below: Changes, above: Changes) -> Changes:
    laid = deepcopy(below)
    for name, change in above.items():
        laid[name] = {**laid.get(name, {}), **deepcopy(change)}
    return laid


@pytest.fixture
def team(
    tmp_path: Path,
    clusters: Mapping[str, Cluster],
    github: GitHubHost,
    environment: dict[str, str],
    find_tool: Callable[[str], str],
) -> Team:
    directory = tmp_path / "repository"
    directory.mkdir()
    repository = Repository(directory, clusters["dev"], "")
    act = Act(find_tool("act"), repository, github, environment)
    return Team(clusters, repository, github, act)


def find_comment(request: Talk, kind: str, cluster: str) -> str:
    """Return the newest comment of a kind, such as `plan` or `applied`."""
    mark = f"<!-- reconciler:{kind} cluster={cluster} -->"
    return next(note["body"] for note in request.comments[::-1] if note["body"].startswith(mark))


def list_results(request: Talk) -> dict[str, str]:
    """Return how the apply of each cluster ended, as the comments say."""
    lines = [note["body"].splitlines() for note in request.comments]
    titles = [line[1].split("`") for line in lines if ":applied" in line[0]]
    return {cluster: ended.removeprefix(": ") for _, cluster, ended in titles}


EVERYWHERE = dict.fromkeys(CLUSTERS, "done")


def test_a_season_of_a_team(team: Team) -> None:
    with serve(WebhookHost()) as webhook:
        assert isinstance(webhook, WebhookHost)
        team.act.secrets["RECONCILER_WEBHOOK"] = webhook.address
        team.act.variables["RECONCILER_WEBHOOK_FORMAT"] = "json"
        begin_with_twenty_topics(team)
        merge_two_requests_beside_drift(team)
        loosen_a_guard(team)
        pass_a_merge_queue(team)
        wait_for_a_broker(team)
        lower_a_retention_in_three_steps(team)
    titles = Counter(document["title"] for document in webhook.taken)
    assert titles == {
        "Kafka apply on prod: not approved": 1,
        "Kafka apply on dev: refused": 1,
        # Each night tells what it finds before it applies that.
        "Kafka drift on dev: 1 to configure": 2,
        "Kafka drift on staging: 1 to configure": 2,
        "Kafka drift on prod: 2 to configure": 1,
        "Kafka drift on prod: 1 to configure": 1,
    }


def begin_with_twenty_topics(team: Team) -> None:
    """They reach one cluster after the other."""
    request, planned = team.propose(1, TWENTY)
    assert planned.code == 0, planned.text
    shown = find_comment(request, "plan", "prod")
    assert "### Kafka plan for `prod`: 20 to create" in shown
    assert "Stage 3 of 3, after dev, staging" in shown
    assert "Size: 20 topics, 120 partitions, 360 replicas added." in shown
    for owner in OWNERS:
        assert f"| `{owner}-team` | 5 | +5 | +30 | +90 |" in shown
    request.review("alice")
    merged = team.merge(1)
    assert merged.code == 0, merged.text
    assert list_results(request) == EVERYWHERE
    assert all(team.sizes(name) == [6, 6, 6] for name in TWENTY)


def merge_two_requests_beside_drift(team: Team) -> None:
    """One is planned again after its review, the other after a change of its topic by hand."""
    team.alter_by_hand("prod", "search.audit", "retention.ms", "100000000")
    orders, first = team.propose(2, {"orders.created": GROWN})
    payments, second = team.propose(3, {"payments.created": GROWN})
    assert (first.code, second.code) == (0, 0)
    for request in (orders, payments):
        assert "Existing drift of 1 other topic" in find_comment(request, "plan", "prod")
        assert "Existing drift" not in find_comment(request, "plan", "dev")
    orders.review("alice")
    payments.review("bob")
    approved = deepcopy(orders.comments)
    assert team.plan_again(2).code == 0
    assert orders.comments == approved

    team.expand_by_hand("prod", "payments.created", 8)
    assert team.plan_again(3).code == 0
    assert "**This plan needs a new review.**" in find_comment(payments, "plan", "prod")

    merged = team.merge(2)
    assert merged.code == 0, merged.text
    assert list_results(orders) == EVERYWHERE
    assert team.sizes("orders.created") == [9, 9, 9]

    before = team.repository.git("rev-parse", "refs/remotes/origin/main")
    stopped = team.merge(3)
    assert stopped.code == 1
    assert list_results(payments) == EVERYWHERE | {"prod": "not applied"}
    assert team.sizes("payments.created") == [9, 9, 8]
    said = (
        "| `payments.created` | `partitions` | 6 → 9 | 8 → 9 | the topic was expanded meanwhile |"
    )
    assert said in find_comment(payments, "applied", "prod")
    fresh = json.loads((stopped.artifacts / "apply-prod" / "plan.json").read_text())
    assert team.act.dispatch(fresh["fingerprint"], before, cluster="prod").code == 0
    team.repository.merge()
    assert list_results(payments) == EVERYWHERE
    assert team.sizes("payments.created") == [9, 9, 9]
    assert team.configs("search.audit", "retention.ms") == ["604800000", "604800000", "100000000"]


def loosen_a_guard(team: Team) -> None:
    """The guard on main holds for the request that loosens it."""
    _, planned = team.propose(4, {"guards": {"max_changed": "10%"}})
    assert planned.code == 0, planned.text
    assert team.merge(4).code == 0
    changes: Changes = {name: {"config": {"retention.ms": "8d"}} for name in list(TWENTY)[5:13]}
    request, planned = team.propose(5, {"guards": {"max_changed": "90%"}, **changes})
    assert planned.code == 1
    shown = find_comment(request, "plan", "prod")
    assert "**The request loosens guards.max_changed of prod: 10% → 90%" in shown
    assert "`guard-max-changed`" in shown
    assert "to configure" in find_comment(request, "plan", "dev")


def pass_a_merge_queue(team: Team) -> None:
    request, planned = team.propose(6, {"web.errors": {"config": {"retention.ms": "8d"}}})
    assert planned.code == 0
    shown = deepcopy(request.comments)
    queued = team.act.queue()
    assert queued.code == 0, queued.text
    assert "### Kafka plan for `prod`: 1 to configure" in queued.summary
    assert request.comments == shown
    assert team.merge(6).code == 0
    assert list_results(request) == EVERYWHERE
    assert team.configs("web.errors", "retention.ms") == ["691200000"] * 3


def wait_for_a_broker(team: Team) -> None:
    """With a broker of dev down, three replicas have no place; the same run goes on afterwards."""
    sessions = {"topic": "search.sessions", "owner": "search-team", "partitions": 3}
    request, planned = team.propose(7, {"search.sessions": sessions})
    assert planned.code == 0, planned.text
    team.clusters["dev"].stop_broker(3)
    stopped = team.merge(7)
    assert stopped.code == 1
    assert list_results(request) == {"dev": "refused"}
    assert "`search.sessions`" in find_comment(request, "applied", "dev")
    team.clusters["dev"].start_broker(3)
    assert team.act.push().code == 0
    team.repository.merge()
    assert list_results(request) == EVERYWHERE
    assert team.sizes("search.sessions") == [3, 3, 3]


def lower_a_retention_in_three_steps(team: Team) -> None:
    """The merge makes the first step, and each night one more, beside the drift."""
    lower = {"config": {"retention.ms": "1d"}, "gradual": True, "acknowledge": ["data-loss"]}
    request, planned = team.propose(9, {"orders.changed": lower})
    assert planned.code == 0
    assert team.merge(9).code == 0
    assert team.configs("orders.changed", "retention.ms") == ["345600000"] * 3
    team.act.variables["RECONCILER_APPLY_DRIFT"] = json.dumps(CLUSTERS)
    for number, change, left in ((2, "4d → 2d", "1d"), (3, "2d → 1d", "reached")):
        night = team.act.night()
        assert night.code == 0, night.text
        row = f"| `orders.changed` | `retention.ms` | {number} of 3 | {change} | done | {left} |"
        for cluster in CLUSTERS:
            assert row in find_comment(request, "gradual", cluster)
    assert team.configs("orders.changed", "retention.ms") == ["86400000"] * 3
    assert team.configs("search.audit", "retention.ms") == ["604800000"] * 3
    assert team.act.night().code == 0
    assert not any(issue.open for issue in team.github.issues.values())
