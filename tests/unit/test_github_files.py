"""The files that GitHub shows to people: they agree with what they are about."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
ACTION = GITHUB / "actions" / "reconciler"


def read_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def read_rows(page: Path, heading: str) -> list[list[str]]:
    """Return the cells of the table below a heading of a page."""
    section = page.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")][1:]
    return [
        [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in lines
    ]


def test_the_page_of_the_action_has_its_inputs_and_outputs() -> None:
    declared = read_yaml(ACTION / "action.yml")
    inputs = []
    for name, about in declared["inputs"].items():
        default = f"`{about['default']}`" if "default" in about else "–"
        shown = "required" if about.get("required") else default
        inputs.append([f"`{name}`", shown, about["description"].strip()])
    assert read_rows(ACTION / "README.md", "Inputs") == inputs
    outputs = [[f"`{name}`", about["description"]] for name, about in declared["outputs"].items()]
    assert read_rows(ACTION / "README.md", "Outputs") == outputs


def test_the_page_of_the_action_has_every_verb_that_a_step_knows() -> None:
    steps = (ACTION / "action.yml").read_text()
    verbs = set(re.findall(r"inputs\.verb == '([a-z]+)'", steps))
    verbs |= {
        verb
        for some in re.findall(r"fromJSON\('\[(.*?)\]'\)", steps)
        for verb in re.findall('"([a-z]+)"', some)
    }
    shown = {row[0].strip("`") for row in read_rows(ACTION / "README.md", "Verbs")}
    assert shown == verbs


@pytest.mark.parametrize(
    ("form", "asks"),
    [
        ("bug", {"reconciler --version", "Kafka", "The plan as JSON"}),
        ("question", {"reconciler --version", "Kafka", "What do you want to do?"}),
    ],
)
def test_a_form_asks_for_what_a_maintainer_needs(form: str, asks: set[str]) -> None:
    fields = read_yaml(GITHUB / "ISSUE_TEMPLATE" / f"{form}.yml")["body"]
    labels = {field["attributes"].get("label", "").strip("`") for field in fields}
    assert asks <= labels
    assert len(labels) <= 7
    ids = [field["id"] for field in fields if field["type"] != "markdown"]
    assert len(ids) == len(set(ids))


def test_every_update_waits_and_looks_where_something_is_pinned() -> None:
    updates = read_yaml(GITHUB / "dependabot.yml")["updates"]
    assert {each["package-ecosystem"] for each in updates} == {"pip", "github-actions", "docker"}
    for each in updates:
        assert each["cooldown"]["default-days"] >= 7
        for place in each.get("directories", [each.get("directory")]):
            assert list(ROOT.glob(place.strip("/") or "*")), place
    assert (ROOT / ".ci" / "Dockerfile").exists()


def test_every_action_and_every_base_image_is_pinned_by_hash() -> None:
    files = subprocess.run(
        ("git", "ls-files", ".github", ".ci"), cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()
    texts = {name: (ROOT / name).read_text() for name in files}
    uses = {
        use
        for name, text in texts.items()
        if name.endswith((".yml", ".yaml"))
        for use in re.findall(r"^[ -]*uses: (\S+.*)$", text, re.MULTILINE)
        if not use.startswith("./")
    }
    assert uses
    assert [u for u in uses if not re.fullmatch(r"\S+@[0-9a-f]{40} # v\d+\.\d+\.\d+", u)] == []
    images = re.findall(r"^FROM (\S+)", texts[".ci/Dockerfile"], re.MULTILINE)
    assert images
    assert [image for image in images if not re.search(r":\S+@sha256:[0-9a-f]{64}$", image)] == []


def test_the_page_about_releases_has_the_jobs_of_the_workflow() -> None:
    jobs = read_yaml(GITHUB / "workflows" / "release.yml")["jobs"]
    shown = [
        row[0].strip("`") for row in read_rows(ROOT / "docs/how-to/release.md", "What the run does")
    ]
    assert shown == list(jobs)
