"""The files of a repository as texts by path, and how they compare with those that it has.

A file is `kept` if people change it: it is written once. The others follow the release that wrote
them, and `init --update` writes them again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pkgutil import get_data

from reconciler.scaffold.answers import (
    GITLAB_INCLUDES,
    WHEEL_LIST,
    Answers,
    CommitPin,
    Host,
    ImagePin,
    WheelPin,
    spell_wheel,
)

ESTATE = "topics"
GITLAB_FILE = ".gitlab-ci.yml"
GITLAB_JOBS = ".gitlab/reconciler-jobs.yml"
PRE_COMMIT = ".pre-commit-config.yaml"

WORKFLOWS = (
    *("plan", "apply", "apply-stage", "apply-cluster", "moves"),
    *("drift", "drift-stage", "rebalance"),
)
"""What runs on GitHub. moves.yml and rebalance.yml do nothing until their variables list clusters.
"""

_ACTIONS = ("install", "reconciler")
_CI = ("install.sh", "requirements.txt", "requirements-cel.txt", "requirements-msk.txt")
_OUR_ACTION = re.compile(r"\./(\.github/actions/[a-z]+)")

_IGNORED = """\
# Plans, journals and snapshots: artifacts of a run. Plans can show values that the specs do not.
plan*.json
moves*.json
journal*.jsonl
snapshot*.json
.venv/
"""
_LOCAL_HOOK = """\
repos:
  - repo: local
    hooks:
      - id: reconciler-validate
        name: validate Kafka topic specs
        entry: reconciler validate
        language: system # the reconciler on the PATH
        files: ^topics/.*\\.ya?ml$
        pass_filenames: false # collisions and defaults concern the entire estate
        require_serial: true
"""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file of the repository. `kept`: it belongs to people once it is there."""

    path: str
    text: str
    kept: bool = False


class State(StrEnum):
    """How a file compares with what a repository has."""

    NEW = "new"
    SAME = "same"
    KEPT = "kept"
    DIFFERS = "differs"


@dataclass(frozen=True, slots=True)
class Compared:
    """A file with what the repository has in its place, None if nothing."""

    file: WrittenFile
    before: str | None

    @property
    def state(self) -> State:
        """What happens to it: a new one is written, one that differs only on request."""
        if self.before is None:
            return State.NEW
        if self.before == self.file.text:
            return State.SAME
        return State.KEPT if self.file.kept else State.DIFFERS


def write_files(answers: Answers, estate: Mapping[str, str]) -> tuple[WrittenFile, ...]:
    """Return every file of a repository but CODEOWNERS, sorted by path.

    In: `estate`, the texts of clusters.yaml and the topics by their path in the estate.
    """
    files = [WrittenFile(f"{ESTATE}/{path}", text, kept=True) for path, text in estate.items()]
    files += (
        WrittenFile(f"schemas/{name}.schema.json", text) for name, text in answers.schemas.items()
    )
    files.append(WrittenFile(".gitignore", _IGNORED, kept=True))
    files.append(WrittenFile(PRE_COMMIT, _spell_hook(answers), kept=True))
    match answers.host:
        case Host.GITHUB:
            files += _write_github(answers)
        case Host.GITLAB:
            files += _write_gitlab(answers)
        case Host.NONE:
            pass
    return tuple(sorted(files, key=lambda file: file.path))


def compare_files(
    files: tuple[WrittenFile, ...], existing: Mapping[str, str]
) -> tuple[Compared, ...]:
    """Compare files with those that a repository has, by path."""
    return tuple(Compared(file, existing.get(file.path)) for file in files)


def move_pin(text: str, before: CommitPin, now: CommitPin) -> str:
    """Return a file of people with the commit that is installed now, and no other change."""
    return text.replace(before.commit, now.commit)


def read_source(path: str) -> str:
    """Return a file of this project that repositories get, by its path in `files/`."""
    content = get_data("reconciler.scaffold", f"files/{path}")
    return (content or b"").decode()


def _write_github(answers: Answers) -> Iterator[WrittenFile]:
    pin = answers.pin
    for name in WORKFLOWS:
        text = read_source(f"workflows/{name}.yml")
        if isinstance(pin, CommitPin):
            text = _OUR_ACTION.sub(rf"{pin.source}/\1@{pin.commit}", text)
        yield WrittenFile(f".github/workflows/{name}.yml", text)
    # What linters of workflows say about these: two keys are younger than their releases.
    yield WrittenFile(".github/zizmor.yml", read_source("zizmor.yml"), kept=True)
    yield WrittenFile(".github/actionlint.yaml", read_source("actionlint.yaml"), kept=True)
    if isinstance(pin, WheelPin):
        for name in _ACTIONS:
            path = f"actions/{name}/action.yml"
            yield WrittenFile(f".github/{path}", read_source(path))
        for name in _CI:
            yield WrittenFile(f".ci/{name}", read_source(f"ci/{name}"))
        yield WrittenFile(WHEEL_LIST, spell_wheel(pin))


def _write_gitlab(answers: Answers) -> Iterator[WrittenFile]:
    pin = answers.pin
    lines = ["# Written by reconciler init: the jobs of each cluster.", "include:"]
    for cluster, stage in _name_stages(answers).items():
        inputs = {"cluster": cluster, "apply_stage": stage}
        if isinstance(pin, CommitPin):
            inputs |= {"source": pin.source, "commit": pin.commit}
        elif isinstance(pin, ImagePin):
            inputs |= {"image": pin.image}
        lines += [f"  - local: {GITLAB_JOBS}", "    inputs:"]
        lines += (f"      {name}: {value}" for name, value in inputs.items())
        lines += answers.inputs.get(cluster, ())
    yield WrittenFile(GITLAB_INCLUDES, "\n".join(lines) + "\n")
    yield WrittenFile(GITLAB_JOBS, read_source("ci/gitlab-ci.yml"))
    stages = ", ".join(["test", *dict.fromkeys(_name_stages(answers).values()), "deploy"])
    text = f"stages: [{stages}]\ninclude:\n  - local: {GITLAB_INCLUDES}\n"
    yield WrittenFile(GITLAB_FILE, text, kept=True)


def _name_stages(answers: Answers) -> dict[str, str]:
    """Return the stage of GitLab in which each cluster is applied, in their order."""
    return {
        cluster: f"apply-{stage[0] if len(stage) == 1 else number}"
        for number, stage in enumerate(answers.stages, 1)
        for cluster in stage
    }


def _spell_hook(answers: Answers) -> str:
    pin = answers.pin
    if not isinstance(pin, CommitPin):
        return _LOCAL_HOOK
    address = pin.source if "://" in pin.source else f"https://github.com/{pin.source}"
    return (
        f"repos:\n  - repo: {address}\n    rev: {pin.commit}\n"
        "    hooks:\n      - id: reconciler-validate\n"
    )
