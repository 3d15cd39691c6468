"""What a command loads: imports are most of the time of a first answer.

The lists name modules, not times, so that a busy machine fails nothing.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ESTATE = Path(__file__).parents[3] / "topics"
CLIENTS = {"confluent_kafka", "kafka", "pyspark", "cel_expr_python", "ruamel"}
SLOW = CLIENTS | {"rich", "deepdiff", "numpy", "pandas", "xml.etree"}
STAGES = {f"reconciler.{stage}" for stage in ("adopt", "apply", "kafka", "rehearse", "simulate")}
UNUSED_IN_VALIDATE = STAGES | {
    "reconciler.diff",
    "reconciler.placement",
    "reconciler.changes",
    "reconciler.moves",
    "reconciler.planfile",
    "reconciler.show",
    "reconciler.model.outcomes",
    "reconciler.model.plan",
    "reconciler.model.steps",
    "reconciler.policy.expressions",
    "reconciler.spec.json_schema",
}
SNAPSHOT = {"brokers": [{"id": 1}], "topics": [{"name": "a", "partitions": [[1]]}]}


def list_loaded(directory: Path, *arguments: str) -> set[str]:
    """Run the command as its script does. Returns what it loaded: modules, and their packages."""
    program = (
        "import atexit, sys\n"
        "atexit.register(lambda: print(*sys.modules, file=open('loaded', 'w')))\n"
        "from reconciler.cli import main\n"
        f"main({list(arguments)!r})\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return set((directory / "loaded").read_text().split())


def test_help_loads_click_alone(tmp_path: Path) -> None:
    loaded = list_loaded(tmp_path, "--help")
    assert loaded & (SLOW | {"pydantic", "pydantic_core", "yaml", "json", "socket"}) == set()
    own = {name for name in loaded if name.startswith("reconciler.")}
    assert own == {
        "reconciler.cli",
        "reconciler.cli.app",
        "reconciler.cli.groups",
        "reconciler.cli.terminal",
        "reconciler.errors",
        "reconciler.rulebook",
        "reconciler.styling",
    }


def test_validate_loads_no_client_and_no_later_stage(tmp_path: Path) -> None:
    loaded = list_loaded(tmp_path, "validate", str(ESTATE))
    assert "yamlcore" in loaded
    assert loaded & (SLOW | UNUSED_IN_VALIDATE | {"pydantic", "pydantic_core"}) == set()


@pytest.mark.parametrize("partitions", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_plan_loads_only_what_shows_its_changes(tmp_path: Path, partitions: int) -> None:
    (tmp_path / "topics").mkdir()
    clusters = "version: 1\nclusters: {prod: {kafka_version: '4.1'}}\n"
    (tmp_path / "topics" / "clusters.yaml").write_text(clusters)
    spec = f"topic: a\npartitions: {partitions}\nacknowledge: [ordering]\n"
    (tmp_path / "topics" / "a.yaml").write_text(spec)
    (tmp_path / "s.json").write_text(json.dumps(SNAPSHOT))
    loaded = list_loaded(tmp_path, "plan", "--cluster", "prod", "--against", "s.json")
    assert loaded & (SLOW | STAGES) == ({"deepdiff"} if partitions == 2 else set())


@pytest.mark.parametrize("kind", ["topics", pytest.param("brokers", marks=pytest.mark.slow)])
def test_get_loads_no_plan_and_no_document(tmp_path: Path, kind: str) -> None:
    (tmp_path / "s.json").write_text(json.dumps(SNAPSHOT))
    loaded = list_loaded(tmp_path, "get", kind, "--against", "s.json")
    unused = UNUSED_IN_VALIDATE - {"reconciler.diff", "reconciler.planfile", "reconciler.show"}
    unused -= {"reconciler.placement"}
    assert loaded & (SLOW | unused) == set()
    assert "reconciler.planfile.inventory_documents" not in loaded
