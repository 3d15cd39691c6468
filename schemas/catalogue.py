"""The command that writes the catalogues of topic configs from real brokers.

`python schemas/catalogue.py` starts each release that the sandbox runs, asks Kafka's
own classes for the definitions and the running broker for what it reports, and writes
reconciler/spec/catalogues/. With `--check` it writes nothing and exits 1 where a file differs.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

import reconciler.spec
from reconciler.errors import SandboxError
from reconciler.sandbox.cluster import start_cluster
from reconciler.sandbox.jars import fetch_jars, known_releases
from reconciler.sandbox.launch import LOG_SETTINGS, find_java
from reconciler.sandbox.request import Silence
from reconciler.spec.catalogue import parse_version, spell_line

CATALOGUES = Path(reconciler.spec.__file__).with_name("catalogues")
PROGRAM = Path(__file__).with_name("config_def.py")
TIMEOUT_S = 60
BARE_TOPIC = "bare"
DEFAULT_SOURCE = 5
"""DescribeConfigs' DEFAULT_CONFIG: no broker setting stands above the release's own default."""

_RANGE = re.compile(r"\[(-?\d+),\.\.\.(?:,(-?\d+))?\](?: or (?:equal to )?(-?\d+))?")
_CHOICES = re.compile(r"\[([\w.-]+(?:, [\w.-]+)*)\]")
_REPLICAS = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."


def build_catalogue(
    release: str, defined: Mapping[str, Any], reported: Mapping[str, tuple[str, int]]
) -> dict[str, Any]:
    """Return the catalogue of a release, as its file holds it.

    Errors: SandboxError where definitions and running broker disagree, or use unknown words.
    """
    _compare(release, defined, reported)
    keys = {name: _encode_key(name, defined[name]) for name in sorted(defined)}
    return {"release": release, "keys": keys}


def define_configs(release: str) -> Mapping[str, Any]:
    """Return what the release's LogConfig defines, in its own words. Errors: SandboxError."""
    launch = {
        "jvm": str(find_java().jvm),
        "options": ["-Xmx64m", f"-Dlog4j.configuration={LOG_SETTINGS.as_uri()}"],
        "class_path": [str(jar) for jar in fetch_jars(release, Silence())],
    }
    answer = subprocess.run(  # noqa: S603 - this very Python, our own program
        [sys.executable, "-P", str(PROGRAM)],
        input=json.dumps(launch),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if answer.returncode != 0:
        raise SandboxError(f"Kafka {release} does not say its configs: {answer.stderr[-2000:]}")
    defined: Mapping[str, Any] = json.loads(answer.stdout)
    return defined


def report_configs(bootstrap_servers: str) -> Mapping[str, tuple[str, int]]:
    """Create a bare topic and return value and source of each config that a broker reports."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    admin.create_topics([NewTopic(BARE_TOPIC, 1, 1)])[BARE_TOPIC].result(TIMEOUT_S)
    deadline = time.monotonic() + TIMEOUT_S
    while BARE_TOPIC not in admin.list_topics(timeout=TIMEOUT_S).topics:
        if time.monotonic() > deadline:
            raise SandboxError(f"no broker shows the topic {BARE_TOPIC} after {TIMEOUT_S} s")
        time.sleep(0.1)
    resource = ConfigResource(ConfigResource.Type.TOPIC, BARE_TOPIC)
    reported = admin.describe_configs([resource])[resource].result(TIMEOUT_S)
    return {name: (entry.value, entry.source) for name, entry in reported.items()}


def _compare(
    release: str, defined: Mapping[str, Any], reported: Mapping[str, tuple[str, int]]
) -> None:
    """Hold the definitions against the running broker: same names, same defaults."""
    public = {name for name, entry in defined.items() if not entry["internal"]}
    wrong = public ^ reported.keys()
    wrong |= {
        name
        for name in public & reported.keys()
        if reported[name][1] == DEFAULT_SOURCE and reported[name][0] != defined[name]["default"]
    }
    if wrong:
        names = ", ".join(sorted(wrong))
        raise SandboxError(f"Kafka {release} defines and reports differently: {names}")


def _encode_key(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    encoded = {"type": entry["type"], "default": entry["default"]}
    encoded |= _encode_valid(name, entry["valid"])
    if entry["synonyms"]:
        encoded["synonyms"] = entry["synonyms"]
    if entry["internal"]:
        encoded["internal"] = True
    return encoded


def _encode_valid(name: str, valid: str | None) -> dict[str, Any]:
    """Turn a validator's words into bounds or choices. Errors: SandboxError for new words."""
    if valid is None or valid == _REPLICAS:
        return {}
    if match := _RANGE.fullmatch(valid):
        least, most, also = match.groups()
        bounds = {"minimum": least, "maximum": most}
        encoded: dict[str, Any] = {k: int(v) for k, v in bounds.items() if v is not None}
        return encoded | ({"also": [int(also)]} if also else {})
    if match := _CHOICES.fullmatch(valid):
        return {"choices": match[1].split(", ")}
    raise SandboxError(f"{name} is valid where {valid!r} holds, which is not understood here")


def render_catalogue(stored: Mapping[str, Any]) -> str:
    """Render a catalogue as its file has it: a config a line, so that a change reads well."""
    lines = [f"  {json.dumps(name)}: {json.dumps(key)}" for name, key in stored["keys"].items()]
    release = json.dumps(stored["release"])
    return f'{{\n "release": {release},\n "keys": {{\n' + ",\n".join(lines) + "\n }\n}\n"


def main(arguments: Sequence[str]) -> int:
    """Write, or with `--check` compare, the catalogue of every release; return the exit code."""
    checking = "--check" in arguments
    try:
        stale = [release for release in known_releases() if not _settle(release, checking=checking)]
    except SandboxError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    for release in stale:
        sys.stderr.write(f"the catalogue of {release} is not what its brokers say\n")
    return 1 if stale else 0


def _settle(release: str, *, checking: bool) -> bool:
    """Write a release's file, or tell whether it stands as it would be written."""
    path = CATALOGUES / f"{spell_line(parse_version(release))}.json"
    defined = define_configs(release)
    with start_cluster(brokers=1, kafka_version=release) as cluster:
        reported = report_configs(cluster.bootstrap_servers)
    text = render_catalogue(build_catalogue(release, defined, reported))
    if checking:
        return text == path.read_text("utf-8")
    path.write_text(text, "utf-8")
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
