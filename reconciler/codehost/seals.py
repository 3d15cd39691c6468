"""The seal: the invisible last line of a comment, which identifies the plans above it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import NamedTuple

from reconciler.codehost.host import Note
from reconciler.errors import Finding
from reconciler.show.markdown.page import mark_cluster

_SEAL = re.compile(
    r"<!-- reconciler:planned commit=([0-9a-f]+) fingerprint=([0-9a-f]{64})"
    r"(?: moves=([0-9a-f]{64}))?(?: alerts=([0-9a-f]{16}))?( settings)?"
    r"(?: rows=([A-Za-z0-9+/]+=*))?(?: moved=([A-Za-z0-9+/]+=*))?"
    r"(?: fields=([A-Za-z0-9+/]+=*))? -->"
)


class Seal(NamedTuple):
    """What identifies the plans of a comment.

    `moves` is the fingerprint of the plan of moves, empty if there is none. `rows` are the packed
    rows that the other plan adds, and `moved` those that a rebalance changes; they are empty if
    there are none, or too many. `fields` are the packed
    fields that both change, empty if there are too many. `alerts` is a digest of what is shown
    above the plans, empty if nothing is. `settings`: the request changes settings of the cluster.
    """

    commit: str
    fingerprint: str
    rows: str = ""
    moves: str = ""
    fields: str = ""
    alerts: str = ""
    settings: bool = False
    moved: str = ""

    def __str__(self) -> str:
        rows = f" rows={self.rows}" if self.rows else ""
        moved = f" moved={self.moved}" if self.moved else ""
        moves = f" moves={self.moves}" if self.moves else ""
        alerts = f" alerts={self.alerts}" if self.alerts else ""
        settings = " settings" if self.settings else ""
        fields = f" fields={self.fields}" if self.fields else ""
        names = f"commit={self.commit} fingerprint={self.fingerprint}"
        return f"<!-- reconciler:planned {names}{moves}{alerts}{settings}{rows}{moved}{fields} -->"

    @property
    def plans(self) -> tuple[str, str]:
        """The fingerprints of both plans: of changes, and of moves."""
        return self.fingerprint, self.moves

    def is_same(self, other: Seal | None) -> bool:
        """Return whether another one is of the same plans and alerts of the same commit."""
        return other is not None and other.commit == self.commit and self.says_the_same(other)

    def says_the_same(self, other: Seal) -> bool:
        """Return whether another one is of the same plans and alerts, of whatever commit."""
        return (other.plans, other.alerts) == (self.plans, self.alerts)


def digest_alerts(alerts: Iterable[Finding]) -> str:
    """Return what differs if what is shown above a plan differs."""
    said = "\n".join(f"{alert.rule} {alert.what}" for alert in alerts)
    return hashlib.sha256(said.encode()).hexdigest()[:16] if said else ""


def read_seal(body: str) -> Seal | None:
    """Read the seal in the last line of a comment: there, no name of a plan can forge it."""
    found = _SEAL.fullmatch(body.rstrip().rpartition("\n")[2])
    if found is None:
        return None
    commit, fingerprint, moves, alerts, settings, *packed = (g or "" for g in found.groups())
    rows, moved, fields = packed
    return Seal(commit, fingerprint, rows, moves, fields, alerts, bool(settings), moved)


def select_shown(comments: Iterable[Note], cluster: str) -> list[Note]:
    """Return the comments that show plans of a cluster, the oldest first."""
    return [note for note in comments if note.body.startswith(mark_cluster(cluster))]
