"""How an estate differs from what it was at an earlier commit: its files, and what left them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.errors import escape_unprintable
from reconciler.model import SHORT
from reconciler.spec.custom_resources import is_resource, read_resource
from reconciler.spec.load import load_text
from reconciler.spec.values import Table, Text

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed in an estate since it parted from `ref`, at the commit `base`.

    `files` are spelled as in locations; `everything`, where clusters.yaml changed, on which every
    topic rests. `left` names topics that were in files that changed and are in no file now.
    """

    ref: str
    base: str
    files: frozenset[str] = frozenset()
    everything: bool = False
    left: frozenset[str] = frozenset()

    @property
    def since(self) -> str:
        """Say since when, in words for people."""
        return f"{escape_unprintable(self.ref)} ({self.base[:SHORT]})"

    def touch(self, file: str) -> bool:
        """Tell whether a topic that is written in a file may have changed."""
        return self.everything or file in self.files


def name_topics(content: bytes) -> Iterator[str]:
    """Name the topics of a file as it once was, whatever else there is to say about it."""
    for document in load_text(content, "").documents:
        if isinstance(document, Table):
            read = read_resource(document, ()) if is_resource(document) else [(document, [])]
            yield from (str(t["topic"]) for t, _ in read if t and isinstance(t.get("topic"), Text))
