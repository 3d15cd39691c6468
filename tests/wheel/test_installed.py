"""What was built, installed in clean environments, does what a person asks first.

Wheel and sdist, with pip and with uv, on the oldest Python and on the newest one that is here. Then
each extra alone.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from building import (
    NEWEST,
    OLDEST,
    ROOT,
    TIMEOUT_S,
    Built,
    Installed,
    find_newest,
    find_python,
    install,
)

GOLDEN = ROOT / "tests" / "golden" / "plans"
COMMIT = "1f" * 20
AGAINST = ("plan", "--cluster", "prod", "--against", "prod.json")
LAB = ("--cluster", "lab=127.0.0.1:9092", "--security", "plaintext")


@pytest.fixture
def put(built: Built, tmp_path: Path) -> Callable[..., Installed]:
    """Return how to install one of what was built in a new environment."""

    def put(kind: str, installer: str, age: str, extra: str = "") -> Installed:
        python = find_python(OLDEST) if age == "oldest" else find_newest()
        if python is None:
            wanted = "newer than {}.{}" if age == "newest" else "{}.{}"
            pytest.skip(f"there is no Python {wanted.format(*OLDEST)} up to {NEWEST}")
        artefact: Path = getattr(built, kind)
        return install(artefact, tmp_path, installer=installer, python=python, extra=extra)

    return put


WAYS = [
    pytest.param("wheel", "uv", "oldest", id="wheel-uv-oldest"),
    pytest.param("wheel", "pip", "newest", id="wheel-pip-newest"),
    pytest.param("sdist", "uv", "newest", id="sdist-uv-newest"),
    pytest.param("sdist", "pip", "oldest", id="sdist-pip-oldest"),
    *(
        pytest.param(*way, id="-".join(way), marks=pytest.mark.slow)
        for way in (
            ("wheel", "pip", "oldest"),
            ("wheel", "uv", "newest"),
            ("sdist", "pip", "newest"),
            ("sdist", "uv", "oldest"),
        )
    ),
]


@pytest.mark.parametrize(("kind", "installer", "age"), WAYS)
def test_what_is_installed_starts_a_repository_and_plans(
    put: Callable[..., Installed], built: Built, kind: str, installer: str, age: str
) -> None:
    installed = put(kind, installer, age)
    assert installed.run("--version") == f"reconciler, version {built.version}\n"
    check_repository(installed)
    check_plan(installed)
    check_what_is_missing(installed)


def check_repository(installed: Installed) -> None:
    """`init` writes workflows, schemas and specs, which are valid."""
    source = ("--host", "github", "--source", "shop/reconciler", "--commit", COMMIT)
    installed.run("init", "shop", *LAB, *source)
    shop = installed.directory / "shop"
    workflow = (shop / ".github" / "workflows" / "plan.yml").read_text()
    assert f"uses: shop/reconciler/.github/actions/install@{COMMIT}" in workflow
    assert json.loads((shop / "schemas" / "topic.schema.json").read_text())["properties"]
    assert "all good" in installed.run("validate", "shop/topics")
    sarif = json.loads(installed.run("validate", "shop/topics", "--format", "sarif"))
    driver = sarif["runs"][0]["tool"]["driver"]
    assert driver["informationUri"] == "https://kafka-reconciler.github.io/reconciler/"
    shutil.rmtree(shop)


def lay_out_estate(installed: Installed) -> None:
    """Write an estate and the snapshot of its cluster."""
    topics = installed.directory / "topics"
    shutil.copytree(GOLDEN / "create" / "topics", topics)
    shutil.copy(GOLDEN / "clusters.yaml", topics)
    shutil.copy(GOLDEN / "prod.json", installed.directory)


def check_plan(installed: Installed) -> None:
    """The plan of a snapshot is the one of this tree."""
    lay_out_estate(installed)
    asked = [*AGAINST, "--format", "text"]
    printed, _, _ = (GOLDEN / "create" / "prod.plan.txt").read_text().rpartition("[exit 0]")
    assert f"$ reconciler {' '.join(asked)}\n{installed.run(*asked)}" == printed


def check_what_is_missing(installed: Installed) -> None:
    """Without an extra, a command says what to install, with the tool that installed the rest."""
    said = installed.run("schema", "fleet-plan", code=64)
    (record,) = installed.python.parents[1].glob("lib/*/*/kafka_reconciler-*/INSTALLER")
    command = {"pip": "pip install", "uv": f"uv pip install --python {installed.python}"}
    assert f"pyspark is not installed; {command[record.read_text().strip()]} " in said
    assert "'pyspark<5,>=4.1'" in said


TYPED = """\
import reconciler
reveal_type(reconciler.load_estate("topics"))
reconciler.load_estate(1)
"""


def test_mypy_sees_the_types_of_what_is_installed(put: Callable[..., Installed]) -> None:
    installed = put("wheel", "uv", "oldest")
    (installed.directory / "script.py").write_text(TYPED)
    own = ("--python-executable", installed.python, "--cache-dir", "cache", "--strict")
    done = subprocess.run(
        [sys.executable, "-I", "-m", "mypy", *own, "script.py"],
        cwd=installed.directory,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    revealed, mistake, count = done.stdout.splitlines()
    assert 'Revealed type is "reconciler.spec.' in revealed
    assert "script.py:3: error: Argument 1" in mistake
    assert count.startswith("Found 1 error")


EXTRAS = [
    pytest.param(*way, id="-".join(way), marks=[pytest.mark.slow] * (number > 0))
    for number, way in enumerate(
        [("uv", "newest"), ("pip", "oldest"), ("uv", "oldest"), ("pip", "newest")]
    )
]
"""How an extra is installed: in one way in the gate."""


@pytest.mark.parametrize(("installer", "age"), EXTRAS)
def test_metrics_alone_says_that_a_cluster_cannot_be_read(
    put: Callable[..., Installed], built: Built, installer: str, age: str
) -> None:
    installed = put("wheel", installer, age, "metrics")
    lay_out_estate(installed)
    nobody = ("--bootstrap-servers", "127.0.0.1:1")
    installed.run("plan", "--cluster", "prod", *nobody, "--metrics", "prod.prom", code=1)
    written = (installed.directory / "prod.prom").read_text().splitlines()
    assert f'reconciler_build_info{{version="{built.version}"}} 1.0' in written
    assert 'reconciler_read_success{cluster="prod"} 0.0' in written


@pytest.mark.parametrize(("installer", "age"), EXTRAS)
def test_cel_alone_evaluates_a_policy(
    put: Callable[..., Installed], installer: str, age: str
) -> None:
    installed = put("wheel", installer, age, "cel")
    lay_out_estate(installed)
    with (installed.directory / "topics" / "clusters.yaml").open("a") as file:
        file.write("policy: {rules: {small: {check: spec.partitions <= 1, message: too many}}}\n")
    said = installed.run("validate", code=1)
    assert "breaks the rule small: too many" in said


@pytest.mark.parametrize(("installer", "age"), EXTRAS)
def test_msk_alone_asks_aws_for_credentials(
    put: Callable[..., Installed], installer: str, age: str
) -> None:
    installed = put("wheel", installer, age, "msk")
    iam = "security.protocol: SASL_SSL, sasl.mechanism: AWS_MSK_IAM, aws.region: eu-west-1"
    client = f"{{bootstrap.servers: 'b-1.example:9098', {iam}, aws.profile: nobody}}"
    topics = installed.directory / "topics"
    topics.mkdir()
    (topics / "clusters.yaml").write_text(f"version: 1\nclusters: {{lab: {{client: {client}}}}}\n")
    said = installed.run("plan", "--cluster", "lab", code=1)
    assert "aws.profile nobody is not in the AWS files of this machine" in said


@pytest.mark.parametrize(("installer", "age"), EXTRAS)
def test_sandbox_alone_runs_brokers(
    put: Callable[..., Installed], installer: str, age: str
) -> None:
    """What a person types first: to a repository, brokers, a plan, and topics."""
    installed = put("wheel", installer, age, "sandbox")
    installed.run("init", "shop", "--host", "none")
    cluster = ("shop/topics", "--cluster", "sandbox")
    installed.run("sandbox", "up", "--brokers", "3")
    try:
        assert "1 to create" in installed.run("plan", *cluster)
        assert "Applied: 1 done" in installed.run("apply", *cluster, "--auto-approve")
        assert "No changes." in installed.run("plan", *cluster)
    finally:
        installed.run("sandbox", "down")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("installer", "age"),
    [("uv", "newest"), ("pip", "oldest"), ("uv", "oldest"), ("pip", "newest")],
)
def test_fleet_alone_plans_a_fleet_and_writes_its_page(
    put: Callable[..., Installed], installer: str, age: str
) -> None:
    installed = put("wheel", installer, age, "fleet")
    lake = ("--lake", "lake", "--master", "local[2]")
    size = ("--clusters", "2", "--topics", "40", "--partitions", "200")
    installed.run("fleet", "generate", *lake, *size, "--estate", "estate")
    installed.run("fleet", "plan", "estate", *lake)
    installed.run("fleet", "page", *lake, "--out", "fleet.html")
    page = (installed.directory / "fleet.html").read_text()
    assert page.lstrip().startswith("<!doctype html>")
    assert "<script" in page
