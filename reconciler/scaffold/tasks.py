"""What remains after the files are written: the commands, each with what it is for.

`commands` spells a task for a person who begins; the functions that spell one command are shared
with the checks of `reconciler doctor`.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reconciler.rulebook import spell_page
from reconciler.scaffold.answers import (
    APP_SECRETS,
    GITLAB_INCLUDES,
    REQUEST_TOKEN,
    REQUESTS,
    Answers,
    Host,
)
from reconciler.scaffold.repository import ESTATE

VARIABLE = "RECONCILER_CLUSTERS"
MOVES_VARIABLE = "RECONCILER_MOVES"
REBALANCE_VARIABLE = "RECONCILER_REBALANCE"
TOKEN = "RECONCILER_TOKEN"  # noqa: S105 - the name of a variable
CHECK_NAME = "planned"
"""The job of plan.yml that a protected branch requires."""

EXAMPLE_PATH = f"{ESTATE}/example.yaml"
_OPTIONAL = (
    "Optional: a request opens by itself where a cluster changed, for example because brokers "
    "joined."
)


@dataclass(frozen=True, slots=True)
class Task:
    """A task of a person: what it is for, and its commands, or where to do it."""

    why: str
    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Begun:
    """What a repository has before its first commit of these files.

    `example`: the file of the first topic was written now. `unread`: clusters without a known id.
    `pipeline_kept`: there was a .gitlab-ci.yml before.
    """

    has_git: bool
    has_owners: bool
    example: bool
    unread: tuple[str, ...] = ()
    pipeline_kept: bool = False


def list_tasks(answers: Answers, begun: Begun) -> tuple[Task, ...]:
    """Return what remains, in its order."""
    if not answers.clusters:
        return tuple(_list_local(begun))
    tasks = [] if begun.has_git else [Task("The repository.", ("git init --initial-branch main",))]
    if not begun.has_owners:
        why = "Who reviews what: each file of topics, clusters.yaml and the workflows."
        tasks.append(Task(why, (spell_owners(answers),)))
    tasks.append(Task("Specs are checked before each commit.", ("pre-commit install",)))
    if begun.unread:
        named = ", ".join(begun.unread)
        why = f"The id of {named}, so that no other cluster is ever changed. Plans print it."
        where = f"write cluster_id: … below each cluster in {ESTATE}/clusters.yaml"
        tasks.append(Task(why, (where,)))
    tasks += _list_accounts(answers)
    match answers.host:
        case Host.GITHUB:
            tasks += _list_github(answers, begun)
        case Host.GITLAB:
            tasks += _list_gitlab(answers, begun)
        case Host.NONE:
            tasks += _list_plain(answers)
    return tuple(tasks)


def spell_environment(name: str) -> str:
    """Return the command that creates an environment on GitHub."""
    return f'gh api --silent -X PUT "repos/{{owner}}/{{repo}}/environments/{name}"'


def spell_secret(name: str, environment: str) -> str:
    """Return the command that stores a secret of an environment on GitHub, and asks for it."""
    return f"gh secret set {name} --env {environment}"


def spell_variable(clusters: Sequence[str], name: str = VARIABLE) -> str:
    """Return the command that lists the clusters on GitHub: until then, nothing is planned."""
    return f"gh variable set {name} --body {shlex.quote(json.dumps(list(clusters)))}"


def spell_request_token() -> str:
    """Return the command that stores the token on GitLab that opens requests."""
    return f"glab variable set {REQUEST_TOKEN} --scope {REQUESTS} --masked --protected"


def spell_owners(answers: Answers) -> str:
    """Return the command that writes CODEOWNERS."""
    host = "" if answers.host is Host.NONE else f" --host {answers.host.value}"
    platform = " ".join(f"--platform {shlex.quote(each)}" for each in answers.platform)
    command = f"reconciler owners --format codeowners{host}"
    return f"{command} {platform or '--platform @ORG/TEAM'} > {find_owners_file(answers.host)}"


def find_owners_file(host: Host) -> str:
    """Return where a host reads CODEOWNERS."""
    return ".gitlab/CODEOWNERS" if host is Host.GITLAB else ".github/CODEOWNERS"


def _list_local(begun: Begun) -> Iterator[Task]:
    topic = " with the first topic" if begun.example else ""
    yield Task("A Kafka on this machine, to try it.", ("reconciler sandbox up",))
    yield Task(f"What would change{topic}.", ("reconciler plan --cluster sandbox",))
    yield Task("Apply it.", ("reconciler apply --cluster sandbox",))


def spell_check(cluster: str, account: str) -> str:
    """Return the command that says which rights the account of this run lacks."""
    return f"reconciler grants --cluster {cluster} --check --account {account}"


def _list_accounts(answers: Answers) -> Iterator[Task]:
    names = [each.name for each in answers.clusters if each.has_accounts]
    if names:
        yield Task(
            "Two accounts for each cluster: one that reads, for plans, and one that writes, for "
            "applies. This prints the commands that give them their rights; --planner and "
            "--applier name them.",
            tuple(f"reconciler grants --cluster {name}" for name in names),
        )


def _list_plain(answers: Answers) -> Iterator[Task]:
    first = answers.names[0]
    secrets = dict.fromkeys(name for each in answers.clusters for name in each.secrets)
    if secrets:
        yield Task("The account, for your shell.", tuple(f"export {name}=…" for name in secrets))
    yield Task("What would change.", (f"reconciler plan --cluster {first}",))


def _list_commit(begun: Begun, why: str) -> Task:
    rest = f" ':!{EXAMPLE_PATH}'" if begun.example else ""
    commit = "git commit --message 'Set up reconciler'"
    return Task(why, (f"git add --all{rest}", commit, "git push --set-upstream origin main"))


def _list_request(begun: Begun, open_: str) -> Iterator[Task]:
    if begun.example:
        yield Task(
            "The first request. It gets a comment with the plan of each cluster.",
            (
                "git switch --create first-topic",
                f"git add {EXAMPLE_PATH}",
                "git commit --message 'Add the first topic'",
                "git push --set-upstream origin first-topic",
                open_,
            ),
        )


def _list_github(answers: Answers, begun: Begun) -> Iterator[Task]:
    yield _list_commit(begun, "The workflows, on main. Nothing runs yet.")
    for secrets in sorted(set(answers.environments.values()), reverse=True):
        names = [name for name, each in answers.environments.items() if each == secrets]
        loop = (
            f"for environment in {' '.join(names)}; do",
            f"  {spell_environment('$environment')}",
        )
        if secrets:
            yield Task(
                "An environment for each account: NAME-plan has the one that reads, NAME the one "
                "that writes. gh asks for each value.",
                (
                    *loop,
                    f"  for secret in {' '.join(secrets)}; do",
                    f"    {spell_secret('$secret', '$environment')}",
                    "  done",
                    "done",
                ),
            )
        else:
            why = "Environments of clusters that need no secret: for plans, and for applies."
            yield Task(why, (*loop, "done"))
    yield Task(
        f"Who approves an apply: the reviewers of {' and '.join(answers.names)}, for main only.",
        ("Settings → Environments → Required reviewers, Deployment branches: main",),
    )
    yield Task("The clusters. From now on, requests are planned.", (spell_variable(answers.names),))
    yield Task(
        "A check of the accounts that read. It is green if each cluster answers.",
        ("gh workflow run drift.yml",),
    )
    yield from _list_request(begun, "gh pr create --fill")
    yield Task(
        f"Only what was reviewed reaches main: requests, code owners, the check {CHECK_NAME}, and "
        "branches that are up to date.",
        ("Settings → Branches → Add rule for main",),
    )
    if answers.rebalanced:
        app_id, key = (spell_secret(secret, REQUESTS) for secret in APP_SECRETS)
        yield Task(
            f"{_OPTIONAL} An app opens them: "
            f"{spell_page('how-to/open-rebalance-requests', 'set-it-up-on-github')}",
            (
                spell_environment(REQUESTS),
                f"Settings → Environments → {REQUESTS} → Deployment branches: main",
                app_id,
                f"{key} < app.private-key.pem",
                spell_variable(answers.rebalanced, MOVES_VARIABLE),
                spell_variable(answers.rebalanced, REBALANCE_VARIABLE),
            ),
        )


def _list_gitlab(answers: Answers, begun: Begun) -> Iterator[Task]:
    if begun.pipeline_kept:
        why = "The jobs, in the pipeline that you have: its stages, and this include."
        yield Task(why, ("include: [{local: .gitlab/reconciler.yml}]",))
    yield _list_commit(begun, "The jobs, on main. Leave the jobs apply of this pipeline alone.")
    for name, secrets in answers.environments.items():
        account = "that writes; protect both" if name in answers.names else "that reads"
        if secrets:
            commands = tuple(f"glab variable set {secret} --scope {name}" for secret in secrets)
            yield Task(f"The account {account}, for the environment {name}.", commands)
    yield Task(
        "A project access token with role Reporter and scope api, to write notes.",
        tuple(f"glab variable set {TOKEN} --scope '{name}*' --masked" for name in answers.names),
    )
    yield Task(
        "A check every night. Run it once: its jobs are green if each cluster answers.",
        ("glab schedule create --cron '17 3 * * *' --ref main --description drift",),
    )
    yield Task(
        f"Who approves an apply: the approvers of {' and '.join(answers.names)}.",
        ("Settings → CI/CD → Protected environments",),
    )
    yield from _list_request(begun, "glab mr create --fill")
    yield Task(
        "Only what was reviewed reaches main: nobody pushes, requests need an approval and a "
        "pipeline that succeeded.",
        ("Settings → Repository → Protected branches; Settings → Merge requests",),
    )
    if answers.rebalanced:
        yield Task(
            f"{_OPTIONAL} A project access token with role Developer and scope api opens them.",
            (
                spell_request_token(),
                f"write moves: true and rebalance: true into {GITLAB_INCLUDES}, as inputs of "
                + ", ".join(answers.rebalanced),
            ),
        )
