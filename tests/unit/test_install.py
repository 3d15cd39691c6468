"""What is installed: ways out name only what an index has, and users get what was tested."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from reconciler.errors import say_install
from reconciler.scaffold.repository import _CI, read_source

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]


@pytest.mark.parametrize("extra", ["sandbox", "fleet", "metrics", "cel", "msk"])
def test_what_an_extra_needs_is_named(extra: str) -> None:
    pip, install, *wanted = shlex.split(say_install(extra))
    assert (pip, install) == ("pip", "install")
    assert {normalise(w) for w in wanted} == {
        normalise(w) for w in PROJECT["optional-dependencies"][extra]
    }


def test_no_release_of_the_client_that_crashes_is_allowed() -> None:
    (client,) = [r for r in map(Requirement, PROJECT["dependencies"]) if "confluent" in r.name]
    assert not client.specifier.contains("2.12.2")
    assert client.specifier.contains("2.13.0")


def normalise(requirement: str) -> tuple[str, frozenset[str]]:
    name, bounds = re.match(r"([\w.-]+)(.*)", requirement).groups()
    return name.lower(), frozenset(bounds.split(","))


def test_no_message_asks_to_install_what_no_index_has() -> None:
    """Before the first release, the distribution is installed from a clone: one page says both."""
    told = [*(ROOT / "reconciler").rglob("*.py"), *(ROOT / "docs").glob("**/*.md")]
    found = [
        path.relative_to(ROOT)
        for path in told
        if re.search(rf"install\S* \S*{PROJECT['name']}", path.read_text("utf-8"))
    ]
    assert found == [Path("docs/how-to/install.md")]
    assert "**Nothing is published yet.** Until the first release" in (ROOT / found[0]).read_text()


def read_pins() -> dict[str, str]:
    """Return the releases of .ci/constraints.txt."""
    lines = (ROOT / ".ci" / "constraints.txt").read_text().splitlines()
    pins = (line.partition("==") for line in lines[1:])
    return {canonicalize_name(name): pin for name, _, pin in pins}


def list_untested(wanted: list[str], pins: dict[str, str]) -> list[str]:
    """Return the requirements that these releases do not meet."""
    requirements = map(Requirement, wanted)
    return [
        str(want)
        for want in requirements
        if want.name != PROJECT["name"]
        and not want.specifier.contains(pins.get(canonicalize_name(want.name), "0"))
    ]


def test_ci_installs_a_release_that_was_tested_of_everything_that_is_needed() -> None:
    """Otherwise pip takes what is newest on the day of the run."""
    extras = PROJECT["optional-dependencies"].values()
    wanted = [text for group in (PROJECT["dependencies"], *extras) for text in group]
    assert list_untested(wanted, read_pins()) == []


LISTED = sorted(
    path.stem.removeprefix("requirements-") for path in (ROOT / ".ci").glob("requirements-*.txt")
)
"""The extras that .ci/install.sh can install."""


def read_list(name: str) -> dict[str, tuple[str, list[str]]]:
    """Return what a list of .ci/install.sh has: by name, the release and the hashes."""
    text = (ROOT / ".ci" / name).read_text().replace("\\\n", "")
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    pins = [(line[0].partition("=="), line[1:]) for line in lines]
    return {name: (pin, hashes) for (name, _, pin), hashes in pins}


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("requirements.txt", PROJECT["dependencies"] + PYPROJECT["build-system"]["requires"]),
        *(
            (f"requirements-{extra}.txt", PROJECT["optional-dependencies"][extra])
            for extra in LISTED
        ),
    ],
)
def test_users_install_the_tested_releases_by_hash(name: str, wanted: list[str]) -> None:
    """And what builds the package from this tree: no line is a URL or without a hash."""
    listed = read_list(name)
    pins = read_pins()
    assert {each: pin for each, (pin, _) in listed.items()} == {each: pins[each] for each in listed}
    assert list_untested(wanted, {each: pin for each, (pin, _) in listed.items()}) == []
    for each, (_, hashes) in listed.items():
        assert hashes, each
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", text) for text in hashes), each


def test_what_the_listed_distributions_need_is_listed_too() -> None:
    """Pip takes them as they are listed, without what they need."""
    listed = read_list("requirements.txt")
    for extra in LISTED:
        listed |= read_list(f"requirements-{extra}.txt")
    missing = [
        f"{name} needs {want}"
        for name in listed
        for want in map(Requirement, metadata.requires(name) or ())
        if want.marker is None or want.marker.evaluate({"extra": ""})
        if canonicalize_name(want.name) not in listed
    ]
    assert missing == []


def write_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


RECORDS = """\
#!/bin/sh
echo "$*" >> {asked}
tr '\\0' '\\n' < /proc/$$/environ >> {environment}
echo "$PWD" >> {places}
if [ "$3" = venv ]; then mkdir -p "$5/bin"; cp "$0" "$5/bin/python"; fi
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_script_isolates_python_and_knows_no_secret(tmp_path: Path) -> None:
    """The programs only record: test-workflows installs in truth."""
    names = ("asked", "environment", "places")
    files = {name: tmp_path / name for name in names}
    write_program(tmp_path / "python3", RECORDS.format(**files))
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    passed = {"PIP_INDEX_URL": "https://index.example", "HTTPS_PROXY": "proxy:1", "HOME": "/home"}
    planted = {"PYTHONPATH": ".", "PIP_TARGET": ".", "KAFKA_PASSWORD": "pass", "GITHUB_TOKEN": "t"}
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    subprocess.run(
        [ROOT / ".ci" / "install.sh", "../a place", "cel msk"],
        cwd=checkout,
        env={**path, **passed, **planted},
        check=True,
    )
    asked = files["asked"].read_text().splitlines()
    assert len(asked) == 4
    assert [line.split()[0] for line in asked] == ["-I"] * 4
    assert "--require-hashes --no-deps --only-binary :all:" in asked[2]
    lists = re.findall(r"--requirement (\S+)", asked[2])
    names = ["requirements.txt", "requirements-cel.txt", "requirements-msk.txt"]
    assert lists == [str(ROOT / ".ci" / name) for name in names]
    assert "--no-deps --no-index --no-build-isolation" in asked[3]
    environment = set(files["environment"].read_text().splitlines())
    known = {line.partition("=")[0] for line in environment}
    assert {f"{name}={value}" for name, value in (path | passed).items()} <= environment
    assert known - {*path, *passed} <= {"PWD", "OLDPWD", "SHLVL", "_"}
    assert str(checkout) not in files["places"].read_text().splitlines()
    command = tmp_path / "a place" / "command"
    assert [each.name for each in command.iterdir()] == ["reconciler"]
    subprocess.run([command / "reconciler", "validate"], env=path, check=True)
    assert files["asked"].read_text().splitlines()[-1] == "-I -m reconciler validate"


@pytest.mark.parametrize(
    ("extras", "unknown"), [("fleet", "fleet"), ("cel fleet", "fleet"), ("*", "*")]
)
def test_an_extra_without_a_list_is_an_error_before_anything_is_installed(
    extras: str, unknown: str, tmp_path: Path
) -> None:
    """A name is no pattern of files, and the message names every list that is there."""
    done = subprocess.run(
        ["sh", ROOT / ".ci" / "install.sh", tmp_path / "place", extras],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert LISTED == ["cel", "msk"]
    assert (done.returncode, done.stderr) == (
        64,
        f"error: extra {unknown}: there is no list of what it needs; the extras are cel and msk\n",
    )
    assert list((tmp_path / "place").iterdir()) == []


def test_a_repository_that_pins_a_wheel_gets_every_list() -> None:
    assert {name for name in _CI if name != "install.sh"} == {
        path.name for path in (ROOT / ".ci").glob("requirements*.txt")
    }
    for name in _CI:
        assert read_source(f"ci/{name}") == (ROOT / ".ci" / name).read_text()


@pytest.mark.parametrize(
    ("prefix", "installer", "command"),
    [
        (
            "/home/ann/.local/share/pipx/venvs/kafka-reconciler",
            "pip",
            "pipx inject kafka-reconciler",
        ),
        ("/home/ann/.local/share/pipx/venvs/ours", "uv", "pipx inject ours"),
        (
            "/home/ann/.local/share/uv/tools/kafka-reconciler",
            "uv",
            f"uv pip install --python {sys.executable}",
        ),
        ("/home/ann/project/.venv", "pip", "pip install"),
        ("/usr", "", "pip install"),
    ],
)
def test_what_is_missing_is_installed_by_the_tool_that_installed_reconciler(
    prefix: str, installer: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", prefix)
    real = metadata.PathDistribution.read_text

    def read_text(self: metadata.PathDistribution, name: str) -> str | None:
        return f"{installer}\n" if name == "INSTALLER" else real(self, name)

    monkeypatch.setattr(metadata.PathDistribution, "read_text", read_text)
    assert say_install("metrics").startswith(f"{command} 'prometheus-client")
