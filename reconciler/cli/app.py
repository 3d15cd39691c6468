"""The `reconciler` command: finds the verb, runs it, and turns errors into exit codes."""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from keyword import iskeyword
from types import MappingProxyType
from typing import NoReturn

import click

from reconciler.cli.groups import Group
from reconciler.cli.terminal import (
    give_up_stdout,
    guard,
    guarding_output,
    print_error,
    print_rules_page,
    show_cursor,
)
from reconciler.errors import ReconcilerError, UsageError, keep_interrupts

VERBS = MappingProxyType(
    {
        "init": "Write what a repository of specs needs.",
        "doctor": "Show which parts of the setup are done, and which are missing.",
        "validate": "Check every spec, without a cluster.",
        "fmt": "Write specs in the usual form.",
        "plan": "Show exactly what would change on a cluster.",
        "show": "Show a saved plan.",
        "apply": "Make the changes of a plan, and nothing else.",
        "history": "Show earlier applies, their outcomes, and how to revert them.",
        "elect": "Plan an election of preferred leaders.",
        "rebalance": "Plan to balance brokers, for example after new ones joined.",
        "rehearse": "Run a plan on a throwaway cluster of the same shape.",
        "import": "Write specs for a cluster, or for other tools' files.",
        "get": "List topics, brokers, partitions, groups or configs of a cluster.",
        "describe": "Show one topic or one broker in full.",
        "moves": "Show, throttle, cancel and clean up moves of replicas.",
        "health": "Show unhealthy partitions, brokers and disks of a cluster.",
        "snapshot": "Save a cluster's state as a file to plan on.",
        "simulate": "Show what placement would do, without a cluster.",
        "grants": "Print the ACLs that plan and apply need, or check an account.",
        "watch": "Plan again and again, and serve metrics.",
        "fleet": "Collect, plan and audit every cluster, on Spark.",
        "sandbox": "Run a throwaway Kafka cluster on this machine.",
        "report": "Report a plan to GitHub or GitLab, and problems to a webhook.",
        "owners": "Show who owns which topics, also as a CODEOWNERS file.",
        "completion": "Print the completion script of bash, zsh or fish.",
        "schema": "Print the JSON Schemas of the file formats.",
    }
)


class Verbs(Group):
    """A group that imports the module of a verb only when it is called, for a fast start."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """List the verbs in the order of a typical workflow."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import `reconciler.cli.<verb>` and return its `command`.

        A verb that is a keyword of Python, such as `import`, has the module `import_`.
        """
        if cmd_name not in VERBS:
            return None
        module = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        command: click.Command = importlib.import_module(f"reconciler.cli.{module}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the verbs without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="kafka-reconciler")
def group() -> None:
    """Kafka topics as code: plan in the pull request, apply on merge, balanced by design."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit: 0 done, 1 error or refusal, 2 pending, 64 usage."""
    # A run is short and makes many small values: 0.1 s less at 2,000 topics.
    gc.set_threshold(100_000)
    # Without it, pydantic reads the metadata of all that is installed, to find plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # Python has no stream where its caller closed one; what is printed there goes nowhere.
    sys.stdout = guard(sys.stdout or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
    sys.stderr = guard(sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
    code = run(arguments)
    # All output is written, so a late signal must not replace the exit code of the work.
    for late in (signal.SIGINT, signal.SIGTERM):
        signal.signal(late, signal.SIG_IGN)
    _end_process(code)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    with guarding_output():
        code = _run(arguments)
        if code == ReconcilerError.exit_code:
            print_rules_page()
        return code


def _run(arguments: Sequence[str] | None) -> int:
    try:
        with keep_interrupts():
            code = group.main(args=arguments, prog_name="reconciler", standalone_mode=False)
    except click.ClickException as error:
        _print_usage_error(error)
        return UsageError.exit_code
    except (click.Abort, KeyboardInterrupt):
        show_cursor()
        print_error("interrupted")
        return 130  # as shells report SIGINT
    except ReconcilerError as error:
        print_error(str(error))
        return error.exit_code
    except OSError as error:
        if not give_up_stdout(error):
            raise
        # As shells report SIGPIPE.
        return 141 if isinstance(error, BrokenPipeError) else ReconcilerError.exit_code
    return code if isinstance(code, int) else 0


def _end_process(code: int) -> NoReturn:
    """End the process as Python does, but leave the interpreter in place.

    A thread of librdkafka that reports an answer to an interpreter that is gone crashes the
    process: an interrupted run then exits with SIGSEGV.
    """
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):  # output that cannot be written is told by Python's own end
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _print_usage_error(error: click.ClickException) -> None:
    """Print an error in the command line: the usage of the verb, and what is wrong."""
    # Since click 8.2, a group without a verb is an error, whose message is its help.
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
        error.show()
        return
    if isinstance(error, click.UsageError) and error.ctx is not None:
        hint = f"Try '{error.ctx.command_path} --help' for help."
        click.echo(f"{error.ctx.get_usage()}\n{hint}\n", err=True)
    print_error(error.format_message())
