"""The workflows of GitHub, executed: what the pull request, the run and the cluster show."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from act import Act
from code_host import MERGED, TOKEN, Answer, Fault, serve
from code_hosts import WebhookHost
from runner_clone import SECRETS, copy_source

if TYPE_CHECKING:
    from code_hosts import GitHubHost
    from runner_clone import Repository
    from written import Written


@pytest.fixture
def act(
    repository: Repository,
    github: GitHubHost,
    environment: dict[str, str],
    find_tool: Callable[[str], str],
) -> Act:
    return Act(find_tool("act"), repository, github, environment)


def comments(host: GitHubHost) -> list[str]:
    return [note["body"] for note in host.talks[12].comments]


def test_a_pull_request_is_planned_approved_merged_and_applied(
    repository: Repository, github: GitHubHost, act: Act, written: Written
) -> None:
    repository.wish("orders", 3)
    request = github.open_request(12, repository.commit(), ("alice", "have a look"))
    first = act.pull()
    assert (first.code, first.jobs) == (0, {"validate", "plan (lab)", "planned"})
    assert [text.partition("\n")[0] for text in comments(github)] == [
        "have a look",
        "<!-- reconciler:plan cluster=lab -->",
    ]
    assert "1 topic in 1 file, 1 cluster: all good" in first.text

    repository.wish("orders", 4)
    repository.wish("clicks", 2)
    request.head = repository.commit()
    second = act.pull()
    planned = second.outputs()
    assert (planned["changes"], planned["refused"]) == ("2", "0")
    assert "### Kafka plan for `lab`: 2 to create" in second.summary
    assert len(comments(github)) == 2
    assert planned["fingerprint"] in comments(github)[1]
    saved = json.loads((second.artifacts / "plan-lab" / "plan.json").read_text())
    assert saved["fingerprint"] == planned["fingerprint"]
    assert repository.partitions() == {}

    request.merged_as = repository.commit()
    merged = act.push()
    assert (merged.code, merged.jobs) == (0, {"stages", "plan (lab)", "apply (lab)"})
    assert repository.partitions() == {"orders": 4, "clicks": 2}
    assert "**lab**: Applied: 2 done" in merged.summary
    journal = (merged.artifacts / "apply-lab" / "journal.jsonl").read_text()
    assert '"kind": "done"' in journal
    assert "### Kafka apply on `lab`: done\n\n2 topics are as planned" in comments(github)[2]

    again = act.push()
    assert (again.code, again.jobs) == (0, {"stages", "plan (lab)"})
    assert written.find((TOKEN, *SECRETS.values()), *comments(github)) == []


SHOWS = """\
on: push
jobs:
  show:
    runs-on: ubuntu-latest
    steps:
      - run: reconciler validate "$KAFKA_PASSWORD"
        env: {KAFKA_PASSWORD: "${{ secrets.KAFKA_PASSWORD }}"}
"""


def test_a_secret_that_is_written_is_found_although_the_host_masks_it(
    repository: Repository, act: Act, written: Written
) -> None:
    (repository.directory / ".github" / "workflows" / "own.yml").write_text(SHOWS)
    repository.commit()
    run = act.run("push", "own.yml", {"ref": "refs/heads/main"})
    assert run.code == 1
    assert SECRETS["KAFKA_PASSWORD"] not in run.text
    ((_, found),) = written.find(SECRETS.values())
    assert found == SECRETS["KAFKA_PASSWORD"]


@pytest.fixture
def staged(repository: Repository, act: Act) -> Act:
    """Return workflows of three clusters in three stages."""
    act.variables["RECONCILER_CLUSTERS"] = '["prod", "staging", "dev"]'
    repository.connect_stages()
    repository.commit()
    repository.merge()
    return act


def test_a_merge_reaches_the_clusters_with_changes_stage_by_stage(
    repository: Repository, github: GitHubHost, staged: Act
) -> None:
    """Staging has no changes. Dev is changed by hand before the merge, so prod has to wait."""
    repository.wish("orders", 3, clusters="[dev]", config="{retention.ms: 8d}")
    repository.wish("carts", 2, clusters="[prod]")
    request = github.open_request(12, repository.commit())
    assert staged.pull().code == 0
    shown = [text.splitlines()[1:] for text in comments(github)]
    titles = {lines[0]: lines for lines in shown}
    assert set(titles) == {
        "### Kafka plan for `dev`: 1 to create",
        "### Kafka plan for `prod`: 1 to create",
    }
    assert "Stage 3 of 3, after dev, staging" in titles["### Kafka plan for `prod`: 1 to create"]

    repository.create("orders", 3)
    request.merged_as = request.head
    stopped = staged.push()
    assert (stopped.code, stopped.jobs) == (1, {"stages", "plan (dev)", "apply (dev)"})
    assert "showed a different plan" in stopped.summary
    assert repository.partitions() == {"orders": 3}

    fresh = json.loads((stopped.artifacts / "apply-dev" / "plan.json").read_text())
    by_hand = staged.dispatch(fresh["fingerprint"], cluster="dev")
    assert (by_hand.code, by_hand.jobs) == (0, {"apply (dev)"}), by_hand.text
    plans = {f"plan ({name})" for name in ("dev", "staging", "prod")}
    continued = staged.push()
    assert (continued.code, continued.jobs) == (0, {"stages", *plans, "apply (prod)"})
    assert repository.partitions() == {"orders": 3, "carts": 2}


def test_a_cluster_that_cannot_be_planned_stops_its_stage_and_the_later_ones(
    repository: Repository, github: GitHubHost, staged: Act
) -> None:
    repository.connect_stages(staging="127.0.0.1:9")
    repository.commit()
    repository.merge()
    repository.wish("orders", 3, clusters="[dev]")
    repository.wish("carts", 2, clusters="[prod]")
    request = github.open_request(12, repository.commit())
    assert staged.pull().code == 1
    request.merged_as = request.head
    stopped = staged.push()
    assert stopped.code == 1
    assert stopped.jobs == {"stages", "plan (dev)", "apply (dev)", "plan (staging)"}
    assert repository.partitions() == {"orders": 3}
    results = [text for text in comments(github) if "### Kafka apply on" in text]
    assert [text.splitlines()[1] for text in results] == [
        "### Kafka apply on `dev`: done",
        "### Kafka apply on `staging`: error",
    ]
    assert "connect-refused" in results[1]


@pytest.mark.parametrize(
    ("failing", "ran"),
    [
        ("", {"stage 1", "stage 3"}),
        ("stage-1", {"stage 1", "stopped"}),
        ("stage-3", {"stage 1", "stage 3", "stopped"}),
    ],
)
def test_a_stage_waits_for_all_before_it_but_not_for_one_without_clusters(
    failing: str, ran: set[str], repository: Repository, staged: Act
) -> None:
    """Act ends a run when a called workflow fails. So jobs of one step stand for the stages."""
    path = repository.directory / ".github" / "workflows" / "apply.yml"
    workflow = yaml.safe_load(path.read_text())
    workflow["on"] = workflow.pop(True)  # YAML 1.1
    for name, job in workflow["jobs"].items():
        if name.startswith("stage-"):
            for key in ("uses", "with", "secrets"):
                del job[key]
            job |= {"runs-on": "ubuntu-latest", "steps": [{"run": f"[ {name} != '{failing}' ]"}]}
    path.write_text(yaml.safe_dump(workflow))
    repository.commit()
    staged.variables["RECONCILER_CLUSTERS"] = '["dev", "prod"]'
    run = staged.push()
    assert (run.code, run.jobs) == (1 if failing else 0, {"stages", *ran})
    if failing == "stage-1":
        assert "| 1 | dev | failure |" in run.summary
        assert "| 3 | prod | skipped |" in run.summary


@pytest.fixture
def moving(repository: Repository, github: GitHubHost, act: Act) -> Act:
    """Return workflows of a cluster whose replicas may move, and that has a topic of two each."""
    act.variables["RECONCILER_MOVES"] = '["lab"]'
    repository.allow_moves()
    repository.commit()
    repository.merge()
    repository.wish("orders", 2)
    request = github.open_request(12, repository.commit())
    assert act.pull().code == 0
    request.merged_as = repository.commit()
    assert act.push().code == 0
    repository.merge()
    return act


def test_moves_are_shown_with_the_changes_and_made_by_a_workflow_of_their_own(
    repository: Repository, github: GitHubHost, moving: Act
) -> None:
    repository.wish("orders", 3, replication_factor="3")
    request = github.open_request(13, repository.commit())
    planned = moving.pull(13)
    assert planned.code == 0
    (note,) = request.comments
    assert "1 to expand" in note["body"]
    assert "2 replicas of 2 partitions are copied" in note["body"]

    request.merged_as = repository.commit()
    moved = moving.move()
    assert (moved.code, moved.jobs) == (0, {"moves (lab)"})
    assert repository.replicas("orders") == [3, 3]
    assert repository.partitions() == {"orders": 2}
    assert "**lab**: Applied: 1 done" in moved.summary
    journal = (moved.artifacts / "moves-lab" / "journal.jsonl").read_text()
    assert '"ended": "done"' in journal
    again = moving.move()
    assert again.code == 0
    assert "Applied" not in again.summary


def test_a_run_of_moves_is_continued_by_its_saved_plan(repository: Repository, moving: Act) -> None:
    repository.wish("orders", 2, replication_factor="3")
    repository.commit()
    refused = moving.move()  # no request showed it
    assert refused.code == 1
    assert repository.replicas("orders") == [2, 2]
    saved = json.loads((refused.artifacts / "moves-lab" / "plan.json").read_text())
    assert moving.go_on("0" * 64).code == 1
    assert repository.replicas("orders") == [2, 2]
    moved = moving.go_on(saved["fingerprint"])
    assert (moved.code, moved.jobs) == (0, {"moves (lab)"})
    assert repository.replicas("orders") == [3, 3]


def test_risks_and_refusals_stand_on_the_lines_of_the_specs(
    repository: Repository, github: GitHubHost, act: Act
) -> None:
    repository.wish("orders", 3)
    repository.wish("clicks", 3)
    github.open_request(12, repository.commit())
    act.pull()
    github.talks[12].merged_as = github.talks[12].head
    assert act.push().code == 0

    repository.wish("orders", 2)
    repository.wish("clicks", 6)
    github.open_request(12, repository.commit())
    run = act.pull()
    assert run.code == 1
    ((place, text),) = run.annotations("error")
    assert place == "topics/orders.yaml:2"
    assert "Kafka cannot remove partitions" in text
    ((place, text),) = run.annotations("warning")
    assert (place, "keys move" in text) == ("topics/clicks.yaml:1", True)
    assert "1 topic is refused" in comments(github)[0]
    github.talks[12].merged_as = github.talks[12].head
    merged = act.push()
    assert merged.code == 1
    assert repository.partitions() == {"orders": 3, "clicks": 3}


def test_a_cluster_that_moved_since_is_left_alone_until_somebody_approves(
    repository: Repository, github: GitHubHost, act: Act
) -> None:
    repository.wish("orders", 3, config="{retention.ms: 7d}")
    request = github.open_request(12, repository.commit())
    act.pull()
    request.merged_as = request.head
    assert act.push().code == 0

    repository.wish("orders", 6, config="{retention.ms: 7d}")
    request = github.open_request(12, repository.commit())
    approved = act.pull().outputs()
    repository.alter("orders", "retention.ms", "100000000")
    request.merged_as = request.head
    refused = act.push()
    assert refused.code == 1
    assert repository.partitions() == {"orders": 3}
    assert f"showed a different plan: `{approved['fingerprint']}`" in refused.summary
    fresh = refused.artifacts / "apply-lab" / "plan.json"
    fingerprint = json.loads(fresh.read_text())["fingerprint"]
    assert f"fingerprint `{fingerprint}`" in refused.summary
    result = comments(github)[1]
    assert "### Kafka apply on `lab`: not applied" in result
    assert "| no change | 100000s (100000000) → 7d (604800000) |" in result

    assert act.dispatch("0" * 64).code == 1
    assert repository.partitions() == {"orders": 3}
    assert act.dispatch(fingerprint).code == 0
    assert repository.partitions() == {"orders": 6}
    assert "### Kafka apply on `lab`: done" in comments(github)[1]


def test_a_rerun_after_the_review_does_not_change_what_is_approved(
    repository: Repository, github: GitHubHost, act: Act
) -> None:
    repository.wish("orders", 3, config="{retention.ms: 7d}")
    request = github.open_request(12, repository.commit())
    act.pull()
    request.merged_as = request.head
    assert act.push().code == 0

    repository.wish("orders", 6, config="{retention.ms: 7d}")
    request = github.open_request(12, repository.commit())
    assert act.pull().code == 0
    request.review("alice")
    repository.alter("orders", "retention.ms", "100000000")
    assert act.pull().code == 0
    _, second = comments(github)
    assert "**This plan needs a new review.** alice approved request 12" in second
    request.merged_as = request.head
    assert act.push().code == 1
    assert repository.partitions() == {"orders": 3}
    _, _, result = comments(github)
    assert "a different plan later, which nobody reviewed" in result
    assert act.pull().code == 0
    assert comments(github)[1:] == [second, result]


def test_an_approved_plan_survives_another_merge_that_leaves_it_as_good(
    repository: Repository, github: GitHubHost, act: Act
) -> None:
    """Nine partitions on three brokers leave leaders and replicas even; next leaders change."""
    approved = {}
    for number, name in ((12, "orders"), (13, "clicks")):
        repository.git("switch", "--quiet", "--create", name, "main")
        repository.wish(name, 9)
        github.open_request(number, repository.commit())
        run = act.pull(number)
        approved[name] = run.outputs()["fingerprint"]
    for number, name in ((12, "orders"), (13, "clicks")):
        repository.git("switch", "--quiet", "main")
        repository.git("merge", "--quiet", "--no-ff", "--message", f"Merge {name}", name)
        github.talks[number].merged_as = repository.git("rev-parse", "HEAD")
        merged = act.push()
        assert merged.code == 0, merged.text
        assert merged.outputs()["fingerprint"] == approved[name]
        assert "**lab**: Applied: 1 done" in merged.summary
    assert repository.partitions() == {"orders": 9, "clicks": 9}


def test_an_approval_is_not_used_again_once_a_later_request_took_it_back(
    repository: Repository, github: GitHubHost, act: Act
) -> None:
    """The run of the first request is repeated when its plan is the approved one once more."""
    merged = {}
    for number, days in ((11, 7), (12, 8), (13, 7)):
        repository.wish("orders", 3, config=f"{{segment.ms: {days}d}}", owner=f"team-{number}")
        request = github.open_request(number, repository.commit())
        planned = act.pull(number)
        assert planned.code == 0, planned.text
        before = repository.git("rev-parse", "refs/remotes/origin/main")
        request.merged_as = request.head
        assert act.push().code == 0
        repository.merge()
        merged[number] = before, request.head, planned.outputs()["fingerprint"]
    before, commit, fingerprint = merged[12]
    repeated = act.repeat(commit, before)
    assert repeated.code == 1
    assert repeated.outputs()["fingerprint"] == fingerprint  # so it is the approved plan
    assert "**lab**: Outdated. Nothing was changed." in repeated.summary
    assert repository.config("orders", "segment.ms") == str(7 * 86_400_000)
    _, result = (note["body"] for note in github.talks[12].comments)
    said = (
        f"origin/main ({merged[13][1][:10]}) asks for something else for {repository.prefix}orders"
    )
    assert "### Kafka apply on `lab`: outdated" in result
    assert said in result
    assert "**Next:** run apply by hand on the default branch." in result


def test_a_merge_queue_plans_what_it_merges_and_comments_nothing(
    repository: Repository, github: GitHubHost, act: Act
) -> None:
    repository.wish("orders", 2)
    repository.commit()
    repository.merge()
    repository.wish("clicks", 2)
    github.open_request(12, repository.commit())
    queued = act.queue()
    assert (queued.code, queued.jobs) == (0, {"validate", "plan (lab)", "planned"})
    assert "### Kafka plan for `lab`: 1 to create" in queued.summary
    assert comments(github) == []
    repository.wish("clicks", 2, replication_factor="9")
    repository.commit()
    refused = act.queue()
    assert refused.code == 1
    assert comments(github) == []


def test_drift_of_another_topic_neither_blocks_a_request_nor_is_applied_by_its_merge(
    repository: Repository, github: GitHubHost, act: Act
) -> None:
    """The request is rebased: two commits. The nightly check applies the drift once that is on."""
    repository.wish("orders", 3, config="{retention.ms: 7d}")
    repository.wish("clicks", 2)
    request = github.open_request(12, repository.commit())
    act.pull()
    request.merged_as = request.head
    assert act.push().code == 0
    repository.merge()

    repository.alter("orders", "retention.ms", "100000000")
    repository.wish("clicks", 4)
    repository.commit()
    repository.wish("carts", 2)
    request = github.open_request(13, repository.commit())
    planned = act.pull(13)
    assert planned.code == 0, planned.text
    (note,) = request.comments
    assert "1 to create, 1 to expand" in note["body"]
    assert "Existing drift of 1 other topic, which this plan leaves as is" in note["body"]
    request.merged_as = request.head
    merged = act.push()
    assert merged.code == 0, merged.text
    assert merged.outputs()["fingerprint"] in note["body"]
    assert repository.partitions() == {"orders": 3, "clicks": 4, "carts": 2}

    assert act.night().code == 0
    (issue,) = github.issues.values()
    assert (issue.title, issue.open) == ("Kafka drift on lab: 1 to configure", True)
    act.variables["RECONCILER_APPLY_DRIFT"] = '["lab"]'
    night = act.night()
    assert night.code == 0, night.text
    assert "**lab**: Applied: 1 done" in night.summary
    assert not issue.open


def test_each_night_reports_the_next_step_of_a_gradual_change_on_its_request(
    repository: Repository, github: GitHubHost, act: Act
) -> None:
    """7d → 1d takes three steps: one by the merge, and two by two nights."""
    repository.wish("orders", 3, config="{retention.ms: 7d}")
    first = github.open_request(12, repository.commit())
    act.pull()
    first.merged_as = first.head
    assert act.push().code == 0
    repository.merge()
    lowered = {"gradual": "true", "acknowledge": "[data-loss]"}
    repository.wish("orders", 3, config="{retention.ms: 1d}", **lowered)
    request = github.open_request(13, repository.commit())
    act.pull(13)
    request.merged_as = request.head
    assert act.push().code == 0
    repository.merge()
    assert len(request.comments) == 2  # the plan, and the result of the merge

    assert act.night().code == 0
    assert len(request.comments) == 2
    act.variables["RECONCILER_APPLY_DRIFT"] = '["lab"]'
    for number, change, left in ((2, "4d → 2d", "1d"), (3, "2d → 1d", "reached")):
        night = act.night()
        assert night.code == 0, night.text
        assert len(request.comments) == 3
        step = f"| {number} of 3 | {change} | done | {left} |"
        assert (
            f"| `{repository.prefix}orders` | `retention.ms` {step}" in request.comments[2]["body"]
        )
    assert act.night().code == 0
    assert "### Gradual changes on `lab`: reached" in request.comments[2]["body"]
    assert len(first.comments) == 2


def test_a_push_of_two_requests_is_approved_by_hand_for_what_it_changed(
    repository: Repository, github: GitHubHost, act: Act
) -> None:
    """An earlier push was not applied: this is drift, and not of this push."""
    repository.wish("carts", 2)
    before = repository.commit()
    repository.merge()
    for number, name in ((12, "orders"), (13, "clicks")):
        repository.git("switch", "--quiet", "--create", name, "main")
        repository.wish(name, 3)
        github.open_request(number, repository.commit())
        assert act.pull(number).code == 0
    repository.git("switch", "--quiet", "main")
    for number, name in ((12, "orders"), (13, "clicks")):
        repository.git("merge", "--quiet", "--no-ff", "--message", f"Merge {name}", name)
        github.talks[number].merged_as = repository.git("rev-parse", "HEAD")
    refused = act.push()
    assert refused.code == 1
    assert f", since `{before}`." in refused.summary
    fresh = json.loads((refused.artifacts / "apply-lab" / "plan.json").read_text())
    assert [topic["name"] for topic in fresh["existing_drift"]] == [f"{repository.prefix}carts"]
    assert act.dispatch(fresh["fingerprint"]).code == 1
    assert act.dispatch(fresh["fingerprint"], before).code == 0
    assert repository.partitions() == {"orders": 3, "clicks": 3}


def test_what_no_request_showed_is_not_applied(
    repository: Repository, github: GitHubHost, act: Act
) -> None:
    """A push to main; and a request whose last commit came after its last plan."""
    repository.wish("orders", 3)
    pushed = repository.commit()
    run = act.push()
    assert run.code == 1
    assert "no plan for lab was approved" in run.summary
    request = github.open_request(12, pushed)
    act.pull()
    request.merged_as, request.head = pushed, "e" * 40
    run = act.push()
    assert run.code == 1
    assert "but was merged at eeeeeeeeeeee" in run.summary
    assert repository.partitions() == {}


def test_a_request_cannot_choose_where_its_plan_connects(
    repository: Repository, github: GitHubHost, act: Act
) -> None:
    repository.connect("127.0.0.1:9")
    repository.wish("orders", 3)
    request = github.open_request(12, repository.commit())
    run = act.pull()
    assert run.code == 0, run.text
    (text,) = comments(github)
    assert "1 to create" in text
    assert "differs in bootstrap.servers" in text
    assert [place for place, said in run.annotations("warning") if "differs in" in said] == [
        "topics/clusters.yaml:2"
    ]

    repository.merge()
    request.merged_as = request.head
    merged = act.push()
    assert merged.code == 1
    assert "127.0.0.1:9 refuses the connection" in merged.text


def test_a_cluster_that_a_request_adds_is_not_connected_to(
    repository: Repository, github: GitHubHost, act: Act
) -> None:
    text = (repository.directory / "topics" / "clusters.yaml").read_text()
    repository.write("clusters.yaml", text.replace("lab:", "new:"))
    github.open_request(12, repository.commit())
    act.variables["RECONCILER_CLUSTERS"] = '["new"]'
    assert act.pull().code == 1
    (text,) = comments(github)
    assert "nothing connects to it before this is merged" in text


def test_a_mistake_in_a_spec_is_told_on_its_line_and_in_place_of_the_plan(
    repository: Repository, github: GitHubHost, act: Act
) -> None:
    repository.wish("orders", 3)
    github.open_request(12, repository.commit())
    act.pull()
    repository.wish("orders", 3, retention="7d")
    repository.commit()
    run = act.pull()
    assert run.code == 1
    assert "topics/orders.yaml:4" in dict(run.annotations("error"))
    (text,) = comments(github)
    assert "could not be made" in text
    assert "[key-unknown]" in text


ELSEWHERE = """\
on: push
jobs:
  plan:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1
      - uses: platform/reconciler/.github/actions/install@COMMIT
        with: {extras: ""}
      - id: kafka
        uses: platform/reconciler/.github/actions/reconciler@COMMIT
        with: {verb: drift, cluster: lab, estate: kafka/topics}
        env: {KAFKA_USER: "${{ secrets.KAFKA_USER }}"}
      - run: echo "$CHANGES topics would change"
        env: {CHANGES: "${{ steps.kafka.outputs.changes }}"}
"""


def test_another_repository_uses_the_action_by_its_path(
    repository: Repository, github: GitHubHost, act: Act, tmp_path: Path
) -> None:
    """Of this project it has nothing, and its estate is in another directory."""
    repository.wish("orders", 3)
    for part in (".github", "reconciler"):
        shutil.rmtree(repository.directory / part)
    (repository.directory / "kafka").mkdir()
    shutil.move(repository.directory / "topics", repository.directory / "kafka")
    (repository.directory / ".github" / "workflows").mkdir(parents=True)
    (repository.directory / ".github" / "workflows" / "own.yml").write_text(
        ELSEWHERE.replace("COMMIT", MERGED)
    )
    repository.commit()
    source = copy_source(tmp_path / "source")
    act.stand_ins[f"platform/reconciler@{MERGED}"] = source.directory
    run = act.run("push", "own.yml", {"ref": "refs/heads/main"})
    assert run.code == 0, run.text
    assert "1 topics would change" in run.text
    assert [issue.title for issue in github.issues.values()] == ["Kafka drift on lab: 1 to create"]


def test_a_fork_is_validated_without_secrets(
    repository: Repository, github: GitHubHost, act: Act
) -> None:
    repository.wish("orders", 3)
    github.open_request(12, repository.commit())
    run = act.pull(fork=True)
    assert (run.code, run.jobs) == (0, {"validate", "planned"})
    assert act.pull(user="dependabot[bot]").jobs == {"validate", "planned"}
    assert github.asked == []


def test_without_clusters_only_validation_runs(
    repository: Repository, github: GitHubHost, act: Act
) -> None:
    repository.wish("orders", 3)
    github.open_request(12, repository.commit())
    del act.variables["RECONCILER_CLUSTERS"]
    runs = [act.pull(), act.push(), act.night()]
    assert [run.jobs for run in runs] == [{"validate", "planned"}, set(), set()]
    assert [run.code for run in runs] == [0, 0, 0]
    assert github.asked == []


def test_drift_opens_updates_and_closes_one_issue(
    repository: Repository, github: GitHubHost, act: Act
) -> None:
    repository.wish("orders", 3, config="{retention.ms: 7d}")
    fingerprint = github.open_request(12, repository.commit()).head
    act.pull()
    github.talks[12].merged_as = fingerprint
    assert act.push().code == 0

    assert act.night().code == 0
    assert github.issues == {}
    repository.alter("orders", "retention.ms", "100000000")
    assert act.night().code == 0
    repository.alter("orders", "retention.ms", "200000000")
    assert act.night().code == 0
    (issue,) = github.issues.values()
    assert issue.title == "Kafka drift on lab: 1 to configure"
    assert "200000000" in issue.body
    assert "100000000" not in issue.body

    servers = (repository.directory / "topics" / "clusters.yaml").read_text()
    repository.connect("127.0.0.1:9")
    repository.commit()
    unreachable = act.night()
    assert unreachable.code == 1
    assert issue.title == "Kafka drift on lab: could not be checked"
    assert "connect-refused" in issue.body

    repository.write("clusters.yaml", servers)
    repository.alter("orders", "retention.ms", "604800000")
    repository.commit()
    assert act.night().code == 0
    assert len(github.issues) == 1
    assert not issue.open


def test_a_webhook_is_notified_and_its_failure_fails_no_job(
    repository: Repository, act: Act, written: Written
) -> None:
    repository.wish("orders", 3)
    repository.commit()
    with serve(WebhookHost()) as webhook:
        assert isinstance(webhook, WebhookHost)
        act.secrets["RECONCILER_WEBHOOK"] = webhook.address
        act.variables["RECONCILER_WEBHOOK_FORMAT"] = "json"
        assert act.push().code == 1  # no request showed it
        assert act.night().code == 0
        webhook.faults.append(Fault("POST", Answer(404, "no_service")))
        night = act.night()
    assert night.code == 0
    ((_, text),) = night.annotations("warning")
    assert text == "no notification was sent (exit code 69)"
    assert [document["title"] for document in webhook.taken] == [
        "Kafka apply on lab: not approved",
        "Kafka drift on lab: 1 to create",
    ]
    assert written.find([webhook.path]) == []
