"""`reconciler history` on a real cluster: what three applies left in audit topic and journal."""

from __future__ import annotations

import json
import re
import subprocess
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import StringIO

import jsonschema
import pytest
from command import run_here
from confluent_kafka import Producer
from shell import Shell

from reconciler.cli.app import run
from reconciler.cli.schema import SCHEMAS
from reconciler.sandbox.cluster import Cluster

HISTORY = ("history", "--cluster", "lab")
GIT = ("git", "-c", "user.name=Ana", "-c", "user.email=ana@example.com")
AUDIT, ORDERS = "history-audit", "history-orders"
OTHERS = ("{}", "not JSON", '{"type": "applied", "ended": "burned"}')
"""Records that are not of this version of reconciler."""


@dataclass(frozen=True)
class Past:
    """A directory with an estate in git, whose three commits were applied one after the other."""

    shell: Shell

    def ask(self, *more: str) -> str:
        code, out, err = self.shell.run(*HISTORY, *more)
        assert code == 0, err
        return out

    def list_topics(self, *more: str) -> list[list[str]]:
        """Return the topics of each run that is shown."""
        found = json.loads(self.ask("--format", "json", *more))
        return [list(kept["run"]["topics"]) for kept in found["runs"]]

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            [*GIT, *arguments], cwd=self.shell.directory, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()


@pytest.fixture(scope="module")
def past(cluster3: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Past:
    shell = Shell(tmp_path_factory.mktemp("past"), cluster3.bootstrap_servers)
    past = Past(shell)
    past.git("init", "-q")
    shell.write("clusters.yaml", f"version: 1\nclusters: {{lab: {{audit_topic: {AUDIT}}}}}\n")
    form = "topic: {}\npartitions: {}\nreplication_factor: 1\nconfig: {{segment.ms: {}}}\n"
    for subject, name, text in (
        ("Add the audit topic (#7)", AUDIT, form.format(AUDIT, 2, "1d")),
        ("Add orders (#8)", ORDERS, form.format(ORDERS, 1, "1d")),
        ("Roll orders later (#9)", ORDERS, form.format(ORDERS, 1, "2d")),
    ):
        shell.write(f"{name}.yaml", text)
        past.git("add", "topics")
        past.git("commit", "-q", "-m", subject)
        assert shell.run("plan", "--cluster", "lab", "--out", "plan.json")[0] == 0
        code, _, err = shell.run(
            "apply", "plan.json", "--auto-approve", "--journal", str(shell.journal)
        )
        assert code == 0, err
    producer = Producer({"bootstrap.servers": shell.servers, "log_level": 0})
    for value in OTHERS:
        producer.produce(AUDIT, value, key="lab")
    assert producer.flush(15) == 0
    return past


def test_the_audit_topic_and_the_journal_say_the_same(past: Past) -> None:
    found = json.loads(past.ask("--format", "json"))
    jsonschema.validate(found, SCHEMAS["history"]())
    runs = [kept["run"] for kept in found["runs"]]
    lines = [line for line in past.shell.lines() if line["type"] == "applied"]
    same = ("user", "host", "pid", "cluster_id", "fingerprint", "commit", "topics", "ended")
    for shown, line in zip(reversed(runs), lines, strict=True):
        assert {name: shown[name] for name in same} == {name: line[name] for name in same}
        assert datetime.fromisoformat(shown["started"]) == datetime.fromisoformat(line["started"])
    assert [kept["commit"] for kept in found["runs"]] == [
        {"subject": "Roll orders later (#9)", "request": "#9", "merges": False},
        {"subject": "Add orders (#8)", "request": "#8", "merges": False},
        {"subject": "Add the audit topic (#7)", "request": "#7", "merges": False},
    ]
    out = StringIO()
    with chdir(past.shell.directory), redirect_stdout(out):
        assert run(["history", "--journal", "journal.jsonl", "--format", "json"]) == 0
    own = ("at", "duration_s")  # the record is written before the last line of the journal
    assert [
        {name: value for name, value in kept["run"].items() if name not in own}
        for kept in json.loads(out.getvalue())["runs"]
    ] == [{name: value for name, value in each.items() if name not in own} for each in runs]


def test_another_client_reads_the_same_records(past: Past) -> None:
    runs = [kept["run"] for kept in json.loads(past.ask("--format", "json"))["runs"]]
    shown = {(run["fingerprint"], run["started"].replace("Z", "+00:00")) for run in runs}
    raw = read_values(past.shell.servers, 3 + len(OTHERS))
    ours = [json.loads(value) for value in raw if value.startswith('{"at"')]
    assert {(each["fingerprint"], each["started"]) for each in ours} == shown


def read_values(servers: str, count: int) -> list[str]:
    from kafka import KafkaConsumer

    consumer = KafkaConsumer(
        AUDIT,
        bootstrap_servers=servers,
        group_id=None,
        auto_offset_reset="earliest",
        consumer_timeout_ms=30_000,
    )
    try:
        return [message.value.decode() for _, message in zip(range(count), consumer, strict=False)]
    finally:
        consumer.close()


def test_runs_are_chosen_by_topic_time_and_plan(past: Past) -> None:
    every = [[ORDERS], [ORDERS], [AUDIT]]
    assert past.list_topics() == every
    assert past.list_topics("--topic", "history-ord*") == [[ORDERS], [ORDERS]]
    assert past.list_topics("--topic", ORDERS, "--topic", AUDIT) == every
    assert past.list_topics("--since", "6h") == every
    later = datetime.now(UTC) + timedelta(hours=1)
    assert past.list_topics("--since", later.isoformat()) == []
    last, second, _ = json.loads(past.ask("--format", "json"))["runs"]
    assert past.list_topics("--since", last["run"]["at"]) == [[ORDERS]]
    assert past.list_topics("--plan", second["run"]["fingerprint"][:12]) == [[ORDERS]]
    assert past.list_topics("--show", "2") == [[ORDERS], [ORDERS]]


def test_the_short_form_names_runs_and_leaves_out_records_of_others(past: Past) -> None:
    lines = past.ask().splitlines()
    assert lines[0] == f"lab · audit topic {AUDIT} · 3 runs · times in UTC"
    assert lines[1] == "3 records left out: not of reconciler, or of a later version"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  lab  apply  done  \S+", lines[3])
    assert re.fullmatch(r"  plan [0-9a-f]{12}, commit [0-9a-f]{10} · Roll orders .*#9\)", lines[4])
    assert lines[5:7] == ["  1 to configure", f"  done: {ORDERS}"]


def test_the_last_run_in_full_has_its_plan_and_the_way_back(past: Past) -> None:
    out = past.ask("--last", "--plans", ".")
    sha = past.git("rev-parse", "HEAD")
    assert out.startswith(f"lab · audit topic {AUDIT} · the latest 1 of 3 runs · times in UTC\n")
    assert f"  commit      {sha} · Roll orders later (#9)\n" in out
    assert " · kept in plan.json\n" in out
    assert f"  topics      done {ORDERS}\n" in out
    assert "\nThe plan, from plan.json:\n\nlab · " in out
    assert re.search(rf"~ configure {ORDERS}", out)


def test_the_way_back_is_a_revert(past: Past) -> None:
    (last,) = json.loads(past.ask("--last", "--format", "json"))["runs"]
    command = last["ways_back"][0].partition(",")[0].split()
    assert command[:2] == ["git", "revert"]
    past.git(*command[1:], "--no-edit")
    try:
        out = past.shell.run("plan", "--cluster", "lab")[1]
    finally:
        past.git("reset", "--hard", "-q", "HEAD~1")
    assert re.search(rf"~ configure {ORDERS}.*\n +segment.ms +2d .* → 1d ", out)


def test_a_cluster_without_an_audit_topic_says_what_to_do(shell: Shell) -> None:
    ran = run_here(shell.directory, shell.servers, *HISTORY)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "error: topics/clusters.yaml:2:12: lab has no audit_topic; name one in clusters.yaml, so "
        "that applies are recorded from now on; --journal reads the journal of a run "
        "[audit-topic]\n"
    )
