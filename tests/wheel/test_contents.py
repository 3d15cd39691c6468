"""What the wheel and the sdist hold: all that runs, and nothing of the tests."""

from __future__ import annotations

import re
import subprocess
import tarfile
import tomllib
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

from building import ROOT, Built, build
from packaging.requirements import Requirement
from trove_classifiers import classifiers

from reconciler.rulebook import SITE
from reconciler.scaffold.repository import _CI, WORKFLOWS

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def list_package() -> set[str]:
    """List the files of the package in this tree; git says which belong to it."""
    listed = subprocess.run(
        ("git", "ls-files", "reconciler"), cwd=ROOT, check=True, capture_output=True, text=True
    )
    return set(listed.stdout.splitlines())


def list_sdist(built: Built) -> dict[str, tarfile.TarInfo]:
    """List the files of the sdist, by their path in its directory."""
    with tarfile.open(built.sdist) as archive:
        members = archive.getmembers()
    return {member.name.partition("/")[2]: member for member in members}


def read_metadata(built: Built) -> Message:
    with zipfile.ZipFile(built.wheel) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith("/METADATA"))
        return message_from_string(wheel.read(name).decode())


def test_the_wheel_has_every_file_of_the_package_and_no_other(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        names = set(wheel.namelist())
    about = {name for name in names if ".dist-info/" in name}
    assert names - about == list_package()
    assert {"reconciler/py.typed", "reconciler/sandbox/jars.json"} < names
    kinds = {name.rpartition("/")[2] for name in about}
    assert kinds == {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "LICENSE"}


def test_the_wheel_has_texts_where_the_tree_has_links(built: Built) -> None:
    """`init` writes them."""
    files = "reconciler/scaffold/files"
    with zipfile.ZipFile(built.wheel) as wheel:
        for name in WORKFLOWS:
            found = wheel.read(f"{files}/workflows/{name}.yml")
            assert found == (ROOT / ".github" / "workflows" / f"{name}.yml").read_bytes()
        for name in _CI:
            assert wheel.read(f"{files}/ci/{name}") == (ROOT / ".ci" / name).read_bytes()


def test_the_sdist_has_what_builds_the_wheel_and_nothing_of_the_tests(built: Built) -> None:
    files = list_sdist(built)
    assert set(files) > list_package() | {"pyproject.toml", "README.md", "LICENSE", "PKG-INFO"}
    places = {name.split("/")[0] for name in files if "/" in name}
    assert places == {"reconciler", ".ci", ".github", "docs"}
    assert [name for name in files if name.startswith("docs/")] == ["docs/changelog.md"]
    assert built.sdist.stat().st_size < 2 << 20


def test_every_link_of_the_sdist_leads_to_a_file_of_it(built: Built) -> None:
    """Otherwise pip refuses to unpack it."""
    files = list_sdist(built)
    links = {name: member.linkname for name, member in files.items() if member.issym()}
    assert links
    for name, target in links.items():
        place = (Path("/") / name).parent / target
        assert place.resolve().relative_to("/").as_posix() in files, name


def test_the_sdist_builds_the_same_wheel(built: Built, tmp_path: Path) -> None:
    """Byte for byte, also without git."""
    with tarfile.open(built.sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    build(source, tmp_path / "again", "wheel")
    (wheel,) = (tmp_path / "again").iterdir()
    assert wheel.name == built.wheel.name
    assert wheel.read_bytes() == built.wheel.read_bytes()


def test_what_an_index_shows_is_valid(built: Built) -> None:
    """An index refuses an unknown classifier, and tools that upload an unknown version."""
    about = read_metadata(built)
    assert about["Metadata-Version"] == "2.4"
    assert (about["License-Expression"], about["License-File"]) == ("Apache-2.0", "LICENSE")
    assert set(about.get_all("Classifier", [])) == set(PROJECT["classifiers"]) <= set(classifiers)
    urls = dict(line.split(", ", 1) for line in about.get_all("Project-URL", []))
    assert urls == PROJECT["urls"]
    assert {"Homepage", "Documentation", "Source", "Issues", "Changelog"} == set(urls)
    extras = set(about.get_all("Provides-Extra", []))
    assert {"sandbox", "fleet", "metrics", "cel", "msk"} < extras
    needs = [Requirement(line) for line in about.get_all("Requires-Dist", [])]
    assert [str(need) for need in needs if need.url] == []


def test_the_page_on_pypi_has_no_link_into_a_repository(built: Built) -> None:
    page = read_metadata(built).get_payload()
    assert isinstance(page, str)
    named = re.findall(r'\]\(([^)]+)\)|(?:src|srcset)="([^"]+)"', page)
    addresses = [link or picture for link, picture in named]
    assert f"{SITE}/how-to/index.html" in addresses
    assert f"{SITE}/images/plan-light.svg" in addresses
    assert [each for each in addresses if not each.startswith("https://")] == []
