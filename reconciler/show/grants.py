"""Rights as commands of kafka-acls, for Terraform, Strimzi and IAM of AWS, and missing rights."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType
from typing import Literal

from reconciler.errors import escape_unprintable
from reconciler.model.rights import (
    ALL,
    BRINGS,
    CLUSTER_NAME,
    HISTORY_GROUP,
    CheckedRights,
    Operation,
    ResourceKind,
    Right,
    Task,
)
from reconciler.styling import Paint, fold_lines, set_columns
from reconciler.units import count

GrantsFormat = Literal["acls", "terraform", "strimzi", "iam"]
ANY_ARN = "arn:aws:kafka:REGION:ACCOUNT:cluster/NAME/UUID"
"""The placeholder in a policy until the ARN of the cluster is known."""
NAMED = 3
"""The number of topics to name that lack a right."""


@dataclass(frozen=True, slots=True)
class _Target:
    """The cluster that rights are on: its name, its address, and its ARN on AWS."""

    cluster: str
    servers: str
    arn: str


def render_grants(
    form: GrantsFormat,
    rights: Mapping[str, Sequence[Right]],
    *,
    cluster: str,
    servers: str = "HOST:PORT",
    arn: str = ANY_ARN,
) -> str:
    """Render the rights of accounts, by principal, such as User:planner.

    In: the name of the cluster, its address for commands, and its ARN for policies of IAM. Returns:
    lines that end in a newline.
    """
    target = _Target(cluster, servers, arn)
    blocks = [_FORMS[form](principal, held, target) for principal, held in rights.items()]
    return _JOINTS[form].join(block for block in blocks if block)


def _write_acls(principal: str, rights: Sequence[Right], target: _Target) -> str:
    lines = ["# Add --command-config FILE if the cluster requires a login."]
    for first, operations in _group(rights):
        command = shlex.join(["kafka-acls", "--bootstrap-server", target.servers, "--add"])
        parts = [command, f"--allow-principal {shlex.quote(principal)}", _name_option(first)]
        parts += [f"--operation {each}" for each in operations]
        lines.append(" \\\n  ".join(parts))
    return "".join(f"{line}\n" for line in lines)


def _name_option(right: Right) -> str:
    """Return the option of kafka-acls that names the resource of a right."""
    if right.kind == ResourceKind.CLUSTER:
        return "--cluster"
    named = f"--{right.kind} {shlex.quote(right.name)}"
    return f"{named} --resource-pattern-type prefixed" if right.prefixed else named


def _write_terraform(principal: str, rights: Sequence[Right], target: _Target) -> str:  # noqa: ARG001
    blocks = []
    for right in rights:
        name = {ALL: "all", CLUSTER_NAME: ""}.get(right.name, right.name)
        user = principal.partition(":")[2]
        label = "_".join(filter(None, [user, str(right.operation).lower(), right.kind, name]))
        values = {
            "resource_type": right.kind.capitalize(),
            "resource_name": right.name,
            "resource_pattern_type_filter": "Prefixed" if right.prefixed else "Literal",
            "acl_principal": principal,
            "acl_host": "*",
            "acl_operation": str(right.operation),
            "acl_permission_type": "Allow",
        }
        width = max(map(len, values))
        lines = [f"  {key:<{width}} = {_quote_hcl(value)}" for key, value in values.items()]
        blocks.append("\n".join([f'resource "kafka_acl" "{_spell_label(label)}" {{', *lines, "}"]))
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _spell_label(text: str) -> str:
    """Spell a name as Terraform's labels are: a letter or _, then letters, digits, _ and -."""
    label = re.sub(r"[^A-Za-z0-9_-]", "_", text)
    return label if re.match(r"[A-Za-z_]", label) else f"_{label}"


def _quote_hcl(text: str) -> str:
    # In HCL, ${ and %{ begin a template.
    return json.dumps(text, ensure_ascii=False).replace("${", "$${").replace("%{", "%%{")


def _write_strimzi(principal: str, rights: Sequence[Right], target: _Target) -> str:
    # With certificates, the operator puts CN= before the name by itself.
    user = principal.partition(":")[2].removeprefix("CN=")
    name = re.sub(r"[^a-z0-9.]+", "-", user.lower()).strip("-.") or "user"
    lines = [
        "apiVersion: kafka.strimzi.io/v1",
        "kind: KafkaUser",
        "metadata:",
        f"  name: {json.dumps(name)}",
        "  labels:",
        f"    strimzi.io/cluster: {json.dumps(target.cluster)}",
        "spec:",
        *([f"  userName: {json.dumps(user)}"] if user != name else []),
        "  # The operator removes every other ACL of this user.",
        "  authorization:",
        "    type: simple",
        "    acls:",
    ]
    for first, operations in _group(rights):
        lines += ["      - resource:", f"          type: {first.kind}"]
        if first.kind != ResourceKind.CLUSTER:
            pattern = "prefix" if first.prefixed else "literal"
            lines.append(f"          name: {json.dumps(first.name)}")
            lines.append(f"          patternType: {pattern}")
        lines += [f"        operations: [{', '.join(operations)}]", '        host: "*"']
    return "".join(f"{line}\n" for line in lines)


def _group(rights: Sequence[Right]) -> Iterator[tuple[Right, list[str]]]:
    """Yield each resource, as its first right, with its operations."""
    for _, group in groupby(rights, lambda right: (right.kind, right.name, right.prefixed)):
        first, *others = group
        yield first, [str(right.operation) for right in (first, *others)]


_T, _G, _C, _O = ResourceKind.TOPIC, ResourceKind.GROUP, ResourceKind.CLUSTER, Operation
_ACTIONS: Mapping[tuple[ResourceKind, Operation], str] = MappingProxyType(
    {
        (_C, _O.DESCRIBE): "DescribeCluster",
        (_C, _O.ALTER): "AlterCluster",
        (_C, _O.DESCRIBE_CONFIGS): "DescribeClusterDynamicConfiguration",
        (_C, _O.ALTER_CONFIGS): "AlterClusterDynamicConfiguration",
        (_T, _O.DESCRIBE): "DescribeTopic",
        (_T, _O.CREATE): "CreateTopic",
        (_T, _O.ALTER): "AlterTopic",
        (_T, _O.DELETE): "DeleteTopic",
        (_T, _O.DESCRIBE_CONFIGS): "DescribeTopicDynamicConfiguration",
        (_T, _O.ALTER_CONFIGS): "AlterTopicDynamicConfiguration",
        (_T, _O.READ): "ReadData",
        (_T, _O.WRITE): "WriteData",
        (_G, _O.DESCRIBE): "DescribeGroup",
        (_G, _O.READ): "AlterGroup",
    }
)
"""The action of kafka-cluster that AWS calls equivalent to an operation of an ACL.

Source: docs.aws.amazon.com/msk/latest/developerguide/kafka-actions.html. What that page requires in
addition on the same resource is what the operation brings.
"""


def _write_iam(principal: str, rights: Sequence[Right], target: _Target) -> str:
    """Write a policy for the role of an account: it names no principal, so its Sids do."""
    if not rights:
        return ""
    held: dict[tuple[ResourceKind, str], set[str]] = {(_C, target.arn): {"Connect"}}
    for right in _list_for_iam(rights):
        actions = held.setdefault((right.kind, _spell_arn(right, target.arn)), set())
        for operation in (right.operation, BRINGS.get(right.operation)):
            if operation is not None:
                actions.add(_ACTIONS[right.kind, operation])
        if (right.kind, right.operation) == (_T, _O.WRITE):
            held[_C, target.arn].add("WriteDataIdempotently")  # so does apply write its records
    statements: dict[tuple[ResourceKind, tuple[str, ...]], list[str]] = {}
    for (kind, arn), actions in held.items():
        statements.setdefault((kind, tuple(sorted(actions))), []).append(arn)
    user = re.sub(r"[^A-Za-z0-9]", "", principal.partition(":")[2].title())
    policy = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": f"{user}{kind.capitalize()}{number}",
                "Effect": "Allow",
                "Action": [f"kafka-cluster:{action}" for action in actions],
                "Resource": arns,
            }
            for number, ((kind, actions), arns) in enumerate(statements.items(), 1)
        ],
    }
    return json.dumps(policy, indent=2, ensure_ascii=False) + "\n"


def _list_for_iam(rights: Sequence[Right]) -> Iterator[Right]:
    """Yield rights, and those on a group that AWS wants of whoever reads a topic."""
    yield from rights
    if any((right.kind, right.operation) == (_T, _O.READ) for right in rights):
        yield Right(_G, HISTORY_GROUP, prefixed=False, operation=_O.READ)


def _spell_arn(right: Right, cluster: str) -> str:
    """Return the ARN of a resource. In a policy, *, ? and $ are no characters of a name."""
    if right.kind == _C:
        return cluster
    name = re.sub(r"[*?$]", r"${\g<0>}", right.name) if right.name != ALL else ALL
    of_kind = cluster.replace(":cluster/", f":{right.kind}/", 1)
    return f"{of_kind}/{name}{'*' if right.prefixed else ''}"


_FORMS: Mapping[GrantsFormat, Callable[[str, Sequence[Right], _Target], str]] = MappingProxyType(
    {
        "acls": _write_acls,
        "terraform": _write_terraform,
        "strimzi": _write_strimzi,
        "iam": _write_iam,
    }
)
_JOINTS: Mapping[GrantsFormat, str] = MappingProxyType(
    {"acls": "\n", "terraform": "\n", "strimzi": "---\n", "iam": "\n"}
)


def render_check(
    cluster: str,
    principal: str,
    found: Mapping[Task, CheckedRights],
    paint: Paint,
    width: int | None = None,
) -> str:
    """Render what an account lacks for each task. Returns: lines that end in a newline."""
    lines = [f"{cluster} · {escape_unprintable(principal)}", ""]
    rows = []
    for task, held in found.items():
        if held.lacking:
            state = paint("red", f"lacks {count(len(held.lacking), 'right')}")
        elif held.unknown:
            state = paint("yellow", "not known entirely")
        else:
            state = paint("green", "has every right")
        rows.append((str(task), state))
        rows += [("", f"{_say(right)}{_say_on(on)}") for right, on in held.lacking.items()]
        rows += [("", f"{_say(right)}: not known, as {why}") for right, why in held.unknown.items()]
    return fold_lines("\n".join([*lines, *set_columns(rows)]), width) + "\n"


def _say(right: Right) -> str:
    if right.kind == ResourceKind.CLUSTER:
        return f"{right.operation} on the cluster"
    if right.name == ALL:
        return f"{right.operation} on all {right.kind}s"
    if right.prefixed:
        return f"{right.operation} on {right.kind}s that begin with {right.name}"
    return f"{right.operation} on the {right.kind} {right.name}"


def _say_on(names: Iterable[str]) -> str:
    shown = list(names)
    if not shown:
        return ""
    more = f" and {len(shown) - NAMED:,} more" if len(shown) > NAMED else ""
    return f": not on {', '.join(map(escape_unprintable, shown[:NAMED]))}{more}"
