"""What the jobs of a repository install: as options say, as a person answers, or as before."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from reconciler.api.scaffolding import find_installed_pin, hash_wheel
from reconciler.cli.terminal import ask
from reconciler.errors import UsageError
from reconciler.scaffold.answers import CommitPin, Host, ImagePin, Pin, WheelPin

_COMMIT = re.compile(r"[0-9a-f]{40}")
_HASH = re.compile(r"(?:sha256[:=])?([0-9a-f]{64})")
_GITHUB = re.compile(r"(?:https://github\.com/)?([\w.-]+/[\w.-]+?)(?:\.git)?/?")
_ADDRESS = re.compile(r"https://[\w.:/@%+~-]+")
_IMAGE = re.compile(r"[\w./:@-]+")
_PATH = re.compile(r"[\w./+-]+\.whl")


@dataclass(frozen=True, slots=True)
class PinOptions:
    """The options that say what the jobs install. Errors: UsageError if they exclude each other."""

    source: str | None = None
    commit: str | None = None
    wheel: str | None = None
    wheel_hash: str | None = None
    image: str | None = None

    def __post_init__(self) -> None:
        if sum(each is not None for each in (self.commit, self.wheel, self.image)) > 1:
            raise UsageError("--commit, --wheel and --image exclude each other")
        if self.wheel_hash is not None and self.wheel is None:
            raise UsageError("--wheel-hash is the hash of --wheel; name that as well")


def choose_pin(said: PinOptions, host: Host, before: Pin | None, directory: Path) -> Pin | None:
    """Return what jobs install: as the options say, as this was installed, or as `before`.

    None if nothing says it. Errors: UsageError.
    """
    if said.wheel is not None:
        return _pin_wheel(said.wheel, said.wheel_hash, host, directory)
    if said.image is not None:
        if host is not Host.GITLAB:
            raise UsageError("--image is for GitLab; on GitHub, set RECONCILER_INSTALL to none")
        if not _IMAGE.fullmatch(said.image):
            raise UsageError(f"--image {said.image!r} is no name of an image")
        return ImagePin(said.image)
    source = said.source or (before.source if isinstance(before, CommitPin) else None)
    if said.commit is not None:
        if source is None:
            raise UsageError("--commit needs --source, the repository that has it")
        return _pin_commit(source, said.commit, host)
    installed = find_installed_pin()
    if isinstance(installed, CommitPin) and host is not Host.NONE:
        return _pin_commit(source or installed.source, installed.commit, host)
    if isinstance(installed, WheelPin) and host is Host.GITHUB:
        return installed
    return before


def ask_pin(host: Host) -> Pin:
    """Ask for a commit. Errors: UsageError."""
    form = "OWNER/NAME@COMMIT" if host is Host.GITHUB else "https://…/reconciler.git@COMMIT"
    said = ask(f"What the jobs install, because no release is published yet, as {form}: ")
    source, _, commit = said.rpartition("@")
    return _pin_commit(source, commit, host) if source else refuse_no_pin(host)


def refuse_no_pin(host: Host) -> NoReturn:
    """Refuse to write jobs that do not say what they install. Errors: UsageError."""
    other = "--wheel with --wheel-hash" if host is Host.GITHUB else "--image"
    raise UsageError(
        "say what the jobs install, because no release is published yet: --source and --commit, "
        f"or {other}; or write no workflows: --host none"
    )


def _pin_wheel(wheel: str, said: str | None, host: Host, directory: Path) -> WheelPin:
    if host is Host.GITLAB:
        raise UsageError(
            "--wheel is for GitHub; on GitLab name --source and --commit, or --image with one that "
            "has reconciler"
        )
    hashed = _HASH.fullmatch(said or "")
    if said is not None and hashed is None:
        raise UsageError(f"--wheel-hash {said!r} is no SHA-256; write 64 digits of 0-9a-f")
    if _ADDRESS.fullmatch(wheel):
        if hashed is None:
            raise UsageError("a wheel at an address needs its hash: --wheel-hash SHA256")
        return WheelPin(wheel, hashed[1])
    pinned = hash_wheel(directory, wheel)
    if not _PATH.fullmatch(pinned.place):
        raise UsageError(f"the path of the wheel, {pinned.place!r}, has special characters")
    if hashed is not None and hashed[1] != pinned.sha256:
        raise UsageError(f"the wheel has the hash {pinned.sha256}, and not that of --wheel-hash")
    return pinned


def _pin_commit(source: str, commit: str, host: Host) -> CommitPin:
    """Return a commit of a repository, as the jobs of the host name it. Errors: UsageError."""
    if not _COMMIT.fullmatch(commit):
        raise UsageError(f"the commit {commit!r} is no full id; write all of its 40 digits")
    if host is Host.GITLAB:
        if not _ADDRESS.fullmatch(source):
            raise UsageError(f"the source {source!r}: jobs of GitLab need its https address")
        return CommitPin(source, commit)
    found = _GITHUB.fullmatch(source)
    if found is None:
        raise UsageError(f"the source {source!r}: workflows of GitHub need OWNER/NAME on GitHub")
    return CommitPin(found[1], commit)
