"""The page of commands: every command of the command line, with its options and its examples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from inspect import cleandoc
from pathlib import Path

import click
from markdown import code, escape, link, spell_anchor

from reconciler.cli.app import VERBS, group
from reconciler.cli.examples import EXAMPLES
from reconciler.cli.variables import find_variable

ROOT = "reconciler"
PURPOSES: Mapping[str, tuple[str, ...]] = {
    "Set up": ("init", "doctor", "import", "completion", "schema"),
    "Write specs": ("validate", "fmt", "owners"),
    "Plan and apply": ("plan", "show", "rehearse", "apply", "history"),
    "Move replicas and leaders": ("rebalance", "elect", "moves"),
    "Look at a cluster": ("health", "get", "describe", "snapshot"),
    "Try without a cluster": ("sandbox", "simulate"),
    "Run in a CI or as a service": ("grants", "report", "watch"),
    "Many clusters": ("fleet",),
}
"""The commands, by what they are for. Each stands here once."""

SHARED: Mapping[str, tuple[str, ...]] = {
    "Options of every command": ("--verbose", "--debug"),
    "Options of Spark": ("--master", "--remote", "--memory", "--large", "--lake-format"),
}
"""Options that stand on the page once. They are the same in every command that has them."""

ARGUMENTS: Mapping[str, str] = {
    "ESTATE": "The directory with the specs.",
    "SOURCE": "The directory with the specs, or a plan that `--out` saved.",
    "DIRECTORY": "The directory of the repository.",
    "PLAN": "A plan that `--out` saved.",
    "ESTATE | FILE …": "Directories with specs, or files.",
    "PATH] [DIR": "What to convert, with `--from`; and the directory to write specs into.",
    "describe topic NAME": "The name of the topic.",
    "describe broker ID": "The id of the broker.",
    "moves export PLAN": "A plan of moves that `--out` saved.",
    "moves import FILE": "A file in the format of kafka-reassign-partitions.",
    "moves rate RATE": "Bytes per second and broker, such as `30MiB`, or `unlimited`.",
    "fleet lake remove COLLECTION": "The name of the collection, as `fleet lake list` shows it.",
    "fleet metrics FILE": "The file to write.",
    "sandbox start-broker ID": "The id of the broker.",
    "sandbox stop-broker ID": "The id of the broker.",
    "report notify ABOUT": "What happened.",
    "completion SHELL": "The shell.",
    "schema NAME": "The format.",
}
"""What arguments mean: click has no help for them. One of a single command begins with its name."""

DEFAULTS: Mapping[str, str] = {
    "ESTATE": "`topics`, with `--cluster`",
    "ESTATE | FILE …": "`topics`",
    "PATH] [DIR": "`topics`",
}
"""The defaults of arguments that a command finds by itself."""

_RANGE = re.compile(r"(?:^|; )((?:[\d.]+<=?)?x(?:[<>]=?[\d.]+)?)$")


@dataclass(frozen=True, slots=True)
class Entry:
    """A command with its path below the root, such as `moves status`, and its context."""

    path: str
    command: click.Command
    context: click.Context

    @property
    def heading(self) -> str:
        """Return its heading, whose level is the depth of the command."""
        return f"{'#' * (2 + self.path.count(' '))} {ROOT} {self.path}"

    @property
    def line(self) -> str:
        """Return what it does, as the first sentence of its help."""
        says = VERBS.get(self.path) or cleandoc(self.command.help or "").partition("\n\n")[0]
        return escape(re.sub(r"\s+", " ", says))


def render_commands() -> str:
    """Return the page: an index by purpose, what commands share, and a section for each command."""
    ordered = [verb for verbs in PURPOSES.values() for verb in verbs]
    if sorted(ordered) != sorted(VERBS):
        raise LookupError("PURPOSES must name every command once")
    entries = {
        verb: list(_walk(verb, group, click.Context(group, info_name=ROOT))) for verb in ordered
    }
    lines = [*_render_head(), *_render_index(entries)]
    every = [entry for below in entries.values() for entry in below]
    for title, names in SHARED.items():
        lines += ["", f"## {title}", "", *_render_table(_find_shared(every, names))]
    for entry in every:
        lines += _render_entry(entry)
    return "\n".join(lines) + "\n"


def _walk(name: str, parent: click.Group, context: click.Context) -> Iterator[Entry]:
    """Yield the command of a group, then those below it."""
    command = parent.get_command(context, name)
    if command is None:
        raise LookupError(name)
    own = click.Context(command, info_name=name, parent=context)
    yield Entry(own.command_path.removeprefix(f"{ROOT} "), command, own)
    if isinstance(command, click.Group):
        for below in command.list_commands(own):
            yield from _walk(below, command, own)


def _render_head() -> list[str]:
    codes, variables = (
        link("reference/exit-codes.md", "exit codes"),
        link("reference/environment.md", "environment variables"),
    )
    return [
        "# Commands",
        "",
        "Generated from the code: every command with its arguments, options and examples. `--help`",
        f"shows the same. See also {codes} and {variables}.",
    ]


def _render_index(entries: Mapping[str, list[Entry]]) -> list[str]:
    lines = []
    for purpose, verbs in PURPOSES.items():
        lines += ["", f"**{purpose}**", "", "| command | what it does |", "|---|---|"]
        for entry in (each for verb in verbs for each in entries[verb]):
            anchor = spell_anchor(f"{ROOT} {entry.path}")
            lines.append(f"| [`{entry.path}`](#{anchor}) | {entry.line} |")
    return lines


def _find_shared(entries: list[Entry], names: tuple[str, ...]) -> list[str]:
    """Return the rows of options that commands share. Errors: LookupError if they differ."""
    rows = []
    for name in names:
        found = {
            _render_option(parameter, entry.context)
            for entry in entries
            for parameter in entry.command.params
            if name in parameter.opts and isinstance(parameter, click.Option)
        }
        if len(found) != 1:
            raise LookupError(f"{name} is {len(found)} different options")
        rows += found
    return rows


def _render_entry(entry: Entry) -> list[str]:
    help_text = cleandoc(entry.command.help or "")
    lines = ["", entry.heading, "", escape(help_text), ""]
    if isinstance(entry.command, click.Group):
        names = entry.command.list_commands(entry.context)
        links = (f"[`{n}`](#{spell_anchor(f'{ROOT} {entry.path} {n}')})" for n in names)
        return [*lines, f"Commands: {', '.join(links)}."]
    lines.append(f"Usage: `{ROOT} {entry.path} {_spell_usage(entry)}`")
    shared = [name for names in SHARED.values() for name in names]
    rows = [
        _render_option(each, entry.context)
        if isinstance(each, click.Option)
        else _render_argument(each, entry)
        for each in entry.command.params
        if not set(shared) & set(each.opts)
    ]
    if rows:
        lines += ["", *_render_table(rows)]
    if any("--master" in each.opts for each in entry.command.params):
        lines += ["", "It also takes the [options of Spark](#options-of-spark)."]
    if examples := EXAMPLES.get(entry.path):
        lines += ["", "```", *examples, "```"]
    return lines


def _spell_usage(entry: Entry) -> str:
    """Return the usage, with a name in the place of choices, which the table lists."""
    usage = " ".join(entry.command.collect_usage_pieces(entry.context))
    for argument in entry.command.params:
        if isinstance(argument, click.Argument) and isinstance(argument.type, click.Choice):
            usage = usage.replace(argument.make_metavar(entry.context), str(argument.name).upper())
    return usage


def _render_table(rows: list[str]) -> list[str]:
    head = "| name | value | default | meaning | variable |"
    return [head, "|---|---|---|---|---|", *rows]


def _render_argument(argument: click.Parameter, entry: Entry) -> str:
    name, value = argument.make_metavar(entry.context).removeprefix("[").removesuffix("]"), ""
    if isinstance(argument.type, click.Choice):
        name, value = str(argument.name).upper(), _list_choices(argument.type)
    says = ARGUMENTS.get(f"{entry.path} {name}") or ARGUMENTS[name]
    given = str(argument.default) if isinstance(argument.default, str | Path) else ""
    default = f"`{given}`" if given else DEFAULTS.get(name, "")
    if argument.required:
        default = "required"
    shown = " ".join(code(part) for part in name.split("] ["))
    return _render_row(shown, value, default, says, find_variable(argument))


def _render_option(option: click.Option, context: click.Context) -> str:
    record = option.get_help_record(context)
    if record is None:
        raise LookupError(f"{option.name} is hidden")
    says, *groups = record[1].split("  [")
    defaults, limits = [], ""
    for group_text in (each.removesuffix("]") for each in groups):
        rest = re.sub(r"(^|; )required$", "", group_text)
        if found := _RANGE.search(rest):
            limits, rest = _spell_range(found[1]), rest[: found.start()]
        defaults += [rest.removeprefix("default: ")] if rest else []
    default = "required" if option.required else _spell_default("; ".join(defaults), option)
    names = ", ".join(f"`{name}`" for name in sorted(option.opts, key=len, reverse=True))
    return _render_row(
        names, _spell_value(option, context, limits), default, escape(says), find_variable(option)
    )


def _spell_default(text: str, option: click.Option) -> str:
    """Spell a default as code, unless it is said in words."""
    choices = option.type.choices if isinstance(option.type, click.Choice) else ()
    is_code = text in (*choices, str(option.default)) or re.fullmatch(r"\S*[^\sa-z]\S*", text)
    return f"`{text}`" if is_code else escape(text)


def _spell_value(option: click.Option, context: click.Context, limits: str) -> str:
    if option.is_flag:
        return ""
    if isinstance(option.type, click.Choice):
        return _list_choices(option.type)
    metavar = option.make_metavar(context)
    if metavar == "INTEGER RANGE":
        return f"number, {limits}"
    optional = metavar.startswith("[") and metavar.endswith("]")
    spelled = code(metavar[1:-1] if optional else metavar)
    spelled += ", or nothing" if optional else ""
    return f"{spelled}, {limits}" if limits else spelled


def _list_choices(choice: click.Choice) -> str:
    return ", ".join(f"`{each}`" for each in choice.choices)


def _spell_range(text: str) -> str:
    """Spell a range of click, such as 1<=x<=9 or x>0."""
    if found := re.fullmatch(r"(\d+)<=x<=(\d+)", text):
        return f"{found[1]} to {found[2]}"
    if found := re.fullmatch(r"x>=(\d+)", text):
        return f"{found[1]} or more"
    if found := re.fullmatch(r"x>(\d+)", text):
        return f"more than {found[1]}"
    raise LookupError(f"no words for the range {text}")


def _render_row(name: str, value: str, default: str, says: str, variable: str | None) -> str:
    return f"| {name} | {value} | {default} | {says} | {f'`{variable}`' if variable else ''} |"
