"""Options that several verbs share, with one spelling and one help text."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from reconciler.cli.variables import VARIABLES, Given, read_variables
from reconciler.errors import SandboxError
from reconciler.units import SECOND, UnitError, parse_duration, parse_size

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from reconciler.model.moves import LoadKind

F = TypeVar("F", bound="Callable[..., Any]")

STDOUT = Path("-")
"""The path of `--out -`."""


def read_loads(
    ctx: click.Context, param: click.Parameter, value: tuple[str, ...]
) -> tuple[LoadKind, ...]:
    """Read what brokers are balanced by, such as disk,write."""
    from reconciler.model.moves import LoadKind

    names = [name for part in value for name in part.split(",")]
    if unknown := [name for name in names if name not in list(LoadKind)]:
        what = f"{unknown[0]!r} is none of {', '.join(LoadKind)}"
        raise click.BadParameter(what, ctx, param)
    return tuple(dict.fromkeys(map(LoadKind, names)))


def read_percent(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Read a share of a broker's load, such as 10%."""
    if value is None:
        return None
    try:
        percent = float(value.strip().removesuffix("%"))
    except ValueError:
        percent = 0.0
    if not 1 <= percent <= 100:
        raise click.BadParameter(f"{value!r} is not from 1% to 100%", ctx, param)
    return percent


def read_duration(ctx: click.Context, param: click.Parameter, value: str) -> float:
    """Read the duration of an option, such as 10m, spelled as in specs, or 0. Units: seconds."""
    if value == "0":
        return 0.0
    try:
        return parse_duration(value) / SECOND
    except UnitError as error:
        raise click.BadParameter(str(error), ctx, param) from error


def read_size(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """Read the size of an option, such as 500GiB, spelled as in specs. Units: bytes."""
    try:
        return None if value is None else parse_size(value)
    except UnitError as error:
        raise click.BadParameter(str(error), ctx, param) from error


def read_release(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Return the Kafka release of an option, such as 4.1; refuse one that the sandbox lacks."""
    from reconciler.sandbox.jars import find_release

    if value is None:
        return None
    try:
        return find_release(value)
    except SandboxError as error:
        raise click.BadParameter(str(error), ctx, param) from error


_LEVEL = "reconciler.verbosity"
_VERBOSITY = (
    (["--verbose", "-v"], 20, "Show requests, brokers, times and retries on stderr."),
    (["--debug"], 10, "Show the protocol of the Kafka client as well; no secrets."),
)
"""The options of verbosity, with their levels of `logging`, which a fast start does not import."""


def _keep_level(level: int, ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    """Keep the lowest level that is asked for, for `Command.invoke`."""
    if value:
        ctx.meta[_LEVEL] = min(level, ctx.meta.get(_LEVEL, level))


class _Named(click.ParamType):  # type: ignore[type-arg]  # generic in newer ones
    """Text that a shell completes from the names of the estate."""

    name = "text"

    def __init__(self, option: str) -> None:
        self._option = option

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Take the text as it is."""
        return click.STRING.convert(value, param, ctx)

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """List the names of the estate that begin as typed."""
        from reconciler.cli.known_names import complete_names

        return complete_names(ctx, self._option, incomplete)


_NAMED = ("--cluster", "--topic", "--explain", "--owner", "--label", "--profile")
"""Options whose names an estate has. A text of another form, such as NAME=PxR, is not one."""


class Command(click.Command):
    """A command as every verb is one: it can be verbose, and its help ends with examples.

    An option that is given twice is refused if only its last value would count.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        for parameter in self.params:
            name = next((each for each in parameter.opts if each in _NAMED), None)
            if name and parameter.type is click.STRING and "=" not in (parameter.metavar or ""):
                parameter.type = _Named(name)
        for names, level, explained in _VERBOSITY:
            keep = partial(_keep_level, level)
            self.params.append(
                click.Option(names, is_flag=True, expose_value=False, callback=keep, help=explained)
            )

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, with its log on stderr if this is wanted."""
        if not (level := ctx.meta.get(_LEVEL)):
            return super().invoke(ctx)
        from reconciler.cli.verbosity import showing_log

        with showing_log(level):
            return super().invoke(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does, with the values of variables as defaults.

        Errors: click.UsageError for a repeated option, or an invalid value of a variable.
        """
        values, _, order = self.make_parser(ctx).parse_args(args=list(args))
        given = Counter(
            each.opts[0]
            for each in order
            if isinstance(each, click.Option) and not (each.multiple or each.is_flag or each.count)
        )
        if repeated := [name for name, times in given.items() if times > 1]:
            ctx.fail(f"{repeated[0]} is given {given[repeated[0]]} times, and takes one value")
        ctx.default_map = read_variables(self, Given(values, order), os.environ)
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, each in a line, so that it can be copied."""
        from reconciler.cli.examples import EXAMPLES

        root = ctx.find_root().command_path
        if examples := EXAMPLES.get(ctx.command_path.removeprefix(root).strip()):
            with formatter.section("Examples"):
                for example in examples:
                    formatter.write(f"{'':{formatter.current_indent}}{example}\n")


def is_given(name: str) -> bool:
    """Return whether the command line has a parameter, and not only a variable or a default."""
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


def default_estate() -> Path:
    """Return the directory of specs of a command that names none, as the arguments ESTATE do."""
    return Path(os.environ.get(VARIABLES["ESTATE"]) or "topics")


def choose_topics(explained: str) -> Callable[[F], F]:
    """Return the option that chooses topics by globs, which the command gets joined by commas."""

    def join(_ctx: click.Context, _param: click.Parameter, value: tuple[str, ...]) -> str:
        return ",".join(value) if value else "*"

    return click.option("--topic", multiple=True, metavar="GLOB", callback=join, help=explained)


estate_argument = click.argument(
    "estate", default="topics", type=click.Path(exists=True, path_type=Path)
)
cluster_option = click.option(
    "--cluster", required=True, metavar="NAME", help="Cluster; one per run."
)
clusters_option = click.option(
    "--cluster", "clusters", multiple=True, metavar="NAME", help="Cluster; repeatable."
)
all_clusters_option = click.option(
    "--all-clusters", is_flag=True, help="Every cluster of clusters.yaml."
)
changed_since_option = click.option(
    "--changed-since",
    metavar="REF",
    help="Only topics whose specs changed since the branch forked from REF.",
)
bootstrap_option = click.option(
    "--bootstrap-servers",
    metavar="HOST:PORT,…",
    help="Address of the cluster; overrides clusters.yaml.",
)
topic_option = choose_topics("Only these topics; repeatable.")
base_option = click.option(
    "--base",
    metavar="REV",
    help=(
        "Base of the request: connect with the client of this branch or commit, and show looser "
        "guards."
    ),
)
default_branch_option = click.option(
    "--default-branch",
    metavar="REF",
    help="Apply only what the specs at REF still ask for, so that an old approval is not reused.",
)
out_option = click.option(
    "--out",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Save the plan, for apply; - prints the file.",
)
against_option = click.option(
    "--against",
    metavar="SNAPSHOT",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Plan on this snapshot instead of the cluster.",
)
approved_option = click.option(
    "--approved",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help=(
        "File saved by `report approved --out`: its rows are used if they are as good as new ones."
    ),
)
detailed_exitcode_option = click.option(
    "--detailed-exitcode", is_flag=True, help="Exit 2 when changes are pending."
)
form_option = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For a terminal, or for programs.",
)
unmanaged_option = click.option("--unmanaged", is_flag=True, help="List the unmanaged topics.")
plan_format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "markdown", "github"]),
    default="text",
    show_default=True,
    help="For a terminal, for programs, as a comment, or as annotations in a workflow.",
)
loads_option = click.option(
    "--by",
    multiple=True,
    metavar="LOAD,…",
    callback=read_loads,
    help=(
        "Balance the brokers by this load: count (of replicas), disk, write or read; repeatable. "
        "Default: balance.by of the cluster, or count."
    ),
)
within_option = click.option(
    "--within",
    metavar="PERCENT",
    callback=read_percent,
    help="Maximum distance of a broker from its share, such as 5%. Default: balance.within of the "
    "cluster, or 10%.",
)
leaders_only_option = click.option(
    "--leaders-only",
    is_flag=True,
    help="Change only preferred leaders; nothing is copied. Not by disk.",
)
even_topics_option = click.option(
    "--even-topics",
    is_flag=True,
    help="Make the replicas of every topic, and then those of the cluster, as even as possible.",
)
