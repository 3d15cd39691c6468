"""What a code host has for a repository, and what of it is missing or cannot be seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from code_host import TOKEN, serve
from code_hosts import GitHubHost, GitLabHost

from reconciler.codehost.setup import read_github_setup, read_gitlab_setup
from reconciler.errors import CodeHostError
from reconciler.scaffold.answers import Answers, ClusterAnswer, Host
from reconciler.scaffold.checks import HostSetup, Seen, check_host
from reconciler.scaffold.tasks import Begun, list_tasks

ANSWERS = Answers((ClusterAnswer("prod", "a:1"),), (("prod",),), Host.GITHUB)
BOTH = ["KAFKA_USER", "KAFKA_PASSWORD"]


@pytest.fixture
def github() -> Iterator[GitHubHost]:
    with serve(GitHubHost()) as host:
        yield host


@pytest.fixture
def gitlab() -> Iterator[GitLabHost]:
    with serve(GitLabHost()) as host:
        yield host


def read(host: GitHubHost | GitLabHost, token: str = TOKEN) -> HostSetup:
    if isinstance(host, GitHubHost):
        return read_github_setup(host.url, "shop/topics", token, wait=lambda _: None)
    names = tuple(ANSWERS.environments)
    return read_gitlab_setup(host.url, "1217", token, names, wait=lambda _: None)


def judge(host: GitHubHost | GitLabHost) -> dict[str, tuple[Seen, str]]:
    kind = Host.GITHUB if isinstance(host, GitHubHost) else Host.GITLAB
    checks = check_host(read(host), replace(ANSWERS, host=kind))
    return {check.what: (check.seen, check.do) for check in checks}


def set_up(host: GitHubHost) -> None:
    host.setup = {
        "environments": {"prod-plan": [], "prod": ["required_reviewers", "branch_policy"]},
        "secrets": {"prod-plan": BOTH, "prod": BOTH},
        "branches": {"prod": ["main"]},
        "variables": {"RECONCILER_CLUSTERS": '["prod"]'},
        "night": "success",
        "required": ["planned"],
    }


def test_a_repository_without_any_set_up_misses_all_of_it(github: GitHubHost) -> None:
    found = judge(github)
    assert {seen for seen, _ in found.values()} == {Seen.MISSING}
    assert all(do for _, do in found.values())
    assert found["environment prod-plan"][1] == (
        'gh api --silent -X PUT "repos/{owner}/{repo}/environments/prod-plan"'
    )


def test_a_complete_set_up_is_ok(github: GitHubHost) -> None:
    set_up(github)
    assert {seen for seen, _ in judge(github).values()} == {Seen.OK}


@pytest.mark.parametrize(
    ("key", "value", "what", "do"),
    [
        ("secrets", {"prod-plan": BOTH[:1], "prod": BOTH}, "environment prod-plan",
         "gh secret set KAFKA_PASSWORD --env prod-plan"),
        ("variables", {"RECONCILER_CLUSTERS": '["staging"]'}, "variable RECONCILER_CLUSTERS",
         "gh variable set RECONCILER_CLUSTERS --body '[\"prod\"]'"),
        ("variables", {"RECONCILER_CLUSTERS": "prod"}, "variable RECONCILER_CLUSTERS",
         "gh variable set RECONCILER_CLUSTERS --body '[\"prod\"]'"),
        ("environments", {"prod-plan": [], "prod": []}, "prod asks reviewers",
         "Settings → Environments"),
        ("branches", {"prod": ["main", "*"]}, "prod is for main only", "Settings → Environments"),
        ("night", "failure", "drift is green", "gh workflow run drift.yml"),
        ("required", ["build"], "main is protected", "Settings → Branches"),
    ],
)  # fmt: skip
def test_one_thing_less_is_named_with_the_way_to_do_it(
    key: str, value: object, what: str, do: str, github: GitHubHost
) -> None:
    set_up(github)
    github.setup[key] = value
    missing = {name: do for name, (seen, do) in judge(github).items() if seen is Seen.MISSING}
    assert missing[what] == do
    assert len(missing) == (2 if key == "environments" else 1)


@pytest.mark.parametrize("hidden", ["secrets", "variables", "night"])
def test_what_the_token_may_not_read_is_not_missing(hidden: str, github: GitHubHost) -> None:
    set_up(github)
    github.setup[hidden] = None
    seen = {seen for seen, _ in judge(github).values()}
    assert seen == {Seen.OK, Seen.UNSEEN}


def test_a_token_that_is_not_valid_is_an_error(github: GitHubHost, gitlab: GitLabHost) -> None:
    for host in (github, gitlab):
        with pytest.raises(CodeHostError, match="code-host-access"):
            read(host, "another")


def test_a_project_on_gitlab_has_its_accounts_in_variables_of_environments(
    gitlab: GitLabHost,
) -> None:
    assert {seen for seen, _ in judge(gitlab).values()} == {Seen.MISSING}
    scoped = dict.fromkeys(("prod-plan", "prod"), BOTH) | {"prod*": ["RECONCILER_TOKEN"]}
    gitlab.setup = {"variables": scoped, "asking": ["prod"], "night": True, "protected": ["main"]}
    found = judge(gitlab)
    assert {seen for seen, _ in found.values()} == {Seen.OK}
    gitlab.setup["variables"] = scoped | {"prod": BOTH[:1]}
    assert judge(gitlab)["environment prod"] == (
        Seen.MISSING,
        "glab variable set KAFKA_PASSWORD --scope prod",
    )


def test_a_cluster_without_sasl_needs_no_secret(github: GitHubHost, gitlab: GitLabHost) -> None:
    own = ClusterAnswer("prod", "a:1", written={"bootstrap.servers": "a:1"})
    set_up(github)
    github.setup["secrets"] = {"prod-plan": [], "prod": []}
    asking = {"variables": {"prod*": ["RECONCILER_TOKEN"]}, "asking": ["prod"]}
    gitlab.setup = {**asking, "night": True, "protected": ["main"]}
    for host, kind in ((github, Host.GITHUB), (gitlab, Host.GITLAB)):
        assert Seen.MISSING in {seen for seen, _ in judge(host).values()}
        checks = check_host(read(host), replace(ANSWERS, clusters=(own,), host=kind))
        assert {check.seen for check in checks} == {Seen.OK}


def test_each_environment_has_the_secrets_that_its_cluster_reads() -> None:
    clusters = (
        ClusterAnswer("lab", "a:1", written={"security.protocol": "ssl"}),
        ClusterAnswer("dev", "a:1", written={"sasl.password": "${env:KAFKA_PASSWORD}"}),
        ClusterAnswer("prod", "a:1"),
    )
    answers = Answers(clusters, (("lab", "dev"), ("prod",)), Host.GITHUB)
    assert answers.environments == {
        "lab-plan": (), "lab": (), "dev-plan": ("KAFKA_PASSWORD",), "dev": ("KAFKA_PASSWORD",),
        "prod-plan": tuple(BOTH), "prod": tuple(BOTH),
    }  # fmt: skip
    tasks = list_tasks(answers, Begun(has_git=True, has_owners=True, example=False))
    loops = [task.commands for task in tasks if task.commands[0].startswith("for environment in")]
    assert [loop[0] for loop in loops] == [
        "for environment in prod-plan prod; do",
        "for environment in dev-plan dev; do",
        "for environment in lab-plan lab; do",
    ]
    assert not any("secret" in line for line in loops[-1])


REBALANCED = replace(ANSWERS, rebalanced=("prod",))


def test_requests_that_open_by_themselves_are_optional_where_a_rebalance_is_allowed(
    github: GitHubHost, gitlab: GitLabHost
) -> None:
    set_up(github)
    scoped = {"prod-plan": BOTH, "prod": BOTH, "prod*": ["RECONCILER_TOKEN"]}
    gitlab.setup = {"variables": scoped, "asking": ["prod"], "night": True, "protected": ["main"]}
    for host, kind, what, do in (
        (github, Host.GITHUB, "variable RECONCILER_REBALANCE",
         "gh variable set RECONCILER_REBALANCE --body '[\"prod\"]'"),
        (gitlab, Host.GITLAB, "variable RECONCILER_REQUEST_TOKEN",
         "glab variable set RECONCILER_REQUEST_TOKEN --scope reconciler-requests --masked "
         "--protected"),
    ):  # fmt: skip
        assert {check.seen for check in check_host(read(host), replace(ANSWERS, host=kind))} == {
            Seen.OK
        }
        *others, last = check_host(read(host), replace(REBALANCED, host=kind))
        assert {check.seen for check in others} == {Seen.OK}
        assert (last.what, last.seen, last.do) == (what, Seen.OPTIONAL, do)
    gitlab.setup["variables"]["reconciler-requests"] = ["RECONCILER_REQUEST_TOKEN"]
    checks = check_host(read(gitlab), replace(REBALANCED, host=Host.GITLAB))
    assert {check.seen for check in checks} == {Seen.OK}


def test_requests_that_open_by_themselves_need_moves_an_app_and_an_own_environment(
    github: GitHubHost,
) -> None:
    set_up(github)
    setup = github.setup
    setup["variables"]["RECONCILER_REBALANCE"] = '["prod"]'
    missing = {c.what: c.do for c in check_host(read(github), REBALANCED) if c.seen != Seen.OK}
    assert missing == {
        "variable RECONCILER_MOVES": "gh variable set RECONCILER_MOVES --body '[\"prod\"]'",
        "environment reconciler-requests":
            'gh api --silent -X PUT "repos/{owner}/{repo}/environments/reconciler-requests"',
    }  # fmt: skip
    setup["variables"]["RECONCILER_MOVES"] = '["prod"]'
    setup["environments"]["reconciler-requests"] = []
    setup["secrets"]["reconciler-requests"] = ["RECONCILER_APP_ID"]
    missing = {c.what: c.do for c in check_host(read(github), REBALANCED) if c.seen != Seen.OK}
    assert missing == {
        "environment reconciler-requests":
            "gh secret set RECONCILER_APP_KEY --env reconciler-requests",
        "reconciler-requests is for main only": "Settings → Environments",
    }  # fmt: skip
    setup["environments"]["reconciler-requests"] = ["branch_policy"]
    setup["branches"]["reconciler-requests"] = ["main"]
    setup["secrets"]["reconciler-requests"] = ["RECONCILER_APP_ID", "RECONCILER_APP_KEY"]
    assert {check.seen for check in check_host(read(github), REBALANCED)} == {Seen.OK}


def test_of_a_project_on_gitlab_only_a_maintainer_sees_variables(gitlab: GitLabHost) -> None:
    gitlab.setup = {"variables": None, "asking": None, "night": True, "protected": ["main"]}
    found = judge(gitlab)
    assert found["environment prod"][0] is Seen.UNSEEN
    assert found["variable RECONCILER_TOKEN"][0] is Seen.UNSEEN
    assert found["main is protected"][0] is Seen.OK
