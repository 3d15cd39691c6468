"""Property files: read back by Java as they were meant, and made into variables for the image."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.sandbox.container import name_variable
from reconciler.sandbox.settings import (
    INTERNAL_FACTORS,
    ClusterSettings,
    ListenerSettings,
    Node,
    node_properties,
    render_properties,
)

CONTROLLER = ListenerSettings("CONTROLLER", "PLAINTEXT", 9000)


def test_a_broker_listens_on_loopback_and_knows_its_controller() -> None:
    node = Node(
        7,
        (ListenerSettings("PLAINTEXT", "PLAINTEXT", 9007), ListenerSettings("T", "SSL", 9107)),
        "r1",
    )
    settings = ClusterSettings({3000: CONTROLLER}, properties={"num.io.threads": "9"})
    properties = node_properties(node, settings, [Path("/d/0"), Path("/d/1")])
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:9007,T://127.0.0.1:9107"
    assert properties["advertised.listeners"] == properties["listeners"]
    assert properties["listener.security.protocol.map"] == (
        "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,T:SSL"
    )
    assert properties["controller.quorum.voters"] == "3000@127.0.0.1:9000"
    assert properties["process.roles"] == "broker"
    assert properties["broker.rack"] == "r1"
    assert properties["log.dirs"] == "/d/0,/d/1"
    assert properties["num.io.threads"] == "9"


def test_the_controller_serves_no_clients_and_has_no_rack() -> None:
    settings = ClusterSettings({3000: CONTROLLER}, copies=3)
    properties = node_properties(Node(3000), settings, [Path("/d")])
    assert [properties[key] for key in INTERNAL_FACTORS] == ["3", "3", "3"]
    assert properties["process.roles"] == "controller"
    assert properties["listeners"] == "CONTROLLER://127.0.0.1:9000"
    assert "advertised.listeners" not in properties
    assert "broker.rack" not in properties


def test_every_node_knows_the_whole_quorum() -> None:
    second = ListenerSettings("CONTROLLER", "PLAINTEXT", 9001)
    settings = ClusterSettings({3000: CONTROLLER, 3001: second})
    broker = Node(7, (ListenerSettings("PLAINTEXT", "PLAINTEXT", 9007),))
    for node in (broker, Node(3001)):
        properties = node_properties(node, settings, [Path("/d")])
        voters = properties["controller.quorum.voters"]
        assert voters == "3000@127.0.0.1:9000,3001@127.0.0.1:9001"
    assert properties["listeners"] == "CONTROLLER://127.0.0.1:9001"


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("plain", "k=plain\n"),
        (" led by a blank", "k=\\ led by a blank\n"),
        ("back\\slash", "k=back\\\\slash\n"),
        ("two\nlines\r\t", "k=two\\nlines\\r\\t\n"),
        ("eu-1ß", "k=eu-1\\u00df\n"),
        ("𝄞", "k=\\ud834\\udd1e\n"),
        ("a=b:c#d!", "k=a=b:c#d!\n"),
    ],
)
def test_values_are_escaped_for_java(value: str, line: str) -> None:
    assert render_properties({"k": value}) == line


@pytest.mark.parametrize(
    ("key", "variable"),
    [
        ("log.dirs", "KAFKA_LOG_DIRS"),
        ("ssl.keystore-type_x", "KAFKA_SSL_KEYSTORE___TYPE__X"),
        ("listener.name.door.scram-sha-512.x", "KAFKA_LISTENER_NAME_DOOR_SCRAM___SHA___512_X"),
    ],
)
def test_the_image_reads_properties_from_variables(key: str, variable: str) -> None:
    assert name_variable(key) == variable
