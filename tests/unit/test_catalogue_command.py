"""The catalogue command: what it makes of a release's own words, and what stops it."""

from __future__ import annotations

import json

import pytest
from catalogue import build_catalogue, render_catalogue

from reconciler.errors import SandboxError

DEFAULT_CONFIG, TOPIC_CONFIG = 5, 1


def define(
    valid: str | None = None, *, default: str | None = "1", internal: bool = False
) -> dict[str, object]:
    return {
        "type": "INT",
        "default": default,
        "valid": valid,
        "synonyms": ["log.a"],
        "internal": internal,
    }


@pytest.mark.parametrize(
    ("valid", "encoded"),
    [
        (None, {}),
        ("[0,...]", {"minimum": 0}),
        ("[-131072,...,22]", {"minimum": -131072, "maximum": 22}),
        ("[1,...,9] or -1", {"minimum": 1, "maximum": 9, "also": [-1]}),
        ("[compact, delete]", {"choices": ["compact", "delete"]}),
        ("[partitionId]:[brokerId],[partitionId]:[brokerId],...", {}),
    ],
)
def test_a_validator_s_words_become_bounds_or_choices(
    valid: str | None, encoded: dict[str, object]
) -> None:
    stored = build_catalogue("9.9.9", {"a": define(valid)}, {"a": ("1", DEFAULT_CONFIG)})
    assert stored["keys"]["a"] == {
        "type": "INT",
        "default": "1",
        **encoded,
        "synonyms": ["log.a"],
    }


def test_unknown_words_stop_the_command() -> None:
    with pytest.raises(SandboxError, match="a is valid where 'a prime' holds"):
        build_catalogue("9.9.9", {"a": define("a prime")}, {"a": ("1", DEFAULT_CONFIG)})


@pytest.mark.parametrize(
    "reported",
    [{}, {"a": ("2", DEFAULT_CONFIG)}, {"a": ("1", DEFAULT_CONFIG), "b": ("1", DEFAULT_CONFIG)}],
)
def test_a_broker_that_reports_otherwise_stops_the_command(
    reported: dict[str, tuple[str, int]],
) -> None:
    with pytest.raises(SandboxError, match=r"Kafka 9\.9\.9 defines and reports differently: [ab]$"):
        build_catalogue("9.9.9", {"a": define()}, reported)


def test_a_value_from_elsewhere_is_no_default_to_compare() -> None:
    stored = build_catalogue("9.9.9", {"a": define()}, {"a": ("2", TOPIC_CONFIG)})
    assert stored["keys"]["a"]["default"] == "1"


def test_an_internal_config_is_kept_though_no_broker_reports_it() -> None:
    stored = build_catalogue("9.9.9", {"a": define(default=None, internal=True)}, {})
    assert stored["keys"]["a"]["internal"] is True


def test_a_file_has_a_config_a_line() -> None:
    defined = {"b": define(), "a": define()}
    stored = build_catalogue("9.9.9", defined, dict.fromkeys("ab", ("1", DEFAULT_CONFIG)))
    text = render_catalogue(stored)
    assert json.loads(text) == stored
    assert [line[3:4] for line in text.splitlines() if "INT" in line] == ["a", "b"]
