"""What a code host has for a repository: environments, names of secrets, variables, protection.

It only reads, and never a value of a secret: neither host shows one. What the token may not read is
None, not missing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

from reconciler.codehost.github import open_github
from reconciler.codehost.rest import Rest
from reconciler.errors import CodeHostError
from reconciler.scaffold.answers import REQUEST_TOKEN, REQUESTS, SECRETS
from reconciler.scaffold.checks import EnvironmentSetup, HostSetup
from reconciler.scaffold.tasks import MOVES_VARIABLE, REBALANCE_VARIABLE, TOKEN, VARIABLE

T = TypeVar("T")

NIGHT = "drift.yml"


def read_github_setup(
    base: str,
    repository: str,
    token: str,
    branch: str = "main",
    wait: Callable[[float], None] = time.sleep,
) -> HostSetup:
    """Read what a repository on GitHub has. Errors: CodeHostError if it cannot be read at all."""
    rest = open_github(base, token, wait)
    place = f"repos/{repository}"
    rest.send("GET", place)

    def look(path: str) -> Any:
        return _try(lambda: rest.send("GET", f"{place}/{path}"))

    def list_clusters(name: str) -> tuple[str, ...] | None:
        return None if variables is None else _read_clusters(variables["variables"], name)

    found = look("environments?per_page=100")
    environments: dict[str, EnvironmentSetup] | None = None
    if found is not None:
        environments = {}
        for item in found["environments"]:
            path = f"environments/{quote(item['name'], safe='')}"
            secrets = look(f"{path}/secrets?per_page=100")
            environments[item["name"]] = EnvironmentSetup(
                secrets=_names(secrets["secrets"], "name") if secrets else None,
                asks="required_reviewers" in {r["type"] for r in item.get("protection_rules", ())},
                main_only=_keeps_to(
                    item, branch, partial(look, f"{path}/deployment-branch-policies")
                ),
            )
    variables = look("actions/variables?per_page=30")
    runs = look(f"actions/workflows/{NIGHT}/runs?per_page=1&status=completed")
    known = look(f"branches/{quote(branch, safe='')}")
    rules = look(f"rules/branches/{quote(branch, safe='')}")
    protected = required = None
    if known is not None:
        protected = bool(known["protected"]) or bool(rules)
        checks = known.get("protection", {}).get("required_status_checks", {}).get("contexts", ())
        required = frozenset(checks) | _list_required(rules or ())
    return HostSetup(
        environments=environments,
        clusters=list_clusters(VARIABLE),
        moved=list_clusters(MOVES_VARIABLE),
        rebalanced=list_clusters(REBALANCE_VARIABLE),
        green=None if runs is None else _is_green(runs["workflow_runs"]),
        protected=protected,
        required=required,
    )


def read_gitlab_setup(
    base: str,
    project: str,
    token: str,
    names: Iterable[str],
    branch: str = "main",
    wait: Callable[[float], None] = time.sleep,
) -> HostSetup:
    """Read what a project on GitLab has for these environments. Errors: as `read_github_setup`."""
    rest = Rest(base, {"PRIVATE-TOKEN": token}, {"User-Agent": "reconciler"}, wait)
    place = f"projects/{quote(project, safe='')}"
    rest.send("GET", place)

    def look(path: str) -> list[dict[str, Any]] | None:
        return _try(lambda: list(rest.list(f"{place}/{path}")))

    variables = look("variables")
    asking = look("protected_environments")
    environments: dict[str, EnvironmentSetup] | None = None
    has_token = has_request_token = None
    if variables is not None:
        environments = {}
        has_token = any(item["key"] == TOKEN for item in variables)
        has_request_token = any(
            item["key"] == REQUEST_TOKEN and fnmatchcase(REQUESTS, item["environment_scope"])
            for item in variables
        )
        for name in names:
            scoped = [v for v in variables if fnmatchcase(name, v.get("environment_scope", "*"))]
            secrets = _names(scoped, "key") & set(SECRETS)
            asks = None if asking is None else name in _names(asking, "name")
            environments[name] = EnvironmentSetup(frozenset(secrets), asks)
    schedules = look("pipeline_schedules")
    branches = look("protected_branches")
    return HostSetup(
        environments=environments,
        scheduled=None if schedules is None else any(item.get("active") for item in schedules),
        has_token=has_token,
        has_request_token=has_request_token,
        protected=None if branches is None else branch in _names(branches, "name"),
    )


def _try(ask: Callable[[], T]) -> T | None:
    """Ask the host; None if the token may not, or if what is asked about is not there."""
    try:
        return ask()
    except CodeHostError as error:
        if error.findings[0].rule != "code-host-access":
            raise
        return None


def _names(items: Iterable[Mapping[str, Any]], key: str) -> frozenset[str]:
    return frozenset(str(item[key]) for item in items)


def _keeps_to(item: Mapping[str, Any], branch: str, look: Callable[[], Any]) -> bool | None:
    """Return whether only a branch may use an environment, None if that cannot be seen."""
    policy = item.get("deployment_branch_policy")
    if not policy:
        return False
    if policy.get("protected_branches"):
        return True
    listed = look()
    return None if listed is None else _names(listed["branch_policies"], "name") == {branch}


def _list_required(rules: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset(
        check["context"]
        for rule in rules
        if rule["type"] == "required_status_checks"
        for check in rule["parameters"]["required_status_checks"]
    )


def _read_clusters(variables: Iterable[Mapping[str, Any]], name: str) -> tuple[str, ...]:
    value = next((item["value"] for item in variables if item["name"] == name), "[]")
    try:
        listed = json.loads(value)
    except ValueError:
        return ()
    return tuple(map(str, listed)) if isinstance(listed, list) else ()


def _is_green(runs: Iterable[Mapping[str, Any]]) -> bool:
    return next((run["conclusion"] == "success" for run in runs), False)
