"""An estate in git: its commit, and the differences of its files from another commit.

Only reads: no lock is taken, and nothing is fetched, except what a partial clone fetches by itself.
"""

from __future__ import annotations

import os
import posixpath
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from reconciler.api.estate_files import list_estate_files
from reconciler.errors import UsageError, escape_unprintable, show_path
from reconciler.model.cluster import SHORT
from reconciler.model.plan import Commit
from reconciler.spec.changes import Changes, ClusterThen, recall_clusters
from reconciler.spec.documents import CLUSTERS_FILES

# Messages of git are compared with English words. Reading must not take the lock of the index, and
# a partial clone must not ask for a password.
_ENVIRONMENT = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
COMPARED = 50
"""The number of commits to compare with a topic. If none of them changed it, nobody knows which."""
_SUFFIXES = (".yaml", ".yml")
LINK, SUBMODULE = "120000", "160000"
"""The modes of a symbolic link and of a submodule in a tree."""
_HOOKS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
"""Variables that git sets for its hooks. They can name another repository than the estate's."""


class GitError(UsageError):
    """Git failed or is missing; the text is the first line of git's message."""

    @property
    def is_surprising(self) -> bool:
        """Return whether git and a repository exist, but git gives no answer."""
        return not any(said in str(self) for said in ("not a git repository", "not installed"))


class UnknownCommitError(GitError):
    """The local repository has no such commit."""


@dataclass(frozen=True, slots=True)
class Differences:
    """The files of an estate that differ from those in a commit.

    `files` exist now, spelled as in locations. `gone` were in that commit and no longer exist; they
    are paths in the repository. Targets of links are not listed.
    """

    files: frozenset[str]
    gone: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.files or self.gone)


class Entry(NamedTuple):
    """An entry of a tree: its path in the repository, and what it is."""

    path: str
    mode: str
    kind: str
    id: str


class Checkout:
    """The repository that contains an estate. Errors: GitError if there is none."""

    def __init__(self, estate: Path) -> None:
        self.estate = estate
        self.top = _find_repository(estate.resolve())
        self.top = Path(os.fsdecode(self._ask("rev-parse", "--show-toplevel").rstrip(b"\n")))

    @property
    def inside(self) -> Path:
        """The path of the estate in the repository."""
        return Path(os.path.relpath(self.estate.resolve(), self.top))

    @property
    def is_submodule(self) -> bool:
        """Return whether another repository around this one has it as a submodule."""
        return bool(self._ask("rev-parse", "--show-superproject-working-tree").strip())

    def find_commit(self, name: str) -> str:
        """Return the id of a commit. Errors: UnknownCommitError."""
        try:
            verify = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
            return self._ask(*verify).decode().strip()
        except GitError as error:
            shown = escape_unprintable(name)
            raise UnknownCommitError(f"there is no commit {shown} in this repository") from error

    def find_here(self, name: str) -> str:
        """Return the id of a commit that must be in the local repository.

        Errors: UsageError with the way out.
        """
        try:
            return self.find_commit(name)
        except UnknownCommitError as error:
            way_out = self._deepen() or (
                "fetch it first, or name another commit; after a forced push, name one that still "
                "exists"
            )
            raise UsageError(f"{error}; {way_out}") from error

    def find_merge_base(self, name: str) -> str:
        """Return the merge base of HEAD and another commit. Errors: UsageError."""
        commits = self.find_here(name), self.find_here("HEAD")
        try:
            bases = self._ask("merge-base", *commits)
        except GitError as error:
            way_out = self._deepen() or "name a branch that this one comes from"
            shown = escape_unprintable(name)
            raise UsageError(f"HEAD and {shown} share no commit; {way_out}") from error
        return bases.decode().split()[0]

    def compare(self, commit: str) -> Differences:
        """Compare the estate's files, committed or not, with those of a commit.

        Errors: UnknownCommitError.
        """
        commit = self.find_commit(commit)
        # A rename counts as a removed and a new file. No diff program of the user must run.
        changed = self._list("diff", "--name-only", "--no-renames", "--no-ext-diff", commit)
        same = self._list("ls-files") - changed  # untracked files differ, too
        start, inside = len(str(self.top)) + 1, self.inside
        files = []
        for path, places in _trace_all(list_estate_files(self.estate)):
            # Links above the repository are not in any commit.
            known = (str(place)[start:] for place in places if place.is_relative_to(self.top))
            if any(name not in same for name in known):
                files.append(str(path))
        specs = (name for name in changed if Path(name).suffix.lower() in _SUFFIXES)
        once = (name for name in specs if Path(name).is_relative_to(inside))
        gone = {name for name in once if not os.path.lexists(self.top / name)}
        return Differences(frozenset(map(show_path, files)), frozenset(gone))

    def read_estate(self, commit: str) -> dict[str, bytes]:
        """Read the YAML files that the estate had in a commit, by their path in it.

        Symbolic links are followed within the estate, as everywhere; others lead nowhere.
        """
        inside = self.inside.as_posix()
        listed = self.list_below(commit, "-r")
        tree = {posixpath.relpath(entry.path, inside): entry for entry in listed}
        ids = {path: entry.id for path, entry in tree.items() if entry.kind == "blob"}
        links = {path: entry.id for path, entry in tree.items() if entry.mode == LINK}
        targets = {
            path: posixpath.normpath(posixpath.join(posixpath.dirname(path), os.fsdecode(content)))
            for path, content in zip(links, self._read_blobs(links.values()), strict=True)
        }
        found = dict(_follow(ids, targets))
        return dict(zip(found, self._read_blobs(found.values()), strict=True))

    def list_way(self, commit: str) -> tuple[Entry, ...]:
        """List what a commit has on the way to the estate, the top first, and of its own path."""
        inside = self.inside
        way = [place.as_posix() for place in (*reversed(inside.parents), inside)]
        return self._list_tree(commit, "--", *way[1:]) if way[1:] else ()

    def list_below(self, commit: str, *options: str) -> tuple[Entry, ...]:
        """List what a commit has in the estate; nothing if it has no such directory."""
        inside = self.inside.as_posix()
        below = () if inside == "." else ("--", f"{inside}/")
        return self._list_tree(*options, commit, *below)

    def read_entry(self, entry: Entry) -> bytes:
        """Read a file of a tree. Errors: GitError if it is not here."""
        (content,) = self._read_blobs([entry.id])
        return content

    def _list_tree(self, *arguments: str) -> tuple[Entry, ...]:
        listed = os.fsdecode(self._ask("ls-tree", "-z", "--full-tree", *arguments))
        lines = (line.partition("\t") for line in listed.split("\0") if line)
        return tuple(Entry(path, *head.split()) for head, _, path in lines)

    def _read_blobs(self, ids: Iterable[str]) -> Iterator[bytes]:
        """Yield the contents of blobs by their ids. Errors: GitError for one that is not here."""
        answer = self._ask("cat-file", "--batch", given="".join(f"{id_}\n" for id_ in ids).encode())
        start = 0
        while start < len(answer):
            end = answer.index(b"\n", start)
            head = answer[start:end].decode()
            size = head.rpartition(" ")[2]
            if not size.isdigit():
                raise GitError(f"git cannot read an object of this repository: {head}")
            start = end + 1 + int(size)
            yield answer[end + 1 : start]
            start += 1

    def list_changed(self, commit: str, files: Iterable[str]) -> list[str]:
        """List those of some files that are in the repository, and not as in a commit.

        A file is not as it was either if a link that leads to it is not.
        """
        changed = self._list("diff", "--name-only", "--no-renames", "--no-ext-diff", commit)
        same = self._list("ls-files") - changed
        traced = {file: _trace(Path(os.path.normpath(Path(file).absolute()))) for file in files}
        return [
            file
            for file, places in traced.items()
            if any(
                place.is_relative_to(self.top) and str(place.relative_to(self.top)) not in same
                for place in places
            )
        ]

    def find_last_change(self, commit: str, files: Iterable[str]) -> str | None:
        """Return the newest commit up to this one that changed one of these files of the estate.

        A merge counts as one commit. Returns None if the history has none.
        """
        traced = _trace_all(self.estate / file for file in files)
        places = {place for _, each in traced for place in each if place.is_relative_to(self.top)}
        paths = [f":(literal){place.relative_to(self.top)}" for place in sorted(places)]
        found = self._ask("rev-list", "--first-parent", "-1", commit, "--", *paths)
        return found.decode().strip() or None

    def read_message(self, commit: str) -> tuple[str, bool]:
        """Return the message of a commit, and whether it is a merge. Errors: UnknownCommitError."""
        commit = self.find_commit(commit)
        said = self._ask("show", "--no-patch", "--no-show-signature", "--format=%P%n%B", commit)
        parents, _, message = said.decode(errors="replace").partition("\n")
        return message.strip(), len(parents.split()) > 1

    def contains(self, commit: str) -> bool:
        """Return whether a commit is HEAD, or below it. A shallow clone knows few commits."""
        try:
            self._ask("merge-base", "--is-ancestor", commit, "HEAD")
        except GitError:
            return False
        return True

    def find_parent(self, commit: str) -> str | None:
        """Return the commit before this one on its branch; None if it is the first.

        Errors: UsageError with the way out for a shallow clone, which knows fewer commits.
        """
        if way_out := self._deepen():
            raise UsageError(f"the commits before {commit[:SHORT]} are not known; {way_out}")
        try:
            return self.find_commit(f"{commit}^1")
        except UnknownCommitError:
            return None

    def find_remote(self) -> str | None:
        """Return the address of the remote origin, None if there is none."""
        try:
            return self._ask("remote", "get-url", "origin").decode().strip()
        except GitError:
            return None

    def find_hook(self, name: str) -> Path | None:
        """Return the file of a hook, None if there is none."""
        place = os.fsdecode(self._ask("rev-parse", "--git-path", f"hooks/{name}").rstrip(b"\n"))
        path = self.top / place
        return path if path.is_file() else None

    def list_unsaved(self, files: Iterable[Path]) -> list[str]:
        """List those of some files that HEAD has not, or not as they are."""
        paths = [os.path.relpath(file.resolve(), self.top) for file in files]
        answer = self._ask("status", "--porcelain", "-z", "--untracked-files=all", "--", *paths)
        return [os.fsdecode(each[3:]) for each in answer.split(b"\0") if each]

    def _deepen(self) -> str:
        """Return how to fetch commits that a shallow clone lacks."""
        if self._ask("rev-parse", "--is-shallow-repository").strip() != b"true":
            return ""
        return "this clone is shallow: git fetch --unshallow, or fetch-depth: 0 in the workflow"

    def _list(self, *arguments: str) -> frozenset[str]:
        answer = self._ask(*arguments, "-z")
        return frozenset(os.fsdecode(name) for name in answer.split(b"\0") if name)

    def _ask(self, *arguments: str, given: bytes = b"") -> bytes:
        environment = {k: v for k, v in os.environ.items() if k not in _HOOKS} | _ENVIRONMENT
        # A request can bring a directory that git takes for a repository without a working tree,
        # with branches and with settings that run programs.
        command = ["git", "-c", "safe.bareRepository=explicit", "-C", str(self.top), *arguments]
        try:
            done = subprocess.run(  # noqa: S603 - no shell, and names come behind options
                command, input=given, capture_output=True, env=environment, check=False
            )
        except OSError as error:
            raise GitError("git is not installed") from error
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip().partition("\n")[0]
            raise GitError(escape_unprintable(said.removeprefix("fatal: ")))
        return done.stdout


def _find_repository(place: Path) -> Path:
    """Return the nearest directory with a repository of its own, or else the place itself.

    Git before 2.38 has no `safe.bareRepository`: from below, it would use one that is among the
    files of a commit. No commit can have a file named .git.
    """
    found = (each for each in (place, *place.parents) if (each / ".git").exists())
    return next(found, place)


def read_commit(estate: Path) -> Commit | None:
    """Read the commit of an estate, and whether its files differ from the commit.

    Returns None if there is no commit yet. Errors: GitError if git fails.
    """
    checkout = Checkout(estate)
    try:
        head = checkout.find_commit("HEAD")
    except UnknownCommitError:
        return None
    return Commit(head, dirty=bool(checkout.compare(head)))


def find_origins(path: Path, cluster: str, topics: Iterable[str]) -> Mapping[str, str]:
    """Find the last commit that changed each topic of a cluster, as it is resolved.

    The history is that of HEAD, where a merge is one commit. A topic is left out if it is not in
    HEAD, or if none of the last `COMPARED` commits of its file and of clusters.yaml changed it.
    Cost: reads the estate once per commit. Errors: UsageError if git fails, or for a shallow clone.
    """
    checkout = Checkout(path)
    recalled: dict[str, Mapping[str, ClusterThen] | None] = {}

    def recall(commit: str) -> Mapping[str, ClusterThen] | None:
        if commit not in recalled:
            recalled[commit] = recall_clusters(checkout.read_estate(commit), [cluster])
        return recalled[commit]

    def find(name: str, now: ClusterThen) -> str | None:
        at, then = "HEAD", now
        for _ in range(COMPARED):
            file = then.specs[name].location.file
            commit = checkout.find_last_change(at, [file, *CLUSTERS_FILES])
            parent = checkout.find_parent(commit) if commit else None
            if commit is None or parent is None:
                return commit
            before = recall(parent)
            if before is None:
                return None  # its clusters.yaml has errors: nobody can say what the topic was
            if Changes(commit, commit, before).touch(now.specs[name], now.entry):
                return commit
            at, then = parent, before[cluster]
        return None

    now = (recall(checkout.find_here("HEAD")) or {}).get(cluster)
    if now is None:
        return {}
    found = {name: find(name, now) for name in topics if name in now.specs}
    return {name: commit for name, commit in found.items() if commit}


def _follow(ids: Mapping[str, str], targets: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the YAML files of a tree that are not hidden, with their ids; links are followed.

    In: all ids by path, and the targets of links. A directory is walked once, since links can form
    a cycle.
    """
    folders, walked = ["."], set[str]()
    while folders:
        folder = folders.pop()
        if folder in walked:
            continue
        walked.add(folder)
        for path in ids if folder == "." else (p for p in ids if p.startswith(f"{folder}/")):
            parts = posixpath.relpath(path, folder).split("/")
            if any(part.startswith(".") for part in parts):
                continue
            end = path
            for _ in targets:  # links to links; a cycle of them ends here
                if end not in targets:
                    break
                end = targets[end]
            if end in ids:
                if path.lower().endswith(_SUFFIXES) and end not in targets:
                    yield path, ids[end]
            else:
                folders.append(end)


def _trace_all(paths: Iterable[Path]) -> Iterator[tuple[Path, tuple[Path, ...]]]:
    """Yield each file with the links that lead to it, and its final path.

    Cost: each directory is resolved once, not once per file.
    """
    ways: dict[Path, tuple[Path, ...]] = {}
    for path in paths:
        folder = path.parent
        if folder not in ways:
            ways[folder] = tuple(_trace(Path(os.path.normpath(folder.absolute()))))
        *links, end = ways[folder]
        yield path, (*links, *(_trace(end / path.name) if path.is_symlink() else [end / path.name]))


def _trace(path: Path) -> Iterator[Path]:
    """Yield every link on the path to a file, then its target: a change of any link changes it."""
    for place in (*reversed(path.parents), path):
        if place.is_symlink():
            yield place
            target = os.path.normpath(place.parent / place.readlink())
            yield from _trace(Path(target) / path.relative_to(place))
            return
    yield path
