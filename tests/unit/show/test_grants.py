"""The printed forms of rights: each one, parsed again, holds exactly the rights of the table."""

from __future__ import annotations

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

PAGE = (Path(__file__).parents[3] / "docs" / "permissions.md").read_text()
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
