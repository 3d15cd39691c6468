"""Add a built site to a checkout of the branch gh-pages: a directory for each version.

python3 .ci/publish_site.py SITE PAGES VERSION, where VERSION is `dev` or a release such as 1.2.0.

`latest` is a copy of the newest release, or of `dev` before the first one, so addresses of it stay.
versions.json is what the menu of versions on each page reads; its form is that of mike.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

DEV = "dev"
LATEST = "latest"
RELEASE = re.compile(r"\d+\.\d+\.\d+")
ENTRY = f"""\
<!doctype html>
<meta charset="utf-8">
<title>reconciler</title>
<meta http-equiv="refresh" content="0; url={LATEST}/">
<a href="{LATEST}/">reconciler</a>
"""


def publish(site: Path, pages: Path, version: str) -> None:
    """Add or replace a version. Errors: SystemExit if the version is neither dev nor a release."""
    if version != DEV and not RELEASE.fullmatch(version):
        raise SystemExit(f"{version} is no version: use {DEV}, or three numbers such as 1.2.0")
    _copy(site, pages / version)
    releases = sorted(
        (path.name for path in pages.iterdir() if RELEASE.fullmatch(path.name)),
        key=lambda name: [int(number) for number in name.split(".")],
        reverse=True,
    )
    newest = releases[0] if releases else DEV
    _copy(pages / newest, pages / LATEST)
    shown = [*releases, *([DEV] if (pages / DEV).is_dir() else [])]
    menu = [
        {"version": name, "title": name, "aliases": [LATEST] if name == newest else []}
        for name in shown
    ]
    (pages / "versions.json").write_text(json.dumps(menu, indent=2) + "\n", encoding="utf-8")
    (pages / "index.html").write_text(ENTRY, encoding="utf-8")
    # Without it, GitHub leaves out directories whose name begins with _.
    (pages / ".nojekyll").touch()


def _copy(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    publish(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
