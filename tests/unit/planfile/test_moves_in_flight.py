"""The JSON form of moves, and its schema."""

from __future__ import annotations

import json

import pytest
from formats import load_validator
from readings import copied, default, listed, move, rate, reading

from reconciler.errors import Finding, Severity
from reconciler.model.cluster import Broker
from reconciler.model.moves import MovesReading
from reconciler.moves.progress import measure_moves
from reconciler.planfile.moves_in_flight import MovesDocument

NOTE = Finding("broker-silent", "broker 5 is silent", "look", severity=Severity.WARNING)
MOVING = reading(
    move(), sizes=copied(40), rates=(rate(None, 9), rate(4, 0)), lists=(listed("t", "0:4"),)
)
READINGS = {
    "nothing": reading(),
    "moving": MOVING,
    "hidden": reading(move(leader=None, in_sync=()), cluster_id=None, sizes={}),
    "dead": reading(move(), brokers=(Broker(1), Broker(4, alive=False)), notes=(NOTE,)),
    "left-over": reading(rates=(*default(9), rate(4, 9)), lists=(listed("t", "*"),)),
}


def answer(now: MovesReading, before: MovesReading | None = None) -> dict[str, object]:
    document: dict[str, object] = json.loads(
        MovesDocument.write(measure_moves(now, before)).model_dump_json()
    )
    return document


@pytest.mark.parametrize("name", READINGS)
def test_every_document_fits_the_schema(name: str) -> None:
    load_validator("moves").validate(answer(READINGS[name]))


def test_a_document_is_one_line() -> None:
    text = MovesDocument.write(measure_moves(MOVING)).model_dump_json()
    assert "\n" not in text


def test_the_values_of_a_document() -> None:
    before = reading(move(), sizes=copied(10), clock_s=90.0)
    found = answer(MOVING, before)
    assert found["format_version"] == "1.0"
    assert (found["cluster"], found["seen_at"]) == ("prod-eu", "2025-11-23T00:00:00Z")
    assert found["totals"] == {
        "partitions": 1,
        "replicas": 1,
        "bytes_done": 40,
        "bytes_to_do": 100,
        "percent": 40.0,
        "bytes_per_s": 3.0,
        "seconds_left": None,
    }
    assert found["moves"] == [
        {
            "topic": "t",
            "partition": 0,
            "current": [2, 3, 1],
            "target": [4, 2, 3],
            "adding": [4],
            "removing": [1],
            "leader": 1,
            "in_sync": [1, 2, 3],
            "copies": [
                {
                    "broker": 4,
                    "bytes_done": 40,
                    "bytes_to_do": 100,
                    "percent": 40.0,
                    "in_sync": False,
                    "throttled": True,
                    "bytes_per_s": 3.0,
                    "cause": "rate-zero",
                    "why": "the follower rate of broker 4 is 0",
                }
            ],
        }
    ]
    assert found["slowest"] == {
        "topic": "t",
        "partition": 0,
        "broker": 4,
        "percent": 40.0,
        "cause": "rate-zero",
        "why": "the follower rate of broker 4 is 0",
    }
    assert found["rates"] == [
        {
            "broker": None,
            "side": "follower",
            "bytes_per_s": 9,
            "source": "cluster-default",
            "left_over": False,
        },
        {
            "broker": 4,
            "side": "follower",
            "bytes_per_s": 0,
            "source": "broker",
            "left_over": False,
        },
    ]
    assert found["lists"] == [
        {"topic": "t", "side": "follower", "replicas": "0:4", "left_over": False}
    ]
    assert (found["left_over"], found["notes"]) == ([], [])


def test_what_is_left_over_is_marked_and_has_its_command() -> None:
    found = answer(READINGS["left-over"])
    rates, lists = found["rates"], found["lists"]
    assert isinstance(rates, list)
    assert isinstance(lists, list)
    assert [each["left_over"] for each in (*rates, *lists)] == [True] * 4
    assert found["left_over"] == [
        {
            "topic": None,
            "broker": None,
            "keys": [
                "leader.replication.throttled.rate",
                "follower.replication.throttled.rate",
            ],
            "command": (
                "kafka-configs --alter --entity-type brokers --entity-default "
                "--delete-config "
                "leader.replication.throttled.rate,follower.replication.throttled.rate"
            ),
        },
        {
            "topic": None,
            "broker": 4,
            "keys": ["follower.replication.throttled.rate"],
            "command": (
                "kafka-configs --alter --entity-type brokers --entity-name 4 "
                "--delete-config follower.replication.throttled.rate"
            ),
        },
        {
            "topic": "t",
            "broker": None,
            "keys": ["follower.replication.throttled.replicas"],
            "command": (
                "kafka-configs --alter --entity-type topics --entity-name t "
                "--delete-config follower.replication.throttled.replicas"
            ),
        },
    ]
