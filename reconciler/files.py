"""Files of ours: written whole or not at all, appended to, and read as JSON without a doubt.

Whoever can put a file next to one that we write, as a pull request can, must not choose where we
write: names of unfinished files are random, and no link is followed. docs/ci.md says what else a
request may do.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
from collections import Counter
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

READABLE = 0o666  # less what the umask takes away


class DuplicateKeyError(ValueError):
    """An object has a key twice, so readers disagree on what it says; says which keys."""

    def __init__(self, keys: set[str]) -> None:
        super().__init__(f"keys appear twice in one object: {', '.join(sorted(keys))}")


@contextmanager
def appearing(path: Path, mode: int = READABLE) -> Iterator[BinaryIO]:
    """Yield a new file that takes the name `path` if, and only if, no error comes.

    A link of that name is replaced, not followed. Errors: OSError, also where something that is
    no regular file has the name: a device or a pipe would be lost.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EEXIST, "it is no regular file")
    unfinished = path.with_name(f".{secrets.token_hex(8)}.partial")
    try:
        with open(unfinished, "xb", opener=partial(_open_no_link, mode=mode)) as file:
            yield file
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_file(path: Path, text: str) -> None:
    """Write a text file: whole, or not at all, also where the machine stops. Errors: OSError."""
    with appearing(path) as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def open_to_append(path: Path) -> BinaryIO:
    """Open a file so that each write reaches its end at once. Errors: OSError, also for a link."""
    try:
        return open(path, "ab", buffering=0, opener=_open_no_link)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a link") from error
        raise


def load_json(text: str) -> Any:
    """Read JSON that has no key twice. Errors: DuplicateKeyError, ValueError, RecursionError."""
    twice: set[str] = set()

    def take(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entry = dict(pairs)
        if len(entry) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            twice.update(key for key, times in counts.items() if times > 1)
        return entry

    value = json.loads(text, object_pairs_hook=take)
    if twice:
        raise DuplicateKeyError(twice)
    return value


def _open_no_link(path: str, flags: int, mode: int = READABLE) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, mode)
