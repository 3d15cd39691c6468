"""A season of a team: four owners, twenty topics, three clusters in three stages.

It is the same on GitHub and on GitLab. Every cluster is a real one of its own. It is one test for
each host, because each request begins where the one before it left the clusters.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from act import Act
from authorized import start_authorized
from code_host import serve
from code_hosts import GitHubHost, GitLabHost, WebhookHost
from gitlab_local import GitLabLocal
from runner_clone import Repository
from team import CLUSTERS, OWNERS, OnGitHub, OnGitLab, Team

from reconciler.sandbox.cluster import Cluster, start_cluster

if TYPE_CHECKING:
    from code_host import Talk
    from team import Changes

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
DRIFT = {"dev": 1, "staging": 1, "prod": 2}
"""The number of topics: each has the next step of a gradual change, prod what was left as is."""
GROWN = {"partitions": 9, "acknowledge": ["ordering"]}


@pytest.fixture
def clusters() -> Iterator[Mapping[str, Cluster]]:
    with (
        start_cluster(brokers=3) as dev,
        start_authorized() as staging,
        start_cluster(brokers=3, racks=3) as prod,
    ):
        yield dict(zip(CLUSTERS, (dev, staging, prod), strict=True))


@pytest.fixture(params=[GitHubHost, GitLabHost], ids=["github", "gitlab"])
def team(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    clusters: Mapping[str, Cluster],
    environment: dict[str, str],
    find_tool: Callable[[str], str],
) -> Iterator[Team]:
    directory = tmp_path / "repository"
    directory.mkdir()
    repository = Repository(directory, clusters["dev"], "")
    with serve(request.param()) as host:
        if isinstance(host, GitHubHost):
            on_github = OnGitHub(Act(find_tool("act"), repository, host, environment), repository)
            yield Team(clusters, repository, host, on_github)
        elif isinstance(host, GitLabHost):
            find_tool("rsync")
            local = GitLabLocal(find_tool("gitlab-ci-local"), repository, host, environment)
            on_gitlab = OnGitLab(local, repository)
            on_gitlab.include()
            yield Team(clusters, repository, host, on_gitlab)


def find_comment(request: Talk, kind: str, cluster: str) -> str:
    """Return the newest comment of a kind, such as `plan` or `applied`."""
    mark = f"<!-- reconciler:{kind} cluster={cluster} -->"
    return next(note["body"] for note in request.comments[::-1] if note["body"].startswith(mark))


def list_results(request: Talk) -> dict[str, str]:
    """Return how the apply of each cluster ended, as the comments say."""
    lines = [note["body"].splitlines() for note in request.comments]
    titles = [line[1].split("`") for line in lines if ":applied" in line[0]]
    return {cluster: ended.removeprefix(": ") for _, cluster, ended in titles}


def find_fingerprint(result: str) -> str:
    """Return the fingerprint by which a person approves a plan, as the request says."""
    found = re.search("[0-9a-f]{64}", result.partition("**Next:**")[2])
    assert found, result
    return found[0]


def list_issues(team: Team) -> list[tuple[str, bool]]:
    """Return the title of each issue, and whether it is open; the jobs of a night run at once."""
    return sorted((issue.title, issue.open) for issue in team.host.issues.values())


EVERYWHERE = dict.fromkeys(CLUSTERS, "done")


def test_a_season_of_a_team(team: Team) -> None:
    with serve(WebhookHost()) as webhook:
        assert isinstance(webhook, WebhookHost)
        team.pipelines.notify(webhook.address)
        begin_with_twenty_topics(team)
        merge_two_requests_beside_drift(team)
        loosen_a_guard(team)
        pass_a_merge_queue(team)
        wait_for_a_broker(team)
        lack_a_right(team)
        lower_a_retention_in_three_steps(team)
    titles = Counter(document["title"] for document in webhook.taken)
    assert titles == {
        "Kafka apply on prod: not approved": 1,
        "Kafka apply on dev: refused": 1,
        "Kafka apply on staging: error": 1,
        # Each night tells what it finds before it applies that.
        "Kafka drift on dev: 1 to configure": 3,
        "Kafka drift on staging: 1 to configure": 3,
        "Kafka drift on prod: 2 to configure": 2,
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

    stopped = team.merge(3)
    assert stopped.code == 1
    assert list_results(payments) == EVERYWHERE | {"prod": "not applied"}
    assert team.sizes("payments.created") == [9, 9, 8]
    said = (
        "| `payments.created` | `partitions` | 6 → 9 | 8 → 9 | the topic was expanded meanwhile |"
    )
    result = find_comment(payments, "applied", "prod")
    assert said in result
    by_hand = team.pipelines.approve("prod", find_fingerprint(result))
    assert by_hand.code == 0, by_hand.text
    team.pipelines.publish()
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
    queued = team.pipelines.queue(6)
    assert queued.code == 0, queued.text
    assert queued.text.count("~ configure web.errors") == 3
    assert request.comments == shown
    assert team.merge(6).code == 0
    assert list_results(request) == EVERYWHERE
    assert team.configs("web.errors", "retention.ms") == ["691200000"] * 3


def wait_for_a_broker(team: Team) -> None:
    """With a broker of dev down, three replicas have no place; the same run goes on afterwards."""
    sessions = {"topic": "search.sessions", "owner": "search-team", "partitions": 3}
    request, planned = team.propose(7, {"search.sessions": sessions})
    assert planned.code == 0, planned.text
    team.stop_broker("dev", 3)
    stopped = team.merge(7)
    assert stopped.code == 1
    assert list_results(request) == {"dev": "refused"}
    assert team.sizes("search.sessions") == [0, 0, 0]
    assert "`search.sessions`" in find_comment(request, "applied", "dev")
    team.start_broker("dev", 3)
    again = team.go_on()
    assert again.code == 0, again.text
    assert list_results(request) == EVERYWHERE
    assert team.sizes("search.sessions") == [3, 3, 3]


def lack_a_right(team: Team) -> None:
    """The account that applies may not expand a topic on staging; prod waits until it may."""
    request, planned = team.propose(8, {"web.closed": GROWN})
    assert planned.code == 0, planned.text
    team.forbid_growth("web.closed")
    failed = team.merge(8)
    assert failed.code == 1
    assert list_results(request) == {"dev": "done", "staging": "error"}
    result = find_comment(request, "applied", "staging")
    assert "cluster-rights" in result
    assert "web.closed" in result
    assert team.sizes("web.closed") == [9, 6, 6]
    team.allow_growth("web.closed")
    again = team.go_on("staging")
    assert again.code == 0, again.text
    assert list_results(request) == EVERYWHERE, again.text
    assert team.sizes("web.closed") == [9, 9, 9]


def lower_a_retention_in_three_steps(team: Team) -> None:
    """The merge makes the first step. A night shows the rest, the later ones also apply it."""
    lower = {"config": {"retention.ms": "1d"}, "gradual": True, "acknowledge": ["data-loss"]}
    request, planned = team.propose(9, {"orders.changed": lower})
    assert planned.code == 0
    assert team.merge(9).code == 0
    assert team.configs("orders.changed", "retention.ms") == ["345600000"] * 3
    found = [f"Kafka drift on {name}: {count} to configure" for name, count in DRIFT.items()]
    watched = team.pipelines.night()
    assert watched.code == 0, watched.text
    assert list_issues(team) == sorted((title, True) for title in found)

    team.pipelines.apply_drift()
    for number, change, left in ((2, "4d → 2d", "1d"), (3, "2d → 1d", "reached")):
        night = team.pipelines.night()
        assert night.code == 0, night.text
        row = f"| `orders.changed` | `retention.ms` | {number} of 3 | {change} | done | {left} |"
        for cluster in CLUSTERS:
            assert row in find_comment(request, "gradual", cluster)
    assert team.configs("orders.changed", "retention.ms") == ["86400000"] * 3
    assert team.configs("search.audit", "retention.ms") == ["604800000"] * 3
    assert team.pipelines.night().code == 0
    assert not any(is_open for _, is_open in list_issues(team))
