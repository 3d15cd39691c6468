"""Jikkou in the comparison: `diff`, and `apply`."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from tool import Place, Step, Topic, find

PENDING = 3  # how `diff --fail-on-changes` exits where it found some
TOPIC = """\
apiVersion: kafka.jikkou.io/v1
kind: KafkaTopic
metadata: {{name: {name}}}
spec:
  partitions: {partitions}
  replicas: {replication}
"""


class Jikkou:
    """With the validations that are on by default, and nothing switched off."""

    name = "Jikkou"

    def version(self) -> str:
        """Return what `jikkou --version` says."""
        said = subprocess.run([_program(), "--version"], capture_output=True, text=True, check=True)
        return next(word for word in said.stdout.replace('"', " ").split() if word[0].isdigit())

    def environment(self, place: Place) -> dict[str, str]:
        """Name the brokers as its own reference configuration suggests."""
        return {"JIKKOU_DEFAULT_KAFKA_BOOTSTRAP_SERVERS": place.servers}

    def steps(
        self, before: Sequence[Topic], wanted: Sequence[Topic], place: Place
    ) -> Sequence[Step]:
        """Write one file for all."""
        path = place.directory / "topics.yaml"
        path.write_text("---\n".join(map(_document, wanted)))
        return (
            Step("plan", (_program(), "diff", "-f", str(path), "--fail-on-changes"), PENDING),
            Step("apply", (_program(), "apply", "-f", str(path))),
        )


def _program() -> str:
    return find("jikkou", "JIKKOU")


def _document(topic: Topic) -> str:
    text = TOPIC.format(name=topic.name, partitions=topic.partitions, replication=topic.replication)
    if topic.config:
        text += "  configs:\n" + "".join(f"    {k}: {v}\n" for k, v in topic.config)
    return text
