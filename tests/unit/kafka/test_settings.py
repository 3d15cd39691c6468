"""Client properties of a run: references resolved, missing ones named, secrets never shown."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.errors import ClusterError, Finding, Location
from reconciler.kafka.connection import connect
from reconciler.kafka.settings import ClientSettings, resolve_settings
from reconciler.model.outcomes import Answer, AnswerKind
from reconciler.spec.entry import ClusterEntry

HERE = Location("topics/clusters.yaml", 7, 3)


def resolve(
    environment: dict[str, str] | None = None, servers: str | None = "b:9092", **client: str
) -> ClientSettings:
    properties = {name.replace("_", "."): text for name, text in client.items()}
    entry = ClusterEntry("prod-eu", HERE, client=properties)
    return resolve_settings(entry, servers, environment or {})


def refuse(environment: dict[str, str] | None = None, **client: str) -> list[str]:
    with pytest.raises(ClusterError) as refused:
        resolve(environment, **client)
    return [str(finding) for finding in refused.value.findings]


class TestReferences:
    def test_variables_files_and_literals_make_one_value(self, tmp_path: Path) -> None:
        file = tmp_path / "half"
        file.write_text("two\n")
        password = f"${{env:ONE}}-${{file:{file}}}-three"
        assert resolve({"ONE": "one"}, sasl_password=password).get("sasl.password") == (
            "one-two-three"
        )

    def test_only_the_last_line_end_of_a_file_is_no_part_of_it(self, tmp_path: Path) -> None:
        file = tmp_path / "secret"
        file.write_bytes(b" a\nb \r\n")
        settings = resolve(sasl_password=f"${{file:{file}}}")
        assert settings.get("sasl.password") == " a\nb "

    def test_an_unset_variable_is_named_with_property_and_place(self) -> None:
        assert refuse(sasl_password="${env:KAFKA_PASSWORD}") == [
            "topics/clusters.yaml:7:3: sasl.password refers to ${env:KAFKA_PASSWORD}, and "
            "KAFKA_PASSWORD is not set; set the environment variable KAFKA_PASSWORD "
            "[secret-unresolved]"
        ]

    def test_an_empty_variable_is_no_secret(self) -> None:
        (said,) = refuse({"EMPTY": ""}, sasl_password="${env:EMPTY}")
        assert "and EMPTY is empty" in said

    def test_a_missing_file_is_named(self) -> None:
        assert refuse(sasl_password="${file:/no/such/file}") == [
            "topics/clusters.yaml:7:3: sasl.password refers to ${file:/no/such/file}: No such file "
            "or directory; write the secret there, readable by this run [secret-unresolved]"
        ]

    def test_an_empty_or_binary_file_is_no_secret(self, tmp_path: Path) -> None:
        for content, reason in ((b"\n", "which is empty"), (b"\xff\xfe", "which is not UTF-8")):
            (tmp_path / "file").write_bytes(content)
            (said,) = refuse(sasl_password=f"${{file:{tmp_path / 'file'}}}")
            assert reason in said

    def test_a_variable_that_is_no_text_is_no_secret(self) -> None:
        password = os.fsdecode(b"caf\xe9-secret")
        assert refuse({"P": password}, sasl_password="${env:P}") == [
            "topics/clusters.yaml:7:3: sasl.password refers to ${env:P}, which is not UTF-8 text; "
            "set P as text [secret-unresolved]"
        ]

    def test_everything_that_is_missing_is_said_at_once(self) -> None:
        said = refuse(sasl_username="${env:U}", sasl_password="${env:P}")
        assert [line.partition(" refers")[0].rpartition(" ")[2] for line in said] == [
            "sasl.password",
            "sasl.username",
        ]

    def test_a_malformed_reference_does_not_show_what_stands_in_it(self) -> None:
        (said,) = refuse(sasl_password="${hunter2}")
        assert "hunter2" not in said
        assert said.endswith("[secret-reference]")


class TestServers:
    def test_the_command_line_goes_before_the_file(self) -> None:
        settings = resolve(servers="cli:1, cli:2", bootstrap_servers="${env:UNSET}")
        assert settings.servers == ("cli:1", "cli:2")

    def test_a_port_of_the_command_line_that_cannot_be_is_refused(self) -> None:
        with pytest.raises(ClusterError) as refused:
            resolve(servers="a:9092,b:99999")
        assert str(refused.value) == (
            "--bootstrap-servers has no port in 'b:99999'; write one from 1 to 65535 "
            "[client-property-value]"
        )

    def test_without_any_server_nothing_starts(self) -> None:
        with pytest.raises(ClusterError) as refused:
            resolve(servers=None)
        assert str(refused.value) == (
            "topics/clusters.yaml:7:3: prod-eu has no bootstrap servers; write "
            "client.bootstrap.servers in clusters.yaml, or pass --bootstrap-servers "
            "[connect-address]"
        )

    def test_librdkafkas_other_names_count(self) -> None:
        settings = resolve(
            servers=None, metadata_broker_list="a:1", sasl_mechanisms="PLAIN"
        ).start_at("b:2")
        assert settings.servers == ("b:2",)
        assert settings.mechanism == "PLAIN"


class TestSecrecy:
    SECRET = "c0rrect-h0rse"

    def settings(self) -> ClientSettings:
        return resolve({"P": self.SECRET}, sasl_password="${env:P}", sasl_username="me")

    def test_printing_shows_names_only(self) -> None:
        settings = self.settings()
        shown = f"{settings} {settings!r} {settings.start_at('b:1')!r}"
        assert self.SECRET not in shown
        assert "sasl.password" in shown

    def test_a_connection_prints_its_servers_only(self) -> None:
        entry = ClusterEntry("prod-eu", HERE, client={"sasl.password": "${env:P}"})
        connection = connect(entry, bootstrap_servers="b:1", environment={"P": self.SECRET})
        assert repr(connection) == "Connection(prod-eu, b:1)"
        assert self.SECRET not in str(vars(connection))

    def test_settings_do_not_go_into_a_file_by_accident(self) -> None:
        with pytest.raises(TypeError, match="secrets"):
            pickle.dumps(self.settings())

    def test_what_a_reference_stood_for_is_in_no_finding_and_no_answer(self) -> None:
        text = f"token endpoint said: {self.SECRET} is wrong"
        assert self.SECRET in Finding("connect-token", text).what
        self.settings()
        assert Finding("connect-token", text).what == "token endpoint said: *** is wrong"
        assert Finding("connect-token", "", f"try {self.SECRET}").way_out == "try ***"
        assert Answer(AnswerKind.REFUSED, "X", text).text == "token endpoint said: *** is wrong"

    def test_a_secret_of_several_parts_is_hidden_with_each_of_them(self) -> None:
        resolve({"A": "left-half", "B": "right-half"}, sasl_password="${env:A}-${env:B}")
        said = Finding("connect-token", "left-half-right-half, left-half, right-half").what
        assert said == "***, ***, ***"

    def test_a_user_is_hidden_as_a_word(self) -> None:
        """It may be part of what is no secret: a command, a topic, a host."""
        resolve({"U": "kafka"}, sasl_username="${env:U}")
        text = "kafka-acls --allow-principal User:kafka, kafka.events, kafka. 'kafka'"
        assert Finding("cluster-rights", text).what == (
            "kafka-acls --allow-principal User:***, kafka.events, ***. '***'"
        )

    def test_a_key_is_hidden_line_by_line(self, tmp_path: Path) -> None:
        (tmp_path / "key").write_text(f"-----BEGIN-----\n{'A' * 64}\n{'B' * 64}\nC=\n")
        resolve(ssl_key_pem=f"${{file:{tmp_path / 'key'}}}")
        assert Finding("connect-lost", f"bad line {'B' * 64} at C=").what == "bad line *** at C="


# The thread of a client completes its futures, and here it gives up the client as well.
ABANDON = """
import threading
from reconciler.kafka.settings import ClientSettings

held = [ClientSettings({"bootstrap.servers": "127.0.0.1:1", "log_level": "0"}).build_client()]
gone = threading.Event()

def abandon(answer):
    held.clear()
    gone.set()

held[0].describe_cluster(request_timeout=0.2).add_done_callback(abandon)
gone.wait()
"""


def test_a_client_that_its_own_thread_gives_up_does_not_end_the_program() -> None:
    command = (sys.executable, "-c", ABANDON)
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_an_address_in_bytes_that_are_no_text_is_refused() -> None:
    entry = ClusterEntry("lab", Location("clusters.yaml", 1))
    with pytest.raises(ClusterError, match="--bootstrap-servers is not UTF-8 text"):
        resolve_settings(entry, "\udcff:9092", {})
