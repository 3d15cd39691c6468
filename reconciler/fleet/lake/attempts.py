"""Attempts at collections: their names, and their publications."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from reconciler.errors import Finding, LakeError, Severity
from reconciler.model.plan import Commit

STATE, PLAN, AUDIT, HISTORY = "state", "plan", "audit", "history"
READ, PLANNED = "read", "planned"
"""The `status` of a cluster that was read or planned; otherwise it is a rule id."""

VERSION = 2
"""The version of the layout."""

SKEW = timedelta(minutes=5)
"""The largest allowed difference between the clocks of two machines."""

_NAME = re.compile(r"[0-9]{8}T[0-9]{6}Z")
_ID = re.compile(r"[0-9TZ]+-[a-z]+-[0-9a-f]{8}")
_DIRTY = "-dirty"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a collection. `collection` is its time, such as 20261121T030000Z (UTC).

    `what` is the kind of its tables: states and specs, plans, an audit, or a history.
    """

    collection: str
    what: str
    id: str


@dataclass(frozen=True, slots=True)
class Published(Attempt):
    """A published attempt: readers see only these.

    `rows` counts the rows of each cluster in each table. `commit` is the commit of the specs.
    A history says which collection's history it `continues`, and which attempts it was `made_of`.
    A copy in fewer files names its `origin`, and when it was copied; `finished_at` stays, so a
    copy never counts instead of rows that were made after its origin.
    """

    finished_at: str
    clusters: int
    rows: Mapping[str, Mapping[str, int]]
    commit: str | None = None
    version: int = VERSION
    continues: str | None = None
    made_of: tuple[str, ...] = ()
    origin: str | None = None
    copied_at: str | None = None

    @property
    def content(self) -> str:
        """The id of the attempt that made the rows: a copy has those of its origin."""
        return self.origin or self.id

    @property
    def counts_since(self) -> str:
        """The time at which this attempt took the place of an earlier one."""
        return self.copied_at or self.finished_at


def start_attempt(collection: str, what: str = STATE) -> Attempt:
    """Begin a collection, or a plan, audit or history of one. Errors: LakeError for a bad time."""
    read_time(collection)
    return Attempt(collection, what, f"{collection}-{what}-{uuid.uuid4().hex[:8]}")


def read_time(collection: str) -> datetime:
    """Return the time in the name of a collection. Errors: LakeError."""
    try:
        if _NAME.fullmatch(collection):
            return datetime.strptime(collection, "%Y%m%dT%H%M%S%z")
    except ValueError:
        pass  # the form is right and the date is not, such as the 31st of June
    what = f"{collection!r} is not a valid time, so it names no collection"
    raise LakeError([Finding("lake-collection-name", what, "write one as 20261121T030000Z (UTC)")])


def find_ahead(collections: Iterable[str], now: datetime, root: str) -> tuple[Finding, ...]:
    """Return a warning for each collection with a time in the future: it counts as the latest."""
    way_out = "until then it counts as the latest collection; to remove it: reconciler fleet lake"
    return tuple(
        Finding(
            "lake-collection-ahead",
            f"collection {name} is in the future ({now:%Y%m%dT%H%M%SZ})",
            f"{way_out} remove {name} --lake {root}",
            severity=Severity.WARNING,
        )
        for name in sorted(set(collections))
        if read_time(name) > now + SKEW
    )


def encode_commit(commit: Commit | None) -> str | None:
    """Encode a commit as one word, like `git describe --dirty`."""
    return None if commit is None else commit.sha + (_DIRTY if commit.dirty else "")


def decode_commit(text: str | None) -> Commit | None:
    """Decode a commit from one word."""
    return Commit(text.removesuffix(_DIRTY), text.endswith(_DIRTY)) if text else None


def publish_now(
    attempt: Attempt,
    clusters: int,
    rows: Mapping[str, Mapping[str, int]],
    commit: str | None = None,
    *,
    continues: str | None = None,
    made_of: Iterable[str] = (),
) -> Published:
    """Return the publication of an attempt that ends now."""
    return Published(
        attempt.collection,
        attempt.what,
        attempt.id,
        finished_at=_now(),
        clusters=clusters,
        rows=rows,
        commit=commit,
        continues=continues,
        made_of=tuple(sorted(made_of)),
    )


def publish_copy(attempt: Attempt, of: Published) -> Published:
    """Return the publication of an attempt that has the rows of another one, copied now."""
    return replace(of, id=attempt.id, origin=of.content, copied_at=_now())


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def list_fields(published: Published) -> dict[str, Any]:
    """Return a publication as the columns of the table `collections`."""
    fields = asdict(published)
    # Connect takes lists only as arrays.
    return {"attempt": fields.pop("id"), **fields, "made_of": list(published.made_of)}


def read_publication(fields: Mapping[str, Any], place: str) -> Published:
    """Decode a publication. Errors: LakeError if it is damaged or of another version."""
    version = fields.get("version")
    if isinstance(version, int) and version != VERSION:
        what = f"{place} has layout version {version}; this release reads {VERSION}"
        way_out = "collect into a new directory, or read this one with the release that wrote it"
        raise LakeError([Finding("lake-version", what, way_out)])
    try:
        rows = {
            table: {cluster: int(count) for cluster, count in of.items()}
            for table, of in fields["rows"].items()
        }
        named = (_read_text(fields[name]) for name in ("collection", "what", "attempt"))
        collection, what, attempt = named
        read_time(collection)
        if not _ID.fullmatch(attempt) or not attempt.startswith(f"{collection}-{what}-"):
            # The id names directories, and a removal of the collection deletes them.
            raise ValueError  # noqa: TRY301
        finished_at, clusters = _read_text(fields["finished_at"]), int(fields["clusters"])
        commit, version = fields.get("commit"), int(fields["version"])
        made_of = tuple(map(_read_text, fields.get("made_of") or ()))
        names = ("continues", "origin", "copied_at")
        others = {name: fields[name] for name in names if fields.get(name)}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise LakeError([find_damaged_publication(place)]) from None
    first = (collection, what, attempt, finished_at, clusters, rows, commit, version)
    return Published(*first, made_of=made_of, **others)


def _read_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def decode_publication(text: str, place: str) -> Published:
    """Decode a publication from the text of a file. Errors: LakeError."""
    try:
        fields = json.loads(text)
    except ValueError:
        raise LakeError([find_damaged_publication(place)]) from None
    return read_publication(fields if isinstance(fields, dict) else {}, place)


def find_damaged_publication(place: str) -> Finding:
    """Return the message for a publication that cannot be read."""
    way_out = "restore the file from a backup, or delete it: its collection is then not read"
    return Finding("lake-publication", f"{place} is not a complete publication", way_out)


def choose_newest(found: list[Published]) -> list[Published]:
    """Return the newest publication of each collection, the oldest collection first."""
    newest: dict[str, Published] = {}
    for one in sorted(found, key=lambda one: (one.finished_at, one.copied_at or "", one.id)):
        newest[one.collection] = one
    return [newest[name] for name in sorted(newest)]
