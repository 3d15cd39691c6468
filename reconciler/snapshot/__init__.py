"""A cluster's state as a JSON file. It can replace the cluster, and a person can write it.

Belongs here: the form of the file, and every error in its text. Forbidden here: any file or
cluster, and any judgement of a state.
"""

from reconciler.snapshot.codec import decode_snapshot, encode_snapshot, refuse_file
from reconciler.snapshot.document import FORMAT_VERSION, SnapshotDocument

__all__ = [
    "FORMAT_VERSION",
    "SnapshotDocument",
    "decode_snapshot",
    "encode_snapshot",
    "refuse_file",
]
