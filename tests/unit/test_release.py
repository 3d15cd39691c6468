"""What keeps a release back, and what its notes say: .ci/release.py."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from io import BytesIO
from pathlib import Path
from types import ModuleType

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / ".ci" / "release.py"
SOURCE = "https://code.example/reconciler"
CHANGELOG = """\
# Changelog

## Unreleased

- Later.

## 1.2.0 (2026-12-01)

### Plan

- [`plan`](plan.md#scope) is faster, see [a page](https://site.example/x) and [above](#plan).

## 1.1.0

- No date.

## 1.0.0 (2026-11-01)

## 0.9.0 (2026-10-01)

- The last section.
"""


@pytest.fixture(scope="module")
def release() -> ModuleType:
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("release", SCRIPT)
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_notes_are_the_section_of_the_tag_with_links_that_lead_somewhere(
    release: ModuleType,
) -> None:
    assert release.read_notes("v1.2.0", CHANGELOG, SOURCE) == (
        "### Plan\n\n"
        f"- [`plan`]({SOURCE}/blob/v1.2.0/docs/plan.md#scope) is faster, "
        "see [a page](https://site.example/x) and [above](#plan).\n"
    )
    assert release.read_notes("v0.9.0", CHANGELOG, SOURCE) == "- The last section.\n"


@pytest.mark.parametrize(
    ("tag", "why"),
    [
        (
            "v1.3.0",
            "docs/changelog.md has no section for v1.3.0; add the heading ## 1.3.0 (YYYY-MM-DD)",
        ),
        ("v1.2", "docs/changelog.md has no section for v1.2; add the heading ## 1.2 (YYYY-MM-DD)"),
        ("v1.1.0", "the section 1.1.0 of docs/changelog.md has no date; add it"),
        ("v1.0.0", "the section 1.0.0 of docs/changelog.md is empty"),
    ],
)
def test_a_tag_without_its_section_is_refused(release: ModuleType, tag: str, why: str) -> None:
    with pytest.raises(release.ReleaseError) as refused:
        release.read_notes(tag, CHANGELOG, SOURCE)
    assert str(refused.value) == why


def test_the_changelog_of_this_tree_has_one_section_for_what_is_not_released() -> None:
    lines = (ROOT / "docs/changelog.md").read_text().splitlines()
    assert lines.count("## Unreleased") == 1
    done = subprocess.run(
        [sys.executable, "-I", SCRIPT, "notes", "v999.0.0"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: docs/changelog.md has no section for v999.0.0")


def write_wheel(directory: Path, version: str, name: str = "kafka-reconciler") -> None:
    stem = f"kafka_reconciler-{version}"
    with zipfile.ZipFile(directory / f"{stem}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{stem}.dist-info/METADATA", f"Name: {name}\nVersion: {version}\n")


def write_sdist(directory: Path, version: str) -> None:
    stem = f"kafka_reconciler-{version}"
    text = f"Name: kafka-reconciler\nVersion: {version}\n".encode()
    with tarfile.open(directory / f"{stem}.tar.gz", "w:gz") as sdist:
        member = tarfile.TarInfo(f"{stem}/PKG-INFO")
        member.size = len(text)
        sdist.addfile(member, BytesIO(text))


def test_artefacts_of_the_tag_pass(release: ModuleType, tmp_path: Path) -> None:
    write_wheel(tmp_path, "1.2.0")
    write_sdist(tmp_path, "1.2.0")
    release.check_artefacts("v1.2.0", tmp_path)


@pytest.mark.parametrize(
    ("wheel", "sdist", "why"),
    [
        ("1.2.1.dev3+g12ab", "1.2.0", "py3-none-any.whl is kafka-reconciler 1.2.1.dev3+g12ab, and"),
        ("1.2.0", "1.1.0", "kafka_reconciler-1.1.0.tar.gz is kafka-reconciler 1.1.0, and the tag"),
        ("1.2.0", None, "one wheel and one sdist are needed, and there are: kafka_reconciler-1.2"),
        (None, None, "one wheel and one sdist are needed, and there are: "),
    ],
)
def test_artefacts_of_another_version_are_refused(
    release: ModuleType, tmp_path: Path, wheel: str | None, sdist: str | None, why: str
) -> None:
    if wheel:
        write_wheel(tmp_path, wheel)
    if sdist:
        write_sdist(tmp_path, sdist)
    with pytest.raises(release.ReleaseError) as refused:
        release.check_artefacts("v1.2.0", tmp_path)
    assert why in str(refused.value)


def test_a_wheel_of_another_name_is_refused(release: ModuleType, tmp_path: Path) -> None:
    write_wheel(tmp_path, "1.2.0", name="reconciler")
    write_sdist(tmp_path, "1.2.0")
    with pytest.raises(release.ReleaseError, match=r"is reconciler 1\.2\.0, and the tag"):
        release.check_artefacts("v1.2.0", tmp_path)


def test_the_list_of_contents_has_what_is_needed_and_no_tool_of_developers(
    release: ModuleType,
) -> None:
    """The schema of CycloneDX needs these keys; a reference leads to a component."""
    listed = release.write_sbom("kafka-reconciler")
    assert (listed["bomFormat"], listed["specVersion"]) == ("CycloneDX", "1.6")
    own = listed["metadata"]["component"]
    names = {component["name"] for component in listed["components"]}
    assert {"confluent-kafka", "pydantic-core", "pyyaml", "mdurl"} < names
    assert names & {"kafka-reconciler", "pytest", "hatchling", "pyspark"} == set()
    known = {component["bom-ref"] for component in listed["components"]} | {own["bom-ref"]}
    needs = {each["ref"]: set(each["dependsOn"]) for each in listed["dependencies"]}
    assert set(needs) == known
    assert set().union(*needs.values()) == known - {own["bom-ref"]}
    for component in listed["components"]:
        assert component["purl"].startswith(f"pkg:pypi/{component['name']}@")
    assert "+" not in own["purl"]


JOBS = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())["jobs"]


def test_one_job_builds_and_the_others_only_download() -> None:
    """What has a token that can write runs no code of the repository, and nothing has a cache."""
    uses = {
        name: [step["uses"].partition("@")[0] for step in job["steps"] if "uses" in step]
        for name, job in JOBS.items()
    }
    assert [name for name, used in uses.items() if "actions/checkout" in used] == ["build"]
    assert JOBS["build"]["permissions"] == {"contents": "read"}
    assert not [name for name, used in uses.items() if "actions/cache" in used]
    for name, job in JOBS.items():
        writes = "write" in job["permissions"].values()
        texts = [step.get("run", "") for step in job["steps"]]
        assert not (writes and any(".ci/" in text or "pip " in text for text in texts)), name


def test_one_job_can_prove_who_it_is_and_needs_an_approval() -> None:
    proves = [name for name, job in JOBS.items() if "id-token" in job["permissions"]]
    assert proves == ["publish"]
    assert JOBS["publish"]["environment"]["name"] == "pypi"
    assert JOBS["publish"]["permissions"] == {"id-token": "write", "attestations": "write"}
    assert not [step for step in JOBS["publish"]["steps"] if "run" in step]
