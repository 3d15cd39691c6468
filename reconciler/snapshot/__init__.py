"""A cluster's state as a JSON file, that stands in for the cluster, and that a person can write.

Belongs here: the form of the file, and everything that can be wrong with one. Forbidden here: any
cluster, and judging what a state is good for.
"""

from reconciler.snapshot.codec import decode_snapshot, encode_snapshot
from reconciler.snapshot.document import FORMAT_VERSION, SnapshotDocument
from reconciler.snapshot.files import read_snapshot, write_snapshot

__all__ = [
    "FORMAT_VERSION",
    "SnapshotDocument",
    "decode_snapshot",
    "encode_snapshot",
    "read_snapshot",
    "write_snapshot",
]
