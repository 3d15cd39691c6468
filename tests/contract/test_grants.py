"""`reconciler grants` on a broker with an authorizer: what it prints suffices, and each is needed.

Each form is run once: kafka-acls by itself, the others as ACLs that kafka-python creates. Then the
account has exactly these ACLs.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from acl_forms import Acl, acl_of, parse
from command import Ran, run_here
from jsonschema import Draft202012Validator
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    KafkaAdminClient,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from lab import wait_for

from reconciler.api.grants import check_grants
from reconciler.api.planning import load_estate
from reconciler.cli.schema import SCHEMAS
from reconciler.model.rights import BRINGS, Account, Right, Task, list_rights
from reconciler.sandbox.jars import fetch_jars
from reconciler.sandbox.launch import find_java
from reconciler.sandbox.request import Silence

if TYPE_CHECKING:
    from security import Secured

    from reconciler.spec.estate import Estate

pytestmark = pytest.mark.cluster

AUDIT, ORDERS = "grants-audit", "grants-orders"
TOPICS = (ORDERS, AUDIT)
KINDS = {"topic": "TOPIC", "group": "GROUP", "cluster": "CLUSTER"}
RELEASE_WITH_KAFKA_ACLS = "3.9"
"""The last release whose brokers' jars have kafka-acls."""


class Accounts:
    """The ACLs of the accounts, kept by kafka-python, and a directory with an estate for each."""

    def __init__(self, secured: Secured, directory: Path) -> None:
        self.servers = secured.address("PLAINTEXT")
        self.listener = secured.address("SASLPLAIN")
        self.directory = directory
        self.admin = KafkaAdminClient(bootstrap_servers=self.servers)

    def create(self, acls: Sequence[Acl] | set[Acl]) -> None:
        told = self.admin.create_acls([self._bind(acl) for acl in acls])
        assert not told["failed"], told

    def remove(self, acl: Acl) -> None:
        bound = self._bind(acl)
        pattern = bound.resource_pattern
        resource = ResourcePatternFilter(
            pattern.resource_type, pattern.resource_name, pattern.pattern_type
        )
        one = ACLFilter(
            bound.principal, bound.host, bound.operation, bound.permission_type, resource
        )
        ((_, deleted, _),) = self.admin.delete_acls([one])
        assert len(deleted) == 1

    def read(self) -> set[Acl]:
        """Return all ACLs of the accounts, as the broker has them."""
        every = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
        found, _ = self.admin.describe_acls(
            ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, every)
        )
        assert {(acl.host, acl.permission_type) for acl in found} <= {
            ("*", ACLPermissionType.ALLOW)
        }
        return {
            Acl(
                acl.principal,
                acl.resource_pattern.resource_type.name.lower(),
                acl.resource_pattern.resource_name,
                acl.resource_pattern.pattern_type.name.lower(),
                acl.operation.name.title().replace("_", ""),
            )
            for acl in found
        }

    def clear(self) -> None:
        for acl in self.read():
            self.remove(acl)
        wait_for(lambda: not self.read(), 60)

    @staticmethod
    def _bind(acl: Acl) -> ACL:
        spelled = "".join(f"_{c}" if c.isupper() else c.upper() for c in acl.operation).strip("_")
        resource = ResourcePattern(
            ResourceType[KINDS[acl.kind]], acl.name, ACLResourcePatternType[acl.pattern.upper()]
        )
        operation = ACLOperation[spelled.upper()]
        return ACL(acl.principal, "*", operation, ACLPermissionType.ALLOW, resource)

    def run(self, account: str, *words: str) -> Ran:
        """Run a command as an account."""
        return run_here(self.write_estate(account), self.listener, *words)

    def load(self, account: str) -> Estate:
        return load_estate(self.write_estate(account) / "topics")

    def write_estate(self, account: str) -> Path:
        directory = self.directory / account
        (directory / "topics").mkdir(parents=True, exist_ok=True)
        client = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": account,
            "sasl.password": f"${{env:{account.upper()}_PASSWORD}}",
        }
        entry = {
            "audit_topic": AUDIT,
            "moves": {"allow": ["drain"], "rate": "30MiB"},
            "guards": {"max_deletes": 1},
            "client": client,
        }
        clusters = json.dumps({"version": 1, "clusters": {"lab": entry}})
        (directory / "topics" / "clusters.yaml").write_text(clusters)
        for name in TOPICS:
            spec = json.dumps({"topic": name, "partitions": 1, "replication_factor": 1})
            (directory / "topics" / f"{name}.yaml").write_text(spec)
        return directory


@pytest.fixture(scope="module")
def accounts(secured: Secured, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Accounts]:
    with pytest.MonkeyPatch.context() as patch:
        for account in Account:
            patch.setenv(f"{account.upper()}_PASSWORD", f"{account}-secret")
        accounts = Accounts(secured, tmp_path_factory.mktemp("grants"))
        accounts.clear()
        yield accounts
        accounts.clear()
        existing = set(accounts.admin.list_topics()) & set(TOPICS)
        if existing:
            accounts.admin.delete_topics(sorted(existing))
        accounts.admin.close()


def list_all(account: Account) -> tuple[Right, ...]:
    return list_rights(account, list(Task), audit_topic=AUDIT)


def acls_of(account: Account) -> set[Acl]:
    return {acl_of(f"User:{account}", right) for right in list_all(account)}


EVERY = [word for task in Task for word in ("--for", str(task))]


def render(accounts: Accounts, form: str) -> str:
    directory = accounts.write_estate("planner")
    ran = run_here(
        directory, accounts.servers, "grants", "--cluster", "lab", "--format", form, *EVERY
    )
    assert ran.code == 0, ran.err
    return ran.out


def run_kafka_acls(script: str, directory: Path) -> None:
    """Run a printed script with the kafka-acls of Kafka itself."""
    jars = fetch_jars("3.9.2", Silence())
    bin_ = directory / "bin"
    bin_.mkdir()
    tool = bin_ / "kafka-acls"
    java = find_java().home / "bin" / "java"
    classpath = ":".join(map(str, jars))
    tool.write_text(f'#!/bin/sh\nexec {java} -cp {classpath} kafka.admin.AclCommand "$@"\n')
    tool.chmod(0o755)
    environment = {**os.environ, "PATH": f"{bin_}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-eu", "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout


@pytest.mark.parametrize(
    "form", [pytest.param("acls", marks=pytest.mark.slow), "terraform", "strimzi"]
)
def test_a_printed_form_makes_exactly_the_rights_of_the_table(
    accounts: Accounts, form: str, tmp_path: Path
) -> None:
    accounts.clear()
    text = render(accounts, form)
    if form == "acls":
        run_kafka_acls(text, tmp_path)
    else:
        accounts.create(parse(form, text))
    expected = acls_of(Account.PLANNER) | acls_of(Account.APPLIER)
    wait_for(lambda: accounts.read() == expected)


@pytest.fixture(scope="module")
def granted(accounts: Accounts) -> Accounts:
    """Give both accounts what the short form prints, and nothing else."""
    accounts.clear()
    accounts.create(parse("acls", render(accounts, "acls")))
    wait_for(lambda: accounts.run("applier", "apply", "--check", "--cluster", "lab").code == 0)
    return accounts


@pytest.fixture(scope="module")
def applied(granted: Accounts) -> None:
    """Have the topics of the estate exist, whichever test is run."""
    ran = granted.run("applier", "apply", "--cluster", "lab", "--auto-approve")
    assert ran.code == 0, ran.err


def test_with_exactly_these_rights_everything_works(granted: Accounts) -> None:
    """Plan, apply, history, moves: each by the account that is for it."""
    plan = granted.run("planner", "plan", "--cluster", "lab")
    assert plan.code == 0, plan.err
    assert "2 to create" in plan.out
    applied = granted.run("applier", "apply", "--cluster", "lab", "--auto-approve")
    assert applied.code == 0, applied.err
    assert "Applied: 2 done" in applied.out
    assert "No changes." in granted.run("planner", "plan", "--cluster", "lab").out
    shown = granted.run("planner", "history", "--cluster", "lab")
    assert f"  done: {AUDIT}, {ORDERS}\n" in shown.out, shown.err
    status = granted.run("planner", "moves", "status", "--cluster", "lab")
    assert (status.code, status.err) == (0, ""), status.out
    moves = granted.run("planner", "plan", "--moves", "--cluster", "lab")
    assert moves.code == 0, moves.err
    for words in (("pause",), ("rate", "30MiB"), ("settle",)):
        ran = granted.run("applier", "moves", *words, "--cluster", "lab", "--auto-approve")
        assert ran.code in (0, 2), (words, ran)
    for account in Account:
        checked = granted.run(
            account, "grants", "--cluster", "lab", "--check", "--account", str(account), *EVERY
        )
        assert checked.code == 0, checked.out
        assert "lacks" not in checked.out


@pytest.mark.parametrize(
    ("account", "right"),
    [
        pytest.param(account, right, id=f"{account}-{right.operation}-{right.kind}-{right.name}")
        for account in Account
        for right in list_all(account)
    ],
)
def test_one_right_less_and_the_check_names_it(
    granted: Accounts, applied: None, account: Account, right: Right
) -> None:
    acl = acl_of(f"User:{account}", right)
    granted.remove(acl)
    estate = granted.load(account)
    needed = {t: list_rights(account, [t], audit_topic=AUDIT) for t in Task}
    try:

        def lacking() -> dict[Task, list[Right]]:
            found = check_grants(
                estate,
                "lab",
                {task: rights for task, rights in needed.items() if rights},
                bootstrap_servers=granted.listener,
            )
            return {task: list(held.lacking) for task, held in found.items() if held.lacking}

        others = set(list_all(account)) - {right}
        others |= {
            replace(o, operation=BRINGS[o.operation]) for o in others if o.operation in BRINGS
        }
        expected = {
            task: [each for each in rights if each not in others]
            for task, rights in needed.items()
            if not others.issuperset(rights)
        }
        assert any(right in lacks for lacks in expected.values())
        wait_for(lambda: lacking() == expected)
        ran = granted.run(
            account, "grants", "--cluster", "lab", "--check", "--account", str(account), *EVERY
        )
        assert ran.code == 1
        assert f"{right.operation} on " in ran.out
    finally:
        granted.create({acl})


def test_an_account_without_rights_lacks_every_one(accounts: Accounts) -> None:
    accounts.clear()
    wait_for(
        lambda: accounts.run("planner", "plan", "--cluster", "lab").code == 1,
    )
    ran = accounts.run("planner", "grants", "--cluster", "lab", "--check", "--account", "planner")
    assert ran.code == 1
    told = accounts.run(
        "planner", "grants", "--cluster", "lab", "--check", "--account", "planner",
        "--format", "json",
    )  # fmt: skip
    assert told.code == 1
    answer = json.loads(told.out)
    Draft202012Validator(SCHEMAS["grants"]()).validate(answer)
    lacking = {each["task"]: each["lacking"] for each in answer["tasks"]}
    assert (len(lacking["plan"]), len(lacking["audit"])) == (3, 1)
    assert "plan    lacks 3 rights\n" in ran.out
    assert "audit   lacks 1 right\n" in ran.out
    assert ran.err.endswith("without --check, prints what grants these rights\n")
