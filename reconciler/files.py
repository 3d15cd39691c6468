"""Write files atomically, append to them, read JSON without duplicate keys, see what git left.

A pull request can add files next to those that we write. It must not be able to redirect our
writes. So unfinished files have random names, and symbolic links are not followed. The security
model, docs/explanation/security.md, says what else a pull request may do.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

READABLE = 0o666  # minus the umask


class DuplicateKeyError(ValueError):
    """A JSON object has duplicate keys, which parsers treat differently; names the keys."""

    def __init__(self, keys: set[str]) -> None:
        super().__init__(f"keys appear twice in one object: {', '.join(sorted(keys))}")


class ReplacedError(ValueError):
    """Git has replaced the content of a file: `what` is there, from which `line`, and the way
    out."""

    def __init__(self, what: str, way_out: str, line: int) -> None:
        self.what = what
        self.way_out = way_out
        self.line = line
        super().__init__(f"{what}: {way_out}")


@contextmanager
def appearing(path: Path, mode: int = READABLE) -> Iterator[BinaryIO]:
    """Yield a new file that is renamed to `path` only if no error occurs.

    A symbolic link at `path` is replaced, not followed. Errors: OSError, also if `path` is not a
    regular file, because a device or a pipe would be lost.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EEXIST, "it is not a regular file")
    unfinished = path.with_name(f".{secrets.token_hex(8)}.partial")
    try:
        with open(unfinished, "xb", opener=partial(_open_no_link, mode=mode)) as file:
            yield file
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_file(path: Path, text: str) -> None:
    """Write a text file completely or not at all, even if the machine stops. Errors: OSError."""
    with appearing(path) as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def open_to_append(path: Path) -> BinaryIO:
    """Open a file such that each write appends at once. Errors: OSError, also for a link."""
    try:
        return open(path, "ab", buffering=0, opener=_open_no_link)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a link") from error
        raise


_LFS_POINTER = "version https://git-lfs.github.com/spec/"
# At the start of a line, neither can be in YAML or JSON. A conflict has both, until people remove
# one of them only.
_CONFLICT = re.compile(r"^(?:<{7}|>{7})(?: .*)?\r?$", re.MULTILINE)


def find_replaced(text: str) -> ReplacedError | None:
    """Find what git puts in the place of a file: a pointer of LFS, or a conflict to resolve."""
    if text.startswith(_LFS_POINTER):
        way_out = "run git lfs pull, or have the checkout of CI fetch LFS files"
        return ReplacedError("this is a pointer of Git LFS, not the file itself", way_out, 1)
    if conflict := _CONFLICT.search(text):
        way_out = "keep what is right, and remove the lines <<<<<<<, ======= and >>>>>>>"
        line = text.count("\n", 0, conflict.start()) + 1
        return ReplacedError("a merge left its conflict markers here", way_out, line)
    return None


def load_json(text: str) -> Any:
    """Parse JSON without duplicate keys.

    Errors: DuplicateKeyError, ReplacedError, any other ValueError, RecursionError.
    """
    twice: set[str] = set()

    def take(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entry = dict(pairs)
        if len(entry) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            twice.update(key for key, times in counts.items() if times > 1)
        return entry

    try:
        value = json.loads(text, object_pairs_hook=take)
    except ValueError:
        if replaced := find_replaced(text):
            raise replaced from None
        raise
    if twice:
        raise DuplicateKeyError(twice)
    return value


def _open_no_link(path: str, flags: int, mode: int = READABLE) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, mode)
