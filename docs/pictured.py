"""What the pictures of docs/images show, made again from recorded input, without a broker.

`make pictures` draws the pictures, and keeps a hash of each of these texts in images/shown.json.
A test makes the texts again: if one differs, the picture is older than what it shows.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
RECORDED = IMAGES / "recorded"
SHOWN = IMAGES / "shown.json"
WIDTH = 100


class Terminal(NamedTuple):
    """A command whose output is a picture, and the snapshot to which its hash belongs."""

    command: str
    snapshot: str


TERMINALS: Mapping[str, Terminal] = MappingProxyType(
    {
        "plan": Terminal(
            "plan --cluster sandbox --topic 'payments.*' --topic orders.events", "history"
        ),
        "explain": Terminal(
            "plan --cluster sandbox --topic payments.captured --explain payments.captured",
            "history",
        ),
        "describe": Terminal("describe topic orders.events --cluster sandbox", "history"),
        "health": Terminal("health --cluster sandbox", "broker-down"),
        "rebalance": Terminal("rebalance --cluster sandbox --by disk --within 20%", "uneven"),
    }
)
APPLY = "apply --cluster sandbox --topic 'payments.*' --auto-approve"
"""Also a picture. It needs brokers, so nothing compares it."""

SANDBOX = """
  sandbox:
    moves: {allow: [rebalance], rate: 30MiB, keep_free: 0%}
"""


def copy_estate(directory: Path) -> None:
    """Copy the specs of the example, with a cluster `sandbox` that allows a rebalance."""
    shutil.copytree(ROOT / "topics", directory / "topics")
    with (directory / "topics" / "clusters.yaml").open("a") as clusters:
        clusters.write(SANDBOX)
    shop = directory / "topics" / "shop.yaml"
    head, found, tail = shop.read_text().partition("topic: shop.prices\n")
    shop.write_text(head + found + tail.replace("partitions: 6", "partitions: 8", 1))


def run(directory: Path, *words: str, colours: bool = False) -> str:
    """Run reconciler in a directory. Returns: stdout and stderr, as a terminal shows them."""
    variables = {"FORCE_COLOR": "1"} if colours else {"NO_COLOR": "1"}
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RECONCILER_", "GIT"))}
    done = subprocess.run(
        [sys.executable, "-m", "reconciler", *words],
        cwd=directory,
        env={**kept, **variables, "COLUMNS": str(WIDTH), "PYTHONSAFEPATH": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


def _replay(name: str) -> Callable[[Path], str]:
    def replay(directory: Path) -> str:
        copy_estate(directory)
        terminal = TERMINALS[name]
        shutil.copy(RECORDED / f"{terminal.snapshot}.json", directory / "live.json")
        return run(directory, *shlex.split(terminal.command), "--against", "live.json")

    return replay


def _comment_on_example(directory: Path) -> str:
    """Return the comment on the plan of the example, on a cluster with a dead broker."""
    shutil.copytree(ROOT / "topics", directory / "topics")
    shutil.copy(IMAGES / "one-broker-down.json", directory / "live.json")
    plan = ("plan", "--cluster", "prod-eu", "--against", "live.json")
    return run(directory, *plan, "--format", "markdown")


class Topic(NamedTuple):
    """A topic of a made-up estate."""

    name: str
    owner: str
    partitions: int
    retention: str
    lines: str = ""


CLUSTERS = """\
version: 1
defaults:
  replication_factor: 3
  config: {{min.insync.replicas: 2}}
stages: [[dev], [staging], [prod-eu]]
clusters:
  dev: {{}}
  staging: {{}}
  prod-eu:
    guards: {{max_changed: {changed}}}
"""
RETENTION_MS = {"7d": 604_800_000, "12h": 43_200_000}
AT = "2026-11-21T03:00:00+00:00"


def _write_estate(directory: Path, topics: list[Topic], changed: str) -> None:
    (directory / "topics").mkdir(exist_ok=True)
    (directory / "topics" / "clusters.yaml").write_text(CLUSTERS.format(changed=changed))
    for owner in sorted({topic.owner for topic in topics}):
        documents = [
            f"topic: {topic.name}\nowner: {owner}\npartitions: {topic.partitions}\n"
            f"config:\n  retention.ms: {topic.retention}\n{topic.lines}"
            for topic in topics
            if topic.owner == owner
        ]
        file = directory / "topics" / f"{owner.removesuffix('-team')}.yaml"
        file.write_text("---\n".join(documents))


def _write_snapshot(path: Path, topics: list[Topic], brokers: int) -> None:
    """Write a cluster that has topics as their specs say, in rows that are striped over racks."""
    first = iter(range(10**6))
    held = []
    for topic in topics:
        starts = [next(first) for _ in range(topic.partitions)]
        rows = [[(start + n) % brokers + 1 for n in range(3)] for start in starts]
        config = {"min.insync.replicas": "2", "retention.ms": str(RETENTION_MS[topic.retention])}
        held.append({"name": topic.name, "partitions": rows, "config": config})
    nodes = [{"id": n, "rack": f"eu-1{'abc'[n % 3]}"} for n in range(1, brokers + 1)]
    state = {"cluster_id": "5L6g3nShT-eMCtK--X86sw", "brokers": nodes, "topics": held}
    path.write_text(json.dumps(state))


def _git(directory: Path, *words: str) -> None:
    """Run git with a fixed author, date and configuration, so that commits have the same ids."""
    who = {"NAME": "Ana", "EMAIL": "ana@shop.example", "DATE": AT}
    own = {
        f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()
    }
    own |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT")}
    subprocess.run(["git", *words], cwd=directory, env=kept | own, check=True, capture_output=True)


def _comment_on_request(
    directory: Path,
    before: list[Topic],
    after: list[Topic],
    *,
    changed: tuple[str, str] = ("30%", "30%"),
    brokers: int = 6,
) -> str:
    """Return the comment on a request that changes an estate from `before` to `after`."""
    _write_estate(directory, before, changed[0])
    _git(directory, "init", "--quiet", "--initial-branch", "main")
    _git(directory, "add", "topics")
    _git(directory, "commit", "--quiet", "--message", "Specs")
    live = [*before]
    if changed[0] != changed[1]:  # two topics differ from their specs already
        live[-1] = live[-1]._replace(retention="12h")
        live[-2] = live[-2]._replace(retention="12h")
    _write_snapshot(directory / "live.json", live, brokers)
    _write_estate(directory, after, changed[1])
    _git(directory, "checkout", "--quiet", "-b", "request")
    _git(directory, "commit", "--quiet", "--all", "--message", "Change them")
    plan = ("plan", "--cluster", "prod-eu", "--against", "live.json", "--format", "markdown")
    return run(directory, *plan, "--changed-since", "main", "--base", "main")


OWNERS = ("orders-team", "payments-team", "search-team", "web-team")
WHATS = ("created", "changed", "cancelled", "captured", "refunds", "queries", "shipments")
SIZES = (6, 6, 12, 24, 3, 12, 6)


def _list_shop() -> list[Topic]:
    """List the 28 topics of four teams."""
    return [
        Topic(f"{owner.removesuffix('-team')}.{what}", owner, size, "7d")
        for owner in OWNERS
        for what, size in zip(WHATS, SIZES, strict=True)
    ]


def _comment_on_one(directory: Path) -> str:
    shop = _list_shop()
    shop = [t._replace(retention="14d") if t.name == "orders.queries" else t for t in shop]
    return _comment_on_request(directory, _list_shop(), shop)


def _comment_on_twenty(directory: Path) -> str:
    lost, moved = "acknowledge: [data-loss]\n", "acknowledge: [ordering]\n"
    changes = {
        "orders.created": {"retention": "1d", "lines": lost},
        "payments.created": {"retention": "1d", "lines": lost},
        "search.changed": {"retention": "1d", "lines": lost},
        "orders.queries": {"retention": "14d"},
        "payments.queries": {"retention": "14d"},
        "orders.captured": {"partitions": 48, "lines": moved},
        "payments.cancelled": {"partitions": 24, "lines": moved},
        "search.captured": {"partitions": 48, "lines": moved},
        "web.changed": {"partitions": 12, "lines": moved},
        "payments.refunds": {"partitions": 2},
        "search.shipments": {"retention": "12h"},
    }
    new = {
        "orders-team": {"labels": 6, "alerts": 12, "fees": 3},
        "payments-team": {"labels": 12, "exports": 3},
        "search-team": {"parcels": 3, "audits": 6},
        "web-team": {"sessions": 6, "quotes": 12},
    }
    after = [topic._replace(**changes.get(topic.name, {})) for topic in _list_shop()]
    after += [
        Topic(f"{owner.removesuffix('-team')}.{what}", owner, size, "7d")
        for owner, wanted in new.items()
        for what, size in wanted.items()
    ]
    return _comment_on_request(directory, _list_shop(), after, changed=("30%", "80%"))


def _comment_on_many(directory: Path) -> str:
    shop = _list_shop()
    new = [
        Topic(f"{owner.removesuffix('-team')}.{number:03}", owner, size, "7d")
        for owner in OWNERS
        for number, size in enumerate((3, 6, 12, 24) * 50)
    ]
    return _comment_on_request(directory, shop, [*shop, *new])


def _comment_on_thousands(directory: Path) -> str:
    """Return the comment on 1,900 changes and 100 refusals: 900 + 500 + 500, and 100."""
    teams = ("audit", "billing", "mail", "orders", "payments", "search", "shop", "stock")
    topics = [
        Topic(f"{teams[n % 8]}.{WHATS[n // 8 % 7]}-{n:04}", teams[n % 8], (3, 6, 12)[n % 3], "7d")
        for n in range(2000)
    ]
    before = [topic for number, topic in enumerate(topics) if number % 20 >= 9]
    after = [_change(topic, number % 20) for number, topic in enumerate(topics)]
    return _comment_on_request(directory, before, after, changed=("100%", "100%"), brokers=9)


def _change(topic: Topic, kind: int) -> Topic:
    """Change a topic by its number: of 20, 9 are new, 5 expand, 5 are configured, 1 is refused."""
    if 9 <= kind < 14:
        lines = "acknowledge: [ordering]\n"
        return topic._replace(partitions=2 * topic.partitions, lines=lines)
    if 14 <= kind < 19:
        return topic._replace(retention="14d")
    return topic._replace(retention="12h") if kind == 19 else topic


COMMENTS: Mapping[str, Callable[[Path], str]] = MappingProxyType(
    {
        "plan-comment": _comment_on_example,
        "plan-comment-large": _comment_on_thousands,
        "comment-1": _comment_on_one,
        "comment-20": _comment_on_twenty,
        "comment-800": _comment_on_many,
    }
)
TEXTS: Mapping[str, Callable[[Path], str]] = MappingProxyType(
    {name: _replay(name) for name in TERMINALS} | dict(COMMENTS)
)
"""What makes each text again, in an empty directory."""


def hash_text(text: str) -> str:
    """Return the hash of a text, as docs/images/shown.json has it."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_shown() -> Mapping[str, str]:
    """Return the hash of the text that each picture was drawn with."""
    return dict(json.loads(SHOWN.read_text(encoding="utf-8")))


def list_files() -> Iterator[Path]:
    """List the pictures, whose texts are compared or not."""
    for name in (*TERMINALS, "apply"):
        yield from (IMAGES / f"{name}-{theme}.svg" for theme in ("light", "dark"))
    for name in (*COMMENTS, "fleet-page"):
        yield from (IMAGES / f"{name}-{theme}.png" for theme in ("light", "dark"))
