"""What a release needs besides its artefacts: notes, a check of versions, and a list of contents.

    release.py notes TAG                 prints the section of the changelog
    release.py check TAG DIRECTORY       fails unless the wheel and the sdist are of this tag
    release.py sbom                      prints CycloneDX of what is installed next to this Python

Only sbom needs more than the standard library. A failure is a line on stderr, and exit code 1.
"""

from __future__ import annotations

import json
import re
import sys
import tarfile
import tomllib
import zipfile
from email.parser import HeaderParser
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CHANGELOG = "docs/changelog.md"
DISTRIBUTION = "kafka-reconciler"
_HEADING = re.compile(r"^## (?P<name>.+?)(?: \((?P<date>\d{4}-\d{2}-\d{2})\))?$", re.MULTILINE)
_RELATIVE = re.compile(r"\]\((?!https?:|#)([^)\s]+)\)")


class ReleaseError(Exception):
    """A reason not to release."""


def read_notes(tag: str, changelog: str, source: str) -> str:
    """Return the section of a tag. Its links lead to the files of the tag. Errors: ReleaseError."""
    version = tag.removeprefix("v")
    headings = list(_HEADING.finditer(changelog))
    ends = [heading.start() for heading in headings[1:]] + [len(changelog)]
    for heading, end in zip(headings, ends, strict=True):
        if heading["name"] != version:
            continue
        if heading["date"] is None:
            raise ReleaseError(f"the section {version} of {CHANGELOG} has no date; add it")
        text = changelog[heading.end() : end].strip()
        if not text:
            raise ReleaseError(f"the section {version} of {CHANGELOG} is empty")
        folder = f"{source}/blob/{tag}/{Path(CHANGELOG).parent}"
        return _RELATIVE.sub(rf"]({folder}/\1)", text) + "\n"
    wanted = f"## {version} (YYYY-MM-DD)"
    raise ReleaseError(f"{CHANGELOG} has no section for {tag}; add the heading {wanted}")


def _read_identity(path: Path) -> tuple[str, str]:
    """Return the name and the version that a wheel or an sdist states."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            (name,) = (n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
            text = wheel.read(name).decode()
    else:
        with tarfile.open(path) as archive:
            (name,) = (n for n in archive.getnames() if re.fullmatch("[^/]+/PKG-INFO", n))
            found = archive.extractfile(name)
            text = found.read().decode() if found else ""
    headers = HeaderParser().parsestr(text)
    return headers["Name"], headers["Version"]


def check_artefacts(tag: str, directory: Path) -> None:
    """Check that a directory has a wheel and an sdist of this tag only. Errors: ReleaseError."""
    names = sorted(path.name for path in directory.iterdir())
    kinds = sorted(name[name.find(".tar") :] if ".tar" in name else name[-4:] for name in names)
    if kinds != [".tar.gz", ".whl"]:
        raise ReleaseError(f"one wheel and one sdist are needed, and there are: {', '.join(names)}")
    for name in names:
        found, version = _read_identity(directory / name)
        if (found, f"v{version}") != (DISTRIBUTION, tag):
            raise ReleaseError(
                f"{name} is {found} {version}, and the tag is {tag}; "
                f"tag the commit that is built, as v{version} if that is the release"
            )


def list_installed(name: str) -> dict[str, Distribution]:
    """Return a distribution and all that it needs here, by name; without what extras need."""
    from packaging.requirements import Requirement  # installed by .ci/requirements.txt
    from packaging.utils import canonicalize_name

    found: dict[str, Distribution] = {}
    left = [(name, frozenset({""}))]
    while left:
        each, extras = left.pop()
        key = canonicalize_name(each)
        found[key] = package = distribution(each)
        for line in package.requires or ():
            need = Requirement(line)
            wanted = need.marker is None or any(need.marker.evaluate({"extra": e}) for e in extras)
            if wanted and canonicalize_name(need.name) not in found:
                left.append((need.name, frozenset(need.extras) | {""}))
    return dict(sorted(found.items()))


def _describe(name: str, package: Distribution, kind: str) -> dict[str, Any]:
    reference = f"pkg:pypi/{name}@{package.version}"
    component = {
        "type": kind,
        "bom-ref": reference,
        "name": name,
        "version": package.version,
        "purl": reference.replace("+", "%2B"),
    }
    if expression := package.metadata.get("License-Expression"):
        component["licenses"] = [{"expression": expression}]
    elif (text := package.metadata.get("License", "")) and "\n" not in text and len(text) < 100:
        component["licenses"] = [{"license": {"name": text}}]
    return component


def write_sbom(name: str) -> dict[str, Any]:
    """Return CycloneDX 1.6 of a distribution that is installed, and of what it needs here."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    packages = list_installed(name)
    references = {key: f"pkg:pypi/{key}@{package.version}" for key, package in packages.items()}
    needs = {
        key: {canonicalize_name(Requirement(line).name) for line in package.requires or ()}
        for key, package in packages.items()
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": _describe(name, packages[name], "application")},
        "components": [
            _describe(key, package, "library") for key, package in packages.items() if key != name
        ],
        "dependencies": [
            {
                "ref": references[key],
                "dependsOn": sorted(references[need] for need in wanted if need in references),
            }
            for key, wanted in needs.items()
        ],
    }


def main(arguments: list[str]) -> int:
    try:
        match arguments:
            case ["notes", tag]:
                source = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
                address = source["project"]["urls"]["Source"]
                text = (ROOT / CHANGELOG).read_text("utf-8")
                sys.stdout.write(read_notes(tag, text, address))
            case ["check", tag, directory]:
                check_artefacts(tag, Path(directory))
            case ["sbom"]:
                sys.stdout.write(json.dumps(write_sbom(DISTRIBUTION), indent=1) + "\n")
            case _:
                sys.stderr.write(__doc__ or "")
                return 64
    except ReleaseError as refused:
        sys.stderr.write(f"error: {refused}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
