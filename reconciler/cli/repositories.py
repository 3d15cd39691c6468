"""The repository that `init` writes and `doctor` checks: its files, its clusters, and its git."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from reconciler.api.scaffolding import read_texts, write_repository
from reconciler.cli.git import Checkout, GitError
from reconciler.cli.owners import render_code_owners
from reconciler.cli.schema import render_schema
from reconciler.errors import UsageError
from reconciler.model.cluster import ClusterState
from reconciler.model.moves import MoveKind
from reconciler.scaffold.answers import (
    GITLAB_INCLUDES,
    Answers,
    ClusterAnswer,
    CommitPin,
    Host,
    Pin,
    read_inputs,
    read_pin,
)
from reconciler.scaffold.repository import (
    ESTATE,
    GITLAB_FILE,
    PRE_COMMIT,
    Compared,
    State,
    WrittenFile,
    compare_files,
    move_pin,
    write_files,
)
from reconciler.scaffold.tasks import EXAMPLE_PATH, Begun, find_owners_file, list_tasks
from reconciler.spec.documents import CLUSTERS_FILES

if TYPE_CHECKING:
    from reconciler.scaffold.adoption import NewEstate
    from reconciler.spec.estate import Estate

_OWN = (".ci/wheel.txt", ".github/workflows/plan.yml", GITLAB_INCLUDES, GITLAB_FILE)
"""What says which jobs a repository has, and what they install."""
_REMOTE = re.compile(r"(?:[a-z+]+://)?(?:[^@/]+@)?([^:/]+)(?::\d+(?=/))?[:/](.+?)(?:\.git)?/?")
WIDTH = 80


class Repository:
    """A directory as it is before `init` writes there."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.estate_path = directory / ESTATE
        own = read_texts(directory, _OWN) if directory.is_dir() else {}
        self.pin: Pin | None = read_pin(own)
        self.has_estate = any((self.estate_path / name).exists() for name in CLUSTERS_FILES)
        self._own = own
        self._compared: tuple[Compared, ...] = ()

    def load_estate(self) -> Estate:
        """Load the estate. Errors: SpecError."""
        from reconciler.api.planning import load_estate

        return load_estate(self.estate_path)

    def recall(self) -> Answers:
        """Return the answers that the estate gives: its clusters in their stages."""
        estate = self.load_estate()
        clusters = tuple(
            ClusterAnswer(name, client.get("bootstrap.servers", ""), written=client)
            for name in estate.declared
            for client in [estate.clusters[name].client]
        )
        stages = tuple(stage for stage in estate.stages if stage)
        rebalanced = tuple(
            name
            for stage in stages
            for name in stage
            if (moves := estate.clusters[name].moves) and MoveKind.REBALANCE in moves.allow
        )
        inputs = read_inputs(self._own.get(GITLAB_INCLUDES, ""))
        return Answers(clusters, stages, example=False, inputs=inputs, rebalanced=rebalanced)

    def find_host(self) -> Host | None:
        """Return whose workflows the repository has, None if it has none."""
        if ".github/workflows/plan.yml" in self._own:
            return Host.GITHUB
        return Host.GITLAB if GITLAB_INCLUDES in self._own else None

    def guess_host(self) -> Host | None:
        """Return the host of the remote, None if that is not known."""
        host, _ = self.find_remote() or ("", "")
        return next((each for each in (Host.GITHUB, Host.GITLAB) if each.value in host), None)

    def find_remote(self) -> tuple[str, str] | None:
        """Return the server of the remote origin and the path of the repository there."""
        try:
            address = self.open_git().find_remote()
        except GitError:
            return None
        found = _REMOTE.fullmatch(address or "")
        return (found[1], found[2]) if found else None

    def open_git(self) -> Checkout:
        """Open the repository with git. Errors: GitError."""
        return Checkout(self.directory)

    def has_owners(self, host: Host) -> bool:
        """Return whether a file says who reviews what."""
        return (self.directory / find_owners_file(host)).exists()

    def compare(
        self, answers: Answers, states: Mapping[str, ClusterState]
    ) -> tuple[NewEstate | None, tuple[Compared, ...]]:
        """Compare what this release writes with what is there.

        Without clusters.yaml, the estate is new, and checked before it is written.
        Errors: SpecError.
        """
        from reconciler.scaffold.adoption import write_estate
        from reconciler.spec.estate import parse_estate

        draft = None if self.has_estate else write_estate(answers, states)
        if draft is not None:
            encoded = {path: text.encode() for path, text in draft.texts.items()}
            parse_estate(encoded, str(self.estate_path))
        schemas = {name: render_schema(name) for name in ("topic", "clusters")}
        files = write_files(replace(answers, schemas=schemas), draft.texts if draft else {})
        existing = read_texts(self.directory, (file.path for file in files))
        if isinstance(answers.pin, CommitPin) and isinstance(self.pin, CommitPin):
            files = tuple(self._follow_pin(files, existing, self.pin, answers.pin))
        self._compared = compare_files(files, existing)
        return draft, self._compared

    def _follow_pin(
        self,
        files: Iterable[WrittenFile],
        existing: Mapping[str, str],
        before: CommitPin,
        now: CommitPin,
    ) -> Iterator[WrittenFile]:
        """Let the hook of pre-commit follow the commit; people may have added other hooks."""
        for file in files:
            text = existing.get(file.path, "")
            if file.path == PRE_COMMIT and before.commit in text:
                yield WrittenFile(file.path, move_pin(text, before, now))
            else:
                yield file

    def refuse_unsaved(self, paths: Iterable[str]) -> None:
        """Refuse to replace what git cannot bring back. Errors: UsageError."""
        wanted = sorted(paths)
        if not wanted:
            return
        try:
            unsaved = self.open_git().list_unsaved(self.directory / path for path in wanted)
        except GitError as error:
            raise UsageError(
                f"git cannot show whether these files are committed: {error}; --update replaces "
                f"only what is: {', '.join(wanted)}"
            ) from error
        if unsaved:
            raise UsageError(
                f"git does not have these files as they are: {', '.join(sorted(unsaved))}; commit "
                "them first, and then --update"
            )

    def write(self, files: Iterable[WrittenFile]) -> None:
        """Write files, each completely or not at all. Errors: UsageError."""
        write_repository(self.directory, files)

    def write_owners(self, answers: Answers) -> str:
        """Write CODEOWNERS of what is there now. Returns its path, empty if it is not written."""
        path = find_owners_file(answers.host)
        if answers.host is Host.NONE or not answers.platform or self.has_owners(answers.host):
            return ""
        text = render_code_owners(
            self.load_estate(), self.estate_path, answers.host.value, None, answers.platform
        )
        write_repository(self.directory, [WrittenFile(path, text)])
        return path

    def list_remaining(self, answers: Answers, *, owners: bool) -> Iterator[str]:
        """Yield the lines that say which commands remain, each with what it is for."""
        new = {each.file.path for each in self._compared if each.state is State.NEW}
        try:
            self.open_git()
            has_git = True
        except GitError:
            has_git = False
        begun = Begun(
            has_git=has_git,
            has_owners=owners or self.has_owners(answers.host),
            example=EXAMPLE_PATH in new,
            unread=tuple(each.name for each in answers.clusters if each.cluster_id is None),
            pipeline_kept=answers.host is Host.GITLAB and GITLAB_FILE not in new,
        )
        yield ""
        yield "What remains, in this order:"
        for number, task in enumerate(list_tasks(answers, begun), 1):
            yield ""
            yield fill(f"{number}. {task.why}", WIDTH, subsequent_indent="   ")
            yield from (f"     {line}" for line in task.commands)
        yield ""
        yield "`reconciler doctor` says which of these are done."
