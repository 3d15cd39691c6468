"""Findings, their locations, and the error tree.

Every check returns all its findings. An error carries them to the command line, which prints
them and exits with the error's code. docs/reference/exit-codes.md lists the codes.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

from reconciler.rulebook import RULES

HIDDEN = "***"
SHORTEST_HIDDEN = 3
SHORTEST_LINE = 16
"""Each line of a multi-line secret, such as a key, is a secret if it has this length."""


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place in a spec file. Units: line and column count from 1, as editors and git do."""

    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Severity(StrEnum):
    """The severity of a finding: only errors stop a run."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of a check: what is wrong, the way out, the rule, and where.

    Secrets that this run has resolved are hidden, whatever quotes them. Unprintable characters
    from files and brokers are escaped.
    Errors: KeyError for a rule that the rulebook does not list, so every rule is documented.
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
        """Return it with the name of its topic, for output without a heading per topic."""
        return replace(self, what=f"{topic}: {self.what}")

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        way_out = f"; {self.way_out}" if self.way_out else ""
        return f"{place}{self.what}{way_out} [{self.rule}]"


def escape_unprintable(text: str) -> str:
    """Escape unprintable characters as Python does: \\t, \\x1b, \\u2028."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]|\x1b(?!\[[0-9;]*m)")
"""Characters that no output needs outside a terminal: all but tab, line feed and colours."""

# A comparison by the rules of a language ignores invisible characters, wherever they are:
# those between the characters of a mark count as part of it.
_ANYWHERE = re.compile(r"#(?=[^ -~\n]*#[^ -/:-@\[-^`{-~\n]*\[)")
_AT_START = re.compile(r"^((?:\x1b\[[0-9;]*m|[^\w!-~\n])*):(?=[^ -~\n]*:)", re.MULTILINE)


def escape_commands(text: str, *, keep_controls: bool = False) -> str:
    """Escape what the runner of a CI would obey in an output: \\u0023#[stop-commands].

    | form | read by |
    |---|---|
    | `##[command]`, anywhere in a line | runners of GitHub |
    | `##vso[`, `##teamcity[` and the like | runners of other CIs |
    | `::command::`, at the start of a line, after blanks | runners of GitHub, Gitea and act |
    | control characters, in `section_start:` for example | runners of GitLab |

    An escape is that of JSON, so JSON keeps its meaning. `keep_controls`: the text is for a
    terminal, whose cursor we move.
    """
    if not keep_controls:
        text = _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return _AT_START.sub(r"\1\\u003a", _ANYWHERE.sub(r"\\u0023", text))


def show_path(path: str, inside: str = "") -> str:
    """Spell a path, or one inside it, so that it can be printed, whatever bytes it is made of."""
    if inside:
        path = inside if path in ("", ".") else f"{path.rstrip('/')}/{inside}"
    return escape_unprintable(
        path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    )


class _Secrets:
    """The secrets that this process has resolved: the only mutable state in this module.

    Clients and brokers quote secrets in error texts, and such a text passes through many functions
    that do not know what is secret. So secrets are hidden where findings are created.
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
    """Hide a value in every finding and every answer that this process creates from now on.

    `is_word`: a name, such as that of a user, is hidden only as a separate word, because it may be
    part of other words. Very short values are not hidden: this would make messages unreadable.
    """
    from urllib.parse import quote

    if len(value) < SHORTEST_HIDDEN:
        return
    lines = [line for line in value.splitlines() if len(line) >= SHORTEST_LINE]
    parts = (value, *lines)
    spelled = {form for part in parts for form in (part, repr(part)[1:-1], quote(part, safe=""))}
    edges = (r"(?<![\w.-])", r"(?![\w-]|\.\w)") if is_word else ("", "")
    _SECRETS.add(re.escape(form).join(edges) for form in spelled)


def hide_form(pattern: str) -> None:
    """Hide whatever matches a pattern, for secrets that are made anew throughout a run."""
    _SECRETS.add([pattern])


def forget_secrets() -> None:
    """Forget all secrets, for a process that continues with other work."""
    _SECRETS.forget()


def hide_secrets(text: str) -> str:
    """Hide the secrets in a text from a client or a broker."""
    return _SECRETS.hide(text)


def say_install(extra: str) -> str:
    """Return the command that installs the requirements of an extra.

    It lists the distributions, because this one is installed from a clone and is in no index. The
    command is that of the tool which installed this one: a tool's environment may have no pip.
    """
    import shlex
    import sys
    from importlib.metadata import distribution

    own = distribution("kafka-reconciler")
    stated = (line.partition(";") for line in own.requires or ())
    wanted = [
        need.strip() for need, _, when in stated if when.split() and extra in shlex.split(when)
    ]
    place, _, environment = sys.prefix.replace("\\", "/").rpartition("/")
    if place.endswith("/pipx/venvs"):
        command = ["pipx", "inject", environment]
    elif (own.read_text("INSTALLER") or "").strip() == "uv":
        command = ["uv", "pip", "install", "--python", sys.executable]
    else:
        command = ["pip", "install"]
    return shlex.join([*command, *sorted(wanted, key=str.lower)])


def sort_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort findings by place, then rule, without duplicates; those without a place come first."""
    nowhere = Location("", 0, 0)
    unique = set(findings)
    return tuple(sorted(unique, key=lambda f: (f.where or nowhere, f.rule, f.what)))


@contextmanager
def keep_interrupts() -> Iterator[None]:
    """Re-raise an interrupt that Python has made another error of.

    | it arrives | the error |
    |---|---|
    | while C code calls Python, such as the methods of a client's futures | SystemError |
    | while a condition takes back its lock, as in `Future.result()` | RuntimeError |
    """
    try:
        yield
    except (SystemError, RuntimeError) as error:
        if isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        raise


class ReconcilerError(Exception):
    """Anything that ends a run with a message instead of a traceback."""

    exit_code = 1


class UsageError(ReconcilerError):
    """The command line is wrong. 64 as in sysexits.h, so it never looks like pending changes."""

    exit_code = 64


class FindingsError(ReconcilerError):
    """All findings of severity error that end a run."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = sort_findings(findings)
        super().__init__("\n".join(str(finding) for finding in self.findings))


class SpecError(FindingsError):
    """The estate has errors: nothing was read from or written to a cluster.

    `about` names the topics of findings, as far as these are about one topic.
    """

    def __init__(
        self, findings: Iterable[Finding], about: Mapping[Finding, str] = MappingProxyType({})
    ) -> None:
        self.about = about
        super().__init__(findings)


class ClusterError(FindingsError):
    """A cluster cannot be reached, is not the one expected, or does not grant the rights."""


class LockHeldError(FindingsError):
    """Another apply holds the lock of the cluster: this one did nothing."""


class LockLostError(ClusterError):
    """The lock is lost, and another apply may have started: no more requests are sent."""


class AuditError(FindingsError):
    """A run has ended, and its audit record could not be written.

    `record` is that record, as JSON. `ending` is how the run ended, an `apply.Ending`. If it ended
    with an error, the findings include those of that error.
    """

    def __init__(self, findings: Iterable[Finding], ending: object) -> None:
        super().__init__(findings)
        self.record = ""
        self.ending = ending


class PlanFileError(FindingsError):
    """A plan file is invalid: malformed, of a newer format, or edited."""


class SnapshotError(FindingsError):
    """A snapshot cannot be read, or is invalid; carries all of its errors."""


class StalePlanError(FindingsError):
    """The cluster has changed since the plan was made: one finding per change."""


class RefusedPlanError(FindingsError):
    """The plan refuses some of its topics, so nothing is applied."""


class OutdatedPlanError(FindingsError):
    """The default branch no longer asks for what the plan does, so nothing is applied."""


class UnapprovedPlanError(FindingsError):
    """The plan is not the one that was approved, so nothing is applied."""


class CodeHostError(FindingsError):
    """A code host refuses or does not answer, or it shows no approved plan."""


class WebhookError(FindingsError):
    """A webhook did not accept a notification. 69 as in sysexits.h: it is no result of a run."""

    exit_code = 69


class SandboxError(ReconcilerError):
    """The throwaway cluster cannot be started, found or stopped."""


class FleetError(ReconcilerError):
    """A fleet job cannot run: no Spark, no Java, no lake."""


class LakeError(FindingsError):
    """A lake cannot be read or written, or a job on it cannot continue."""
