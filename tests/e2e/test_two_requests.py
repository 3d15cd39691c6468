"""Two requests that are planned on the same state: what becomes of the second one's approval.

Plans, comments and approvals go through the real commands, on a real cluster.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from code_host import TOKEN, serve
from code_hosts import GitHubHost
from lab import connect_to

from reconciler.cli.app import run
from reconciler.kafka.reader import KafkaReader
from reconciler.model.cluster import Assignment
from reconciler.sandbox.cluster import Cluster

Captured = pytest.CaptureFixture[str]

pytestmark = pytest.mark.cluster


class Requests:
    """Pull requests with one topic each, and the jobs of their workflows."""

    def __init__(
        self,
        cluster: Cluster,
        host: GitHubHost,
        directory: Path,
        monkeypatch: pytest.MonkeyPatch,
        captured: Captured,
    ) -> None:
        self._cluster, self._host, self._directory = cluster, host, directory
        self._monkeypatch, self._captured = monkeypatch, captured
        self._servers = ("--cluster", "lab", "--bootstrap-servers", cluster.bootstrap_servers)
        self._specs: dict[str, str] = {}
        self._merged: list[str] = []

    def open(self, number: int, topic: str, partitions: int) -> dict[str, Any]:
        """Plan a topic on what is merged, and comment. Returns the plan."""
        self._specs[topic] = f"topic: {topic}\npartitions: {partitions}\nreplication_factor: 2\n"
        self._check_out([*self._merged, topic])
        head = f"{number:040x}"
        self._host.open_request(number, head)
        event = {"pull_request": {"number": number, "head": {"sha": head}}}
        (self._directory / "event.json").write_text(json.dumps(event))
        assert run(["plan", *self._servers, "--out", f"{topic}.json"]) == 0
        assert run(["report", "plan", "--cluster", "lab", "--plan", f"{topic}.json"]) == 0
        self._captured.readouterr()
        made: dict[str, Any] = json.loads((self._directory / f"{topic}.json").read_text())
        return made

    def merge(self, number: int, topic: str) -> None:
        """Merge a request, and save what it approves."""
        self._merged.append(topic)
        self._check_out(self._merged)
        commit = f"{number:039x}f"
        self._host.talks[number].merged_as = commit
        self._monkeypatch.setenv("GITHUB_SHA", commit)
        approved = ("approved", "--cluster", "lab", "--out", "approved.json")
        assert run(["report", *approved]) == 0
        self._captured.readouterr()

    def plan(self) -> dict[str, Any]:
        """Make a new plan, without an approval."""
        assert run(["plan", *self._servers, "--format", "json"]) == 0
        made: dict[str, Any] = json.loads(self._captured.readouterr().out)
        return made

    def apply(self, *more: str) -> tuple[int, str, str]:
        code = run(["apply", *self._servers, "--auto-approve", *more])
        return code, *self._captured.readouterr()

    def live_rows(self, topic: str) -> Assignment | None:
        found = KafkaReader(connect_to(self._cluster)).read_cluster([topic]).topics.get(topic)
        return found.assignment if found else None

    def _check_out(self, topics: list[str]) -> None:
        """Write the specs of these topics, one per document, as all that the estate has."""
        text = "---\n".join(self._specs[topic] for topic in topics)
        (self._directory / "topics" / "all.yaml").write_text(text)


@pytest.fixture
def requests(
    quiet3: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> Iterator[Requests]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics" / "clusters.yaml").write_text("version: 1\nclusters: {lab: {}}\n")
    with serve(GitHubHost()) as host:
        variables = {
            "COLUMNS": "200",
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": host.url,
            "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
            "GITHUB_REPOSITORY": "shop/topics",
            "GITHUB_RUN_ID": "7",
            "GITHUB_SERVER_URL": "https://github.example",
            "GITHUB_SHA": "0" * 40,
            "GITHUB_TOKEN": TOKEN,
            "NO_COLOR": "1",
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        yield Requests(quiet3, host, tmp_path, monkeypatch, capsys)


def rows_of(made: dict[str, Any]) -> Assignment:
    (change,) = made["resource_changes"]
    return tuple(map(tuple, change["change"]["after"]["assignment"]))


def test_the_second_one_is_applied_as_approved_if_it_is_still_as_good(requests: Requests) -> None:
    requests.open(12, "orders", 3)
    approved = requests.open(13, "stock", 3)
    requests.merge(12, "orders")
    assert requests.apply("--approved", "approved.json")[0] == 0

    requests.merge(13, "stock")
    fresh = requests.plan()
    assert rows_of(fresh) != rows_of(approved)
    assert fresh["fingerprint"] != approved["fingerprint"]
    code, out, err = requests.apply("--approved", "approved.json")
    assert (code, err) == (0, "")
    assert "note: the approved rows are used: leaders and replicas are as even as with" in out
    assert out.endswith("Applied: 1 done\n")
    assert requests.live_rows("stock") == rows_of(approved)


def test_the_second_one_is_refused_if_its_rows_are_worse_now(requests: Requests) -> None:
    first = requests.open(14, "carts", 1)
    approved = requests.open(15, "mails", 1)
    assert rows_of(first)[0][0] == rows_of(approved)[0][0]  # both lead on the same broker
    requests.merge(14, "carts")
    assert requests.apply("--approved", "approved.json")[0] == 0

    requests.merge(15, "mails")
    fresh = requests.plan()["fingerprint"]
    code, out, err = requests.apply("--approved", "approved.json")
    assert code == 1
    assert (
        "note: the approved rows are not used: new rows spread the leaders of the cluster more "
        "evenly (max − min 1 instead of 2, "
    ) in out
    assert out.endswith("Not approved. Nothing was changed.\n")
    assert err == (
        f"error: the plan's fingerprint is {fresh}, not the approved {approved['fingerprint']}; "
        "read the plan above, and approve that one [plan-unexpected]\n"
    )
    assert requests.live_rows("mails") is None
    assert requests.apply("--expect", fresh)[0] == 0
    assert requests.live_rows("mails") is not None
