"""`reconciler report`: report a plan to GitHub or GitLab, and problems to a webhook."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.api.authors import find_author
from reconciler.api.connections import find_cluster
from reconciler.api.history import read_last_run
from reconciler.api.planning import load_estate
from reconciler.cli.groups import Group
from reconciler.cli.options import Command, bootstrap_option, cluster_option, estate_argument
from reconciler.cli.plans import read_accepted, read_plan, write_whole
from reconciler.cli.terminal import print_note, working
from reconciler.errors import UsageError, WebhookError
from reconciler.model.plan import Plan

if TYPE_CHECKING:
    from reconciler.codehost.progress import Present

WAITING = 2

plan_option = click.option(
    "--plan",
    "path",
    required=True,
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file that plan --out saved.",
)
errors_option = click.option(
    "--errors",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The stderr of plan, reported if no plan was saved.",
)

journal_option = click.option(
    "--journal",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file that apply --journal wrote; without it, apply did not begin.",
)


@click.group(cls=Group)
def command() -> None:
    """Report a plan to GitHub or GitLab, and problems to a webhook, from a workflow.

    The runner's variables name the host; GITHUB_TOKEN or RECONCILER_TOKEN authenticates. A webhook
    needs neither.
    """


@command.command(cls=Command)
@cluster_option
@plan_option
@click.option(
    "--moves",
    "moves_path",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file that plan --moves --out saved, shown below the other plan.",
)
@errors_option
def plan(cluster: str, path: Path, moves_path: Path | None, errors: Path | None) -> None:
    """Write or replace the cluster's comment on this pull request."""
    from reconciler.codehost.comments import report_no_plan, report_plan
    from reconciler.codehost.runs import find_run

    run = find_run(os.environ)
    made = _read(cluster, path)
    planned = _read(cluster, moves_path) if moves_path is not None else None
    if made is None or (moves_path is not None and planned is None):
        print_note(report_no_plan(run, cluster, _read_errors(errors)))
        return
    print_note(report_plan(run, made, moves=planned))


@command.command(cls=Command)
@cluster_option
@plan_option
@errors_option
@click.option(
    "--accepted",
    "accepted_path",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file that report accepted --out saved; the issue says why the other topics wait.",
)
def drift(cluster: str, path: Path, errors: Path | None, accepted_path: Path | None) -> None:
    """Open, update or close the cluster's issue, and those on topics that are due, by owner."""
    from reconciler.codehost.comments import report_drift, report_no_drift
    from reconciler.codehost.due import report_due
    from reconciler.codehost.runs import find_run

    run = find_run(os.environ)
    made = _read(cluster, path)
    judged = None
    if accepted_path is not None and accepted_path.exists():
        judged = read_accepted(accepted_path)
    if made is None:
        print_note(report_no_drift(run, cluster, _read_errors(errors)))
    else:
        print_note(report_drift(run, made, judged))
        for line in report_due(run, made):
            print_note(line)


@command.command(cls=Command)
@cluster_option
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Save the approved plan's fingerprint and rows, for plan or apply --approved.",
)
@click.option("--moves", is_flag=True, help="Use the plan of moves, which has its own approval.")
def approved(cluster: str, out: Path | None, *, moves: bool) -> None:
    """Print the fingerprint of the plan that the merged pull request showed."""
    from reconciler.codehost.approvals import find_approved
    from reconciler.codehost.runs import find_run
    from reconciler.planfile.approval import encode_approval

    approval = find_approved(find_run(os.environ), cluster, moves=moves)
    if out is not None:
        write_whole(out, encode_approval(approval))
    click.echo(approval.fingerprint)


@command.command(cls=Command)
@estate_argument
@cluster_option
@plan_option
@errors_option
@journal_option
@click.option(
    "--after",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A plan made after the apply: it shows what is left.",
)
@click.option("--moves", is_flag=True, help="The plan is one of moves.")
def result(
    estate: Path,
    cluster: str,
    path: Path,
    errors: Path | None,
    journal: Path | None,
    after: Path | None,
    *,
    moves: bool,
) -> None:
    """Report on merged pull requests which topics are done, or why nothing was applied.

    After a push, that is the request that was merged; and always those of which something was left.
    ESTATE defaults to topics.
    """
    from reconciler.codehost.results import report_moves, report_result
    from reconciler.codehost.runs import find_run

    run = find_run(os.environ)
    made, said = _read(cluster, path), _read_errors(errors)
    last = read_last_run(journal, cluster) if journal and journal.exists() else None
    ending, duration_s = last or (None, None)
    if moves:
        print_note(report_moves(run, cluster, made, ending, said, duration_s=duration_s))
        return
    # A plan from before an apply does not show what the apply did.
    now = _read(cluster, after) if after else None if ending else made
    present = _read_present(estate, cluster, now) if now else None
    for line in report_result(
        run,
        cluster,
        made,
        ending,
        said,
        present=present,
        duration_s=duration_s,
        knows=partial(_knows, estate),
    ):
        print_note(line)


def _knows(estate: Path, commit: str) -> bool:
    """Return whether the specs of an estate have those of a commit, as far as git knows."""
    from reconciler.cli.git import Checkout, GitError

    try:
        return Checkout(estate).contains(commit)
    except GitError:
        return False


def _read_present(estate: Path, cluster: str, plan: Plan) -> Present:
    from reconciler.codehost.progress import read_present

    specs = load_estate(estate).topics_for(cluster)
    return read_present(plan, {spec.name: spec for spec in specs})


@command.command(cls=Command)
@estate_argument
@cluster_option
@plan_option
@click.option(
    "--out",
    required=True,
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Save the accepted topics, for plan --only and report drift --accepted.",
)
def accepted(estate: Path, cluster: str, path: Path, out: Path) -> int:
    """Print the topics whose differences people accepted: a nightly run may apply these.

    The plan is of all topics of the cluster. A topic is accepted if the request that brought its
    spec is done on the cluster, or has an approved plan that shows the same difference. Exits 2 if
    others wait for an approval; the reasons go to stderr. ESTATE defaults to topics.
    """
    from reconciler.cli.git import find_origins
    from reconciler.codehost.runs import find_run
    from reconciler.codehost.targets import judge_targets
    from reconciler.planfile.accepted import encode_accepted
    from reconciler.show.fields import list_fields
    from reconciler.show.gradual import list_gradual_steps

    made = read_plan(path)
    if made.cluster != cluster:
        raise UsageError(f"the plan is for {made.cluster}, not for {cluster}")
    origins = find_origins(estate, cluster, sorted(list_fields(made)))
    steps = list_gradual_steps(made, load_estate(estate).topics_for(cluster))
    judged = judge_targets(find_run(os.environ).host, made, origins, steps)
    write_whole(out, encode_accepted(judged))
    for topic in judged.topics:
        click.echo(topic)
    for topic, why in judged.waiting.items():
        print_note(f"{topic} waits for an approval: {why}")
    return WAITING if judged.waiting else 0


@command.command(cls=Command)
@estate_argument
@cluster_option
@plan_option
@journal_option
def gradual(estate: Path, cluster: str, path: Path, journal: Path | None) -> None:
    """Write on the requests that lower retention in steps which step was applied, and what is left.

    For a nightly run that applies drift. Each topic belongs to the request that brought its spec.
    ESTATE defaults to topics.
    """
    from reconciler.cli.git import find_origins
    from reconciler.codehost.gradual import report_gradual
    from reconciler.codehost.runs import find_run
    from reconciler.show.gradual import list_gradual_steps

    made = _read(cluster, path)
    specs = load_estate(estate).topics_for(cluster) if made else ()
    steps = tuple(list_gradual_steps(made, specs)) if made else ()
    if made is None or not steps:
        print_note(f"no step of a gradual change on {cluster}")
        return
    run = find_run(os.environ)
    origins = find_origins(estate, cluster, sorted({step.topic for step in steps}))
    last = read_last_run(journal, cluster) if journal and journal.exists() else None
    for said in report_gradual(run, made, steps, origins, last.ending if last else None):
        print_note(said)


@command.command(cls=Command)
@estate_argument
@cluster_option
@bootstrap_option
@click.option(
    "--out",
    required=True,
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Save what the cluster needs, for report request.",
)
@click.option(
    "--keep-shown",
    is_flag=True,
    help="Keep the plan that the open request shows as long as it holds; for a job of a code host.",
)
def uneven(
    estate: Path, cluster: str, bootstrap_servers: str | None, out: Path, *, keep_shown: bool
) -> None:
    """Read a cluster that allows rebalance, and say what a request is to ask for.

    That is new brokers that hold nothing, brokers outside the band of balance, and internal
    topics with too few replicas. Nothing is changed. ESTATE defaults to topics.
    """
    from reconciler.api.needs import read_need
    from reconciler.codehost.approvals import find_shown_moves
    from reconciler.codehost.requests import name_branch
    from reconciler.codehost.runs import find_run
    from reconciler.planfile.need import encode_need

    shown = None
    if keep_shown:
        shown = find_shown_moves(find_run(os.environ).host, name_branch(cluster), cluster)
    with working(f"reading {cluster}"):
        need = read_need(
            load_estate(estate), cluster, bootstrap_servers=bootstrap_servers, shown=shown
        )
    write_whole(out, encode_need(need))
    print_note(f"{cluster}: {need.why}")


@command.command(cls=Command)
@estate_argument
@cluster_option
@click.option(
    "--need",
    "path",
    required=True,
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The file that report uneven saved.",
)
def request(estate: Path, cluster: str, path: Path) -> None:
    """Open, update or close the request that asks for what a cluster needs.

    For a run on the default branch. The request changes one line of clusters.yaml, from a branch of
    its own, and asks its code owners for a review. ESTATE defaults to topics.
    """
    from reconciler.cli.owners import read_clusters_file
    from reconciler.codehost.requests import keep_request
    from reconciler.codehost.runs import find_run
    from reconciler.planfile.need import decode_need

    need = decode_need(path.read_text(encoding="utf-8"), str(path))
    if need.cluster != cluster:
        raise UsageError(f"the file is for {need.cluster}, not for {cluster}")
    find_cluster(load_estate(estate), cluster)
    for line in keep_request(find_run(os.environ), need, read_clusters_file(estate, cluster)):
        print_note(line)


@command.command(cls=Command)
@estate_argument
@click.option(
    "--clusters",
    "listed",
    required=True,
    metavar="JSON",
    help="The clusters to apply to, as the variable RECONCILER_CLUSTERS lists them.",
)
def stages(estate: Path, listed: str) -> None:
    """Print the clusters of each stage of ESTATE, as JSON; without stages, all are one.

    ESTATE defaults to topics.
    """
    loaded, wanted = load_estate(estate), _read_names(listed)
    if unknown := sorted(wanted - loaded.clusters.keys()):
        what = f"--clusters names {', '.join(unknown)}, which clusters.yaml does not have"
        raise UsageError(f"{what}; correct the list, or add them")
    staged = [[name for name in stage if name in wanted] for stage in loaded.stages]
    click.echo(json.dumps(staged))


@command.command(cls=Command)
@click.argument("about", type=click.Choice(["apply", "drift"]))
@cluster_option
@plan_option
@errors_option
@journal_option
@click.option("--webhook-env", metavar="NAME", help="The variable with the webhook's address.")
@click.option(
    "--webhook-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The file with the webhook's address.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["slack", "json"]),
    default="slack",
    show_default=True,
    help="A message for Slack, or a document for programs.",
)
def notify(
    *,
    about: str,
    cluster: str,
    path: Path,
    errors: Path | None,
    journal: Path | None,
    webhook_env: str | None,
    webhook_file: Path | None,
    form: str,
) -> int:
    """Notify a webhook of problems: an apply that is not done, or drift.

    Nothing is sent if everything is as planned. Exits 69 if the webhook does not accept the
    notification.
    """
    from reconciler.codehost.notices import notice_apply, notice_drift
    from reconciler.codehost.runs import find_links
    from reconciler.codehost.webhook import Webhook, render_json, render_slack

    if about == "drift" and journal is not None:
        raise UsageError("--journal is for an apply; a check for drift has none")
    webhook = Webhook(_read_address(webhook_env, webhook_file))
    links = find_links(os.environ, find_author(os.environ).run_url)
    made, said = _read(cluster, path), _read_errors(errors)
    if about == "drift":
        notice = notice_drift(cluster, made, said, links)
    else:
        last = read_last_run(journal, cluster) if journal and journal.exists() else None
        notice = notice_apply(cluster, made, last.ending if last else None, said, links)
    if notice is None:
        print_note(f"nothing to notify about {cluster}")
        return 0
    try:
        webhook.send(render_slack(notice) if form == "slack" else render_json(notice))
    except WebhookError as error:
        # The result of the apply is elsewhere: a lost notification does not change it.
        print_note(f"warning: {error}")
        return error.exit_code
    print_note(f"notified: {notice.title}")
    return 0


def _read_names(listed: str) -> frozenset[str]:
    """Read a list of clusters as JSON. Errors: UsageError."""
    try:
        names = json.loads(listed)
    except ValueError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UsageError(f'--clusters {listed} is not a list as JSON; write \'["dev", "prod"]\'')
    return frozenset(names)


def _read_address(variable: str | None, file: Path | None) -> str:
    """Read the address of the webhook. It is no option, since others can see a command line.

    No error repeats an option: it could be the address itself.
    """
    if (variable is None) == (file is None):
        raise UsageError("name the webhook by --webhook-env or by --webhook-file")
    if file is not None:
        try:
            return file.read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise UsageError("the file of --webhook-file cannot be read") from error
    address = os.environ.get(variable or "", "").strip()
    if not address:
        raise UsageError("--webhook-env takes the name of a variable, and that one is not set")
    return address


def _read(cluster: str, path: Path) -> Plan | None:
    """Read the saved plan, if there is one."""
    if not path.exists():
        return None
    made = read_plan(path)
    if made.cluster != cluster:
        raise UsageError(f"the plan is for {made.cluster}, not for {cluster}")
    return made


def _read_errors(errors: Path | None) -> str:
    """Read the saved stderr of a run without a plan; empty if there is none."""
    if errors is None or not errors.exists():
        return ""
    return errors.read_text(encoding="utf-8", errors="replace")
