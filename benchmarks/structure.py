"""The structure of the package in numbers, for one tree or several next to each other.

`python benchmarks/structure.py [TREE …]` takes directories that hold a `reconciler/`, such as git
worktrees of two commits; `make structure` shows this one. `--doubled` names what is defined twice,
`--loaded` counts what the import of each package loads. `--follow` counts how control moves through
the modules while one topic becomes a plan on invented brokers, one mistake becomes an annotation,
and the first and the second partition of a topic are placed.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from types import UnionType

FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
IMPORTS = ast.Import | ast.ImportFrom
SMALL = 60
"""Units: lines. A module below it needs a reason to be a module."""

COUNT_MODULES = """
import importlib, sys
importlib.import_module(sys.argv[1])
print(sum(name.partition(".")[0] == "reconciler" for name in sys.modules), len(sys.modules))
"""

FOLLOW = """
import json, sys
root, preparation, way = sys.argv[1:]
stdout, sys.stdout = sys.stdout, open("/dev/null", "w")
names = {}
exec(preparation, names)
exec(way, names)  # imports are no steps
entered = []
def watch(frame, event, _):
    path = frame.f_code.co_filename
    if event == "call" and path.startswith(root) and entered[-1:] != [path]:
        entered.append(path)
sys.setprofile(watch)
exec(way, names)
sys.setprofile(None)
print(json.dumps([len(set(entered)), len(entered) - len(set(entered))]), file=stdout)
"""

RUN = "from reconciler.cli.app import run"

PLACE = """
from reconciler.model.cluster import Broker
from reconciler.placement.problem import Problem, Wish, count_load
from reconciler.placement.strategies import place_replicas
brokers = tuple(Broker(b, f"r{b % 3}") for b in range(6))
def pose(existing):
    return Problem(brokers, *count_load([existing]), (Wish("a", existing, 1, 3),))
first = pose(())
second = pose(place_replicas(first).rows["a"])
"""
"""A topic of three replicas on six brokers in three racks."""


@dataclass(frozen=True, slots=True)
class Module:
    """A module of the package, parsed."""

    name: str
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        """Lines, blank ones included."""
        return self.text.count("\n")


def read_package(root: Path) -> tuple[Module, ...]:
    """Parse every module below `root/reconciler`."""
    return tuple(
        Module(
            ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"),
            text := path.read_text(encoding="utf-8"),
            ast.parse(text),
        )
        for path in sorted((root / "reconciler").rglob("*.py"))
    )


def measure(root: Path) -> Mapping[str, str]:
    """Return every static measure of a tree, by its label."""
    modules = read_package(root)
    functions = [f for module in modules for f in ast.walk(module.tree) if isinstance(f, FUNCTIONS)]
    lengths = [f.end_lineno - f.lineno + 1 for f in functions if f.end_lineno]
    sizes = [module.lines for module in modules]
    small = sum(size < SMALL for size in sizes)
    once = count_used_once(modules, (f.name for f in functions))
    private, private_once = count_private_functions(modules)
    return {
        "modules": f"{len(modules)}",
        f"modules under {SMALL} lines": f"{small}",
        "lines": f"{sum(sizes):,}",
        "lines of a module: median, 90th percentile, most": describe_sizes(sizes),
        "functions": f"{len(functions):,}",
        "lines of a function: median, 90th percentile, most": describe_sizes(lengths),
        "functions used once": f"{once:,} ({once / len(functions):.0%})",
        "private functions, used once in their module": f"{private:,}, {private_once:,} "
        f"({private_once / private:.0%})",
        "import lines, of the lines of code": describe_imports(modules),
        "imports inside functions": f"{sum(map(count_inner_imports, modules))}",
        "public names with several definitions": f"{len(find_doubled_names(modules))}",
        "class names with several definitions": f"{len(find_doubled_names(modules, ast.ClassDef))}",
        "module names in several packages": f"{len(find_doubled_modules(modules))}",
        "import cycles: when run, with imports for types": f"{len(find_cycles(modules))}, "
        f"{len(find_cycles(modules, types=True))}",
        "comment lines": f"{sum(count_comments(module.text) for module in modules)}",
    }


def describe_sizes(sizes: Sequence[int]) -> str:
    """Return the median, the 90th percentile and the largest of some sizes."""
    return f"{median(sizes):.0f}, {quantiles(sizes, n=10)[-1]:.0f}, {max(sizes)}"


def count_used_once(modules: Sequence[Module], names: Iterable[str]) -> int:
    """Count the functions whose name occurs once in the package, as a name or as an attribute."""
    used: Counter[str] = Counter()
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Name):
                used[node.id] += 1
            elif isinstance(node, ast.Attribute):
                used[node.attr] += 1
    return sum(used[name] == 1 for name in names)


def count_private_functions(modules: Sequence[Module]) -> tuple[int, int]:
    """Count private functions of modules, and those that are named once in their module."""
    total = once = 0
    for module in modules:
        named = Counter(n.id for n in ast.walk(module.tree) if isinstance(n, ast.Name))
        private = [
            node.name
            for node in module.tree.body
            if isinstance(node, FUNCTIONS)
            and node.name.startswith("_")
            and not node.name.startswith("__")
        ]
        total += len(private)
        once += sum(named[name] == 1 for name in private)
    return total, once


def find_doubled_names(
    modules: Sequence[Module], kinds: UnionType | type = FUNCTIONS | ast.ClassDef
) -> Mapping[str, Sequence[str]]:
    """Return each public function or class that several modules define, with these modules."""
    homes = defaultdict(list)
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, kinds) and not node.name.startswith("_"):
                homes[node.name].append(module.name)
    return keep_doubled(homes)


def find_doubled_modules(modules: Sequence[Module]) -> Mapping[str, Sequence[str]]:
    """Return each file name that several packages use, with the modules."""
    homes = defaultdict(list)
    for module in modules:
        homes[module.name.rpartition(".")[2]].append(module.name)
    return keep_doubled(homes)


def keep_doubled(homes: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    """Keep what has several homes, by name."""
    return {name: found for name, found in sorted(homes.items()) if len(found) > 1}


def describe_imports(modules: Sequence[Module]) -> str:
    """Return how many lines import, and their share of all that is no blank, comment or string."""
    imports = code = 0
    for module in modules:
        nodes = list(ast.walk(module.tree))
        imports += len(list_lines(node for node in nodes if isinstance(node, IMPORTS)))
        strings = list_lines(n for n in nodes if isinstance(n, ast.Expr) and is_string(n.value))
        code += sum(
            bool(line.strip()) and not line.strip().startswith("#") and number not in strings
            for number, line in enumerate(module.text.splitlines(), 1)
        )
    return f"{imports:,}, {imports / code:.1%}"


def is_string(node: ast.expr) -> bool:
    """Return whether an expression is a docstring, or a string below a constant."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def list_lines(nodes: Iterable[ast.stmt]) -> frozenset[int]:
    """Return the lines that some statements fill."""
    return frozenset(n for node in nodes for n in range(node.lineno, (node.end_lineno or 0) + 1))


def count_inner_imports(module: Module) -> int:
    """Count the import statements inside functions."""
    inner = (node for node in ast.walk(module.tree) if isinstance(node, FUNCTIONS))
    return len({node for f in inner for node in ast.walk(f) if isinstance(node, IMPORTS)})


def count_comments(text: str) -> int:
    """Count the lines that hold a comment and nothing else."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(t.type == tokenize.COMMENT and t.line.strip().startswith("#") for t in tokens)


def list_imports(module: Module, known: frozenset[str], *, types: bool) -> Iterator[str]:
    """Yield what the import of a module imports: nothing inside functions, types if asked for."""
    pending: list[ast.AST] = list(module.tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in known else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.If | ast.Try):
            typing = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            pending += node.body if types or not typing else []


def find_cycles(modules: Sequence[Module], *, types: bool = False) -> frozenset[frozenset[str]]:
    """Return the groups of modules that import one another, directly or through others."""
    known = frozenset(module.name for module in modules)
    edges = {m.name: set(list_imports(m, known, types=types)) & known for m in modules}
    reached = {name: reach(edges, name) for name in known}
    return frozenset(
        frozenset(other for other in reached[name] if name in reached[other])
        for name in known
        if name in reached[name]
    )


def reach(edges: Mapping[str, set[str]], start: str) -> set[str]:
    """Return every node that some path from `start` ends at."""
    seen: set[str] = set()
    pending = list(edges[start])
    while pending:
        if (node := pending.pop()) not in seen:
            seen.add(node)
            pending += edges[node]
    return seen


def count_loaded(root: Path) -> Mapping[str, str]:
    """Return how many modules the import of each package loads: of ours, and of all."""
    packages = sorted(path.parent.name for path in (root / "reconciler").glob("*/__init__.py"))
    names = ["reconciler", *(f"reconciler.{package}" for package in packages)]
    return {
        f"modules loaded by {name}: ours, all": run(root, COUNT_MODULES, name) for name in names
    }


def follow(root: Path) -> Mapping[str, str]:
    """Return how many modules control enters on each way through, and how often it comes back."""
    with tempfile.TemporaryDirectory() as home:
        write_file(home, "right/clusters.yaml", "version: 1\nclusters: {sim: {}}\n")
        write_file(home, "right/a.yaml", "topic: a\npartitions: 6\nreplication_factor: 3\n")
        write_file(home, "wrong/a.yaml", "topic: a\npartitions: many\n")
        ways = {
            "a topic, from YAML to its plan": (
                RUN,
                f"assert run('simulate {home}/right --cluster sim --brokers 6'.split()) == 0",
            ),
            "a mistake, to its annotation": (
                RUN,
                f"assert run('validate {home}/wrong --format github'.split()) == 1",
            ),
            "a topic's first partition, placed": (PLACE, "place_replicas(first)"),
            "its second partition, placed": (PLACE, "place_replicas(second)"),
        }
        said = {}
        for label, way in ways.items():
            counts = json.loads(run(root, FOLLOW, f"{root}/reconciler/", *way))
            said[f"{label}: modules entered, returns"] = ", ".join(map(str, counts))
    return said


def write_file(home: str, name: str, text: str) -> None:
    """Write a file of an estate."""
    path = Path(home, name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


def run(root: Path, code: str, *arguments: str) -> str:
    """Run code on a tree in a process of its own, and return what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(root), "NO_COLOR": "1"}
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=True
    )
    return ", ".join(done.stdout.split()) if code is COUNT_MODULES else done.stdout


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", nargs="*", type=Path, default=[Path(__file__).parents[1]])
    parser.add_argument("--doubled", action="store_true", help="name what is defined twice")
    parser.add_argument("--loaded", action="store_true", help="count what an import loads")
    parser.add_argument("--follow", action="store_true", help="count the modules of four ways")
    asked = parser.parse_args()
    columns = [
        {
            **measure(tree),
            **(count_loaded(tree) if asked.loaded else {}),
            **(follow(tree) if asked.follow else {}),
        }
        for tree in (path.resolve() for path in asked.trees)
    ]
    labels = list(dict.fromkeys(label for column in columns for label in column))
    for label in labels:
        print(f"{label:<58}" + "".join(f"{column.get(label, '-'):>24}" for column in columns))
    if asked.doubled:
        modules = read_package(asked.trees[-1].resolve())
        doubled = {**find_doubled_names(modules), **find_doubled_modules(modules)}
        for name, homes in doubled.items():
            print(f"{name}: {', '.join(homes)}")
