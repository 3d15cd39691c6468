"""The entries of `acknowledge`: the changes that they name, and their schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from reconciler.api.planning import load_estate
from reconciler.errors import SpecError
from reconciler.model.cluster import RISKY_FIELDS, Risk, TopicSpec
from reconciler.spec.acknowledgements import RISKS
from reconciler.spec.json_schema import build_topic_schema

DAY = str(86_400_000)
HOUR = str(3_600_000)


def read(entries: str, folder: Path, more: str = "") -> TopicSpec:
    """Read the topic of an estate that acknowledges these entries."""
    (folder / "clusters.yaml").write_text("version: 1\nclusters: {prod: {}, test: {}}\n")
    (folder / "a.yaml").write_text(f"topic: a\nacknowledge: {entries}\n{more}")
    (spec,) = load_estate(folder).topics_for("prod")
    return spec


@pytest.mark.parametrize(
    ("entry", "change"),
    [
        ("data-loss: retention.ms 1d → 1h", ("data-loss", "config.retention.ms", DAY, HOUR)),
        ("data-loss: retention.ms 24h->60min", ("data-loss", "config.retention.ms", DAY, HOUR)),
        (f"data-loss: retention.ms {DAY} -> 1h", ("data-loss", "config.retention.ms", DAY, HOUR)),
        ("data-loss: retention.ms -1 → 1h", ("data-loss", "config.retention.ms", "-1", HOUR)),
        ("data-loss: retention.ms not set → 1h", ("data-loss", "config.retention.ms", None, HOUR)),
        ("data-loss: retention.ms 1d → unset", ("data-loss", "config.retention.ms", DAY, None)),
        (
            'data-loss: "cleanup.policy compact -> [compact, delete]"',
            ("data-loss", "config.cleanup.policy", "compact", "compact,delete"),
        ),
        (
            "traffic: max.message.bytes 1MiB → 1KiB",
            ("traffic", "config.max.message.bytes", "1048576", "1024"),
        ),
        ("ordering: 6 → 12", ("ordering", "partitions", "6", "12")),
        ("ordering: partitions 6 -> 12", ("ordering", "partitions", "6", "12")),
        ("durability: replication_factor 3→2", ("durability", "replication_factor", "3", "2")),
    ],
)
@pytest.mark.parametrize("style", ["[{}]", "\n  - {}"])
def test_an_entry_names_a_field_and_two_values(
    entry: str, change: tuple[str, ...], style: str, tmp_path: Path
) -> None:
    spec = read(style.format(entry), tmp_path)
    assert [accepted[:4] for accepted in spec.accepts] == [change]
    assert spec.acknowledge == frozenset()


def test_a_plain_risk_accepts_any_change(tmp_path: Path) -> None:
    spec = read("[data-loss, ordering: 6 → 12]", tmp_path)
    assert spec.acknowledge == {"data-loss"}
    assert spec.find_entry(Risk.DATA_LOSS, "config.retention.ms", "2", "1") == ("data-loss",)
    one = ("ordering", "partitions", "6", "12")
    assert spec.find_entry(Risk.ORDERING, "partitions", 6, 12) == one
    assert spec.find_entry(Risk.ORDERING, "partitions", 6, 13) is None
    assert spec.find_entry(Risk.ORDERING, "partitions", 7, 12) is None
    assert spec.find_entry(Risk.TRAFFIC, "partitions", 6, 12) is None
    assert spec.entries == {("data-loss",), one}


def test_a_list_has_no_order(tmp_path: Path) -> None:
    spec = read('[data-loss: "cleanup.policy delete → compact,delete"]', tmp_path)
    key = "config.cleanup.policy"
    assert spec.find_entry(Risk.DATA_LOSS, key, "delete", "delete,compact") is not None
    assert spec.find_entry(Risk.DATA_LOSS, key, "delete", "compact") is None
    assert spec.find_entry(Risk.DATA_LOSS, key, None, "delete,compact") is None


def test_each_entry_has_its_own_line(tmp_path: Path) -> None:
    spec = read("\n  - ordering\n  - data-loss: retention.ms 1d → 1h", tmp_path)
    assert spec.where("acknowledge.ordering").line == 3
    assert spec.accepts[0].where.line == 4


def test_the_entries_of_an_override_replace_those_of_the_topic(tmp_path: Path) -> None:
    more = "overrides: {prod: {acknowledge: [ordering: 6 → 12]}}"
    spec = read("[data-loss, ordering: 4 → 8]", tmp_path, more)
    assert spec.acknowledge == frozenset()
    assert [(change.before, change.after) for change in spec.accepts] == [("6", "12")]


def test_every_risk_has_fields() -> None:
    assert tuple(map(str, RISKY_FIELDS)) == RISKS


@pytest.mark.parametrize(
    ("entry", "valid"),
    [
        ("data-loss", True),
        ({"data-loss": "retention.ms 7d → 1h"}, True),
        ({"data-loss": "retention.ms 7d -> 1h"}, True),
        ({"data-loss": "retention.ms 7d->1h"}, True),
        ({"data-loss": "retention.ms not set → 1h"}, True),
        ({"data-loss": "retention.ms -1 -> 1h"}, True),
        ({"ordering": "6 → 12"}, True),
        ({"ordering": "partitions 6 → 12"}, True),
        ({"durability": "replication_factor 3 → 2"}, True),
        ({"data-loss": "7d → 1h"}, False),
        ({"data-loss": "retention.ms 7d"}, False),
        ({"data-loss": "flush.ms 7d → 1h"}, False),
        ({"ordering": "6 → 12 → 24"}, False),
        ({"ordering": None}, False),
        ({"fire": "6 → 12"}, False),
        ({"ordering": "6 → 12", "data-loss": "retention.ms 7d → 1h"}, False),
        ({}, False),
    ],
    ids=str,
)
def test_the_schema_accepts_what_validation_accepts(
    entry: Any, valid: bool, tmp_path: Path
) -> None:
    document = {"topic": "a", "acknowledge": [entry]}
    assert jsonschema.Draft7Validator(build_topic_schema()).is_valid(document) == valid
    shown = entry
    if isinstance(entry, dict):
        shown = "{" + ", ".join(f"{risk}: {text or ''}" for risk, text in entry.items()) + "}"
    if valid:
        read(f"[{shown}]", tmp_path)
    else:
        with pytest.raises(SpecError):
            read(f"[{shown}]", tmp_path)
