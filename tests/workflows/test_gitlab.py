"""The template of GitLab CI, executed: what the merge request, the issue and the cluster show."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest
import yaml
from code_host import TOKEN, Answer, Fault, serve
from code_hosts import WebhookHost
from gitlab_local import NO_TAGS, GitLabLocal
from runner_clone import ROOT, SECRETS

if TYPE_CHECKING:
    from code_hosts import GitLabHost
    from runner_clone import Repository
    from written import Written


@pytest.fixture
def pipeline(
    repository: Repository,
    gitlab: GitLabHost,
    environment: dict[str, str],
    find_tool: Callable[[str], str],
) -> GitLabLocal:
    find_tool("rsync")
    return GitLabLocal(find_tool("gitlab-ci-local"), repository, gitlab, environment)


@pytest.fixture
def moving(
    repository: Repository,
    gitlab: GitLabHost,
    environment: dict[str, str],
    find_tool: Callable[[str], str],
) -> GitLabLocal:
    """Return pipelines of a cluster whose replicas may move, and that has a topic of two each."""
    find_tool("rsync")
    repository.allow_moves()
    program = find_tool("gitlab-ci-local")
    pipeline = GitLabLocal(program, repository, gitlab, environment, moves=True)
    repository.wish("orders", 2)
    request = gitlab.open_request(12, repository.commit())
    planned = pipeline.plan(12)
    assert planned.code == 0, planned.text
    request.merged_as = request.head
    assert pipeline.apply().code == 0
    return pipeline


def show_jobs(directory: Path, program: str, text: str) -> dict[str, Any]:
    """Return the jobs of a project with this .gitlab-ci.yml, as GitLab would make them."""
    (directory / ".gitlab-ci.yml").write_text(text)
    shutil.copytree(ROOT / ".ci", directory / ".ci")
    for words in (
        ("init", "--quiet", "--initial-branch", "main"),
        ("remote", "add", "origin", "git@gitlab.example:shop/topics.git"),
        ("add", "--all"),
        ("-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "--quiet", "-m", "One"),
        ("update-ref", "refs/remotes/origin/main", "HEAD"),
    ):
        subprocess.run(("git", *words), cwd=directory, check=True)
    command = [program, "--preview", NO_TAGS]
    shown = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=True)
    jobs: dict[str, Any] = yaml.safe_load(shown.stdout[shown.stdout.index("---") :])
    return jobs


def test_image_and_tags_are_inputs(tmp_path: Path, find_tool: Callable[[str], str]) -> None:
    """Jobs that connect run on the runners with these tags; the others, of forks too, on any."""
    jobs = show_jobs(
        tmp_path,
        find_tool("gitlab-ci-local"),
        "include:\n- local: .ci/gitlab-ci.yml\n"
        "  inputs: {cluster: lab, image: registry.example/r:1, tags: [kafka, eu], moves: true}\n"
        "- local: .ci/gitlab-ci.yml\n  inputs: {cluster: other}\n",
    )
    connect = ("plan", "apply", "moves", "drift", "apply drift")
    assert [jobs[f"{job} lab"]["tags"] for job in connect] == [["kafka", "eu"]] * 5
    assert {jobs[f"{job} lab"]["image"]["name"] for job in connect} == {"registry.example/r:1"}
    assert {jobs[f"{job} other"]["image"]["name"] for job in connect} == {"python:3.13"}
    assert jobs["plan lab"]["image"]["entrypoint"] == [""]
    assert [jobs[f"{job} other"]["tags"] for job in connect] == [[]] * 5
    assert "tags" not in jobs["validate topics"]


def test_the_stage_of_an_apply_is_an_input(tmp_path: Path, find_tool: Callable[[str], str]) -> None:
    """A job of a stage waits for those of the earlier stages, also for those that people start."""
    jobs = show_jobs(
        tmp_path,
        find_tool("gitlab-ci-local"),
        "stages: [test, first, deploy]\n"
        "include:\n- local: .ci/gitlab-ci.yml\n"
        "  inputs: {cluster: lab, apply_stage: first, moves: true}\n"
        "- local: .ci/gitlab-ci.yml\n  inputs: {cluster: other}\n",
    )
    names = ("apply lab", "moves lab", "apply other")
    assert [jobs[name]["stage"] for name in names] == ["first", "deploy", "deploy"]
    for rule in jobs["apply lab"]["rules"]:
        assert (rule["when"], rule.get("allow_failure", False)) == ("manual", False)


def test_each_event_has_its_jobs(repository: Repository, pipeline: GitLabLocal) -> None:
    repository.wish("orders", 3)
    repository.commit()
    assert pipeline.list_merge_request() == ["validate topics", "plan lab", "plan other"]
    assert pipeline.list_merge_request(fork=True) == ["validate topics"]
    assert pipeline.list_push() == ["validate topics", "apply lab", "apply other"]
    assert pipeline.list_night() == ["drift lab", "drift other"]


def test_a_merge_request_is_planned_approved_merged_and_applied(
    repository: Repository, gitlab: GitLabHost, pipeline: GitLabLocal, written: Written
) -> None:
    repository.wish("orders", 3)
    request = gitlab.open_request(12, repository.commit(), ("alice", "have a look"))
    first = pipeline.plan(12)
    assert first.code == 0, first.text
    repository.wish("orders", 4)
    request.head = repository.commit()
    second = pipeline.plan(12)
    assert second.code == 0
    _, note = request.comments
    assert note["body"].startswith("<!-- reconciler:plan cluster=lab -->")
    assert "4 partitions × 2 replicas" in note["body"]
    assert repository.partitions() == {}

    request.merged_as = repository.git("rev-parse", "HEAD")
    merged = pipeline.apply()
    assert merged.code == 0, merged.text
    assert repository.partitions() == {"orders": 4}
    assert "### Kafka apply on `lab`: done" in request.comments[2]["body"]
    again = pipeline.apply()
    assert again.code == 0
    assert "Applied" not in again.text
    runs = (first, second, merged, again)
    shown = [run.text for run in runs] + [note["body"] for note in request.comments]
    assert written.find((TOKEN, *SECRETS.values()), *shown) == []


def test_moves_are_shown_with_the_changes_and_made_by_a_job_of_their_own(
    repository: Repository, gitlab: GitLabHost, moving: GitLabLocal, written: Written
) -> None:
    repository.wish("orders", 3, replication_factor="3")
    request = gitlab.open_request(13, repository.commit())
    assert moving.list_push() == [
        "validate topics",
        "apply lab",
        "moves lab",
        "apply other",
    ]
    planned = moving.plan(13)
    assert planned.code == 0, planned.text
    (note,) = request.comments
    assert "1 to expand" in note["body"]
    assert "2 replicas of 2 partitions are copied" in note["body"]
    assert moving.move().code == 1  # not merged yet, so not approved
    assert repository.replicas("orders") == [2, 2]

    request.merged_as = request.head
    moved = moving.move()
    assert moved.code == 0, moved.text
    assert repository.replicas("orders") == [3, 3]
    assert repository.partitions() == {"orders": 2}
    again = moving.move()
    assert again.code == 0
    assert "Applied" not in again.text
    shown = [planned.text, moved.text, again.text, *(note["body"] for note in request.comments)]
    assert written.find((TOKEN, *SECRETS.values()), *shown) == []


def test_a_run_of_moves_is_continued_by_its_saved_plan(
    repository: Repository, gitlab: GitLabHost, moving: GitLabLocal, written: Written
) -> None:
    repository.wish("orders", 2, replication_factor="3")
    gitlab.open_request(13, repository.commit())
    assert moving.plan(13).code == 0
    saved = json.loads((repository.directory / "moves-lab.json").read_text())
    gitlab.artifacts[7, "moves-lab.json"] = saved
    other = moving.move(RUN="7", FINGERPRINT="0" * 64)
    assert other.code == 1
    assert "[plan-unexpected]" in other.text
    assert moving.move(RUN="8", FINGERPRINT=saved["fingerprint"]).code != 0
    assert repository.replicas("orders") == [2, 2]
    moved = moving.move(RUN="7", FINGERPRINT=saved["fingerprint"])
    assert moved.code == 0, moved.text
    assert repository.replicas("orders") == [3, 3]
    assert written.find([TOKEN], other.text, moved.text) == []


def test_a_cluster_that_moved_since_is_left_alone_until_somebody_approves(
    repository: Repository, gitlab: GitLabHost, pipeline: GitLabLocal
) -> None:
    repository.wish("orders", 3, config="{retention.ms: 7d}")
    request = gitlab.open_request(12, repository.commit())
    pipeline.plan(12)
    request.merged_as = request.head
    assert pipeline.apply().code == 0

    repository.wish("orders", 6, config="{retention.ms: 7d}")
    request = gitlab.open_request(13, repository.commit())
    pipeline.plan(13)
    repository.alter("orders", "retention.ms", "100000000")
    request.merged_as = request.head
    refused = pipeline.apply()
    assert refused.code == 1
    assert "[plan-unexpected]" in refused.text
    assert repository.partitions() == {"orders": 3}
    assert "| no change | 100000s (100000000) → 7d (604800000) |" in request.comments[1]["body"]
    fresh = refused.text.partition("the plan's fingerprint is ")[2].partition(",")[0]
    assert pipeline.apply(FINGERPRINT=fresh).code == 0
    assert repository.partitions() == {"orders": 6}


def test_a_rerun_after_the_review_does_not_change_what_is_approved(
    repository: Repository, gitlab: GitLabHost, pipeline: GitLabLocal
) -> None:
    repository.wish("orders", 3, config="{retention.ms: 7d}")
    request = gitlab.open_request(12, repository.commit())
    pipeline.plan(12)
    request.merged_as = request.head
    assert pipeline.apply().code == 0

    repository.wish("orders", 6, config="{retention.ms: 7d}")
    request = gitlab.open_request(12, repository.commit())
    assert pipeline.plan(12).code == 0
    request.review("alice")
    repository.alter("orders", "retention.ms", "100000000")
    assert pipeline.plan(12).code == 0
    _, second = (note["body"] for note in request.comments)
    assert "**This plan needs a new review.** alice approved request 12" in second
    request.merged_as = request.head
    assert pipeline.apply().code == 1
    assert repository.partitions() == {"orders": 3}
    _, _, result = (note["body"] for note in request.comments)
    assert "a different plan later, which nobody reviewed" in result
    assert pipeline.plan(12).code == 0
    assert [note["body"] for note in request.comments[1:]] == [second, result]


def test_an_approved_plan_survives_another_merge_that_leaves_it_as_good(
    repository: Repository, gitlab: GitLabHost, pipeline: GitLabLocal
) -> None:
    """Nine partitions on three brokers leave leaders and replicas even; next leaders change."""
    for number, name in ((12, "orders"), (13, "clicks")):
        repository.git("switch", "--quiet", "--create", name, "main")
        repository.wish(name, 9)
        gitlab.open_request(number, repository.commit())
        assert pipeline.plan(number).code == 0
    for number, name in ((12, "orders"), (13, "clicks")):
        repository.git("switch", "--quiet", "main")
        repository.git("merge", "--quiet", "--no-ff", "--message", f"Merge {name}", name)
        gitlab.talks[number].merged_as = repository.git("rev-parse", "HEAD")
        merged = pipeline.apply()
        assert merged.code == 0, merged.text
        assert "Applied: 1 done" in merged.text
    assert repository.partitions() == {"orders": 9, "clicks": 9}


def test_an_approval_is_not_used_again_once_a_later_request_took_it_back(
    repository: Repository, gitlab: GitLabHost, pipeline: GitLabLocal
) -> None:
    """The job of the first request is repeated when its plan is the approved one once more."""
    merged = {}
    for number, days in ((11, 7), (12, 8), (13, 7)):
        repository.wish("orders", 3, config=f"{{segment.ms: {days}d}}", owner=f"team-{number}")
        request = gitlab.open_request(number, repository.commit())
        planned = pipeline.plan(number)
        assert planned.code == 0, planned.text
        request.merged_as = request.head
        applied = pipeline.apply()
        assert applied.code == 0, applied.text
        merged[number] = pipeline.before, request.head
        pipeline.publish()
    before, commit = merged[12]
    repeated = pipeline.repeat("apply lab", commit, before)
    assert repeated.code == 1
    assert "Outdated. Nothing was changed." in repeated.text
    assert repository.config("orders", "segment.ms") == str(7 * 86_400_000)
    _, result = (note["body"] for note in gitlab.talks[12].comments)
    said = (
        f"origin/main ({merged[13][1][:10]}) asks for something else for {repository.prefix}orders"
    )
    assert "### Kafka apply on `lab`: outdated" in result
    assert said in result


def test_a_merge_train_plans_what_a_request_adds_and_writes_no_note(
    repository: Repository, gitlab: GitLabHost, pipeline: GitLabLocal
) -> None:
    """The first request of the train is not merged yet; the second one is planned on top of it."""
    repository.wish("orders", 2)
    first = repository.commit()
    repository.wish("clicks", 2)
    request = gitlab.open_request(13, repository.commit())
    planned = pipeline.ride(13, first)
    assert planned.code == 0, planned.text
    assert f"+ create    {repository.prefix}clicks" in planned.text
    assert f"+ create    {repository.prefix}orders" not in planned.text
    repository.wish("clicks", 2, replication_factor="9")
    repository.commit()
    assert pipeline.ride(13, first).code == 1
    assert request.comments == []


def test_drift_of_another_topic_is_left_to_the_nightly_job(
    repository: Repository,
    gitlab: GitLabHost,
    environment: dict[str, str],
    find_tool: Callable[[str], str],
) -> None:
    find_tool("rsync")
    repository.wish("orders", 3, config="{retention.ms: 7d}")
    program = find_tool("gitlab-ci-local")
    pipeline = GitLabLocal(program, repository, gitlab, environment, apply_drift=True)
    assert pipeline.list_night() == ["drift lab", "drift other", "apply drift lab"]
    repository.wish("clicks", 2)
    request = gitlab.open_request(12, repository.commit())
    planned = pipeline.plan(12)
    assert planned.code == 0, planned.text
    assert "Existing drift of 1 other topic" in request.comments[0]["body"]
    request.merged_as = request.head
    merged = pipeline.apply()
    assert merged.code == 0, merged.text
    assert repository.partitions() == {"clicks": 2}

    # No request brought its spec, so a person approves it.
    night = pipeline.apply_drift()
    assert night.code == 1
    assert repository.partitions() == {"clicks": 2}
    (issue,) = gitlab.issues.values()
    assert issue.title == "Kafka drift on lab: 1 to create"
    assert "orders` | its spec came with" in issue.body
    (fingerprint,) = set(re.findall("[0-9a-f]{64}", issue.body))
    event = {"CI_PIPELINE_SOURCE": "web", "FINGERPRINT": fingerprint}
    by_hand = pipeline.run_job("apply lab", event)
    assert by_hand.code == 0, by_hand.text
    assert repository.partitions() == {"clicks": 2, "orders": 3}
    assert pipeline.drift().code == 0
    assert not issue.open


def test_a_night_reports_the_step_of_a_gradual_change_on_its_merge_request(
    repository: Repository,
    gitlab: GitLabHost,
    environment: dict[str, str],
    find_tool: Callable[[str], str],
) -> None:
    find_tool("rsync")
    program = find_tool("gitlab-ci-local")
    pipeline = GitLabLocal(program, repository, gitlab, environment, apply_drift=True)
    lowered = {"gradual": "true", "acknowledge": "[data-loss]"}
    for number, days, more in ((11, 7, {}), (12, 1, lowered)):
        repository.wish("orders", 3, config=f"{{retention.ms: {days}d}}", **more)
        request = gitlab.open_request(number, repository.commit())
        assert pipeline.plan(number).code == 0
        request.merged_as = request.head
        applied = pipeline.apply()
        assert applied.code == 0, applied.text
        pipeline.publish()
    for number, change, left in ((2, "4d → 2d", "1d"), (3, "2d → 1d", "reached")):
        night = pipeline.apply_drift()
        assert night.code == 0, night.text
        (note,) = (n["body"] for n in request.comments if "reconciler:gradual" in n["body"])
        assert f"| {number} of 3 | {change} | done | {left} |" in note


def test_a_request_cannot_choose_where_its_plan_connects_or_what_it_overwrites(
    repository: Repository, gitlab: GitLabHost, pipeline: GitLabLocal, tmp_path: Path
) -> None:
    repository.connect("127.0.0.1:9")
    repository.wish("orders", 3)
    outside = tmp_path / "outside"
    outside.write_text("kept")
    for name in ("plan-lab.json", "errors-lab.txt", "validate.xml"):
        (repository.directory / name).symlink_to(outside)
    gitlab.open_request(12, repository.commit())
    run = pipeline.plan(12)
    assert run.code == 0, run.text
    assert "1 to create" in gitlab.talks[12].comments[0]["body"]
    assert "differs in bootstrap.servers" in gitlab.talks[12].comments[0]["body"]
    assert pipeline.validate().code == 0
    assert outside.read_text() == "kept"


def test_what_no_request_showed_is_not_applied(
    repository: Repository, gitlab: GitLabHost, pipeline: GitLabLocal
) -> None:
    repository.wish("orders", 3)
    repository.commit()
    run = pipeline.apply()
    assert run.code == 1
    assert "no plan for lab was approved" in run.text
    assert repository.partitions() == {}


def test_validation_is_a_test_report(repository: Repository, pipeline: GitLabLocal) -> None:
    repository.wish("orders", 3)
    repository.commit()
    assert pipeline.validate().code == 0
    repository.wish("orders", 3, retention="7d")
    repository.commit()
    run = pipeline.validate()
    assert run.code == 1
    assert "topics/orders.yaml:4:1: error:" in run.text
    report = repository.directory / "validate.xml"
    failures = ElementTree.parse(report).getroot().iter("failure")  # our own
    assert [failure.get("type") for failure in failures] == ["key-unknown"]


def test_drift_opens_updates_and_closes_one_issue(
    repository: Repository, gitlab: GitLabHost, pipeline: GitLabLocal
) -> None:
    repository.wish("orders", 3, config="{retention.ms: 7d}")
    request = gitlab.open_request(12, repository.commit())
    pipeline.plan(12)
    request.merged_as = request.head
    assert pipeline.apply().code == 0

    assert pipeline.drift().code == 0
    assert gitlab.issues == {}
    for value in ("100000000", "200000000"):
        repository.alter("orders", "retention.ms", value)
        assert pipeline.drift().code == 0
    (issue,) = gitlab.issues.values()
    assert issue.title == "Kafka drift on lab: 1 to configure"
    assert "200000000" in issue.body
    repository.alter("orders", "retention.ms", "604800000")
    assert pipeline.drift().code == 0
    assert not issue.open


def test_a_webhook_is_notified_and_its_failure_fails_no_job(
    repository: Repository, pipeline: GitLabLocal, written: Written
) -> None:
    repository.wish("orders", 3)
    repository.commit()
    with serve(WebhookHost()) as webhook:
        assert isinstance(webhook, WebhookHost)
        variables = {"RECONCILER_WEBHOOK": webhook.address}
        assert pipeline.apply(**variables).code == 1  # no request showed it
        assert pipeline.drift(**variables).code == 0
        webhook.faults.append(Fault("POST", Answer(404, "no_service")))
        drift = pipeline.drift(**variables)
    assert drift.code == 0
    assert "[webhook-answer]" in drift.text
    assert [message["text"] for message in webhook.taken] == [
        "Kafka apply on lab: not approved",
        "Kafka drift on lab: 1 to create",
    ]
    assert written.find([webhook.path], drift.text) == []
