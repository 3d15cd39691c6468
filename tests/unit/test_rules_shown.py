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


def list_rules(text: str) -> set[str]:
    """Return the rules that a text names, also within a pattern."""
    return set(RULE.findall(text.replace("\\", ""))) & RULES.keys()


def is_slow(mark: ast.AST) -> bool:
    """Tell whether a decorator, or an argument, is the mark of what the gate leaves out."""
    value = mark.value if isinstance(mark, ast.keyword) else mark
    slow = isinstance(value, ast.Attribute) and value.attr == "slow"
    return slow and ast.unparse(value) == "pytest.mark.slow"


class Names(ast.NodeVisitor):
    """Collects the rules that texts of a module name, except in what is marked slow."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def visit(self, node: ast.AST) -> None:
        marks = [*getattr(node, "decorator_list", ()), *getattr(node, "keywords", ())]
        if any(is_slow(mark) for mark in marks):
            return
        super().visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.found |= list_rules(node.value)


@cache
def find_named(*folders: str) -> set[str]:
    """Return the rules that the tests of these folders name, themselves or in their answers."""
    names = Names()
    for file in (file for folder in folders for file in sorted((TESTS / folder).rglob("*"))):
        if file.suffix not in {".py", *ANSWERS} or file == Path(__file__):
            continue
        text = file.read_text(encoding="utf-8")
        more = list_rules(text) - names.found
        if file.suffix in ANSWERS:
            names.found |= more
        elif more:  # to parse every module costs a second of CPU
            names.visit(ast.parse(text))
    return names.found


def test_every_rule_is_shown_without_brokers_and_spark_or_needs_them() -> None:
    assert set(RULES) - find_named("unit", "golden") == NEED_BROKERS | NEED_SPARK


def test_what_needs_brokers_is_shown_on_brokers() -> None:
    assert NEED_BROKERS - find_named("contract", "e2e") == set()


def test_what_needs_spark_is_shown_on_spark() -> None:
    assert NEED_SPARK - find_named("fleet") == set()
