"""A wheel and an sdist of this tree, and environments that have nothing but one of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
CONSTRAINTS = ROOT / ".ci" / "constraints.txt"
OLDEST = (3, 11)
NEWEST = (3, 14)
TIMEOUT_S = 900


class Built(NamedTuple):
    """What a release consists of."""

    wheel: Path
    sdist: Path

    @property
    def version(self) -> str:
        return self.wheel.name.split("-")[1]


def build(source: Path, out: Path, *targets: str) -> None:
    """Build with the tools that are installed here, and download nothing."""
    chosen = [word for target in targets for word in ("--target", target)]
    subprocess.run(
        [sys.executable, "-I", "-m", "hatchling", "build", "--directory", str(out), *chosen],
        cwd=source,
        check=True,
        capture_output=True,
    )


def _runs(program: str, version: tuple[int, int]) -> bool:
    """Tell whether a program is this Python: a shim of pyenv is there also where it runs none."""
    asks = "import sys; print(*sys.version_info[:2])"
    try:
        done = subprocess.run(
            [program, "-I", "-c", asks], check=False, capture_output=True, text=True
        )
    except OSError:
        return False
    return done.stdout.split() == [str(part) for part in version]


@cache
def find_python(version: tuple[int, int]) -> str | None:
    """Return a Python of a version on the PATH, of pyenv or of uv, None if there is none."""
    name = "python{}.{}".format(*version)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    managed = Path.home() / ".local" / "share" / "uv" / "python"
    beside = str(Path(sys.base_prefix) / "bin" / name)
    found = [beside, shutil.which(name)]
    found += map(str, [*pyenv.glob(f"versions/*/bin/{name}"), *managed.glob(f"*/bin/{name}")])
    return next((path for path in found if path and _runs(path, version)), None)


def find_newest() -> str | None:
    """Return the newest Python of this machine, None if that is the oldest that is supported."""
    minors = range(NEWEST[1], OLDEST[1], -1)
    return next(filter(None, (find_python((3, minor)) for minor in minors)), None)


@dataclass(frozen=True)
class Installed:
    """An environment with what was built, and a directory to work in."""

    python: Path
    directory: Path

    def start(self, *words: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment. It has neither this tree nor the tests' Python."""
        kept = ("HOME", "LANG", "TMPDIR", "XDG_CACHE_HOME")
        environment = {name: os.environ[name] for name in kept if name in os.environ}
        environment |= {"PATH": "/usr/bin:/bin", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
        return subprocess.run(
            [self.python.with_name(str(words[0])), *words[1:]],
            cwd=self.directory,
            env=environment | {"XDG_STATE_HOME": str(self.directory / "state")} | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )

    def run(self, *words: str | Path, code: int = 0, **variables: str) -> str:
        """Run reconciler, which must end with a code. Returns what it showed."""
        done = self.start("reconciler", *words, **variables)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr


def install(
    artefact: Path, directory: Path, *, installer: str, python: str, extra: str = ""
) -> Installed:
    """Install what was built, with the tested releases of what it needs, and nothing else."""
    uv, venv = Path(sys.executable).with_name("uv"), directory / "venv"
    environment = os.environ | {
        "PIP_CONSTRAINT": str(CONSTRAINTS),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "UV_CONSTRAINT": str(CONSTRAINTS),
        "UV_BUILD_CONSTRAINT": str(CONSTRAINTS),
    }
    environment.pop("VIRTUAL_ENV", None)

    def run(*words: str | Path) -> None:
        done = subprocess.run(
            words, cwd=directory, env=environment, check=False, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr

    run(uv, "venv", "--quiet", "--python", python, *["--seed"] * (installer == "pip"), venv)
    wanted = f"kafka-reconciler{f'[{extra}]' if extra else ''} @ {artefact.as_uri()}"
    own = venv / "bin" / "python"
    if installer == "pip":
        # Without bytecode, which would take most of the time.
        run(own, "-I", "-m", "pip", "install", "--quiet", "--no-compile", wanted)
    else:
        run(uv, "pip", "install", "--quiet", "--python", own, wanted)
    return Installed(own, directory)
