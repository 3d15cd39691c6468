"""What can be wrong, and how it is said: locations, findings and the error tree.

Every check returns all its findings; an error carries them to the command line, which prints
them and exits with the error's code. The codes are the table of docs/exit-codes.md.
"""

from __future__ import annotations

import re
import shlex
import threading
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING
from urllib.parse import quote

from reconciler.rulebook import RULES

if TYPE_CHECKING:
    from collections.abc import Iterable

HIDDEN = "***"
SHORTEST_HIDDEN = 3
SHORTEST_LINE = 16
"""Of a secret of several lines, such as a key, each line as long as that is one as well."""


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place in a spec file. Units: line and column count from 1, as editors and git do."""

    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Severity(StrEnum):
    """How much a finding weighs: only errors stop a run."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check has to say: what, the way out, the rule, and where.

    Secrets that this run has resolved are taken out, whoever quotes them. Characters that no
    screen should be sent, quoted from a file or a broker, are escaped.
    Errors: KeyError for a rule that the rulebook does not list, so no rule goes undocumented.
    """

    rule: str
    what: str
    way_out: str = ""
    where: Location | None = None
    severity: Severity = Severity.ERROR

    def __post_init__(self) -> None:
        RULES[self.rule]
        for part in ("what", "way_out"):
            text = found = getattr(self, part)
            text = escape_unprintable(hide_secrets(text))
            if text != found:
                object.__setattr__(self, part, text)

    def about(self, topic: str) -> Finding:
        """Return it with its topic named, for where no heading names it: many may share a place."""
        return replace(self, what=f"{topic}: {self.what}")

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        way_out = f"; {self.way_out}" if self.way_out else ""
        return f"{place}{self.what}{way_out} [{self.rule}]"


def escape_unprintable(text: str) -> str:
    """Spell unprintable characters as Python does: \\t, \\x1b, \\u2028."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


class _Secrets:
    """The secrets that this process has resolved: the one thing here that is not a value.

    Clients and brokers quote what they were given, in texts that wander far before they become a
    finding. Nobody on the way knows what is secret, so it is known where findings are made.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.forget()

    def forget(self) -> None:
        self._forms: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def add(self, forms: Iterable[str]) -> None:
        with self._lock:
            self._forms.update(forms)
            longest_first = sorted(self._forms, key=lambda form: (-len(form), form))
            self._pattern = re.compile("|".join(longest_first))

    def hide(self, text: str) -> str:
        pattern = self._pattern
        return pattern.sub(HIDDEN, text) if pattern else text


_SECRETS = _Secrets()


def keep_secret(value: str, *, is_word: bool = False) -> None:
    """Keep a value out of every finding and every answer that this process makes from now on.

    `is_word`: of a name, such as a user's, only mentions that stand alone are hidden, since it may
    be part of other words. A value too short to be a secret would hide the message as well.
    """
    if len(value) < SHORTEST_HIDDEN:
        return
    lines = [line for line in value.splitlines() if len(line) >= SHORTEST_LINE]
    parts = (value, *lines)
    spelled = {form for part in parts for form in (part, repr(part)[1:-1], quote(part, safe=""))}
    edges = (r"(?<![\w.-])", r"(?![\w-]|\.\w)") if is_word else ("", "")
    _SECRETS.add(re.escape(form).join(edges) for form in spelled)


def forget_secrets() -> None:
    """Forget what was secret, for a process that goes on to something else."""
    _SECRETS.forget()


def hide_secrets(text: str) -> str:
    """Take the secrets out of a text that comes from a client or a broker."""
    return _SECRETS.hide(text)


def say_install(extra: str) -> str:
    """Say how to install what one of our extras needs.

    It names those distributions: this one is installed from a clone, and no index has it.
    """
    from importlib.metadata import requires

    stated = (line.partition(";") for line in requires("kafka-reconciler") or ())
    wanted = [
        need.strip() for need, _, when in stated if when.split() and extra in shlex.split(when)
    ]
    return shlex.join(["pip", "install", *sorted(wanted, key=str.lower)])


def sort_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Order findings by place, then rule, each said once; those without a place come first."""
    nowhere = Location("", 0, 0)
    unique = set(findings)
    return tuple(sorted(unique, key=lambda f: (f.where or nowhere, f.rule, f.what)))


class ReconcilerError(Exception):
    """Anything that ends a run with a message instead of a traceback."""

    exit_code = 1


class UsageError(ReconcilerError):
    """The command line itself is off. 64 as in sysexits.h, never to be taken for a diff."""

    exit_code = 64


class FindingsError(ReconcilerError):
    """Findings of severity error that end a run, all of them at once."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = sort_findings(findings)
        super().__init__("\n".join(str(finding) for finding in self.findings))


class SpecError(FindingsError):
    """The estate does not hold: nothing was read from or written to a cluster."""


class ClusterError(FindingsError):
    """A cluster cannot be reached, is not the one expected, or does not grant the rights."""


class LockHeldError(FindingsError):
    """Another apply works on the cluster: nothing of this one was done."""


class LockLostError(ClusterError):
    """The lock is gone, and another apply may have begun: nothing more is sent."""


class AuditError(FindingsError):
    """An apply is over, and its record could not be kept where it should be.

    `record` is that record, as JSON. `applied` is what became of the plan, an
    `apply.Applied`; None where the apply ended with an error, whose findings are among ours.
    """

    def __init__(self, findings: Iterable[Finding], applied: object = None) -> None:
        super().__init__(findings)
        self.record = ""
        self.applied = applied


class PlanFileError(FindingsError):
    """A plan file is no plan of ours: malformed, from a newer format, or tampered with."""


class SnapshotError(FindingsError):
    """A snapshot cannot be read, or is none of ours: everything that is wrong, all at once."""


class StalePlanError(FindingsError):
    """The cluster has moved since the plan was made: one finding for each thing that moved."""


class RefusedPlanError(FindingsError):
    """The plan refuses some of its topics, so nothing of it is applied."""


class ForgeError(FindingsError):
    """A code host refuses, or does not answer; or nothing that it shows was approved."""


class SandboxError(ReconcilerError):
    """The throwaway cluster cannot be started, found or stopped."""


class FleetError(ReconcilerError):
    """A job over the fleet cannot run at all: no Spark, no Java, no lake."""


class LakeError(FindingsError):
    """A lake cannot be read or written as it is, or a job over it cannot go on."""
