"""Rights as commands of kafka-acls, as Terraform and as Strimzi's KafkaUser, and what lacks."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Literal

from reconciler.errors import escape_unprintable
from reconciler.model.rights import ALL, CLUSTER_NAME, CheckedRights, ResourceKind, Right, Task
from reconciler.styling import Paint, fold_lines, set_columns
from reconciler.units import count

GrantsFormat = Literal["acls", "terraform", "strimzi"]
NAMED = 3
"""How many topics are named that show that a right lacks."""


def render_grants(
    form: GrantsFormat,
    rights: Mapping[str, Sequence[Right]],
    *,
    cluster: str,
    servers: str = "HOST:PORT",
) -> str:
    """Render the rights of accounts, by principal, such as User:planner.

    In: the name of the cluster, and its address for commands. Returns: lines that end in a newline.
    """
    blocks = [_FORMS[form](principal, held, cluster, servers) for principal, held in rights.items()]
    return _JOINTS[form].join(block for block in blocks if block)


def _write_acls(principal: str, rights: Sequence[Right], cluster: str, servers: str) -> str:  # noqa: ARG001
    lines = ["# Add --command-config FILE where the cluster asks for a login."]
    for first, operations in _group(rights):
        command = shlex.join(["kafka-acls", "--bootstrap-server", servers, "--add"])
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


def _write_terraform(principal: str, rights: Sequence[Right], cluster: str, servers: str) -> str:  # noqa: ARG001
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


def _write_strimzi(principal: str, rights: Sequence[Right], cluster: str, servers: str) -> str:  # noqa: ARG001
    # With certificates, the operator puts CN= before the name by itself.
    user = principal.partition(":")[2].removeprefix("CN=")
    name = re.sub(r"[^a-z0-9.]+", "-", user.lower()).strip("-.") or "user"
    lines = [
        "apiVersion: kafka.strimzi.io/v1",
        "kind: KafkaUser",
        "metadata:",
        f"  name: {json.dumps(name)}",
        "  labels:",
        f"    strimzi.io/cluster: {json.dumps(cluster)}",
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


_FORMS: Mapping[GrantsFormat, Callable[[str, Sequence[Right], str, str], str]] = MappingProxyType(
    {"acls": _write_acls, "terraform": _write_terraform, "strimzi": _write_strimzi}
)
_JOINTS: Mapping[GrantsFormat, str] = MappingProxyType(
    {"acls": "\n", "terraform": "\n", "strimzi": "---\n"}
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
