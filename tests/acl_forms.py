"""Readers of the printed forms of rights, which share no code with what prints them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import yaml

if TYPE_CHECKING:
    from reconciler.model.rights import Right


class Acl(NamedTuple):
    """An ACL that allows something from every host; the pattern is literal or prefixed."""

    principal: str
    kind: str
    name: str
    pattern: str
    operation: str


def acl_of(principal: str, right: Right) -> Acl:
    """Return the ACL of a right."""
    pattern = "prefixed" if right.prefixed else "literal"
    return Acl(principal, str(right.kind), right.name, pattern, str(right.operation))


def parse(form: str, text: str) -> set[Acl]:
    """Read the ACLs of a printed form."""
    return set(_READERS[form](text))


def _read_acls(text: str) -> Iterator[Acl]:
    for line in text.replace("\\\n", " ").splitlines():
        words = iter(shlex.split(line, comments=True))
        if next(words, "") != "kafka-acls":
            continue
        given: dict[str, list[str]] = {}
        for word in words:
            takes = word not in ("--add", "--cluster")
            given.setdefault(word, []).append(next(words) if takes else "kafka-cluster")
        (principal,) = given["--allow-principal"]
        pattern = given.get("--resource-pattern-type", ["literal"])[0]
        for kind in ("topic", "group", "cluster"):
            for name in given.get(f"--{kind}", ()):
                for operation in given["--operation"]:
                    yield Acl(principal, kind, name, pattern, operation)


def _read_terraform(text: str) -> Iterator[Acl]:
    labels = re.findall(r'^resource "kafka_acl" "([A-Za-z_][\w-]*)" \{$', text, re.MULTILINE)
    assert len(labels) == len(set(labels)) == text.count("resource ")
    for block in re.findall(r"\{\n(.*?)\n\}", text, re.DOTALL):
        pairs = re.findall(r'^  (\w+) += "((?:[^"\\]|\\.)*)"$', block, re.MULTILINE)
        values = {name: _read_hcl(value) for name, value in pairs}
        assert (values["acl_host"], values["acl_permission_type"]) == ("*", "Allow")
        yield Acl(
            values["acl_principal"],
            values["resource_type"].lower(),
            values["resource_name"],
            values["resource_pattern_type_filter"].lower(),
            values["acl_operation"],
        )


def _read_hcl(text: str) -> str:
    assert not re.search(r"(?<![$%])[$%]\{", text)  # it would be a template
    return re.sub(r"\\(.)", r"\1", text).replace("$${", "${").replace("%%{", "%{")


def _read_strimzi(text: str) -> Iterator[Acl]:
    for user in yaml.safe_load_all(text):
        assert (user["apiVersion"], user["kind"]) == ("kafka.strimzi.io/v1", "KafkaUser")
        name = user["metadata"]["name"]
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", name)
        spec = user["spec"]
        assert spec["authorization"]["type"] == "simple"
        for acl in spec["authorization"]["acls"] or ():
            resource = acl["resource"]
            cluster = resource["type"] == "cluster"
            pattern = {"prefix": "prefixed"}.get(resource.get("patternType"), "literal")
            for operation in acl["operations"]:
                yield Acl(
                    f"User:{spec.get('userName', name)}",
                    resource["type"],
                    "kafka-cluster" if cluster else resource["name"],
                    pattern,
                    operation,
                )


_READERS: Mapping[str, Callable[[str], Iterator[Acl]]] = {
    "acls": _read_acls,
    "terraform": _read_terraform,
    "strimzi": _read_strimzi,
}
