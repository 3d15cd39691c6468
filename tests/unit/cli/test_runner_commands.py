"""No text of a request, a cluster or an error is a command for the runner that reads the output."""

from __future__ import annotations

import json
import subprocess
import sys
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

import pytest
from runner import find_commands

from reconciler.cli import terminal
from reconciler.cli.app import run
from reconciler.errors import ReconcilerError

FORMS = (
    "##[stop-commands]x",
    "see ##[add-mask]e",
    "##[group]x",
    "::add-mask::e",
    "  ::stop-commands::x",
    "\u200b::warning::x",
    "#\u200b#\ufe0f[error]x",
    ":\u00ad:add-mask::e",
    "##vso[task.setvariable variable=x]y",
    "##teamcity[buildStatus text='x']",
    "a\n::add-mask::e",
    "a\r::add-mask::e",
    "section_start:1:x\r\x1b[0Kx",
    "\x1b[31m::error::x\x1b[0m",
)
NUMBERED = tuple(enumerate(FORMS))
ROWS = [[1], [2], [3]]
STATE = {
    "cluster_id": "one",
    "brokers": [{"id": n} for n in (1, 2, 3)],
    "topics": [
        {"name": f"{kind}{n}", "partitions": ROWS} for n in range(8) for kind in ("grown", "shrunk")
    ],
}
OURS = ("::error ", "::warning ", "::notice ")
PLAN = ("plan", "topics", "--cluster", "prod", "--against", "s.json")


@pytest.fixture(autouse=True)
def estate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an estate with a form in everything that can be any text, also in names of files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))
    (tmp_path / "s.json").write_text(json.dumps(STATE))
    topics = tmp_path / "topics"
    topics.mkdir()
    rules = {
        f"r{n}": {"check": "false", "message": form, "severity": "warning"}
        for n, form in NUMBERED[:3]
    }
    clusters = {"version": 1, "clusters": {"prod": {}}, "policy": {"rules": rules}}
    (topics / "clusters.yaml").write_text(json.dumps(clusters))
    for n, form in NUMBERED:
        more = {"owner": f"team-{n}", "description": form}
        specs = [
            {"topic": f"{kind}{n}", "partitions": number, "replication_factor": 1, **more}
            for kind, number in {"grown": 6, "shrunk": 2, "new": 2}.items()
        ]
        file = topics / f"{form.replace('/', '_')}.yaml"
        file.write_text("---\n".join(f"{json.dumps(spec)}\n" for spec in specs))
    return topics


def spoil(topics: Path) -> None:
    """Add what cannot be read: topics, configs, keys and values that are forms."""
    for n, form in NUMBERED:
        config = {"retention.ms": form, form: 1}
        bad = {"topic": form, "partitions": form, "owner": form, "config": config}
        (topics / f"bad{n}.yaml").write_text(
            f"{json.dumps({**bad, form: 1})}\n---\n{json.dumps(form)}"
        )


@pytest.mark.parametrize("bad", [False, True])
@pytest.mark.parametrize("shown", ["text", "json", "sarif", "junit"])
def test_validate(shown: str, bad: bool, estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if bad:
        spoil(estate)
    assert run(["validate", "--format", shown]) == bad
    said = capsys.readouterr()
    assert said.out
    assert find_commands(said.out) == find_commands(said.err) == []
    assert said.out.replace("\n", "").isprintable() or shown in ("json", "sarif")
    if shown in ("json", "sarif"):
        json.loads(said.out)
    if shown == "junit":
        ElementTree.fromstring(said.out)


@pytest.mark.parametrize("shown", ["text", "json", "markdown"])
def test_plan_and_show(shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    run([*PLAN, "--format", shown, "--out", "p.json"])
    run(["show", "p.json", "--format", shown])
    run(["apply", "p.json", "--auto-approve"])
    said = capsys.readouterr()
    assert "shrunk" in said.out
    assert "error: " in said.err
    assert find_commands(said.out) == find_commands(said.err) == []
    if shown != "json":
        # The comment has an unseen character of ours, which keeps a text from being a reference.
        seen = f"{said.out}{said.err}".replace("\n", "").replace("\u200b", "")
        assert seen.isprintable()


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    run([*PLAN, "--explain", "new3"])
    said = capsys.readouterr()
    assert "new3" in said.out
    assert find_commands(said.out) == find_commands(said.err) == []


def test_a_plan_on_stdout_is_the_plan_that_is_saved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run([*PLAN, "--format", "json", "--out", "p.json"])
    printed = capsys.readouterr().out
    assert json.loads(printed) == json.loads((tmp_path / "p.json").read_text())
    (tmp_path / "printed.json").write_text(printed)
    run(["show", "printed.json"])
    of_printed = capsys.readouterr().out
    run(["show", "p.json"])
    assert capsys.readouterr().out == of_printed


def test_owners(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["owners", "topics"]) == 0
    said = capsys.readouterr()
    assert "3 topics" in said.out
    assert find_commands(said.out) == find_commands(said.err) == []


@pytest.mark.parametrize("verb", ["validate", "plan", "show"])
def test_annotations_are_the_only_commands(
    verb: str, estate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if verb == "validate":
        spoil(estate)
    run([*PLAN, "--out", "p.json"])
    capsys.readouterr()
    commands = {"validate": ["validate"], "plan": [*PLAN], "show": ["show", "p.json"]}
    run([*commands[verb], "--format", "github"])
    out = capsys.readouterr().out
    ours = [line for line in out.splitlines() if line.startswith(OURS)]
    assert ours
    # The runner reads what it is meant to, each as one, and nothing else.
    rest = "\n".join(line for line in out.splitlines() if line not in ours)
    assert find_commands(rest) == []
    for line in ours:  # nor are they where a runner was told to read none of their form
        assert find_commands(line.lstrip(":")) == []


@pytest.mark.parametrize("text", FORMS)
def test_what_a_broker_or_a_host_answers(
    text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        terminal.print_note(text)
        terminal.print_error(text)
        raise ReconcilerError(text)

    monkeypatch.setattr("reconciler.api.planning.load_estate", fail)
    assert run(["validate", "topics"]) == 1
    assert run(["validate", "topics", "--format", text]) == 64
    said = capsys.readouterr()
    assert said.err.count("error: ") >= 3
    assert find_commands(said.out) == find_commands(said.err) == []


def test_a_traceback() -> None:
    program = (
        "import sys, reconciler.api.planning\n"
        "from reconciler.cli.app import main\n"
        "def fail(*_): raise AssertionError(sys.argv[1])\n"
        "reconciler.api.planning.load_estate = fail\n"
        "main(['validate'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "\n".join(FORMS)], capture_output=True, check=False
    )
    said = done.stderr.decode()
    assert "AssertionError" in said
    assert find_commands(said) == []


def test_a_line_that_the_width_of_a_screen_begins(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "fold_width", lambda _: 40)
    with terminal.guarding_output():
        terminal.print_note(f"{'a' * 38} ::add-mask::e")
    said = capsys.readouterr().err
    assert "\n" in said.strip()
    assert find_commands(said) == []


def test_whoever_writes_is_guarded(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.guarding_output():
        sys.stdout.writelines(["##", "[add-mask]e\n", "::error::x\n"])
        sys.stderr.write("::error::x\n")
    said = capsys.readouterr()
    assert said.out == "\\u0023#[add-mask]e\n\\u003a:error::x\n"
    assert said.err == "\\u003a:error::x\n"


def test_a_terminal_gets_the_codes_that_move_its_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = StringIO()
    monkeypatch.setattr(terminal, "can_redraw", lambda _: True)
    terminal.guard(screen).write("\r\x1b[K##[x]")
    assert screen.getvalue() == "\r\x1b[K\\u0023#[x]"
