"""What is installed: ways out name only what an index has, and CI gets what was tested."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from reconciler.errors import say_install

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("extra", ["sandbox", "fleet", "metrics", "cel"])
def test_what_an_extra_needs_is_named(extra: str) -> None:
    pip, install, *wanted = shlex.split(say_install(extra))
    assert (pip, install) == ("pip", "install")
    assert {normalise(w) for w in wanted} == {
        normalise(w) for w in PROJECT["optional-dependencies"][extra]
    }


def normalise(requirement: str) -> tuple[str, frozenset[str]]:
    name, bounds = re.match(r"([\w.-]+)(.*)", requirement).groups()
    return name.lower(), frozenset(bounds.split(","))


def test_nobody_is_told_to_install_what_no_index_has() -> None:
    """The distribution is installed from a clone: no index has it."""
    told = [*(ROOT / "reconciler").rglob("*.py"), *(ROOT / "docs").glob("*.md")]
    found = [
        str(path.relative_to(ROOT))
        for path in told
        if re.search(rf"install\S* \S*{PROJECT['name']}", path.read_text("utf-8"))
    ]
    assert found == []


def test_ci_installs_a_release_that_was_tested_of_everything_that_is_needed() -> None:
    """Otherwise pip takes what is newest on the day of the run."""
    lines = (ROOT / ".ci" / "constraints.txt").read_text().splitlines()
    pins = {canonicalize_name(name): pin for name, _, pin in (x.partition("==") for x in lines[1:])}
    extras = PROJECT["optional-dependencies"].values()
    wanted = [Requirement(text) for group in (PROJECT["dependencies"], *extras) for text in group]
    wrong = [
        str(want)
        for want in wanted
        if want.name != PROJECT["name"]
        and not want.specifier.contains(pins.get(canonicalize_name(want.name), "0"))
    ]
    assert wrong == []
