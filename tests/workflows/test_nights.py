"""What a night applies: only what people accepted, stage by stage; and what requests then say.

It is the same on GitHub and on GitLab, with three real clusters in three stages. It is one test for
each host, because each night begins where the one before it left the clusters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient, ConfigResource
from team import CLUSTERS
from test_team import (
    EVERYWHERE,
    clusters,
    find_comment,
    list_issues,
    list_results,
    team,
)

from reconciler.sandbox.cluster import Cluster

if TYPE_CHECKING:
    from code_host import Talk
    from team import Changes, Team

__all__ = ["clusters", "team"]  # fixtures

DAY = 86_400_000


def spec(name: str, **more: object) -> Changes:
    owner = f"{name.partition('.')[0]}-team"
    wanted = {"topic": name, "owner": owner, "partitions": 6, "config": {"segment.ms": "7d"}}
    return {name: {**wanted, **more}}


GROWN = {"partitions": 9, "acknowledge": ["ordering"]}


def test_the_nights_of_a_team(team: Team, clusters: Mapping[str, Cluster]) -> None:
    begin(team)
    team.pipelines.apply_drift()
    show_requests_that_change_no_topic(team)
    replay_an_approval_that_was_taken_back(team)
    wait_for_a_stage_that_refused(team)
    leave_what_no_review_approved(team)
    leave_what_the_approvers_of_an_environment_keep_back(team)
    restore_what_somebody_changed_by_hand(team)
    compare_with_the_clusters(team, clusters)


def begin(team: Team) -> None:
    changes = spec("orders.events") | spec("payments.events") | spec("search.events")
    request, planned = team.propose(1, changes | spec("web.events"))
    assert planned.code == 0, planned.text
    request.review("alice")
    merged = team.merge(1)
    assert merged.code == 0, merged.text
    assert list_results(request) == EVERYWHERE


def show_requests_that_change_no_topic(team: Team) -> None:
    """One that only removes a spec, one that reverses the stages, one that takes a topic."""
    removing, planned = team.propose(2, {"web.events": {"gone": True}})
    assert planned.code == 0, planned.text
    shown = find_comment(removing, "plan", "dev")
    assert re.search(r"unmanaged since .*: web\.events; nothing is done to them", shown), shown

    order = {"order": [[name] for name in reversed(CLUSTERS)]}
    reversing, planned = team.propose(3, {"stages": order})
    assert planned.code == 0, planned.text
    shown = find_comment(reversing, "plan", "prod")
    assert "loosens stages of prod: no longer after dev, staging" in shown
    team.forget(3)

    taking, planned = team.propose(4, {"search.events": {"owner": "web-team"}})
    assert planned.code == 0, planned.text
    shown = find_comment(taking, "plan", "staging")
    assert "changes the owner from search-team to web-team: search.events" in shown
    team.forget(4)

    removing.review("alice")
    merged = team.merge(2)
    assert merged.code == 0, merged.text
    assert team.sizes("web.events") == [6, 6, 6]


def replay_an_approval_that_was_taken_back(team: Team) -> None:
    for number, days in ((5, "8d"), (6, "7d")):
        request, planned = team.propose(number, {"orders.events": {"config": {"segment.ms": days}}})
        assert planned.code == 0, planned.text
        request.review("alice")
        merged = team.merge(number)
        assert merged.code == 0, merged.text
        assert list_results(request) == EVERYWHERE
    before, merge = team.find_push(5)
    repeated = team.pipelines.repeat("dev", merge, before)
    assert repeated.code == 1
    assert team.configs("orders.events", "segment.ms") == [str(7 * DAY)] * 3
    assert "asks for something else for orders.events" in find_comment(
        team.host.talks[5], "applied", "dev"
    )


def wait_for_a_stage_that_refused(team: Team) -> None:
    """Prod has an approved plan, but staging comes first, by night as by day."""
    request, planned = team.propose(7, {"orders.events": GROWN})
    assert planned.code == 0, planned.text
    request.review("alice")
    team.forbid_growth("orders.events")
    assert team.merge(7).code == 1
    team.pipelines.publish()
    assert list_results(request) == {"dev": "done", "staging": "error"}
    night = team.pipelines.night()
    assert night.code == 1
    assert team.sizes("orders.events") == [9, 6, 6]
    assert list_results(request) == {"dev": "done", "staging": "error"}

    team.allow_growth("orders.events")
    night = team.pipelines.night()
    assert night.code == 0, night.text
    assert team.sizes("orders.events") == [9, 9, 9]
    assert list_results(request) == EVERYWHERE
    assert not any(is_open for _, is_open in list_issues(team))


def leave_what_no_review_approved(team: Team) -> None:
    """A commit was pushed after the approval, and the request was merged all the same."""
    request, planned = team.propose(8, {"payments.events": GROWN})
    assert planned.code == 0, planned.text
    request.review("bob")
    amended = team.amend(8, {"payments.events": {"partitions": 12}})
    assert amended.code == 0, amended.text
    assert team.merge(8).code == 1
    team.pipelines.publish()
    assert list_results(request) == {"dev": "not applied"}
    night = team.pipelines.night()
    assert night.code == 1
    assert team.sizes("payments.events") == [6, 6, 6]
    issues = {i.title.split()[3].rstrip(":"): i.body for i in team.host.issues.values() if i.open}
    assert set(issues) == set(CLUSTERS)
    assert "| `payments.events` | bob approved request 8" in issues["dev"]
    for cluster, text in issues.items():
        found = re.search("[0-9a-f]{64}", text)
        assert found, text
        by_hand = team.pipelines.approve_drift(cluster, found[0])
        assert by_hand.code == 0, by_hand.text
    assert team.sizes("payments.events") == [12, 12, 12]
    assert list_results(request) == EVERYWHERE
    night = team.pipelines.night()
    assert night.code == 0, night.text
    assert not any(is_open for _, is_open in list_issues(team))


def leave_what_the_approvers_of_an_environment_keep_back(team: Team) -> None:
    """The request is approved, and somebody rejected its apply on prod."""
    request, planned = team.propose(9, {"search.events": GROWN})
    assert planned.code == 0, planned.text
    request.review("alice")
    team.pipelines.reject("prod")
    merged = team.merge(9)
    team.pipelines.publish()
    team.pipelines.reject("")
    assert team.sizes("search.events") == [9, 9, 6], merged.text
    request.holds_back["prod"] = "rejected"
    night = team.pipelines.night()
    assert night.code == 1
    assert team.sizes("search.events") == [9, 9, 6]
    (issue,) = (i for i in team.host.issues.values() if i.open)
    assert "request 9 is approved, but " in issue.body
    request.holds_back.clear()
    assert team.pipelines.night().code == 0
    assert team.sizes("search.events") == [9, 9, 9]
    assert list_results(request) == EVERYWHERE


def restore_what_somebody_changed_by_hand(team: Team) -> None:
    """Of a topic whose request is done, every field is accepted."""
    team.alter_by_hand("prod", "search.events", "segment.ms", "100000000")
    night = team.pipelines.night()
    assert night.code == 0, night.text
    assert team.configs("search.events", "segment.ms") == [str(7 * DAY)] * 3


def compare_with_the_clusters(team: Team, clusters: Mapping[str, Cluster]) -> None:
    """Every request says that it is done, or outdated; another client reads what there is."""
    requests: dict[int, Talk] = {n: t for n, t in team.host.talks.items() if t.merged_at}
    for number in (1, 7, 8, 9):
        assert list_results(requests[number]) == EVERYWHERE, number
    assert list_results(requests[5]) == EVERYWHERE | {"dev": "outdated"}
    for cluster in clusters.values():
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        topics = admin.list_topics(timeout=15).topics
        sizes = {name: len(topics[name].partitions) for name in topics if name.endswith(".events")}
        wanted = {"orders.events": 9, "payments.events": 12, "search.events": 9, "web.events": 6}
        assert sizes == wanted
        resources = [ConfigResource("topic", name) for name in sizes]
        for answer in admin.describe_configs(resources).values():
            assert answer.result(timeout=15)["segment.ms"].value == str(7 * DAY)
