"""`reconciler grants`: the rights that plan and apply need, and what an account lacks of them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from reconciler.cli import options
from reconciler.cli.terminal import choose_paint, fold_width, print_note, working
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.model.rights import Account, CheckedRights, Right, Task
    from reconciler.show.grants import GrantsFormat
    from reconciler.spec.entry import ClusterEntry
    from reconciler.spec.estate import Estate

TASKS = ("plan", "apply", "audit", "delete", "elect", "moves")
ACCOUNTS = ("planner", "applier")


@click.command(cls=options.Command)
@options.estate_argument
@options.cluster_option
@options.bootstrap_option
@click.option(
    "--for",
    "tasks",
    multiple=True,
    type=click.Choice(TASKS),
    help="Tasks of the accounts; repeatable.  [what clusters.yaml allows]",
)
@click.option("--account", type=click.Choice(ACCOUNTS), help="Account.  [both]")
@click.option(
    "--planner",
    default="User:planner",
    show_default=True,
    metavar="PRINCIPAL",
    help="The account that reads, for plans.",
)
@click.option(
    "--applier",
    default="User:applier",
    show_default=True,
    metavar="PRINCIPAL",
    help="The account that writes, for applies.",
)
@click.option(
    "--prefix",
    "prefixes",
    multiple=True,
    metavar="TEXT",
    help="Only topics whose names begin with this; repeatable.  [all topics]",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["acls", "terraform", "strimzi", "iam", "json"]),
    help="Commands of kafka-acls, kafka_acl of Mongey's provider, Strimzi's KafkaUser, policies of "
    "IAM for Amazon MSK, or JSON.  [acls; iam where the cluster has AWS_MSK_IAM]",
)
@click.option("--arn", metavar="ARN", help="The ARN of the cluster, for policies of IAM.")
@click.option(
    "--check", is_flag=True, help="Check which rights the account of this run lacks instead."
)
def command(
    *,
    estate: Path,
    cluster: str,
    bootstrap_servers: str | None,
    tasks: tuple[str, ...],
    account: str | None,
    planner: str,
    applier: str,
    prefixes: tuple[str, ...],
    form: GrantsFormat | Literal["json"] | None,
    arn: str | None,
    check: bool,
) -> int:
    """Print the smallest rights of the two accounts, or check those of one.

    The account that plans in a pull request reads, and the one that applies after the merge writes.
    --check connects as the account of clusters.yaml and changes nothing: it exits 1 if a right is
    missing. With --account it asks only for the rights of that one. ESTATE defaults to topics.
    """
    from reconciler.api.connections import find_cluster
    from reconciler.api.grants import choose_tasks
    from reconciler.api.planning import load_estate
    from reconciler.model.rights import Account, Task

    loaded = load_estate(estate)
    entry = find_cluster(loaded, cluster)
    wanted = tuple(map(Task, dict.fromkeys(tasks))) or choose_tasks(entry)
    if Task.AUDIT in wanted and entry.audit_topic is None:
        raise UsageError(f"--for audit: {cluster} has no audit_topic in clusters.yaml")
    accounts = [Account(account)] if account else list(Account)
    if check:
        return _check(
            loaded, entry, wanted, accounts, prefixes, bootstrap_servers, as_json=form == "json"
        )
    from reconciler.model.rights import list_rights, reduce_rights
    from reconciler.show.grants import ANY_ARN, render_grants
    from reconciler.spec.client_authentication import read_mechanism
    from reconciler.spec.client_properties import MSK_IAM

    if form is None:
        form = "iam" if read_mechanism(entry.client.get) == MSK_IAM else "acls"
    if arn is not None:
        _check_arn(arn, form)
    names = {Account.PLANNER: _read_principal(planner), Account.APPLIER: _read_principal(applier)}
    rights: dict[str, tuple[Right, ...]] = {}
    for one in accounts:
        needed = list_rights(one, wanted, audit_topic=entry.audit_topic, prefixes=prefixes)
        # One principal may be both accounts.
        rights[names[one]] = reduce_rights((*rights.get(names[one], ()), *needed))
    if form == "json":
        click.echo(_encode(cluster, rights=_list_rights(rights)))
        return 0
    servers = bootstrap_servers or entry.client.get("bootstrap.servers") or "HOST:PORT"
    text = render_grants(form, rights, cluster=cluster, servers=servers, arn=arn or ANY_ARN)
    click.echo(text, nl=False)
    if form == "iam" and arn is None:
        print_note("--arn puts the ARN of the cluster into the policies")
    return 0


def _check(
    loaded: Estate,
    entry: ClusterEntry,
    tasks: Sequence[Task],
    accounts: Sequence[Account],
    prefixes: tuple[str, ...],
    bootstrap_servers: str | None,
    *,
    as_json: bool,
) -> int:
    """Print what the account of this run lacks. Returns: 1 if it lacks something."""
    from reconciler.api.grants import check_grants
    from reconciler.model.rights import list_rights
    from reconciler.show.grants import render_check

    all_found: dict[Account, Mapping[Task, CheckedRights]] = {}
    for account in accounts:
        needed = {
            task: rights
            for task in tasks
            if (
                rights := list_rights(
                    account, [task], audit_topic=entry.audit_topic, prefixes=prefixes
                )
            )
        }
        with working(f"reading {entry.name}"):
            all_found[account] = check_grants(
                loaded, entry.name, needed, bootstrap_servers=bootstrap_servers
            )
    if as_json:
        click.echo(_encode(entry.name, tasks=_list_checked(all_found)))
    else:
        on_stdout = choose_paint(sys.stdout)
        shown = (
            render_check(entry.name, f"as the {account}", found, on_stdout, fold_width())
            for account, found in all_found.items()
        )
        click.echo("\n".join(shown), nl=False, color=on_stdout.wanted)
    missing = any(held.lacking for found in all_found.values() for held in found.values())
    if missing:
        print_note("reconciler grants, without --check, prints what grants these rights")
    return int(missing)


def _encode(cluster: str, **told: list[dict[str, object]]) -> str:
    answer: dict[str, object] = {"format_version": "1.0", "cluster": cluster, **told}
    return json.dumps(answer, indent=2, ensure_ascii=False)


def _list_rights(rights: Mapping[str, Sequence[Right]]) -> list[dict[str, object]]:
    return [
        {"principal": principal, **asdict(right)}
        for principal, held in rights.items()
        for right in held
    ]


def _list_checked(
    found: Mapping[Account, Mapping[Task, CheckedRights]],
) -> list[dict[str, object]]:
    return [
        {
            "account": account,
            "task": task,
            "lacking": [
                {**asdict(right), "not_on": topics} for right, topics in held.lacking.items()
            ],
            "unknown": [asdict(right) for right in held.unknown],
        }
        for account, tasks in found.items()
        for task, held in tasks.items()
    ]


def _check_arn(arn: str, form: str) -> None:
    """Refuse what is not the ARN of a cluster, or is for another format. Errors: UsageError."""
    if form != "iam":
        raise UsageError(f"--arn is for --format iam, and this is {form}")
    if not re.fullmatch(
        r"arn:aws[a-z-]*:kafka:[a-z0-9-]+:[0-9]{12}:cluster/[^/*?\s]+/[^/*?\s]+", arn
    ):
        like = "write one as in arn:aws:kafka:eu-west-1:123456789012:cluster/NAME/UUID"
        raise UsageError(f"{arn!r} is not the ARN of a cluster of Amazon MSK; {like}")


def _read_principal(text: str) -> str:
    """Read a principal; a name alone is a user. Errors: UsageError."""
    if not text.isprintable() or not text.partition(":")[2 if ":" in text else 0]:
        raise UsageError(f"{text!r} is not a principal; write one as in User:planner")
    return text if ":" in text else f"User:{text}"
