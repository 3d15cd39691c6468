"""Every rule is named by a test of the gate, and without brokers and Spark where that can be."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from reconciler.rulebook import RULES

TESTS = Path(__file__).parents[1]
RULE = re.compile(r"(?<![\w-])[a-z]+(?:-[a-z]+)+(?![\w-])")
ANSWERS = {".txt", ".md", ".json"}

NEED_BROKERS = {
    "audit-lost",
    "audit-topic",
    "client-changed",
    "client-new",
    "connect-controller",
    "connect-credentials",
    "connect-mechanism",
    "connect-not-kafka",
    "connect-sasl-missing",
    "connect-sasl-unwanted",
    "connect-tls-client",
    "connect-tls-missing",
    "connect-tls-untrusted",
    "connect-tls-unwanted",
    "connect-tls-validity",
    "lock-held",
    "lock-lost",
    "lock-unavailable",
    "plan-commit",
    "plan-unexpected",
}
NEED_SPARK = {
    "fleet-disk-full",
    "fleet-file",
    "fleet-memory",
    "fleet-spark",
    "fleet-time-limit",
    "lake-collection-ahead",
    "lake-collection-name",
    "lake-collection-unknown",
    "lake-publication",
    "lake-rows",
    "lake-table-missing",
    "lake-version",
    "lake-write",
}


class Names(ast.NodeVisitor):
    """Collects the rules that texts of a module name, except in what is marked slow."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def visit(self, node: ast.AST) -> None:
        marks = [*getattr(node, "decorator_list", ()), *getattr(node, "keywords", ())]
        if any(ast.unparse(mark).endswith("pytest.mark.slow") for mark in marks):
            return
        super().visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.found |= set(RULE.findall(node.value.replace("\\", "")))


@cache
def find_named(*folders: str) -> set[str]:
    """Return the rules that the tests of these folders name, themselves or in their answers."""
    names = Names()
    for file in (file for folder in folders for file in (TESTS / folder).rglob("*")):
        if file.suffix == ".py" and file != Path(__file__):
            names.visit(ast.parse(file.read_text(encoding="utf-8")))
        elif file.suffix in ANSWERS:
            names.found |= set(RULE.findall(file.read_text(encoding="utf-8")))
    return names.found & set(RULES)


def test_every_rule_is_shown_without_brokers_and_spark_or_needs_them() -> None:
    assert set(RULES) - find_named("unit", "golden") == NEED_BROKERS | NEED_SPARK


def test_what_needs_brokers_is_shown_on_brokers() -> None:
    assert NEED_BROKERS - find_named("contract", "e2e") == set()


def test_what_needs_spark_is_shown_on_spark() -> None:
    assert NEED_SPARK - find_named("fleet") == set()
