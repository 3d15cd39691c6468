"""`reconciler import`: specs for an existing cluster, or from other tools' files."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.api.adoption import adopt_cluster, adopt_leftovers, convert_files, write_adoption
from reconciler.cli import options
from reconciler.cli.changes import show_changes
from reconciler.cli.findings import render_findings
from reconciler.cli.terminal import choose_paint, print_note, working
from reconciler.errors import UsageError
from reconciler.units import count

if TYPE_CHECKING:
    from reconciler.adopt.draft import Adoption


def _read_owner(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Check the form of an owner. Errors: click.BadParameter."""
    from reconciler.spec.names import check_owner

    for found in check_owner(value, None) if value is not None else ():
        raise click.BadParameter(f"{found.what}; {found.way_out}", ctx, param)
    return value


_TOOLS = ("jikkou", "julie", "kafka-gitops", "strimzi", "topicctl")


@click.command("import", cls=options.Command)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH] [DIR]")
@click.option(
    "--cluster", metavar="NAME", help="Write specs for the topics of this cluster; one per run."
)
@options.bootstrap_option
@click.option(
    "--against",
    metavar="SNAPSHOT",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Write specs for this file instead of the cluster.",
)
@click.option("--assignments", is_flag=True, help="Also write the assignment of every topic.")
@options.topic_option
@click.option(
    "--ignore",
    multiple=True,
    metavar="GLOB",
    help="Leave out these topics, and record that in clusters.yaml; repeatable.",
)
@click.option(
    "--absent",
    multiple=True,
    metavar="GLOB",
    help="Write state: absent for the live topics of this name that no file names; repeatable.",
)
@click.option(
    "--owner",
    metavar="TEAM",
    callback=_read_owner,
    help="The owner of the chosen topics, if they have none.",
)
@click.option("--from", "tool", type=click.Choice(_TOOLS), help="Convert PATH, files of this tool.")
@click.option("--dry-run", is_flag=True, help="Show the files, and write nothing.")
def command(
    *,
    paths: tuple[Path, ...],
    cluster: str | None,
    bootstrap_servers: str | None,
    against: Path | None,
    assignments: bool,
    topic: str,
    ignore: tuple[str, ...],
    absent: tuple[str, ...],
    owner: str | None,
    tool: str | None,
    dry_run: bool,
) -> None:
    """Write specs into DIR so that the next plan is empty.

    Topics that are already in DIR are kept: only differences are changed; comments and order
    stay. With --from, the files in PATH are converted instead. With --absent, requests to
    delete topics are written instead, and a reviewer removes those that must stay. DIR defaults to
    topics.
    """
    if len(paths) == (1 if tool else 0):
        paths = (*paths, options.default_estate())
    live = bool(bootstrap_servers or against or assignments or ignore or absent or owner)
    _check(paths, cluster, tool, live=live)
    if absent and (assignments or ignore or topic != "*"):
        what = "--absent chooses topics itself"
        raise UsageError(f"{what}; leave --topic, --ignore and --assignments out")
    estate = paths[-1]
    if tool is not None or cluster is None:  # `_check` guarantees that exactly one is None
        adoption = convert_files(str(tool), paths[0], estate)
    elif absent:
        with working(f"reading {cluster}"):
            adoption = adopt_leftovers(
                estate,
                cluster,
                absent,
                bootstrap_servers=bootstrap_servers,
                against=against,
                owner=owner,
            )
    else:
        with working(f"reading {cluster}"):
            adoption = adopt_cluster(
                estate,
                cluster,
                bootstrap_servers=bootstrap_servers,
                against=against,
                assignments=assignments,
                topics=topic,
                ignore=ignore,
                owner=owner,
            )
    if dry_run:
        click.echo(show_changes(estate, adoption.texts), nl=False)
    else:
        write_adoption(adoption, estate)
    _report(adoption, cluster, estate, dry_run=dry_run, deletes=bool(absent))


def _check(paths: tuple[Path, ...], cluster: str | None, tool: str | None, *, live: bool) -> None:
    wanted = 2 if tool else 1
    if (cluster is None) == (tool is None):
        raise UsageError("pass --cluster NAME to read a cluster, or --from TOOL to convert files")
    if len(paths) != wanted:
        form = "--from TOOL PATH DIR" if tool else "--cluster NAME DIR"
        raise UsageError(f"{count(len(paths), 'path')} given; write: reconciler import {form}")
    if tool and live:
        raise UsageError("--from reads files only; --bootstrap-servers, --against, --assignments, "
                         "--ignore, --absent and --owner belong to --cluster")  # fmt: skip
    if tool and paths[1].resolve() == paths[0].resolve():
        raise UsageError("PATH and DIR are the same; convert into another directory")


def _report(
    adoption: Adoption, cluster: str | None, estate: Path, *, dry_run: bool, deletes: bool
) -> None:
    if adoption.notes:
        print_note(render_findings(adoption.notes, choose_paint(sys.stderr)))
    files = len(adoption.texts)
    done = "would be " if dry_run else ""
    parts = [f"{count(len(adoption.written), 'topic')} {done}written"]
    if deletes:
        parts = [f"{count(len(adoption.written), 'deletion')} {done}requested"]
    elif cluster is not None:
        parts += [
            f"{len(adoption.updated):,} {done}amended",
            f"{adoption.unchanged:,} as they were",
        ]
    print_note(f"{estate}: {', '.join(parts)}; {count(files, 'file')} {done}changed")
    if adoption.differences is not None:
        rest = "is empty" if not adoption.differences else "is not empty"
        print_note(f"the next plan {rest}: {count(adoption.differences, 'difference')}")
    if deletes:
        print_note(
            "remove the requests for topics that must stay; "
            "plan shows what still reads and writes each topic"
        )
    # New files refer editors to schemas next to the estate; the command does not write these.
    place = Path(os.path.normpath(estate / ".." / "schemas"))
    wanted = {"clusters" if Path(f).stem == "clusters" else "topic" for f in adoption.created}
    if missing := [name for name in sorted(wanted) if not _schema(place, name).exists()]:
        print_note(f"for completion and checks in editors: mkdir -p {place}")
        for name in missing:
            print_note(f"    reconciler schema {name} > {_schema(place, name)}")


def _schema(place: Path, name: str) -> Path:
    return place / f"{name}.schema.json"
