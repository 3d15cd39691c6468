"""`reconciler init`: the files of a repository, for its clusters, stages and code host."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli.options import Command
from reconciler.cli.pins import PinOptions, ask_pin, choose_pin, refuse_no_pin
from reconciler.cli.terminal import ask, choose_paint, paint, print_note, working
from reconciler.errors import UsageError
from reconciler.scaffold.answers import Answers, ClusterAnswer, Host, Security
from reconciler.units import count

if TYPE_CHECKING:
    from reconciler.cli.repositories import Repository
    from reconciler.model.cluster import ClusterState
    from reconciler.scaffold.adoption import NewEstate
    from reconciler.scaffold.repository import Compared

_MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")


@click.command(cls=Command)
@click.argument("directory", default=Path(), type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--cluster",
    "clusters",
    multiple=True,
    metavar="NAME=HOST:PORT,…",
    help="A cluster and its address; repeatable, in the order in which a merge reaches them.",
)
@click.option(
    "--stage",
    "stages",
    multiple=True,
    metavar="NAME,…",
    help="Clusters that a merge reaches together; repeatable.  [default: one after the other]",
)
@click.option(
    "--security",
    type=click.Choice([each.value for each in Security]),
    help="Security protocol of clients.  [default: sasl_ssl]",
)
@click.option(
    "--mechanism",
    type=click.Choice(_MECHANISMS),
    help="SASL mechanism of clients.  [default: SCRAM-SHA-512]",
)
@click.option(
    "--from-cluster", is_flag=True, help="Also write specs for the topics of the clusters."
)
@click.option(
    "--host",
    type=click.Choice([each.value for each in Host]),
    help="Code host whose workflows are written.  [default: that of the remote origin]",
)
@click.option(
    "--source",
    metavar="OWNER/NAME|URL",
    help="The repository of reconciler that workflows install from, with --commit.",
)
@click.option("--commit", metavar="ID", help="The full id of the commit that workflows install.")
@click.option(
    "--wheel",
    metavar="PATH|URL",
    help="Install this wheel instead: a file of the repository, or an https address.",
)
@click.option("--wheel-hash", metavar="SHA256", help="The hash of the wheel.")
@click.option("--image", metavar="NAME", help="Run jobs of GitLab in this image instead.")
@click.option(
    "--platform",
    multiple=True,
    metavar="OWNER",
    help="Owner of clusters.yaml and workflows, such as @acme/platform; repeatable.",
)
@click.option("--update", is_flag=True, help="Rewrite the files that differ from this release.")
@click.option("--dry-run", is_flag=True, help="Show what would be written as a diff.")
def command(
    directory: Path,
    *,
    clusters: tuple[str, ...],
    stages: tuple[str, ...],
    security: str | None,
    mechanism: str | None,
    from_cluster: bool,
    host: str | None,
    source: str | None,
    commit: str | None,
    wheel: str | None,
    wheel_hash: str | None,
    image: str | None,
    platform: tuple[str, ...],
    update: bool,
    dry_run: bool,
) -> None:
    """Write what a repository of specs needs into DIRECTORY, by default this one.

    These are clusters.yaml, a first topic, the schemas for editors, .gitignore, CODEOWNERS, a hook
    for pre-commit, and the workflows of GitHub or GitLab. Then it prints the commands that remain.

    At a terminal it asks for what no option says. A file that exists is left as it is. Run again,
    it says what differs from this release, and --update writes that.
    """
    from reconciler.cli.repositories import Repository

    repository = Repository(directory)
    asking = _may_ask()
    asked = _read_clusters(clusters, security, mechanism)
    if repository.has_estate and (asked or stages or from_cluster):
        raise UsageError(
            "topics/clusters.yaml names the clusters of this repository: add others there; "
            "for topics that exist: reconciler import topics --cluster NAME"
        )
    if not repository.has_estate and not asked and asking:
        asked = _ask_clusters(security, mechanism)
    answers = repository.recall() if repository.has_estate else _arrange(asked, stages)
    chosen = _choose_host(host, repository, answers, asking=asking)
    said = PinOptions(source, commit, wheel, wheel_hash, image)
    pin = choose_pin(said, chosen, repository.pin, directory)
    if chosen is not Host.NONE and pin is None:
        pin = ask_pin(chosen) if asking else refuse_no_pin(chosen)
    if not platform and chosen is not Host.NONE and asking and not repository.has_owners(chosen):
        platform = _ask_platform()
    answers = replace(answers, host=chosen, pin=pin, platform=platform)
    states: dict[str, ClusterState] = {}
    if not repository.has_estate:
        answers, states = _look_at_clusters(answers, from_cluster=from_cluster)
    draft, compared = repository.compare(answers, states)
    changed = [each for each in compared if each.state == "new"]
    if update:
        changed += [each for each in compared if each.state == "differs"]
        repository.refuse_unsaved(each.file.path for each in changed if each.before is not None)
    if dry_run:
        click.echo(_show_diff(compared, update=update), nl=False)
        return
    repository.write(each.file for each in changed)
    owners = repository.write_owners(answers)
    _report(directory, answers, draft, compared, owners, update=update)
    if not repository.has_estate or (chosen is not Host.NONE and repository.find_host() is None):
        for line in repository.list_remaining(answers, owners=bool(owners)):
            click.echo(line)


def _may_ask() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def _read_clusters(
    said: Iterable[str], security: str | None, mechanism: str | None
) -> tuple[ClusterAnswer, ...]:
    """Read the clusters of the options. Errors: UsageError."""
    found: list[ClusterAnswer] = []
    for each in said:
        name, _, servers = each.partition("=")
        if not name or not servers:
            raise UsageError(f"--cluster {each!r} has no address; write NAME=HOST:PORT")
        if name in {one.name for one in found}:
            raise UsageError(f"--cluster names {name} twice")
        answer = ClusterAnswer(name, servers)
        if security is not None:
            answer = replace(answer, security=Security(security))
        if mechanism is not None:
            answer = replace(answer, mechanism=mechanism)
        found.append(answer)
    return tuple(found)


def _arrange(clusters: tuple[ClusterAnswer, ...], said: Sequence[str]) -> Answers:
    """Put clusters into their stages. Errors: UsageError if a stage names others, or not all."""
    names = [cluster.name for cluster in clusters]
    stages = tuple(tuple(name for name in stage.split(",") if name) for stage in said)
    if not said:
        stages = tuple((name,) for name in names)
    listed = [name for stage in stages for name in stage]
    if sorted(listed) != sorted(names):
        raise UsageError(
            f"--stage must name each cluster once: the clusters are {', '.join(names) or 'none'}, "
            f"and the stages name {', '.join(listed)}"
        )
    return Answers(clusters, stages)


def _choose_host(
    said: str | None, repository: Repository, answers: Answers, *, asking: bool
) -> Host:
    """Return whose workflows are written: none without clusters, because nothing could run."""
    if said is not None:
        return Host(said)
    known = repository.find_host()
    if known is not None or not answers.clusters:
        return known or Host.NONE
    remote = repository.guess_host()
    if not asking:
        return remote or Host.NONE
    return Host(_choose("Code host", [each.value for each in Host], (remote or Host.GITHUB).value))


def _ask_clusters(security: str | None, mechanism: str | None) -> tuple[ClusterAnswer, ...]:
    """Ask for the clusters. None: only the sandbox of this machine."""
    said = ask(
        "Clusters, in the order in which a merge reaches them, as NAME=HOST:PORT\n"
        "(Enter for none yet: only the sandbox on this machine): "
    )
    if not said:
        return ()
    if security is None:
        names = [each.value for each in Security]
        security = _choose("How clients connect", names, Security.SASL_SSL.value)
    if mechanism is None and security != Security.PLAINTEXT:
        mechanism = _choose("How they authenticate", _MECHANISMS, _MECHANISMS[0])
    return _read_clusters(said.split(), security, mechanism)


def _ask_platform() -> tuple[str, ...]:
    said = ask("Who owns clusters.yaml and the workflows, such as @acme/platform\n"
               "(Enter to write no CODEOWNERS): ")  # fmt: skip
    return tuple(said.split())


def _choose(question: str, choices: Sequence[str], default: str) -> str:
    """Ask for one of some words. Errors: UsageError for another one."""
    said = ask(f"{question}: {', '.join(choices)} [{default}]: ") or default
    if said not in choices:
        raise UsageError(f"{said!r} is none of {', '.join(choices)}")
    return said


def _look_at_clusters(
    answers: Answers, *, from_cluster: bool
) -> tuple[Answers, dict[str, ClusterState]]:
    """Read the clusters. Errors: ClusterError if topics are wanted of one that does not answer.

    One that does not answer has neither id nor size in clusters.yaml, and a note says why.
    """
    from reconciler.api.scaffolding import count_sandbox_brokers, read_new_cluster
    from reconciler.errors import ClusterError

    if not answers.clusters:
        if from_cluster:
            raise UsageError("--from-cluster needs --cluster NAME=HOST:PORT")
        return replace(answers, sandbox_brokers=count_sandbox_brokers()), {}
    read, states = [], {}
    for cluster in answers.clusters:
        with working(f"reading {cluster.name}"):
            found = read_new_cluster(cluster, configs=from_cluster)
        read.append(found.answer)
        if found.state is not None and from_cluster:
            states[cluster.name] = found.state
        if found.state is None:
            if from_cluster:
                raise ClusterError(list(found.findings))
            print_note(
                f"{cluster.name} is not read, so its id is left out: {found.findings[0].what}"
            )
    return replace(answers, clusters=tuple(read)), states


def _report(
    directory: Path,
    answers: Answers,
    draft: NewEstate | None,
    compared: Sequence[Compared],
    owners: str,
    *,
    update: bool,
) -> None:
    """Say what was written, what was left, and what differs from this release."""
    from reconciler.cli.findings import render_findings

    if draft is not None and draft.notes:
        print_note(render_findings(draft.notes, choose_paint(sys.stderr)))
    new = [each.file.path for each in compared if each.state == "new"]
    differing = [each for each in compared if each.state == "differs"]
    kept = [each.file.path for each in compared if each.state == "kept"]
    for path in (*new, *([owners] if owners else [])):
        click.echo(paint("green", f"+ {path}"))
    for each in differing:
        lines = _count_lines(each)
        click.echo(paint("yellow", f"~ {each.file.path}") + f"  {lines}")
    written = len(new) + bool(owners) + (len(differing) if update else 0)
    place = "" if directory == Path() else f" in {directory}"
    said = [f"{count(written, 'file')} written{place}"]
    if kept:
        said.append(f"{len(kept)} yours, not changed")
    if differing and not update:
        said.append(f"{len(differing)} differ from this release")
    click.echo(", ".join(said))
    if draft is not None and draft.topics:
        rest = "is empty" if not draft.differences else f"has {count(draft.differences, 'change')}"
        click.echo(f"{count(draft.topics, 'topic')} imported; the next plan {rest}")
    if draft is not None and draft.foreign:
        click.echo(f"{count(draft.foreign, 'topic')} of other software left out, by `ignore`")
    if answers.pin is not None and answers.host is not Host.NONE and written:
        click.echo(f"jobs install {answers.pin}, before they have secrets")
    if differing and not update:
        click.echo("to see how: reconciler init --update --dry-run")
        click.echo("to write:   reconciler init --update")


def _count_lines(each: Compared) -> str:
    before, now = (each.before or "").splitlines(), each.file.text.splitlines()
    lines = list(difflib.unified_diff(before, now, n=0, lineterm=""))[2:]
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    return f"+{added} -{removed}"


def _show_diff(compared: Sequence[Compared], *, update: bool) -> str:
    """Show what would be written as a diff."""
    lines: list[str] = []
    for each in compared:
        if each.state == "new" or (update and each.state == "differs"):
            before = "/dev/null" if each.before is None else each.file.path
            old, new = (each.before or "").splitlines(), each.file.text.splitlines()
            lines += difflib.unified_diff(old, new, before, each.file.path, lineterm="")
    return "".join(f"{line}\n" for line in lines)
