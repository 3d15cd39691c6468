"""Play a page of docs/tutorial: run its commands in order, and compare what they print.

The page is the script. Its blocks say what to do:

| block | what is done |
|---|---|
| `console` | each line that begins with `$ ` is run; the lines below it are what it printed |
| `diff` | its lines with `-` become those with `+`, in the file of its first line, `--- PATH` |
| `text` | nothing; it is only shown |
| any other | it is written to the file that its first line names, `# PATH` |

`…` on a line of its own stands for lines that are left out. A command that does not exit 0 is
followed by `$ echo $?`. Values that differ from run to run are compared by
`VARYING` and `MEASURED`.

`make tutorial` plays all pages, and writes the blocks of a page again if one of them differs.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

PAGES = sorted((Path(__file__).resolve().parents[2] / "docs" / "tutorial").glob("[0-9]-*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HOME = "/home/ana"
CUT = "…"

VARYING: Mapping[str, str] = {
    "cluster id": r"(?<![\w-])[\w-]{22}(?= · \d+ brokers)|(?<=cluster id {9})[\w-]{22}",
    "port": r"(?<=127\.0\.0\.1:)\d+",
    "run": r"(?<=sandbox/runs/)\d{8}T\d{6}-\w+",
    "commit": r"(?<=commit )[0-9a-f]{10}|(?<=since main \()[0-9a-f]{10}",
    "full commit": r"(?<=commit {6})[0-9a-f]{40}|(?<=git revert )[0-9a-f]{40}",
    "plan": r"(?<=plan )[0-9a-f]{12}",
    "fingerprint": r"(?<=fingerprint )[0-9a-f]{64}",
}
"""Names that differ from run to run. What is equal on a page must be equal in a run."""

MEASURED: Mapping[str, str] = {
    "seconds": r"(?<=ready in )\d+\.\d(?= s)|(?<=about )\d+(?= s at )",
    "time": r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d",
    "size": r"\d+\.\d [KM]iB\b(?!/s)",
    "disk": r" +(disks|\d+ % of \d+\.\d [MGT]iB)(?=  )",
}
"""Figures that differ from run to run. A pattern matches one figure, and never a line."""

PROGRESS = re.compile(
    r"^(downloading Kafka|preparing faster starts|starting Kafka) .*…\n", re.MULTILINE
)
"""Lines of a start, which a terminal shows for a moment only. Some come once per machine."""


class Shell:
    """One bash in an empty home, for all commands of a page."""

    def __init__(self, home: Path) -> None:
        self.directory = self._home = home
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=home,
            env=_make_environment(home),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, command: str) -> tuple[str, int]:
        """Run a command as if it were typed. Returns what it printed, and its exit code."""
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        mark = uuid.uuid4().hex
        end = f'code=$?; echo {mark} $code "$PWD"; (exit $code)'
        self._bash.stdin.write(f"{{ {command}\n}} </dev/null; {end}\n")
        self._bash.stdin.flush()
        printed = ""
        for line in self._bash.stdout:
            text, found, ended = line.partition(mark)
            printed += text
            if found:
                code, directory = ended.split(maxsplit=1)
                self.directory = Path(directory.rstrip("\n"))
                return PROGRESS.sub("", printed).replace(str(self._home), HOME), int(code)
        raise AssertionError(f"the shell ended while it ran: {command}")

    def close(self) -> None:
        """End the sandboxes that the page has started, and the shell."""
        for state in sorted(self._home.glob(".local/state*")):
            self.run(f"XDG_STATE_HOME={state} reconciler sandbox down")
        self._bash.communicate()


def _make_environment(home: Path) -> dict[str, str]:
    """Return the environment of a new user, who has Kafka's jars and a name in git already."""
    person = {"NAME": "Ana", "EMAIL": "ana@shop.example"}
    kept = ("LANG", "JAVA_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")
    return {
        "XDG_CACHE_HOME": str(Path.home() / ".cache"),
        "XDG_DATA_HOME": str(Path.home() / ".local" / "share"),
        **{name: os.environ[name] for name in kept if name in os.environ},
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "LOGNAME": "ana",
        "TMPDIR": str(home),
        "TZ": "UTC",
        **{f"GIT_{role}_{key}": person[key] for role in ("AUTHOR", "COMMITTER") for key in person},
    }


@contextmanager
def open_shell() -> Iterator[Shell]:
    """Open a shell in an empty home, and leave nothing of it."""
    with tempfile.TemporaryDirectory(prefix="tutorial-") as directory:
        shell = Shell(Path(directory).resolve())
        try:
            yield shell
        finally:
            shell.close()


def play_page(text: str, shell: Shell) -> str:
    """Do what the blocks of a page say. Returns the page with what was printed."""
    played, begin = "", 0
    for block in BLOCK.finditer(text):
        played += text[begin : block.start(2)] + play_block(block[1], block[2], shell)
        begin = block.end(2)
    return played + text[begin:]


def play_block(kind: str, body: str, shell: Shell) -> str:
    """Do what a block says. Returns what the block is now."""
    if kind == "console":
        return "".join(run_commands(body, shell))
    if kind != "text":
        first, _, rest = body.partition("\n")
        path = shell.directory / first.split()[1]
        if kind == "diff":
            path.write_text(edit(path.read_text(), rest))
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body)
    return body


def edit(text: str, difference: str) -> str:
    """Replace the lines that a difference has without `+` by those that it has without `-`."""
    lines = difference.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] != "+")
    after = "".join(line[1:] for line in lines if line[0] != "-")
    assert text.count(before) == 1, f"{text.count(before)} times in the file:\n{before}"
    return text.replace(before, after)


def run_commands(body: str, shell: Shell) -> Iterator[str]:
    """Run the commands of a block. Yields each, and what it printed."""
    failed = ""
    for part in re.split(r"^(?=\$ )", body, flags=re.MULTILINE):
        if not part:
            continue
        command, shown = _split_command(part)
        assert not failed or command == "$ echo $?\n", f"{failed}, and no `echo $?` follows"
        printed, code = shell.run(command[2:])
        if printed and not printed.endswith("\n"):
            printed += "\n"
        failed = f"exit {code} of {command[2:]}{printed}" if code else ""
        yield command + cut_as(shown, printed)
    assert not failed, f"{failed}, and no `echo $?` follows"


def _split_command(part: str) -> tuple[str, str]:
    """Split a command, with the lines that a backslash joins to it, from what it printed."""
    found = re.match(r"(?:.*\\\n)*.*\n", part)
    assert found
    return found[0], part[found.end() :]


def cut_as(shown: str, printed: str) -> str:
    """Return what was printed without the lines that `…` stands for, or all if it differs."""
    pieces = re.split(rf"^{CUT}\n", shown, flags=re.MULTILINE)
    lines, masked = printed.splitlines(keepends=True), mask(printed).splitlines(keepends=True)
    kept, begin = [], 0
    for place, piece in enumerate(pieces):
        wanted = mask(piece).splitlines(keepends=True)
        places = range(begin, len(lines) - len(wanted) + 1)
        if place == 0:
            places = places[:1]
        if place == len(pieces) - 1:
            places = places[-1:] if place else places[: len(wanted) == len(lines)]
        found = next((at for at in places if masked[at : at + len(wanted)] == wanted), None)
        if found is None:
            return printed
        begin = found + len(wanted)
        kept.append("".join(lines[found:begin]))
    return f"{CUT}\n".join(kept)


def mask(text: str) -> str:
    """Put a name in the place of each value that differs from run to run."""
    for name, pattern in (VARYING | MEASURED).items():
        text = re.sub(pattern, f"<{name}>", text, flags=re.MULTILINE)
    return text


def number(text: str) -> str:
    """Put names in the place of names that differ from run to run, one for each value."""
    for name, pattern in VARYING.items():
        values = dict.fromkeys(found[0] for found in re.finditer(pattern, text))
        names = {value: f"<{name} {place}>" for place, value in enumerate(values, 1)}
        text = re.sub(pattern, lambda found, names=names: names[found[0]], text)
    return text


def compare(page: str, played: str) -> str:
    """Return how a page differs from what was printed, but for what varies."""
    lines = (mask(number(text)).splitlines(keepends=True) for text in (page, played))
    return "".join(difflib.unified_diff(*lines, "the page", "what was printed"))


def main(names: Sequence[str]) -> None:
    """Play the pages with these numbers, or all, and write those again that differ."""
    for page in PAGES:
        if names and page.name.partition("-")[0] not in names:
            continue
        sys.stdout.write(f"{page.name}: playing …\n")
        text = page.read_text(encoding="utf-8")
        with open_shell() as shell:
            played = play_page(text, shell)
        if difference := compare(text, played):
            page.write_text(played, encoding="utf-8")
        sys.stdout.write(difference or "as it is\n")


if __name__ == "__main__":
    main(sys.argv[1:])
