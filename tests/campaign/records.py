"""What a run of apply says of itself: report, exit code, journal and audit record."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

EXITS: Mapping[str, int] = {
    "done": 0,
    "nothing to do": 0,
    "failed": 1,
    "unknown": 75,
    "error": 1,
    "lock lost": 1,
    "audit lost": 1,
    "stale": 1,
    "outdated": 1,
    "refused": 1,
    "locked": 1,
    "not approved": 1,
    "usage error": 64,
    "interrupted": 130,
}
"""docs/explanation/apply.md: how a run ends, and its exit code."""

_LAST = re.compile(r"(?:([A-Z][a-z ]+)\. )?(Applied: .*|Nothing was changed\.)")
_OUTCOME = re.compile(
    r"^(done|already done|half done|failed|unknown|not attempted|refused) +(\S+)(.*)$", re.MULTILINE
)


@dataclass(slots=True)
class Told:
    """What one run left behind. `ended` is by the last line of its report."""

    code: int | None
    out: str
    err: str
    journal: list[dict[str, Any]] = field(default_factory=list)
    torn: bool = False
    audit: list[dict[str, Any]] = field(default_factory=list)

    @property
    def last_line(self) -> str:
        lines = self.out.strip().splitlines()
        return lines[-1].strip() if lines else ""

    @property
    def ended(self) -> str | None:
        """How the report says that the run ended, or None where it says nothing of that."""
        if self.last_line == "Nothing to do.":
            return "nothing to do"
        match = _LAST.fullmatch(self.last_line)
        return (match[1] or "done").lower() if match else None

    @property
    def outcomes(self) -> dict[str, str]:
        """The outcome of each topic, by the report."""
        return {name: kind for kind, name, _ in _OUTCOME.findall(self.out)}

    @property
    def texts(self) -> dict[str, str]:
        """What the report adds to each outcome."""
        return {name: text.strip() for _, name, text in _OUTCOME.findall(self.out)}

    @property
    def written(self) -> dict[str, str]:
        """The outcome of each topic, by the lines of the journal."""
        return {line["topic"]: line["kind"] for line in self.journal if line["type"] == "outcome"}

    @property
    def end(self) -> dict[str, Any] | None:
        """The journal's last line, if the run came to write it."""
        last = self.journal[-1] if self.journal else {}
        return last if last.get("type") == "applied" else None


def read_told(code: int | None, directory: Path, name: str) -> Told:
    """Read what a run printed and wrote."""
    journal = directory / f"{name}.journal"
    text = journal.read_text() if journal.exists() else ""
    told = Told(
        code, (directory / f"{name}.out").read_text(), (directory / f"{name}.err").read_text()
    )
    told.torn = bool(text) and not text.endswith("\n")
    for line in text.splitlines():
        try:
            told.journal.append(json.loads(line))
        except ValueError:
            told.torn = True
    return told


class AuditTrail:
    """The audit topic of a lane, read from where the last reading ended."""

    def __init__(self, servers: str, topic: str) -> None:
        self._servers = servers
        self._topic = topic
        self._next = 0

    def read(self) -> Sequence[dict[str, Any]]:
        """Return the records that came since. Errors: KafkaException where nobody answers."""
        properties = {"bootstrap.servers": self._servers, "group.id": "campaign", "log_level": 0}
        consumer = Consumer({**properties, "enable.auto.commit": False})
        found = []
        try:
            here = TopicPartition(self._topic, 0, self._next or OFFSET_BEGINNING)
            _, end = consumer.get_watermark_offsets(here, timeout=60)
            consumer.assign([here])
            while self._next < end:
                message = consumer.poll(60)
                if message is None or message.error():
                    raise KafkaException(message.error() if message else "no record came")
                found.append(json.loads(message.value()))
                self._next = message.offset() + 1
        finally:
            consumer.close()
        return found
