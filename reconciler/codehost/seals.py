"""The seal: the invisible last line of a comment, which identifies the plans above it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from reconciler.plan import mark_cluster

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reconciler.codehost.host import Note

_SEAL = re.compile(
    r"<!-- reconciler:planned commit=([0-9a-f]+) fingerprint=([0-9a-f]{64})"
    r"(?: moves=([0-9a-f]{64}))?(?: rows=([A-Za-z0-9+/]+=*))?"
    r"(?: fields=([A-Za-z0-9+/]+=*))? -->"
)


class Seal(NamedTuple):
    """What identifies the plans of a comment.

    `moves` is the fingerprint of the plan of moves, empty if there is none. `rows` are the packed
    rows that the other plan adds, empty if there are none, or too many. `fields` are the packed
    fields that both change, empty if there are too many.
    """

    commit: str
    fingerprint: str
    rows: str = ""
    moves: str = ""
    fields: str = ""

    def __str__(self) -> str:
        rows = f" rows={self.rows}" if self.rows else ""
        moves = f" moves={self.moves}" if self.moves else ""
        fields = f" fields={self.fields}" if self.fields else ""
        names = f"commit={self.commit} fingerprint={self.fingerprint}"
        return f"<!-- reconciler:planned {names}{moves}{rows}{fields} -->"

    @property
    def plans(self) -> tuple[str, str]:
        """The fingerprints of both plans: of changes, and of moves."""
        return self.fingerprint, self.moves

    def is_same(self, other: Seal | None) -> bool:
        """Return whether another one is of the same plans of the same commit."""
        return other is not None and (other.commit, other.plans) == (self.commit, self.plans)


def read_seal(body: str) -> Seal | None:
    """Read the seal in the last line of a comment: there, no name of a plan can forge it."""
    found = _SEAL.fullmatch(body.rstrip().rpartition("\n")[2])
    if found is None:
        return None
    commit, fingerprint, moves, rows, fields = (group or "" for group in found.groups())
    return Seal(commit, fingerprint, rows, moves, fields)


def select_shown(comments: Iterable[Note], cluster: str) -> list[Note]:
    """Return the comments that show plans of a cluster, the oldest first."""
    return [note for note in comments if note.body.startswith(mark_cluster(cluster))]
