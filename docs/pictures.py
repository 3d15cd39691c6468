"""Draw the pictures of docs/images: terminals as SVG, comments and the fleet's page as PNG.

make pictures                     draws all of them
python docs/pictures.py plan      draws those of these names

Terminals show commands on a real sandbox, which is started here and ended. Chromium renders
comments with GitHub's stylesheet, which npm installs, and the page of a fleet. Look at each picture
before you commit it.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path

import demo
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from markdown_it import MarkdownIt
from pictured import (
    APPLY,
    COMMENTS,
    IMAGES,
    RECORDED,
    ROOT,
    SHOWN,
    TERMINALS,
    TEXTS,
    copy_estate,
    hash_text,
    read_shown,
    run,
)
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from reconciler.sandbox.cluster import Cluster, start_cluster
from reconciler.sandbox.record import own_sandbox, write_record
from reconciler.sandbox.request import EngineName, spread_brokers
from reconciler.sandbox.supervisor import describe_sandbox

STYLESHEET = "github-markdown-css@5.9.0"
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
WIDTHS = {"comment": 1080, "fleet": 1280}
FLEET_HEIGHT = 2000
OPENED = {"plan-comment": ("Details of 11 topics", "<code>payments.captured</code>")}
"""Parts of a comment that are folded, and that the picture shows as a reader opens them."""

LIGHT = TerminalTheme(
    (255, 255, 255),
    (31, 35, 40),
    [(36, 41, 47), (207, 34, 46), (17, 99, 41), (122, 78, 0), (9, 105, 218), (130, 80, 223),
     (27, 124, 131), (89, 99, 110)],
    [(89, 99, 110), (164, 14, 38), (26, 127, 55), (99, 60, 1), (33, 139, 255), (164, 117, 249),
     (49, 146, 170), (31, 35, 40)],
)  # fmt: skip
DARK = TerminalTheme(
    (13, 17, 23),
    (230, 237, 243),
    [(72, 79, 88), (255, 123, 114), (63, 185, 80), (210, 153, 34), (88, 166, 255), (188, 140, 255),
     (57, 197, 207), (177, 186, 196)],
    [(110, 118, 129), (255, 161, 152), (86, 211, 100), (227, 179, 65), (121, 192, 255),
     (210, 168, 255), (86, 212, 221), (240, 246, 252)],
)  # fmt: skip

DIRECTORIES = Path(tempfile.gettempdir()) / "kafka"
"""Where the brokers keep their logs: a plan of moves shows the path, so it is short."""

LEAST_COLUMNS = 100
SCALE = 0.6
"""The size of a picture in a page, in relation to its own units: letters have 12 pixels."""

# Rich's own template loads a font from another host, and draws the buttons of a window.
SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {own_width} {own_height}" \
width="{shown_width}" height="{shown_height}">
<title>{says}</title>
<style>
.{unique_id}-matrix {{
  font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px;
  line-height: {line_height}px;
}}
{styles}
</style>
<defs>
{lines}
</defs>
<rect x="1" y="1" width="{inner_width}" height="{inner_height}" rx="8" fill="{ground}" \
stroke="{edge}" stroke-width="2"/>
<g transform="translate(12, 8)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def main(names: Sequence[str]) -> None:
    """Draw the pictures of these names, or all."""
    wanted = set(names) or {*TEXTS, "apply", "fleet-page"}
    if unknown := wanted - {*TEXTS, "apply", "fleet-page"}:
        raise SystemExit(f"no picture is named {', '.join(sorted(unknown))}")
    RECORDED.mkdir(exist_ok=True)
    if wanted & {*TERMINALS, "apply"}:
        draw_terminals(wanted)
    browser = next(filter(None, map(shutil.which, CHROMIUMS)), None)
    pictures = wanted & {*COMMENTS, "fleet-page"}
    if pictures and browser is None:
        print(f"chromium is not on the PATH; not drawn: {', '.join(sorted(pictures))}")
    elif pictures and browser:
        draw_pages(pictures, browser)
    drawn = wanted & set(TEXTS) - (set() if browser else set(COMMENTS))
    _keep_hashes(drawn)


def _keep_hashes(names: set[str]) -> None:
    """Write down what the pictures show, so that a test finds those that are older."""
    shown = dict(read_shown()) if SHOWN.exists() else {}
    for name in names:
        with tempfile.TemporaryDirectory() as directory:
            shown[name] = hash_text(TEXTS[name](Path(directory)))
    SHOWN.write_text(json.dumps(dict(sorted(shown.items())), indent=2) + "\n", encoding="utf-8")


def draw_terminals(wanted: set[str]) -> None:
    """Play on a sandbox of six brokers, and draw the commands whose pictures are wanted."""
    with tempfile.TemporaryDirectory(prefix="pictures-") as base:
        directory = Path(base)
        copy_estate(directory)
        os.environ["XDG_STATE_HOME"] = str(directory / "state")

        def draw(name: str, command: str) -> None:
            if name in wanted:
                output = run(directory, *shlex.split(command), colours=True)
                write_terminal(name, f"reconciler {command}", output)

        shape = spread_brokers(6, 3)
        logs = {each.id: {"log.dirs": str(DIRECTORIES / f"data-{each.id}")} for each in shape}
        with (
            _new_directory(DIRECTORIES),
            own_sandbox(),
            start_cluster(shape=shape, isolate=True, broker_properties=logs) as cluster,
        ):
            write_record(describe_sandbox(cluster, EngineName.EMBEDDED, control=""))
            admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
            for made in admin.create_topics(list(demo.HISTORY)).values():
                made.result()
            _record(directory, "history")
            for name in ("plan", "explain", "describe"):
                draw(name, TERMINALS[name].command)
            draw("apply", APPLY)
            _write_records(cluster)
            _record(directory, "uneven")
            draw("rebalance", TERMINALS["rebalance"].command)
            with _without_broker(cluster, 5, directory):
                _record(directory, "broker-down")
                draw("health", TERMINALS["health"].command)


@contextmanager
def _new_directory(directory: Path) -> Iterator[None]:
    """Make a directory for the block."""
    directory.mkdir()
    try:
        yield
    finally:
        shutil.rmtree(directory)


def _record(directory: Path, name: str) -> None:
    """Save a snapshot of the cluster, to which the hashes of pictures belong."""
    out = str(RECORDED / f"{name}.json")
    print(run(directory, "snapshot", "--cluster", "sandbox", "--out", out), end="", flush=True)


def _write_records(cluster: Cluster) -> None:
    """Write to some partitions more than to others, so that brokers hold different bytes."""
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0, "acks": "all"}
    )
    for partition, megabytes in ((0, 40), (3, 30), (6, 24), (10, 12), (1, 6), (2, 6), (5, 4)):
        for _ in range(2 * megabytes):
            producer.produce("orders.events", os.urandom(500_000), partition=partition)
            producer.flush(60)
    time.sleep(5)  # followers report their sizes


@contextmanager
def _without_broker(cluster: Cluster, broker: int, directory: Path) -> Iterator[None]:
    """Stop a broker until the end of the block, and wait until the cluster knows it."""
    cluster.stop_broker(broker)
    for _ in range(60):
        if "dead" in run(directory, "health", "--cluster", "sandbox"):
            break
        time.sleep(1)
    yield
    cluster.start_broker(broker)


def write_terminal(name: str, command: str, output: str) -> None:
    """Write what a command printed as a light and a dark SVG."""
    text = Text.assemble(("$ ", "dim"), (command, "bold"), "\n")
    text.append_text(Text.from_ansi(output.rstrip("\n")))
    rows = text.split("\n", allow_blank=True)
    columns = max(LEAST_COLUMNS, *(row.cell_len for row in rows))
    width, height = round(12.2 * columns) + 24, round(24.4 * len(rows)) + 20
    sizes = {"own_width": width, "own_height": height}
    sizes |= {"inner_width": width - 2, "inner_height": height - 2}
    sizes |= {"shown_width": round(SCALE * width), "shown_height": round(SCALE * height)}
    for theme, colours, edge in (("light", LIGHT, "#d1d9e0"), ("dark", DARK, "#3d444d")):
        console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True)
        console.print(text, no_wrap=True, overflow="ignore", crop=False)
        template = SVG
        ground = colours.background_color.hex
        own = {**sizes, "says": escape(command), "ground": ground, "edge": edge}
        for mark, value in own.items():
            template = template.replace(f"{{{mark}}}", str(value))
        drawn = console.export_svg(theme=colours, code_format=template, unique_id=name)
        tidy = "\n".join(line.strip() for line in drawn.splitlines() if line.strip())
        (IMAGES / f"{name}-{theme}.svg").write_text(tidy + "\n", encoding="utf-8")
    print(f"{name}: {columns} columns", flush=True)


def draw_pages(wanted: set[str], browser: str) -> None:
    """Draw comments and the page of a fleet, in light and in dark."""
    with tempfile.TemporaryDirectory(prefix="pictures-") as base:
        for name in sorted(wanted & set(COMMENTS)):
            place = Path(base) / name
            place.mkdir()
            for theme in ("light", "dark"):
                page = Path(base) / f"{name}-{theme}.html"
                page.write_text(render_comment(COMMENTS[name](_empty(place)), theme, name))
                _take_picture(browser, page, IMAGES / f"{name}-{theme}.png", theme, None)
        if "fleet-page" in wanted:
            page = make_fleet_page(Path(base))
            for theme in ("light", "dark"):
                out = IMAGES / f"fleet-page-{theme}.png"
                _take_picture(browser, page, out, theme, FLEET_HEIGHT)


def _empty(directory: Path) -> Path:
    shutil.rmtree(directory)
    directory.mkdir()
    return directory


def render_comment(markdown: str, theme: str, name: str) -> str:
    """Render a comment as GitHub does: its stylesheet, tables, alerts and folded parts."""
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown)
    for kind, colour in (("CAUTION", "caution"), ("WARNING", "warning"), ("NOTE", "note")):
        head = f'<div class="markdown-alert markdown-alert-{colour}">'
        head += f'<p class="markdown-alert-title">{kind.capitalize()}</p>'
        parts = html.split(f"<blockquote>\n<p>[!{kind}]")
        html = parts[0]
        for part in parts[1:]:
            inside, _, rest = part.partition("</blockquote>")
            html += f"{head}<p>{inside}</div>{rest}"
    for opened in OPENED.get(name, ()):
        html = html.replace(f"<details><summary>{opened}", f"<details open><summary>{opened}")
    html = html.replace("<p></p>", "").replace("<p>\n", "<p>")
    style = (_find_stylesheet() / f"github-markdown-{theme}.css").read_text()
    room = "body { margin: 0 } .markdown-body { padding: 24px; min-height: 0 }"
    return (
        f'<!doctype html><meta charset="utf-8"><style>{style}{room}</style>'
        f'<body><article class="markdown-body">{html}</article>'
    )


def _find_stylesheet() -> Path:
    """Return the directory of GitHub's stylesheet; npm installs it once, below build/."""
    build = ROOT / "build" / "pictures"
    found = build / "node_modules" / "github-markdown-css"
    if not found.exists():
        if (npm := shutil.which("npm")) is None:
            raise SystemExit(f"npm is not on the PATH; it installs {STYLESHEET}")
        build.mkdir(parents=True, exist_ok=True)
        subprocess.run([npm, "install", "--silent", "--prefix", build, STYLESHEET], check=True)
    return found


def make_fleet_page(directory: Path) -> Path:
    """Return the page of a generated fleet of twelve clusters, with its plans and its audit."""
    lake = ("--lake", "lake")
    made = "fleet generate --clusters 12 --topics 1200 --partitions 12000 --seed 1 --estate specs"
    run_fleet(directory, *shlex.split(made), "--collection", "20261121T030000Z", *lake)
    run_fleet(directory, "fleet", "plan", "specs", *lake)
    run_fleet(directory, "fleet", "audit", "specs", *lake)
    run_fleet(directory, "fleet", "history", *lake)
    run_fleet(directory, "fleet", "page", *lake, "--out", "fleet.html")
    return directory / "fleet.html"


def run_fleet(directory: Path, *words: str) -> None:
    """Run a job of the fleet, and show the end of what it prints."""
    printed = run(directory, *words)
    print(f"{' '.join(words[:2])}: {printed.strip().splitlines()[-1][:100]}", flush=True)


def _take_picture(browser: str, page: Path, out: Path, theme: str, height: int | None) -> None:
    """Take a picture of a page, as high as the page if no height is given."""
    width = WIDTHS["comment" if height is None else "fleet"]
    dark = ["--blink-settings=preferredColorScheme=0", "--force-dark-mode"]
    words = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    words += dark if theme == "dark" and height else []
    if height is None:
        measured = page.with_suffix(".measured.html")
        script = "<script>document.title = document.querySelector('article').offsetHeight</script>"
        measured.write_text(page.read_text() + script)
        asked = [*words, f"--window-size={width},400", "--dump-dom", measured.as_uri()]
        dom = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        height = int(dom.partition("<title>")[2].partition("</title>")[0])
    size = [f"--window-size={width},{height}", f"--screenshot={out}", page.as_uri()]
    subprocess.run([*words, *size], capture_output=True, check=True)
    print(f"{out.name}: {width} × {height}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
