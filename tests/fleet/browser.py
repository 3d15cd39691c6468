"""A real browser that opens a file and tells what happened: document, console, requests."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((path for path in map(shutil.which, NAMES) if path), None)
ALONE = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)


@dataclass(frozen=True, slots=True)
class Visit:
    """What a browser made of a page: the document after its script, its console, its requests."""

    document: str
    console: tuple[str, ...]
    requests: frozenset[str]


def visit(page: Path, fragment: str = "") -> Visit:
    """Open a page in a browser that reaches no other host."""
    assert CHROMIUM is not None
    log = page.with_suffix(".netlog")
    keep = (f"--user-data-dir={page.parent / 'profile'}", f"--log-net-log={log}")
    command = [CHROMIUM, *ALONE, *keep, "--enable-logging=stderr", "--dump-dom"]
    done = subprocess.run(
        [*command, page.as_uri() + fragment],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    console = (line for line in done.stderr.splitlines() if "CONSOLE" in line)
    return Visit(done.stdout, tuple(console), _list_requests(log))


def _list_requests(log: Path) -> frozenset[str]:
    """Return what the page asked for: a request of the browser's own has no origin."""
    events = json.loads(log.read_text())["events"]
    started = (event.get("params", {}) for event in events)
    asked = (p for p in started if p.get("initiator", "not an origin") != "not an origin")
    return frozenset(params["url"] for params in asked if "url" in params)
