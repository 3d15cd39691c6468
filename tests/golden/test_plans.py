"""YAML in, plan out: each estate, with a snapshot of its cluster, has the exact plan as its answer.

`plans/NAME/topics/` is the estate; one without a clusters.yaml gets that of `plans/`. It is planned
against `CLUSTER.json`, or `plans/prod.json` where a case has none. Who uses a topic, who leads its
partitions, and on what brokers disagree, no snapshot holds: `CLUSTER.seen.json` does. If it names
leaders, the plan is one of elections. `options` is appended to the command. `base/` is the estate
of the branch main in git, and `draft/` what is not committed.
The answers are next to them: as text, JSON, Markdown and annotations of GitHub.
`python tests/golden/test_plans.py` writes them anew: read every line of the diff.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reconciler.api.connections import find_cluster
from reconciler.api.planning import build_plan, load_estate
from reconciler.api.snapshots import read_snapshot
from reconciler.cli.app import run
from reconciler.model.cluster import ClusterState, TopicUsage
from reconciler.moves.elections import assemble_elections
from reconciler.planfile.codec import encode_plan

HERE = Path(__file__).parent / "plans"
ANSWERS = {
    "text": ".plan.txt",
    "json": ".plan.json",
    "markdown": ".plan.md",
    "github": ".annotations.txt",
}


class Case(NamedTuple):
    """An estate and the cluster that it is planned for."""

    folder: Path
    cluster: str

    def answer_path(self, form: str) -> Path:
        return self.folder / f"{self.cluster}{ANSWERS[form]}"

    @property
    def options(self) -> list[str]:
        path = self.folder / "options"
        return shlex.split(path.read_text(encoding="utf-8")) if path.exists() else []

    @property
    def forms(self) -> tuple[str, ...]:
        return ("text",) if "--explain" in self.options else tuple(ANSWERS)


def find_cases() -> Iterator[Case]:
    for folder in sorted(path.parent for path in HERE.glob("*/topics")):
        named = {path.stem for path in folder.glob("*.json")}
        for cluster in sorted(name for name in named if "." not in name) or ("prod",):
            yield Case(folder, cluster)


CASES = tuple(find_cases())


def lay_out(case: Case, work: Path) -> None:
    """Make the estate of a case, and the snapshot of its cluster, below `work`."""
    base, draft = case.folder / "base", case.folder / "draft"
    if base.exists():
        run_git(work, "init", "-q", "-b", "main")
        write_estate(base, work, branch="main")
        write_estate(case.folder / "topics", work, branch="request")
    else:
        write_estate(case.folder / "topics", work)
    if draft.exists():
        copy_tree(draft, work / "topics")
    own = case.folder / f"{case.cluster}.json"
    shutil.copy(own if own.exists() else HERE / "prod.json", work / f"{case.cluster}.json")


def write_estate(folder: Path, work: Path, branch: str = "") -> None:
    """Write an estate, instead of an earlier one, and commit it where there is a branch for it."""
    shutil.rmtree(work / "topics", ignore_errors=True)
    copy_tree(folder, work / "topics")
    if not (work / "topics" / "clusters.yaml").exists():
        shutil.copy(HERE / "clusters.yaml", work / "topics")
    if branch:
        run_git(work, "checkout", "-q", "-B", branch)
        run_git(work, "add", "-A")
        run_git(work, "commit", "-q", "-m", branch)


def copy_tree(source: Path, target: Path) -> None:
    """Copy files as new ones: by their time and size alone, git sees no change in some."""
    shutil.copytree(source, target, copy_function=shutil.copyfile, dirs_exist_ok=True)


def run_git(work: Path, *command: str) -> None:
    """Run git as the same person at the same time everywhere: so a commit has the same name."""
    who = {
        f"GIT_{role}_{key}": value
        for role in ("AUTHOR", "COMMITTER")
        for key, value in (("NAME", "t"), ("EMAIL", "t@example.org"), ("DATE", "1800000000 +0000"))
    }
    nobodys = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", *command], cwd=work, check=True, env={**os.environ, **who, **nobodys})


def see_more(state: ClusterState, seen: Mapping[str, Any]) -> ClusterState:
    """Add to a snapshot what only a cluster itself tells."""
    topics = dict(state.topics)
    for name, leaders in seen.get("leaders", {}).items():
        topics[name] = replace(topics[name], leaders=tuple(leaders))
    for name, disputed in seen.get("disputed", {}).items():
        told = {key: {int(b): v for b, v in by.items()} for key, by in disputed.items()}
        topics[name] = replace(topics[name], disputed=told)
    usage = {
        name: TopicUsage(**{key: tuple(v) if isinstance(v, list) else v for key, v in used.items()})
        for name, used in seen.get("usage", {}).items()
    }
    return replace(state, topics=topics, usage=usage)


def command(case: Case, form: str) -> list[str]:
    """Return the command that shows the plan of a case; what is seen besides takes a saved plan."""
    path = case.folder / f"{case.cluster}.seen.json"
    asked = ["--format", form, *case.options]
    if not path.exists():
        snapshot = f"{case.cluster}.json"
        return ["plan", "--cluster", case.cluster, "--against", snapshot, *asked]
    seen = json.loads(path.read_text(encoding="utf-8"))
    estate, state = load_estate("topics"), see_more(read_snapshot(f"{case.cluster}.json"), seen)
    if "leaders" in seen:
        entry = find_cluster(estate, case.cluster)
        plan = assemble_elections(entry, estate.topics_for(case.cluster), state)
    else:
        plan = build_plan(estate, case.cluster, state)
    Path("plan.json").write_text(encode_plan(plan), encoding="utf-8")
    return ["show", "plan.json", *asked]


def answer(case: Case, form: str) -> str:
    """Run the command of a case. Returns all that it says, a plan as JSON in many lines."""
    asked = command(case, form)
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = run(asked)
    if form == "json":
        return json.dumps(json.loads(out.getvalue()), indent=1, ensure_ascii=False) + "\n"
    if form != "text":
        return out.getvalue()
    return f"$ reconciler {shlex.join(asked)}\n{out.getvalue()}{err.getvalue()}[exit {code}]\n"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory to work in, which is the current one and no workflow's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.folder.name}-{case.cluster}")
def test_an_estate_is_planned(case: Case, work: Path) -> None:
    lay_out(case, work)
    for form in case.forms:
        assert answer(case, form) == case.answer_path(form).read_text(encoding="utf-8")


def test_each_case_has_its_own_answers() -> None:
    assert len({case.folder for case in CASES}) >= 30
    kept = {path for ending in ANSWERS.values() for path in HERE.glob(f"*/*{ending}")}
    assert kept == {case.answer_path(form) for case in CASES for form in case.forms}


def write_answers() -> None:
    """Write the answers of every case as they are now."""
    import tempfile

    os.environ["NO_COLOR"] = "1"
    for case in CASES:
        with tempfile.TemporaryDirectory() as work, chdir(work):
            lay_out(case, Path(work))
            for form in case.forms:
                case.answer_path(form).write_text(answer(case, form), encoding="utf-8")


if __name__ == "__main__":
    write_answers()
