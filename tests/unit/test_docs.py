"""The pages: every command is one that the command line takes, and every link leads somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
import yaml

from reconciler.cli.app import group

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / ".github" / "CONTRIBUTING.md",
    *sorted(ROOT.glob("docs/**/*.md")),
]


def list_commands(text: str) -> list[str]:
    """List the lines of code blocks that run reconciler, as a person types them."""
    blocks = re.findall(r"^ *```\w*\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    joined = "\n".join(blocks).replace("\\\n", " ")
    return re.findall(r"^ *(?:\$ )?(reconciler .*)$", joined, re.MULTILINE)


def parse(command: str) -> None:
    """Parse a command up to a pipe or a redirection. Errors: click.UsageError."""
    words = shlex.split(command, comments=True)[1:]
    ends = (number for number, word in enumerate(words) if word in {">", ">>", "|", "&&"})
    words = words[: next(ends, len(words))]
    verb: click.Command = group
    context = click.Context(group)
    while isinstance(verb, click.Group) and words:
        name, *words = words
        found = verb.get_command(context, name)
        if found is None:
            raise click.UsageError(f"no command {name}")
        verb, context = found, click.Context(found, parent=context)
    verb.make_parser(context).parse_args(words)


@pytest.mark.parametrize("command", ["reconciler drain", "reconciler plan --drain 7"])
def test_what_does_not_exist_does_not_parse(command: str) -> None:
    with pytest.raises(click.UsageError):
        parse(command)


def test_every_command_of_the_pages_parses() -> None:
    commands = {page: list_commands(page.read_text()) for page in PAGES}
    assert commands[ROOT / "docs" / "how-to" / "replace-a-broker.md"]
    for each in commands.values():
        for command in each:
            parse(command)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    shown = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower() for title in titles]
    return {re.sub(r"[^\w\- ]", "", title).strip().replace(" ", "-") for title in shown}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_or_a_heading_leads_there(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", page.read_text())
    for file, anchor in links:
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), file
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{file}#{anchor}"


def test_the_job_that_checks_what_apply_needs_runs_on_the_default_branch_only() -> None:
    page = (ROOT / "docs" / "reference" / "workflows.md").read_text()
    blocks = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (text,) = (block for block in blocks if "apply topics --check" in block)
    workflow = yaml.load(text, yaml.BaseLoader)
    assert set(workflow["on"]) == {"push", "schedule", "workflow_dispatch"}
    assert workflow["on"]["push"] == {"branches": ["main"]}
    job = workflow["jobs"]["check"]
    assert job["environment"] == "prod-eu-check"
    parse(job["steps"][-1]["run"])


def test_no_link_leaves_the_docs() -> None:
    """The site holds docs/ only, so a link out of it would lead nowhere there."""
    docs = ROOT / "docs"
    for page in docs.rglob("*.md"):
        for file in re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text()):
            assert (page.parent / file).resolve().is_relative_to(docs), f"{page.name}: {file}"


def test_the_pipelines_of_other_ci_apply_the_plan_that_they_saved() -> None:
    page = (ROOT / "docs" / "how-to" / "other-ci.md").read_text()
    blocks = re.findall(r"^```(groovy|yaml)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert [language for language, _ in blocks] == ["groovy", "yaml", "yaml"]
    for language, text in blocks:
        if language == "yaml":
            assert yaml.safe_load(text)
        commands = re.findall(r"reconciler (?:validate|plan|show|apply) [^\n|'>]*", text)
        for command in commands:
            parse(re.sub(r"\$\{?scope\}?", "", command).rstrip('")'))
        (apply,) = (command for command in commands if command.startswith("reconciler apply"))
        (saved,) = {command for command in commands if "--out plan.json" in command}
        assert saved.startswith("reconciler plan topics --cluster prod-eu")
        assert "plan.json" in apply
        assert "--estate topics --default-branch origin/main --auto-approve" in apply
