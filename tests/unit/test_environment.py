"""The page of environment variables lists what the code and the workflows read, and no more."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.cli.variables import VARIABLES

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "environment.md"
VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
AS_PART = re.compile(r"(?:[^A-Z]*/)?([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|PYTHON[A-Z]+|DOMTERM)")
"""A variable that is named elsewhere than where it is read, perhaps with a path before it.

One without an underscore could be any constant, so those that are read are named here.
"""

CHOSEN_BY_THE_USER = {
    ("cli/options.py", "default_estate"),  # of VARIABLES
    ("cli/variables.py", "read_variables"),  # of VARIABLES
    ("cli/report.py", "_read_address"),  # --webhook-env
    ("kafka/settings.py", "_look_up"),  # ${env:NAME}
}
"""Functions that read a variable whose name is not in the module."""


class Reads:
    """The variables that a module reads by name, and the functions that read one by another way."""

    def __init__(self, source: str) -> None:
        self.names: set[str] = set()
        self.unnamed: set[str] = set()
        self._tree = ast.parse(source)
        for function in (
            each for each in ast.walk(self._tree) if isinstance(each, ast.FunctionDef)
        ):
            for key in _list_keys(function):
                self._add(key, function)

    def _add(self, key: ast.expr, function: ast.FunctionDef) -> None:
        if isinstance(key, ast.Constant):
            self.names |= {key.value} if VARIABLE.fullmatch(str(key.value)) else set()
            return
        found = set(_list_names(function))
        used = {each.id for each in ast.walk(function) if isinstance(each, ast.Name)}
        for each in self._tree.body:  # constants of the module
            if isinstance(each, ast.Assign) and used & {ast.unparse(t) for t in each.targets}:
                found |= set(_list_names(each.value))
        if not found:  # the callers name it
            for each in ast.walk(self._tree):
                if isinstance(each, ast.FunctionDef) and _calls(each, function.name):
                    found |= set(_list_names(each))
        self.names |= found
        if not found:
            self.unnamed.add(function.name)


def _is_environment(node: ast.expr) -> bool:
    return ast.unparse(node) in {"os.environ", "environment"}


def _list_keys(function: ast.FunctionDef) -> Iterator[ast.expr]:
    """Yield what a function reads from an environment, by its key."""
    for node in ast.walk(function):
        match node:
            case ast.Subscript(value=held, slice=key, ctx=ast.Load()) if _is_environment(held):
                yield key
            case ast.Call(
                func=ast.Attribute(value=held, attr="get" | "setdefault"), args=[key, *_]
            ):
                if _is_environment(held):
                    yield key
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="os"), attr="getenv"), args=[key, *_]
            ):
                yield key
            case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()], comparators=[held]):
                if _is_environment(held):
                    yield key


def _list_names(node: ast.AST) -> Iterator[str]:
    """Yield the constants below a node that are spelled as variables."""
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and (found := AS_PART.fullmatch(str(each.value))):
            yield found[1]


def _calls(function: ast.FunctionDef, name: str) -> bool:
    return any(
        isinstance(each, ast.Call) and ast.unparse(each.func) == name for each in ast.walk(function)
    )


def find_reads() -> tuple[set[str], set[tuple[str, str]]]:
    """Return the variables that the package reads, and the functions that read unnamed ones."""
    names, unnamed = set(VARIABLES.values()), set()
    for path in (ROOT / "reconciler").rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        if not re.search("environ|getenv", source):
            continue
        reads = Reads(source)
        names |= reads.names
        where = path.relative_to(ROOT / "reconciler").as_posix()
        unnamed |= {(where, function) for function in reads.unnamed}
    return names, unnamed


def find_workflow_reads() -> set[str]:
    """Return the variables and secrets of the repository, and those that jobs of GitLab read."""
    github = "\n".join(path.read_text() for path in (ROOT / ".github").rglob("*.yml"))
    template = (ROOT / ".ci" / "gitlab-ci.yml").read_text()
    own = set(re.findall(r"^    ([A-Z_]+): ", template, re.MULTILINE))  # below `variables`
    read = set(re.findall(r"\$\{?([A-Z][A-Z0-9_]+)", template)) - own - {"PATH", "PWD"}
    return read | set(re.findall(r"\b(?:vars|secrets)\.([A-Z_]+)", github))


def find_installed() -> set[str]:
    """Return what .ci/install.sh passes on, without the families that the page describes."""
    script = (ROOT / ".ci" / "install.sh").read_text()
    (kept,) = re.findall(r'^kept="([^"]+)"', script, re.MULTILINE)
    family = re.compile(r"PIP_\w+|\w*_proxy|\w*_PROXY|SSL_\w+|\w+_CA_BUNDLE|NETRC")
    return {name for name in kept.split() if not family.fullmatch(name)}


def test_the_page_lists_what_is_read_and_no_more() -> None:
    names, unnamed = find_reads()
    assert unnamed == CHOSEN_BY_THE_USER
    rows = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == len(set(rows))
    assert set(rows) == names | find_workflow_reads() | find_installed()


@pytest.mark.parametrize(
    "source",
    [
        "def f(): return os.environ.get('NEW_ONE')",
        "def f(): return os.environ['NEW_ONE']",
        "def f(): return os.getenv('NEW_ONE', '')",
        "def f(): return 'NEW_ONE' in os.environ",
        "def f(environment): return environment.get('NEW_ONE')",
        "def f():\n  names = ('NEW_ONE',)\n  return [os.environ[name] for name in names]",
        "ALL = ('NEW_ONE',)\ndef f():\n  return [os.environ[name] for name in ALL]",
        "def f(name): return os.environ[name]\ndef g(): return f('NEW_ONE')",
        "def f(name): return os.environ[name]\ndef g(): return f('commit/NEW_ONE')",
    ],
)
def test_a_new_read_is_found(source: str) -> None:
    assert Reads(source).names == {"NEW_ONE"}


def test_a_read_of_a_name_from_elsewhere_is_found() -> None:
    assert Reads("def f(name): return os.environ[name]").unnamed == {"f"}


def test_no_function_gives_the_environment_another_name() -> None:
    """Its reads would not be found."""
    for path in (ROOT / "reconciler").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Assign) and ast.unparse(node.value) == "os.environ":
                assert [ast.unparse(each) for each in node.targets] == ["environment"], path
