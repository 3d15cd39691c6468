"""The files of a repository: what this project runs itself, with the pin of the jobs in them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from shorthand import cluster, topic

from reconciler.errors import SpecError
from reconciler.model.cluster import ClusterState
from reconciler.scaffold.adoption import write_estate
from reconciler.scaffold.answers import (
    Answers,
    ClusterAnswer,
    CommitPin,
    Host,
    ImagePin,
    Pin,
    Security,
    WheelPin,
    read_pin,
)
from reconciler.scaffold.repository import (
    WORKFLOWS,
    State,
    WrittenFile,
    compare_files,
    write_files,
)
from reconciler.scaffold.tasks import Begun, list_tasks, spell_owners
from reconciler.spec.estate import Estate, parse_estate

ROOT = Path(__file__).parents[3]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
FROM_GITHUB = CommitPin("acme/reconciler", COMMIT)
FROM_GITLAB = CommitPin("https://gitlab.example/acme/reconciler.git", COMMIT)
WHEEL = WheelPin("vendor/kafka_reconciler-0.1.0-py3-none-any.whl", "ab" * 32)
AT_ADDRESS = WheelPin("https://wheels.example/kafka_reconciler-0.1.0-py3-none-any.whl", "cd" * 32)
STAGING = ClusterAnswer("staging", "staging.example:9093")
PROD = ClusterAnswer("prod", "prod.example:9093")
TWO = Answers((STAGING, PROD), (("staging",), ("prod",)))


def write(host: Host, pin: Pin, answers: Answers = TWO) -> dict[str, str]:
    files = write_files(replace(answers, host=host, pin=pin), {})
    return {file.path: file.text for file in files}


def parse(texts: dict[str, str] | None = None, answers: Answers = TWO) -> Estate:
    texts = dict(write_estate(answers, {}).texts) if texts is None else texts
    return parse_estate({path: text.encode() for path, text in texts.items()}, "topics")


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_is_that_of_this_project_with_its_actions_at_the_commit(name: str) -> None:
    """There is one source: whatever changes here is what a repository gets."""
    own = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text()
    written = write(Host.GITHUB, FROM_GITHUB)[f".github/workflows/{name}.yml"]
    assert "uses: ./.github/actions" not in written
    assert written.replace("acme/reconciler/.github", "./.github").replace(f"@{COMMIT}", "") == own


def test_every_workflow_that_another_one_calls_is_written() -> None:
    called = {
        path
        for text in write(Host.GITHUB, FROM_GITHUB).values()
        for path in re.findall(r"uses: \./(\S+)", text)
    }
    assert called
    assert called <= set(write(Host.GITHUB, FROM_GITHUB))


def test_with_a_wheel_a_repository_has_all_that_its_jobs_run() -> None:
    files = write(Host.GITHUB, WHEEL)
    for path in (*(f".github/workflows/{name}.yml" for name in WORKFLOWS), ".ci/install.sh",
                 ".ci/requirements.txt", ".github/actions/install/action.yml"):  # fmt: skip
        assert files[path] == (ROOT / path).read_text(), path
    used = {path for text in files.values() for path in re.findall(r"uses: \./(\S+)", text)}
    assert {f"{path}/action.yml" for path in used if "actions" in path} <= set(files)


def test_gitlab_gets_the_template_and_the_jobs_of_each_cluster_in_its_stage() -> None:
    together = replace(TWO, stages=(("staging", "prod"),))
    files = write(Host.GITLAB, FROM_GITLAB)
    assert files[".gitlab/reconciler-jobs.yml"] == (ROOT / ".ci" / "gitlab-ci.yml").read_text()
    includes = yaml.safe_load(files[".gitlab/reconciler.yml"])["include"]
    assert [each["inputs"] for each in includes] == [
        {"cluster": name, "apply_stage": f"apply-{name}", "source": FROM_GITLAB.source,
         "commit": COMMIT}
        for name in ("staging", "prod")
    ]  # fmt: skip
    pipeline = yaml.safe_load(files[".gitlab-ci.yml"])
    assert pipeline["stages"] == ["test", "apply-staging", "apply-prod", "deploy"]
    both = yaml.safe_load(write(Host.GITLAB, FROM_GITLAB, together)[".gitlab-ci.yml"])
    assert both["stages"] == ["test", "apply-1", "deploy"]


@pytest.mark.parametrize(
    ("host", "pin"),
    [
        (Host.GITHUB, FROM_GITHUB),
        (Host.GITHUB, WHEEL),
        (Host.GITHUB, AT_ADDRESS),
        (Host.GITLAB, FROM_GITLAB),
        (Host.GITLAB, ImagePin("registry.example/kafka:1@sha256:0f")),
    ],
    ids=str,
)
def test_a_repository_says_what_its_jobs_install(host: Host, pin: Pin) -> None:
    assert read_pin(write(host, pin)) == pin


def test_no_file_says_it_where_there_are_no_jobs() -> None:
    assert read_pin({}) is None


def test_a_file_that_is_there_is_same_kept_or_differs() -> None:
    files = tuple(WrittenFile(name, "a", kept=name == "mine") for name in ("mine", "ours", "new"))
    found = compare_files(files, {"mine": "b", "ours": "b"})
    assert [each.state for each in found] == [State.KEPT, State.DIFFERS, State.NEW]
    found = compare_files(files, {"mine": "a", "ours": "a", "new": "a"})
    assert {each.state for each in found} == {State.SAME}


def test_a_new_estate_is_valid_and_a_topic_inherits_every_count() -> None:
    estate = parse()
    (spec,) = estate.topics_for("prod")
    assert (spec.replication_factor, spec.config["min.insync.replicas"]) == (3, "2")
    assert estate.stages == (("staging",), ("prod",))
    assert not estate.findings
    assert estate.clusters["prod"].client["sasl.password"] == "${env:KAFKA_PASSWORD}"


def test_a_cluster_with_fewer_brokers_has_defaults_of_its_own() -> None:
    small = replace(STAGING, brokers=1, cluster_id="5L6g3nShT-eMCtK--X86sw")
    estate = parse(answers=replace(TWO, clusters=(small, replace(PROD, brokers=6))))
    counts = {
        name: (spec.replication_factor, spec.config["min.insync.replicas"])
        for name in ("staging", "prod")
        for spec in estate.topics_for(name)
    }
    assert counts == {"staging": (1, "1"), "prod": (3, "2")}
    assert estate.clusters["staging"].cluster_id == "5L6g3nShT-eMCtK--X86sw"


def test_without_security_a_cluster_has_an_address_alone() -> None:
    plain = replace(STAGING, security=Security.PLAINTEXT)
    assert plain.client == {"bootstrap.servers": "staging.example:9093"}


def test_without_clusters_the_sandbox_decides_the_counts() -> None:
    estate = parse(answers=Answers(sandbox_brokers=1))
    (spec,) = estate.topics_for("sandbox")
    assert spec.replication_factor == 1


@pytest.mark.parametrize("name", ["no name", "a:b", "-"])
def test_a_name_that_no_estate_takes_is_refused_before_anything_is_written(name: str) -> None:
    with pytest.raises(SpecError):
        parse(answers=Answers((ClusterAnswer(name, "a:1"),), ((name,),)))


def make_state(*names: str) -> ClusterState:
    return cluster(*(topic("1,2 2,3", name) for name in names))


FOREIGN = ("_schemas", "connect-offsets", "app-store-changelog", "_confluent-command")


def test_what_other_software_creates_is_ignored_and_the_rest_is_imported() -> None:
    states = {"prod": make_state("orders.events", "orders.paid", *FOREIGN)}
    new = write_estate(replace(TWO, stages=(("prod",), ("staging",))), states)
    estate = parse(dict(new.texts))
    assert [each.name for each in estate.written] == ["orders.events", "orders.paid"]
    assert (new.topics, new.foreign, new.differences) == (2, len(FOREIGN), 0)
    assert not any(estate.clusters["prod"].manages(name) for name in FOREIGN)
    assert "example.yaml" not in new.texts
    assert list(yaml.safe_load(new.texts["clusters.yaml"])) == [
        "version", "defaults", "clusters", "stages"
    ]  # fmt: skip


def test_an_import_of_two_clusters_says_which_topic_is_where() -> None:
    states = {"staging": make_state("orders.events"), "prod": make_state("orders.events", "pay")}
    estate = parse(dict(write_estate(TWO, states).texts))
    assert [spec.name for spec in estate.topics_for("staging")] == ["orders.events"]
    assert [spec.name for spec in estate.topics_for("prod")] == ["orders.events", "pay"]


def test_a_cluster_without_topics_gets_the_example() -> None:
    new = write_estate(TWO, {"prod": make_state("_schemas")})
    assert "example.yaml" in new.texts
    assert parse(dict(new.texts)).clusters["prod"].ignore == ("_schemas",)


@pytest.mark.parametrize("host", list(Host))
def test_what_remains_names_each_environment_and_ends_with_the_first_request(host: Host) -> None:
    begun = Begun(has_git=True, has_owners=True, example=True)
    tasks = list_tasks(replace(TWO, host=host), begun)
    said = "\n".join(line for task in tasks for line in (task.why, *task.commands))
    if host is Host.NONE:
        assert "reconciler plan --cluster staging" in said
        return
    for name in ("staging-plan", "staging", "prod-plan", "prod"):
        assert name in said
    assert said.index("':!topics/example.yaml'") < said.index("git add topics/example.yaml")


@pytest.mark.parametrize(
    ("host", "command"),
    [
        (Host.GITHUB, "codeowners --host github --platform @ORG/TEAM > .github/CODEOWNERS"),
        (Host.GITLAB, "codeowners --host gitlab --platform @ORG/TEAM > .gitlab/CODEOWNERS"),
        (Host.NONE, "codeowners --platform @ORG/TEAM > .github/CODEOWNERS"),
    ],
)
def test_owners_are_written_for_the_host_that_reads_them(host: Host, command: str) -> None:
    assert spell_owners(replace(TWO, host=host)).endswith(command)


def test_commands_fit_a_terminal_of_80_columns() -> None:
    begun = Begun(has_git=False, has_owners=True, example=True, unread=("prod",))
    for host in Host:
        for task in list_tasks(replace(TWO, host=host), begun):
            assert max(map(len, task.commands)) <= 75, task
