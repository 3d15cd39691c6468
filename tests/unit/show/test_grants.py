"""The printed forms of rights: each one, parsed again, holds exactly the rights of the table."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from acl_forms import Acl, acl_of, parse

from reconciler.model.rights import (
    BRINGS,
    Account,
    CheckedRights,
    Operation,
    ResourceKind,
    Right,
    Task,
    list_rights,
)
from reconciler.show.grants import GrantsFormat, render_check, render_grants
from reconciler.styling import Paint

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "permissions.md").read_text()
FORMS: tuple[GrantsFormat, ...] = ("acls", "terraform", "strimzi")
SECTIONS = {
    "Plan": Task.PLAN,
    "Apply": Task.APPLY,
    "Audit topic": Task.AUDIT,
    "Elections": Task.ELECT,
    "Deletion": Task.DELETE,
    "Moves": Task.MOVES,
    "Runs of moves": Task.MOVES,
}
"""The sections of the page that list grants."""


def list_all(account: Account, *, prefixes: tuple[str, ...] = ()) -> tuple[Right, ...]:
    return list_rights(account, list(Task), audit_topic="audit", prefixes=prefixes)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("prefixes", [(), ("shop.",), ("shop.", "pay.")])
def test_a_form_holds_the_rights_of_both_accounts(
    form: GrantsFormat, prefixes: tuple[str, ...]
) -> None:
    rights = {f"User:{account}": list_all(account, prefixes=prefixes) for account in Account}
    text = render_grants(form, rights, cluster="prod-eu")
    expected = {acl_of(user, right) for user, held in rights.items() for right in held}
    assert parse(form, text) == expected
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("user", "topic"),
    [("o'neil", "a"), ("$(rm -rf x)", "a"), ('"quoted"', "${a}"), ("Upper_case", "it's %{b}")],
)
def test_no_name_is_more_than_a_name(form: GrantsFormat, user: str, topic: str) -> None:
    right = Right(ResourceKind.TOPIC, topic, False, Operation.READ)
    text = render_grants(form, {f"User:{user}": [right]}, cluster="prod-eu")
    assert parse(form, text) == {acl_of(f"User:{user}", right)}


def test_a_certificate_is_named_as_strimzi_names_it() -> None:
    text = render_grants("strimzi", {"User:CN=planner": []}, cluster="prod-eu")
    assert '  name: "planner"\n' in text
    assert "userName" not in text


def test_no_right_is_listed_that_another_one_brings() -> None:
    for account in Account:
        rights = list_all(account)
        brought = {(right.kind, right.name, BRINGS.get(right.operation)) for right in rights}
        assert not {(right.kind, right.name, right.operation) for right in rights} & brought


def test_without_an_audit_topic_there_is_no_right_to_it() -> None:
    assert list_rights(Account.PLANNER, [Task.AUDIT]) == ()


@pytest.mark.parametrize("heading", SECTIONS)
def test_the_page_lists_the_rights_of_the_table(heading: str) -> None:
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert section
    block = re.search(r"```sh\n(.*?)```", section[1], re.DOTALL)
    assert block
    listed = parse("acls", block[1])
    users = {acl.principal for acl in listed}
    table = {
        acl_of(user, right)
        for account in Account
        for user in [f"User:{account}"]
        if user in users
        for right in list_rights(account, [SECTIONS[heading]], audit_topic="NAME")
    }
    brought = {
        acl._replace(operation=str(BRINGS[Operation(acl.operation)]))
        for acl in listed
        if Operation(acl.operation) in BRINGS
    }
    assert listed - brought == table


def test_the_page_lists_every_task() -> None:
    assert set(SECTIONS.values()) == set(Task)
    moves = PAGE.partition("## Moves\n")[2]
    assert {acl.principal for acl in parse("acls", moves)} == {"User:planner", "User:applier"}


ARN = "arn:aws:kafka:eu-west-1:123456789012:cluster/shop/1a2b-3"
IAM = """
Connect                             |                         | cluster |
DescribeCluster                     | DESCRIBE CLUSTER        | cluster |
AlterCluster                        | ALTER CLUSTER           | cluster | DescribeCluster
DescribeClusterDynamicConfiguration | DESCRIBE_CONFIGS CLUSTER | cluster |
AlterClusterDynamicConfiguration    | ALTER_CONFIGS CLUSTER   | cluster | DescribeClusterDynamicConfiguration
WriteDataIdempotently               | IDEMPOTENT_WRITE CLUSTER | cluster | WriteData
CreateTopic                         | CREATE TOPIC            | topic   |
DescribeTopic                       | DESCRIBE TOPIC          | topic   |
AlterTopic                          | ALTER TOPIC             | topic   | DescribeTopic
DeleteTopic                         | DELETE TOPIC            | topic   | DescribeTopic
DescribeTopicDynamicConfiguration   | DESCRIBE_CONFIGS TOPIC  | topic   |
AlterTopicDynamicConfiguration      | ALTER_CONFIGS TOPIC     | topic   | DescribeTopicDynamicConfiguration
ReadData                            | READ TOPIC              | topic   | DescribeTopic AlterGroup
WriteData                           | WRITE TOPIC             | topic   | DescribeTopic
DescribeGroup                       | DESCRIBE GROUP          | group   |
AlterGroup                          | READ GROUP              | group   | DescribeGroup
"""  # noqa: E501 - the table of docs.aws.amazon.com/msk/latest/developerguide/kafka-actions.html
"""AWS's actions: the ACL that each is equivalent to, its resource, what must be allowed as well.

Every action requires Connect. Looked up in November 2026.
"""
PLANNER = """\
{
  "Version": "2012-10-17",
  "Statement": [
    {
      "Sid": "PlannerCluster1",
      "Effect": "Allow",
      "Action": [
        "kafka-cluster:Connect",
        "kafka-cluster:DescribeCluster"
      ],
      "Resource": [
        "arn:aws:kafka:eu-west-1:123456789012:cluster/shop/1a2b-3"
      ]
    },
    {
      "Sid": "PlannerTopic2",
      "Effect": "Allow",
      "Action": [
        "kafka-cluster:DescribeTopic",
        "kafka-cluster:DescribeTopicDynamicConfiguration"
      ],
      "Resource": [
        "arn:aws:kafka:eu-west-1:123456789012:topic/shop/1a2b-3/pay.*",
        "arn:aws:kafka:eu-west-1:123456789012:topic/shop/1a2b-3/shop.*"
      ]
    }
  ]
}
"""


def read_actions() -> dict[str, tuple[tuple[str, str], str, set[str]]]:
    """Return AWS's table by action: operation and kind of the ACL, resource, required actions."""
    rows = ([cell.strip() for cell in line.split("|")] for line in IAM.strip().splitlines())
    table = {}
    for action, acl, resource, required in rows:
        operation, _, kind = acl.partition(" ")
        table[action] = ((operation, kind), resource, set(required.split()))
    return table


def read_policy(text: str) -> dict[str, set[str]]:
    """Return what a policy allows: actions by the ARN of a resource."""
    policy = json.loads(text)
    assert set(policy) == {"Version", "Statement"}
    assert policy["Version"] == "2012-10-17"
    sids = [statement["Sid"] for statement in policy["Statement"]]
    assert len(set(sids)) == len(sids)
    assert all(re.fullmatch("[A-Za-z0-9]+", sid) for sid in sids)
    allowed: dict[str, set[str]] = {}
    for statement in policy["Statement"]:
        assert set(statement) == {"Sid", "Effect", "Action", "Resource"}
        assert statement["Effect"] == "Allow"
        for arn in statement["Resource"]:
            prefixes = {action.partition(":")[0] for action in statement["Action"]}
            assert prefixes == {"kafka-cluster"}
            actions = {action.partition(":")[2] for action in statement["Action"]}
            allowed.setdefault(arn, set()).update(actions)
    return allowed


def test_a_policy_is_for_the_role_of_an_account() -> None:
    rights = list_rights(Account.PLANNER, [Task.PLAN], prefixes=("shop.", "pay."))
    assert render_grants("iam", {"User:planner": rights}, cluster="prod-eu", arn=ARN) == PLANNER
    assert render_grants("iam", {"User:planner": []}, cluster="prod-eu", arn=ARN) == ""


@pytest.mark.parametrize("account", Account)
@pytest.mark.parametrize("task", [*Task, None])
@pytest.mark.parametrize("prefixes", [(), ("shop.", "pay.")])
def test_a_policy_allows_each_right_by_the_action_that_aws_calls_equivalent(
    account: Account, task: Task | None, prefixes: tuple[str, ...]
) -> None:
    """With the actions that AWS requires for these, and no other action."""
    tasks = list(Task) if task is None else [task]
    rights = list_rights(account, tasks, audit_topic="audit", prefixes=prefixes)
    text = render_grants("iam", {f"User:{account}": rights}, cluster="prod-eu", arn=ARN)
    if not rights:
        assert text == ""
        return
    table, allowed = read_actions(), read_policy(text)
    equivalent = {acl: action for action, (acl, *_) in table.items()}
    needed = {"Connect"}
    for right in rights:
        name = f"/{right.name}{'*' if right.prefixed else ''}"
        arn = ARN if right.kind == "cluster" else ARN.replace(":cluster/", f":{right.kind}/") + name
        operation = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", right.operation).upper()
        action = equivalent[operation, right.kind.upper()]
        assert action in allowed[arn]
        needed.add(action)
    if "WriteData" in needed:
        needed.add("WriteDataIdempotently")  # the producer of apply is idempotent
    while more := {each for action in needed for each in table[action][2]} - needed:
        needed |= more
    assert {action for actions in allowed.values() for action in actions} == needed
    for arn, actions in allowed.items():
        assert {table[action][1] for action in actions} == {arn.split(":")[5].partition("/")[0]}
        for action in actions:  # what AWS requires is allowed on the same resource, or on another
            same = {each for each in table[action][2] if table[each][1] == table[action][1]}
            assert same <= actions


@pytest.mark.parametrize("account", Account)
def test_every_right_of_the_table_has_an_action_of_aws(account: Account) -> None:
    actions = {acl for acl, *_ in read_actions().values()}
    for right in list_all(account):
        for operation in (right.operation, BRINGS.get(right.operation)):
            if operation is not None:
                spelled = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operation).upper()
                assert (spelled, right.kind.upper()) in actions


def test_a_name_in_a_policy_is_no_pattern_and_no_variable() -> None:
    """IAM escapes these characters so: they mean something in the ARN of a policy."""
    right = Right(ResourceKind.TOPIC, "a*?${aws:username}", True, Operation.WRITE)
    text = render_grants("iam", {'User:o\'neil & "co"': [right]}, cluster="prod-eu", arn=ARN)
    topic = ARN.replace(":cluster/", ":topic/")
    assert f"{topic}/a${{*}}${{?}}${{$}}{{aws:username}}*" in read_policy(text)


CHECK = """\
prod-eu · as the applier

plan    has every right
apply   lacks 2 rights
        Create on all topics
        AlterConfigs on all topics: not on a, b, c and 1 more
audit   not known entirely
        Write on the topic audit: not known, as nothing of it exists yet
delete  lacks 1 right
        Delete on topics that begin with shop.
moves   lacks 2 rights
        Alter on the cluster
        Read on the group reconciler-moves
"""


def test_what_lacks_is_named_by_task() -> None:
    topic, group = ResourceKind.TOPIC, ResourceKind.GROUP
    create = Right(topic, "*", False, Operation.CREATE)
    configs = Right(topic, "*", False, Operation.ALTER_CONFIGS)
    write = Right(topic, "audit", False, Operation.WRITE)
    delete = Right(topic, "shop.", True, Operation.DELETE)
    alter = Right(ResourceKind.CLUSTER, "kafka-cluster", False, Operation.ALTER)
    read = Right(group, "reconciler-moves", False, Operation.READ)
    found = {
        Task.PLAN: CheckedRights({}),
        Task.APPLY: CheckedRights({create: (), configs: ("a", "b", "c", "d")}),
        Task.AUDIT: CheckedRights({}, {write: "nothing of it exists yet"}),
        Task.DELETE: CheckedRights({delete: ()}),
        Task.MOVES: CheckedRights({alter: (), read: ()}),
    }
    assert render_check("prod-eu", "as the applier", found, Paint(wanted=False)) == CHECK


def test_the_name_of_another_tool_is_escaped() -> None:
    held = CheckedRights({Right(ResourceKind.TOPIC, "*", False, Operation.ALTER): ("a\x1b[31m",)})
    text = render_check("prod-eu", "x", {Task.APPLY: held}, Paint(wanted=False))
    assert "not on a\\x1b[31m\n" in text


def test_an_acl_is_one_line_of_all_that_it_says() -> None:
    right = Right(ResourceKind.GROUP, "g", False, Operation.READ)
    assert acl_of("User:a", right) == Acl("User:a", "group", "g", "literal", "Read")
