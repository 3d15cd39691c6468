"""What the recipe of the image runs, without an engine: the same commands, in other directories."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from building import ROOT, Built, Installed, find_python

pytestmark = pytest.mark.slow

RECIPE = (ROOT / ".ci" / "Dockerfile").read_text()
LIST = ROOT / ".ci" / "image.txt"
UV = Path(sys.executable).with_name("uv")


def read_install() -> str:
    """Return the command of the recipe's stage that installs."""
    (command,) = re.findall(r"^RUN (uv venv .*?[^\\])$", RECIPE, re.MULTILINE | re.DOTALL)
    return str(command)


def test_the_recipe_installs_a_command_that_has_its_extras(built: Built, tmp_path: Path) -> None:
    (python_name,) = re.findall(r"--python (python3\.\d+) ", RECIPE)
    python = find_python((3, int(python_name.rpartition(".")[2])))
    if python is None:
        pytest.skip(f"there is no {python_name}")
    (tmp_path / "context").mkdir()
    shutil.copy(LIST, tmp_path / "context")
    shutil.copy(built.wheel, tmp_path / "context")
    places = {"/opt/reconciler": tmp_path / "venv", "/context": tmp_path / "context"}
    command = read_install().replace(f"--python {python_name} ", f"--python {python} ")
    for place, ours in places.items():
        command = command.replace(place, str(ours))
    assert str(tmp_path / "venv") in command
    environment = os.environ | {"PATH": f"{UV.parent}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(["/bin/sh", "-ec", command], check=True, env=environment)
    installed = Installed(tmp_path / "venv" / "bin" / "python", tmp_path)
    assert installed.run("--version") == f"reconciler, version {built.version}\n"
    imports = "import aws_msk_iam_sasl_signer, cel_expr_python, prometheus_client"
    done = installed.start("python", "-I", "-c", imports)
    assert done.returncode == 0, done.stderr
    missing = subprocess.run(
        [UV, "pip", "check", "--python", installed.python], check=False, capture_output=True
    )
    assert missing.returncode == 0, missing.stderr


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_every_platform_of_the_image_has_a_wheel_of_everything(
    machine: str, tmp_path: Path
) -> None:
    subprocess.run([UV, "venv", "--quiet", tmp_path / "venv"], check=True)
    pip = (UV, "pip", "install", "--dry-run", "--python", tmp_path / "venv" / "bin" / "python")
    exact = ("--require-hashes", "--no-deps", "--only-binary", ":all:", "--requirement", LIST)
    platform = ("--python-platform", f"{machine}-manylinux_2_28", "--python-version", "3.13")
    done = subprocess.run(
        [*pip, *exact, *platform], check=False, capture_output=True, text=True, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"Would install \d+ packages", done.stderr)
