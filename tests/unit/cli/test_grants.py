"""`reconciler grants` without a cluster: which rights are printed, and for whom."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from acl_forms import Acl, parse

from reconciler.cli.app import run
from reconciler.cli.grants import ACCOUNTS, TASKS
from reconciler.model.rights import Account, Task

GRANTS = ("grants", "--cluster", "prod")
MOVES = "{moves: {rate: 30MiB, allow: [replication]}}"


@pytest.fixture(autouse=True)
def estate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topics").mkdir()
    return write(tmp_path, "{}")


def write(directory: Path, entry: str) -> Path:
    (directory / "topics" / "a.yaml").write_text("topic: a\npartitions: 1\n")
    text = f"version: 1\nclusters: {{prod: {entry}}}\n"
    (directory / "topics" / "clusters.yaml").write_text(text)
    return directory


def list_printed(capsys: pytest.CaptureFixture[str], *more: str) -> set[tuple[str, str, str]]:
    """Return the account, the resource and the operation of each right that is printed."""
    assert run([*GRANTS, *more]) == 0
    acls = parse("acls", capsys.readouterr().out)
    return {(acl.principal, f"{acl.kind} {acl.name}", acl.operation) for acl in acls}


PLAN = {
    ("User:planner", "topic *", "Describe"),
    ("User:planner", "topic *", "DescribeConfigs"),
    ("User:planner", "cluster kafka-cluster", "Describe"),
}
APPLY = {
    ("User:applier", "topic *", "Create"),
    ("User:applier", "topic *", "Alter"),
    ("User:applier", "topic *", "AlterConfigs"),
    ("User:applier", "cluster kafka-cluster", "Describe"),
    ("User:applier", "group reconciler-apply", "Read"),
}


def test_every_account_gets_what_plan_and_apply_need(capsys: pytest.CaptureFixture[str]) -> None:
    assert list_printed(capsys) == PLAN | APPLY


@pytest.mark.parametrize(
    ("entry", "added"),
    [
        ("{audit_topic: audit}", {("User:applier", "topic audit", "Write")}),
        ("{audit_topic: audit}", {("User:planner", "topic audit", "Read")}),
        ("{guards: {max_deletes: 1}}", {("User:applier", "topic *", "Delete")}),
        ("{guards: {max_deletes: 1}}", {("User:planner", "group *", "Describe")}),
        (
            "{moves: {rate: 30MiB, allow: [replication]}}",
            {("User:applier", "cluster kafka-cluster", "Alter")},
        ),
        (
            "{moves: {rate: 30MiB, allow: [replication]}}",
            {("User:applier", "group reconciler-moves", "Read")},
        ),
    ],
)
def test_a_cluster_that_allows_more_needs_more(
    estate: Path,
    entry: str,
    added: set[tuple[str, str, str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(estate, entry)
    assert added <= list_printed(capsys)
    assert not added & list_printed(capsys, "--for", "plan", "--for", "apply")


def test_one_account_of_one_task_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert list_printed(capsys, "--account", "planner") == PLAN
    assert list_printed(capsys, "--account", "applier", "--for", "elect") == {
        ("User:applier", "cluster kafka-cluster", "Alter"),
        ("User:applier", "topic *", "Describe"),
        ("User:applier", "group reconciler-apply", "Read"),
    }


def test_one_account_for_both_gets_each_right_once(capsys: pytest.CaptureFixture[str]) -> None:
    told = list_printed(capsys, "--planner", "ops", "--applier", "User:ops")
    # Alter brings Describe, and AlterConfigs brings DescribeConfigs.
    assert told == {("User:ops", *right[1:]) for right in APPLY}


def test_a_prefix_is_the_name_of_a_pattern(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*GRANTS, "--prefix", "shop.", "--account", "planner"]) == 0
    acls = parse("acls", capsys.readouterr().out)
    assert Acl("User:planner", "topic", "shop.", "prefixed", "Describe") in acls
    assert {acl.name for acl in acls} == {"shop.", "kafka-cluster"}


def test_prefixes_may_be_named_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--prefix", "shop.", "--prefix", "pay.", "--account", "planner"]
    assert run([*GRANTS, *words]) == 0
    acls = parse("acls", capsys.readouterr().out)
    assert {acl.name for acl in acls} == {"shop.", "pay.", "kafka-cluster"}
    shop, pay = ({a.operation for a in acls if a.name == name} for name in ("shop.", "pay."))
    assert shop == pay


@pytest.mark.parametrize(
    ("entry", "address"),
    [
        ("{client: {bootstrap.servers: 'kafka-1:9092'}}", "kafka-1:9092"),
        ("{}", "HOST:PORT"),
    ],
)
def test_commands_have_the_address_of_the_cluster(
    estate: Path, entry: str, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(estate, entry)
    assert run([*GRANTS]) == 0
    assert f"kafka-acls --bootstrap-server {address} --add \\\n" in capsys.readouterr().out


IAM = (
    "{client: {bootstrap.servers: 'b-1.shop.1a2b3.c1.kafka.eu-west-1.amazonaws.com:9098', "
    "security.protocol: SASL_SSL, sasl.mechanism: AWS_MSK_IAM}}"
)
ARN = "arn:aws:kafka:eu-west-1:123456789012:cluster/shop/1a2b-3"


def test_where_aws_asks_iam_policies_are_printed(
    estate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kafka's ACLs have no effect there."""
    write(estate, IAM)
    assert run([*GRANTS, "--account", "planner"]) == 0
    shown = capsys.readouterr()
    assert {each["Sid"] for each in json.loads(shown.out)["Statement"]} == {
        "PlannerCluster1",
        "PlannerTopic2",
    }
    assert "arn:aws:kafka:REGION:ACCOUNT:cluster/NAME/UUID" in shown.out
    assert shown.err == "--arn puts the ARN of the cluster into the policies\n"
    assert run([*GRANTS, "--account", "planner", "--arn", ARN]) == 0
    shown = capsys.readouterr()
    assert ARN in shown.out
    assert (shown.out.count("REGION"), shown.err) == (0, "")
    assert list_printed(capsys, "--format", "acls") == PLAN | APPLY


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--arn", ARN), "--arn is for --format iam, and this is acls"),
        (
            ("--format", "iam", "--arn", "arn:aws:kafka:eu-west-1:123456789012:topic/shop/1/a"),
            "'arn:aws:kafka:eu-west-1:123456789012:topic/shop/1/a' is not the ARN of a cluster of "
            "Amazon MSK; write one as in arn:aws:kafka:eu-west-1:123456789012:cluster/NAME/UUID",
        ),
        (("--for", "audit"), "--for audit: prod has no audit_topic in clusters.yaml"),
        (("--planner", ""), "'' is not a principal; write one as in User:planner"),
        (("--applier", "User:"), "'User:' is not a principal; write one as in User:planner"),
        (("--planner", "a\nb"), "'a\\nb' is not a principal; write one as in User:planner"),
    ],
)
def test_what_cannot_be_printed_is_refused(
    arguments: tuple[str, ...], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*GRANTS, *arguments]) == 64
    assert capsys.readouterr().err == f"error: {error}\n"


def test_the_choices_are_those_of_the_table() -> None:
    assert tuple(Task) == TASKS
    assert tuple(Account) == ACCOUNTS
