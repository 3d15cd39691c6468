"""The archive of classes: what a JVM executes unverified, and so what may not come from a cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.errors import SandboxError
from reconciler.sandbox import archive
from reconciler.sandbox.archive import use_archive
from reconciler.sandbox.launch import Java, Launch
from reconciler.sandbox.request import Silence


@pytest.fixture
def launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Launch:
    """Return a launch of files that exist, on a machine that cannot make an archive."""
    for variable, name in (("XDG_CACHE_HOME", "cache"), ("XDG_DATA_HOME", "data")):
        monkeypatch.setenv(variable, str(tmp_path / name))

    def cannot_make(*_: object) -> None:
        raise SandboxError("no space left on device")

    monkeypatch.setattr(archive, "_make_archive", cannot_make)
    java = Java(tmp_path / "java", "17.0.1")
    java.jvm.parent.mkdir(parents=True)
    jar = tmp_path / "kafka.jar"
    for file in (java.jvm, jar):
        file.touch()
    return Launch(java, (jar,), ())


def plant(directory: Path, launch: Launch) -> Path:
    """Put an archive under a directory, in the place of the one that fits a launch."""
    planted = directory / "reconciler" / "archives" / f"{archive._name_archive(launch)}.jsa"
    planted.parent.mkdir(parents=True)
    planted.write_bytes(b"classes")
    return planted


def use(launch: Launch, directory: Path) -> tuple[str, ...]:
    return use_archive(launch, None, directory, Silence()).options  # type: ignore[arg-type]


def test_an_archive_in_the_cache_is_not_used(launch: Launch, tmp_path: Path) -> None:
    plant(tmp_path / "cache", launch)
    assert use(launch, tmp_path) == ()


def test_the_one_that_this_machine_has_made_is_used(launch: Launch, tmp_path: Path) -> None:
    made = plant(tmp_path / "data", launch)
    assert use(launch, tmp_path) == (f"-XX:SharedArchiveFile={made}",)
