"""The pages on troubleshooting: the messages that they show, and how one is made to compare it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from reconciler.cli.app import run

PAGES = tuple(sorted((Path(__file__).parents[1] / "docs" / "how-to").glob("troubleshoot*.md")))
TOPIC = "topic: orders.events\npartitions: 12\nreplication_factor: 3\n"

MADE_ON_BROKERS = frozenset(
    {
        "audit-topic",
        "cluster-id",
        "cluster-rights",
        "connect-controller",
        "connect-credentials",
        "connect-mechanism",
        "connect-not-kafka",
        "connect-sasl-missing",
        "connect-sasl-unwanted",
        "connect-tls-client",
        "connect-tls-missing",
        "connect-tls-unwanted",
        "connect-tls-untrusted",
        "connect-tls-validity",
        "connect-token",
        "lock-held",
        "plan-cluster",
        "plan-stale",
        "plan-unexpected",
        "the-address-that-a-broker-advertises",
    }
)
"""Sections whose messages tests/contract makes; tests/unit makes all others."""


def read_sections() -> dict[str, str]:
    """Return the text of each section of the third level, by the anchor of its heading."""
    sections = {}
    for page in PAGES:
        for part in re.split(r"^#{2,3} ", page.read_text(encoding="utf-8"), flags=re.MULTILINE):
            title, _, text = part.partition("\n")
            sections[re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")] = text
    return sections


def list_blocks(section: str) -> list[str]:
    """List what a section shows as printed: its code blocks without a language."""
    return re.findall(r"^ *```\n(.*?)^ *```$", section, re.MULTILINE | re.DOTALL)


def write_estate(client: Mapping[str, str] | None = None, topics: str = TOPIC, **keys: str) -> None:
    """Write the estate of the pages to topics/: one cluster, prod-eu, with these keys."""
    Path("topics").mkdir(exist_ok=True)
    lines = ["version: 1", "clusters:", "  prod-eu:", '    kafka_version: "4.1"']
    lines += [f"    {key}: {text}" for key, text in keys.items()]
    if client:
        lines += ["    client:", *(f"      {name}: {text}" for name, text in client.items())]
    Path("topics/clusters.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    Path("topics/orders.yaml").write_text(topics, encoding="utf-8")


def answer(*words: str) -> str:
    """Run the command line here. Returns: what it printed, without colours, errors last."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        run(words)
    return out.getvalue() + err.getvalue()


def check_shown(section: str, said: str, masks: Mapping[str, str] | None = None) -> None:
    """Check that each message of a section was printed, but for line breaks.

    `masks` are what differs in each run, such as a port, and what the page has instead.
    """
    for found, shown in (masks or {}).items():
        assert found in said
        said = said.replace(found, shown)
    blocks = list_blocks(read_sections()[section])
    assert blocks
    for block in blocks:
        assert squeeze(block) in squeeze(said)


def squeeze(text: str) -> str:
    """Return a text in which every space is one blank: a page has narrower lines."""
    return " ".join(text.split())
