"""`reconciler report`: what it takes from the runner, from files, and what it prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from code_host import HEAD, MERGED, TOKEN, serve
from code_hosts import GitHubHost, WebhookHost
from shorthand import HERE, cluster, may_move, plan, rows, spec, topic

from reconciler.api.records import begin_record
from reconciler.cli.app import run
from reconciler.cli.journal import Journal
from reconciler.model.outcomes import Outcome, OutcomeKind
from reconciler.model.plan import Commit
from reconciler.moves.plan import assemble_moves
from reconciler.planfile.approval import Approval, decode_approval, list_new_rows
from reconciler.planfile.codec import encode_plan, fingerprint_plan
from reconciler.run.ending import Applied, end_run
from reconciler.spec.entry import ClusterEntry

PLAN = plan([spec("a", partitions=2, replication_factor=2)], cluster())
MOVES = assemble_moves(
    ClusterEntry("prod", HERE, moves=may_move()),
    [spec("b", replication_factor=2)],
    cluster(topic("1", "b", in_sync=rows("1"))),
)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[GitHubHost]:
    event = {"pull_request": {"number": 12, "head": {"sha": HEAD}}}
    (tmp_path / "event.json").write_text(json.dumps(event))
    with serve(GitHubHost()) as host:
        variables = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": host.url,
            "GITHUB_EVENT_NAME": "push",
            "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
            "GITHUB_REPOSITORY": "shop/topics",
            "GITHUB_RUN_ID": "7",
            "GITHUB_SERVER_URL": "https://github.example",
            "GITHUB_SHA": MERGED,
            "GITHUB_TOKEN": TOKEN,
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        yield host


@pytest.fixture
def saved(tmp_path: Path) -> str:
    (tmp_path / "plan.json").write_text(encode_plan(PLAN))
    return str(tmp_path / "plan.json")


def test_a_plan_is_told_and_later_known_as_approved(
    host: GitHubHost, saved: str, capsys: pytest.CaptureFixture[str]
) -> None:
    request = host.open_request(12, HEAD)
    assert run(["report", "plan", "--cluster", "prod", "--plan", saved]) == 0
    assert capsys.readouterr() == ("", "comment on request 12 written\n")
    body = request.comments[0]["body"]
    assert f"`reconciler apply --cluster prod --expect {fingerprint_plan(PLAN)}`" in body
    request.merged_as = MERGED
    assert run(["report", "approved", "--cluster", "prod"]) == 0
    assert capsys.readouterr() == (f"{fingerprint_plan(PLAN)}\n", "")


def test_a_comment_names_one_commit_and_no_file_of_the_runner(
    host: GitHubHost, tmp_path: Path
) -> None:
    """The runner plans a merge of the request with its base, which nobody else has."""
    request = host.open_request(12, HEAD)
    made = replace(PLAN, commit=Commit("f" * 40))
    moves = replace(MOVES, commit=made.commit)
    files = []
    for name, each in (("plan", made), ("moves", moves)):
        (tmp_path / f"{name}.json").write_text(encode_plan(each))
        files.append(str(tmp_path / f"{name}.json"))
    report = ["report", "plan", "--cluster", "prod", "--plan", files[0], "--moves", files[1]]
    assert run(report) == 0
    assert run(["report", "drift", "--cluster", "prod", "--plan", files[0]]) == 0
    (issue,) = host.issues.values()
    for body, commit in ((request.comments[0]["body"], HEAD), (issue.body, MERGED)):
        assert "plan.json" not in body
        assert "ffffffffff" not in body
        assert commit[:12] in body
    # Apply makes no plan of moves itself: the command that is named saves it first.
    assert "--moves --out moves.json && reconciler apply moves.json" in request.comments[0]["body"]


def test_an_approval_is_saved_with_its_rows(
    host: GitHubHost, saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = host.open_request(12, HEAD)
    run(["report", "plan", "--cluster", "prod", "--plan", saved])
    out = tmp_path / "approved.json"
    words = ["report", "approved", "--cluster", "prod", "--out", str(out)]
    assert run(words) == 1
    assert not out.exists()
    request.merged_as = MERGED
    capsys.readouterr()
    assert run(words) == 0
    assert capsys.readouterr() == (f"{fingerprint_plan(PLAN)}\n", "")
    assert decode_approval(out.read_text()) == Approval(fingerprint_plan(PLAN), list_new_rows(PLAN))


def test_the_result_of_an_apply_is_told_with_its_duration(
    host: GitHubHost, saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = host.open_request(12, HEAD)
    run(["report", "plan", "--cluster", "prod", "--plan", saved])
    request.merged_as = MERGED
    journal = write_journal(tmp_path / "journal.jsonl", Outcome("a", OutcomeKind.DONE))
    words = ["report", "result", "--cluster", "prod", "--plan", saved]
    capsys.readouterr()
    assert run([*words, "--journal", journal]) == 0
    assert capsys.readouterr() == ("", "comment on request 12 written\n")
    assert "1 topic is as planned after 0 s: `a`" in request.comments[1]["body"]
    none = str(tmp_path / "none.jsonl")
    assert run([*words, "--moves", "--journal", none]) == 0
    assert "### Kafka moves on `prod`: not applied" in request.comments[2]["body"]


def test_nothing_approved_is_an_error_and_no_output(
    host: GitHubHost, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", "approved", "--cluster", "prod"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("[plan-unapproved]\n")


@pytest.mark.parametrize("verb", ["plan", "drift"])
def test_without_a_plan_its_errors_are_told(host: GitHubHost, tmp_path: Path, verb: str) -> None:
    host.open_request(12, HEAD)
    errors = tmp_path / "errors.txt"
    errors.write_text("error: nobody is there [connect-refused]\n")
    missing = str(tmp_path / "none.json")
    words = ["report", verb, "--cluster", "prod", "--plan", missing, "--errors"]
    assert run([*words, str(errors)]) == 0
    told = host.talks[12].comments[0]["body"] if verb == "plan" else host.issues[13].body
    assert "nobody is there [connect-refused]" in told


def test_the_plan_of_another_cluster_is_a_usage_error(
    host: GitHubHost, saved: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", "plan", "--cluster", "staging", "--plan", saved]) == 64
    assert "the plan is for prod, not for staging" in capsys.readouterr().err
    assert host.asked == []


def test_a_refused_token_is_said_and_never_shown(
    host: GitHubHost,
    saved: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "expired-token")
    assert run(["report", "drift", "--cluster", "prod", "--plan", saved]) == 1
    err = capsys.readouterr().err
    assert "401 Unauthorized: Bad credentials" in err
    assert "[code-host-access]" in err
    assert "expired-token" not in err


@pytest.fixture
def webhook(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebhookHost]:
    with serve(WebhookHost()) as webhook:
        assert isinstance(webhook, WebhookHost)
        monkeypatch.setenv("HOOK", webhook.address)
        yield webhook


def write_journal(path: Path, *outcomes: Outcome) -> str:
    with Journal(path, begin_record(PLAN)) as journal:
        journal.conclude(end_run(Applied(outcomes)))
    return str(path)


FAILED = Outcome("a", OutcomeKind.FAILED, "the broker has no disk")
NOTIFY = ["report", "notify", "apply", "--cluster", "prod", "--webhook-env", "HOOK"]


@pytest.mark.usefixtures("host")
def test_a_failed_apply_is_notified(
    webhook: WebhookHost, saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = write_journal(tmp_path / "journal.jsonl", FAILED)
    assert run([*NOTIFY, "--plan", saved, "--journal", journal]) == 0
    assert capsys.readouterr() == ("", "notified: Kafka apply on prod: failed\n")
    (message,) = webhook.taken
    text = message["blocks"][1]["text"]["text"]
    assert "• *failed* `a`: the broker has no disk" in text
    assert "<https://github.example/shop/topics/actions/runs/7|run>" in text


@pytest.mark.usefixtures("host")
def test_only_the_last_run_of_the_cluster_counts(
    webhook: WebhookHost, saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "journal.jsonl"
    write_journal(path, FAILED)
    journal = write_journal(path, Outcome("a", OutcomeKind.DONE))
    assert run([*NOTIFY, "--plan", saved, "--journal", journal]) == 0
    assert capsys.readouterr() == ("", "nothing to notify about prod\n")
    assert webhook.taken == []


@pytest.mark.usefixtures("host")
def test_a_run_that_was_killed_is_unknown(webhook: WebhookHost, saved: str, tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    write_journal(path, FAILED)
    path.write_text(path.read_text().partition("\n")[0] + "\n")
    assert run([*NOTIFY, "--format", "json", "--plan", saved, "--journal", str(path)]) == 0
    (document,) = webhook.taken
    assert (document["result"], document["topics"]) == ("unknown", [])
    assert "the run was killed" in document["reason"]


@pytest.mark.usefixtures("host")
def test_drift_is_notified_to_the_address_in_a_file(
    webhook: WebhookHost, saved: str, tmp_path: Path
) -> None:
    (tmp_path / "address").write_text(f"{webhook.address}\n")
    words = ["report", "notify", "drift", "--cluster", "prod", "--plan", saved, "--format", "json"]
    assert run([*words, "--webhook-file", str(tmp_path / "address")]) == 0
    (document,) = webhook.taken
    assert document["title"] == "Kafka drift on prod: 1 to create"
    assert document["commit_url"] == f"https://github.example/shop/topics/commit/{MERGED}"


@pytest.mark.usefixtures("host")
def test_a_webhook_that_refuses_is_a_warning_with_a_code_of_its_own(
    webhook: WebhookHost,
    saved: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HOOK", f"{webhook.url}/services/expired")
    assert run([*NOTIFY, "--plan", saved]) == 69
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("warning: the webhook did not accept the notification: 404 Not Found")
    assert err.endswith("[webhook-answer]\n")
    assert "expired" not in err
    assert webhook.url.removeprefix("http://") not in err


@pytest.mark.parametrize(
    "words",
    [
        ["--webhook-env", "https://hooks.example/secret"],
        ["--webhook-file", "https://hooks.example/secret"],
        ["--webhook-env", "HOOK", "--webhook-file", "secret"],
        ["--webhook-env", "NOT_SET"],
        ["--webhook-env", "GITHUB_TOKEN"],
        [],
    ],
)
@pytest.mark.usefixtures("host", "webhook")
def test_an_address_in_the_wrong_place_is_a_usage_error_that_does_not_repeat_it(
    saved: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    drift = ["report", "notify", "drift", "--cluster", "prod", "--plan", saved]
    assert run([*drift, *words]) == 64
    err = capsys.readouterr().err
    assert "webhook" in err
    assert "secret" not in err


STAGED = "version: 1\nclusters: {dev: {}, prod: {}, eu: {}}\n"


@pytest.mark.parametrize(
    ("more", "clusters", "printed"),
    [
        ("stages: [[dev], [eu, prod]]", '["prod", "dev", "eu"]', '[["dev"], ["eu", "prod"]]'),
        ("stages: [[dev], [eu, prod]]", '["prod"]', '[[], ["prod"]]'),
        ("", '["prod", "dev"]', '[["dev", "prod"]]'),
    ],
)
def test_the_clusters_of_each_stage_are_printed(
    more: str,
    clusters: str,
    printed: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Those that the variable leaves out are in no stage."""
    (tmp_path / "clusters.yaml").write_text(STAGED + more)
    assert run(["report", "stages", str(tmp_path), "--clusters", clusters]) == 0
    assert capsys.readouterr() == (f"{printed}\n", "")


@pytest.mark.parametrize(
    ("clusters", "said"),
    [
        ('["prod", "qa", "lab"]', "--clusters names lab, qa, which clusters.yaml does not have"),
        ("prod", '--clusters prod is not a list as JSON; write \'["dev", "prod"]\''),
        ('{"prod": 1}', "is not a list as JSON"),
        ("[1]", "is not a list as JSON"),
    ],
)
def test_a_list_that_is_no_list_of_clusters_is_an_error(
    clusters: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "clusters.yaml").write_text(STAGED)
    assert run(["report", "stages", str(tmp_path), "--clusters", clusters]) == 64
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
