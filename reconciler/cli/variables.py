"""Environment variables for options: the address, estate, format and verbosity.

A variable has the lowest priority: it is used only if the command line sets nothing else. None of
them approves, skips, unlocks or loosens anything: what a command may do is on its command line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click

PREFIX = "RECONCILER_"
VARIABLES: Mapping[str, str] = MappingProxyType(
    {
        "ESTATE": f"{PREFIX}ESTATE",
        "--estate": f"{PREFIX}ESTATE",
        "--cluster": f"{PREFIX}CLUSTER",
        "--bootstrap-servers": f"{PREFIX}BOOTSTRAP_SERVERS",
        "--format": f"{PREFIX}FORMAT",
        "--verbose": f"{PREFIX}VERBOSE",
        "--debug": f"{PREFIX}DEBUG",
    }
)
"""The variable of each option that has one. Every other option is set on the command line only."""

FORMATS = frozenset(
    {"text", "table", "json", "yaml", "markdown", "github", "sarif", "junit", "codeowners"}
)
"""What the variable of --format may be. A command that has no such format uses its default."""

_ESTATES = ("estate", "source")
"""The names of the arguments that are an estate, or a plan in its place."""
_FLAGS = MappingProxyType(
    dict.fromkeys(("1", "true", "yes", "on"), True)
    | dict.fromkeys(("0", "false", "no", "off"), False)
)
_ELSEWHERE: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "--cluster": frozenset({"--all-clusters", "--from"}),
        "--bootstrap-servers": frozenset({"--all-clusters", "--from", "--against"}),
    }
)
"""Options that say where the cluster comes from: the variable of another one is not used."""


class Given:
    """What the command line of a command has: its options by name, and its arguments by value."""

    def __init__(self, values: Mapping[str, Any], order: Sequence[click.Parameter]) -> None:
        options = [each for each in order if isinstance(each, click.Option)]
        self.options = frozenset(each.opts[0] for each in options)
        arguments = {str(each.name) for each in order} - {str(each.name) for each in options}
        # click's own mark of an argument that is not given is a member of an Enum, or None.
        self.arguments = {
            name: values[name]
            for name in arguments
            if not (values[name] in (None, ()) or isinstance(values[name], Enum))
        }
        self.values = values

    def has(self, parameter: click.Parameter) -> bool:
        """Return whether the command line has a parameter."""
        if isinstance(parameter, click.Argument):
            return parameter.name in self.arguments
        return parameter.opts[0] in self.options

    @property
    def plan(self) -> bool:
        """Return whether a saved plan is in the place of an estate."""
        return any(Path(self.arguments.get(name, "")).is_file() for name in _ESTATES)


def find_variable(parameter: click.Parameter) -> str | None:
    """Return the variable of a parameter, None if it has none."""
    if isinstance(parameter, click.Argument):
        return VARIABLES["ESTATE"] if parameter.name in _ESTATES else None
    if parameter.opts[0] == "--format" and not FORMATS.issuperset(
        getattr(parameter.type, "choices", ())
    ):
        return None  # that of a webhook does not depend on who reads the output
    if parameter.opts[0] == "--bootstrap-servers" and parameter.multiple:
        return None  # an address for each cluster of a fleet
    return next((VARIABLES[name] for name in parameter.opts if name in VARIABLES), None)


def read_variables(
    command: click.Command, given: Given, environment: Mapping[str, str]
) -> dict[str, Any]:
    """Return the values that variables give to the parameters of a command, by their names.

    Errors: click.UsageError for an invalid value.
    """
    values: dict[str, Any] = {}
    # The address is one of a single cluster, and the estate is that of a cluster: so it is first.
    for parameter in sorted(command.params, key=lambda each: each.opts[0] != "--cluster"):
        variable = find_variable(parameter)
        text = environment.get(variable, "") if variable else ""
        if not text or given.has(parameter) or not _is_wanted(command, parameter, given, values):
            continue
        value = _read(parameter, text, f"{variable}={text}")
        if value is not None:
            values[str(parameter.name)] = value
    return values


def _is_wanted(
    command: click.Command, parameter: click.Parameter, given: Given, values: Mapping[str, Any]
) -> bool:
    """Return whether the command line leaves room for a variable."""
    names = {each.opts[0] for each in command.params}
    if given.options & _ELSEWHERE.get(parameter.opts[0], frozenset()):
        return False
    if parameter.opts[0] == "--cluster":
        if parameter.required or "--all-clusters" in names:
            return not given.plan
        # Elsewhere it is one of several ways to name the cluster, or it only chooses from a fleet.
        others = {"--bootstrap-servers", "--plan"} & given.options
        return "--bootstrap-servers" in names and not (others or given.plan or "--lake" in names)
    if parameter.opts[0] == "--bootstrap-servers":
        clusters = values.get("clusters") or given.values.get("clusters") or ()
        return isinstance(clusters, Enum) or len(clusters) < 2
    if isinstance(parameter, click.Argument) and isinstance(parameter.default, Enum | None):
        return "--cluster" in given.options or "cluster" in values
    return True


def _read(parameter: click.Parameter, text: str, said: str) -> Any:
    """Read the value of a variable; None if this command has no such format."""
    if isinstance(parameter, click.Option) and parameter.is_flag:
        if text.lower() not in _FLAGS:
            raise click.UsageError(f"{said} is neither 1 nor 0")
        return _FLAGS[text.lower()]
    if isinstance(parameter.type, click.Choice):
        if text not in FORMATS:
            raise click.UsageError(f"{said} is no format; use one of {', '.join(sorted(FORMATS))}")
        return text if text in parameter.type.choices else None
    multiple = isinstance(parameter, click.Option) and parameter.multiple
    return text.split(",") if multiple else text
