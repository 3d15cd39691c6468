"""Snapshots as files: read whole, written whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.errors import Finding, SnapshotError
from reconciler.files import write_file
from reconciler.snapshot.codec import decode_snapshot, encode_snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from reconciler.model import ClusterState


def read_snapshot(path: Path) -> ClusterState:
    """Read a snapshot. Errors: SnapshotError with everything that is wrong with the file."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise _refuse(path, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise _refuse(path, f"is no UTF-8: {error.reason} at byte {error.start}") from error
    return decode_snapshot(text, str(path))


def write_snapshot(state: ClusterState, path: Path) -> None:
    """Write a snapshot. Errors: SnapshotError where it cannot be written."""
    try:
        write_file(path, encode_snapshot(state))
    except OSError as error:
        raise _refuse(path, f"cannot be written: {error.strerror}") from error


def _refuse(path: Path, what: str) -> SnapshotError:
    """Refuse a file that no line can be named of."""
    return SnapshotError([Finding("snapshot-file", f"the snapshot {path} {what}")])
