"""Bad inputs, each with the exact answer of `reconciler validate`: what, way out, place and rule.

`bad/NAME.yaml` is a topic file beside the clusters.yaml that stands here; `bad/NAME/` is a whole
estate. `bad/NAME.txt` is the answer. What cannot be kept in a repository is made below.
`python tests/golden/test_bad_inputs.py` writes the answers anew: read every line of the diff.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.cli.app import run

HERE = Path(__file__).parent
BAD = HERE / "bad"
CASES = sorted(path for path in BAD.iterdir() if path.suffix != ".txt")
TOPIC = "topic: orders.events\n"


def lay_out(case: Path, work: Path) -> None:
    """Make the estate of a case below `work`."""
    estate = work / "topics"
    if case.is_dir():
        shutil.copytree(case, estate)
        return
    estate.mkdir()
    shutil.copy(HERE / "clusters.yaml", estate)
    shutil.copy(case, estate / "orders.yaml")


def read_tree(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def answer_path(case: Path) -> Path:
    return BAD / f"{case.stem if case.is_file() else case.name}.txt"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory to work in, which is the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_a_bad_input_is_answered(
    case: Path, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lay_out(case, work)
    before = read_tree(work)
    assert run(["validate"]) == 1
    said = capsys.readouterr()
    assert said.out == answer_path(case).read_text(encoding="utf-8")
    assert said.err == ""
    assert read_tree(work) == before


def test_there_are_more_than_a_hundred_and_each_has_its_own_answer() -> None:
    assert len(CASES) >= 200
    assert {answer_path(case) for case in CASES} == set(BAD.glob("*.txt"))


@pytest.mark.parametrize(
    "name",
    [
        "secret-literal",
        pytest.param("yaml-bomb", marks=pytest.mark.slow),
        pytest.param("count-octal", marks=pytest.mark.slow),
    ],
)
def test_the_installed_command_answers_the_same(name: str, work: Path) -> None:
    (case,) = (case for case in CASES if case.stem == name)
    lay_out(case, work)
    command = [Path(sys.executable).parent / "reconciler", "validate"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=work, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == answer_path(case).read_text(encoding="utf-8")


def write_large_file(path: Path) -> None:
    path.write_text("# filler\n" + "---\ntopic: a\n" * 900_000)


def write_nested_brackets(path: Path) -> None:
    # Fewer than the 1,000 where libyaml from 0.2.6 stops by itself, at another column.
    path.write_text(TOPIC + "assignment: " + "[" * 900)


def write_nested_maps(path: Path) -> None:
    path.write_text(TOPIC + "config: " + "{a: " * 100_000)


def write_nested_lists_in_blocks(path: Path) -> None:
    path.write_text(TOPIC + "assignment:\n  " + "- " * 100_000 + "1\n")


def link_to_nowhere(path: Path) -> None:
    path.symlink_to("moved-away.yaml")


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("make", "answer"),
    [
        (
            write_large_file,
            "1:1: error: the file is larger than 5,000,000 bytes\n"
            "    spread its topics over several files [file-size]",
        ),
        (
            write_nested_brackets,
            "2:52: error: values are nested deeper than 40 levels\n"
            "    split the brackets or maps [yaml-depth]",
        ),
        (
            write_nested_maps,
            "2:165: error: values are nested deeper than 40 levels\n"
            "    split the brackets or maps [yaml-depth]",
        ),
        (
            write_nested_lists_in_blocks,
            "3:81: error: values are nested deeper than 40 levels\n"
            "    split the brackets or maps [yaml-depth]",
        ),
        (
            link_to_nowhere,
            "1:1: error: orders.yaml is a link to nowhere\n"
            "    fix the link, or remove it [estate-file]",
        ),
        (
            link_to_itself,
            "1:1: error: orders.yaml cannot be read: too many levels of symbolic links\n"
            "    make it readable [estate-file]",
        ),
        (
            make_pipe,
            "1:1: error: orders.yaml is not a regular file\n"
            "    remove it from the estate [estate-file]",
        ),
    ],
)
def test_a_file_that_cannot_be_kept_is_answered(
    make: Callable[[Path], None], answer: str, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    estate = work / "topics"
    estate.mkdir()
    make(estate / "orders.yaml")
    assert run(["validate"]) == 1
    conclusion = "1 error in 1 file; no cluster was touched"
    assert capsys.readouterr().out == f"topics/orders.yaml:{answer}\n\n{conclusion}\n"


def write_answers() -> None:
    """Write the answer of every case as it is now."""
    import tempfile
    from contextlib import redirect_stdout
    from io import StringIO

    os.environ["NO_COLOR"] = "1"
    for stale in BAD.glob("*.txt"):
        stale.unlink()
    for case in CASES:
        with tempfile.TemporaryDirectory() as work, redirect_stdout(StringIO()) as said:
            lay_out(case, Path(work))
            os.chdir(work)
            run(["validate"])
            os.chdir(HERE)
        answer_path(case).write_text(said.getvalue(), encoding="utf-8")


if __name__ == "__main__":
    write_answers()
