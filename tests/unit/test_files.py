"""Files of ours: whole or not at all, and written in one place."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
from sources import list_calls

from reconciler.errors import ReconcilerError
from reconciler.files import appearing, open_to_append, write_file
from reconciler.moves.reassignments import decode_rows
from reconciler.planfile.codec import decode_plan
from reconciler.planfile.snapshot import decode_snapshot

ELSEWHERE = {
    "cli/app.py": "the null device",
    "fleet/runtime.py": "the cache of this user",
    "fleet/session.py": "a log in a temporary directory",
    "fleet/standalone.py": "a log in a temporary directory",
    "sandbox/archive.py": "the cache of this user",
    "sandbox/container.py": "a log of the sandbox",
    "sandbox/control.py": "a log of the sandbox",
    "sandbox/embedded.py": "the directory of a throwaway cluster",
    "sandbox/jars.py": "a lock in the cache",
    "sandbox/process.py": "a log of the sandbox",
    "sandbox/record.py": "a lock in the state of this user",
    "sandbox/paths.py": "a lock in the directory of a throwaway cluster",
}
LAKE = "fleet/lake.py"


WRITERS = ("write_text", "write_bytes", "fdopen", "mkstemp")


def opens_to_write(call: ast.Call) -> bool:
    """Tell whether a call of `open` names a mode that writes."""
    modes = [v.value for v in (*call.args, *(k.value for k in call.keywords))
             if isinstance(v, ast.Constant) and isinstance(v.value, str)]  # fmt: skip
    return any(set(mode) <= set("wxa+bt") and mode for mode in modes)


def test_only_one_module_writes_where_others_may_put_links() -> None:
    found = {
        path
        for path, name, call in list_calls("open", *WRITERS)
        if name in WRITERS or opens_to_write(call)
    }
    assert found - {LAKE} == {"files.py", *ELSEWHERE}


def test_an_error_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    write_file(path, "before")
    with pytest.raises(TypeError), appearing(path) as file:
        file.writelines([b"half", "no bytes"])  # type: ignore[list-item]
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("plan.json", "before")]


def test_names_of_any_length_that_a_file_may_have_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("ü" * 127)
    write_file(path, "ü\n")
    assert path.read_bytes() == "ü\n".encode()


def test_the_rights_of_a_new_file_are_those_of_any_other(tmp_path: Path) -> None:
    (tmp_path / "any").touch()
    write_file(tmp_path / "ours", "")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "any").stat().st_mode
    with appearing(tmp_path / "program", mode=0o700):
        pass
    assert (tmp_path / "program").stat().st_mode & 0o777 == 0o700


def test_what_is_appended_is_there_at_once(tmp_path: Path) -> None:
    write_file(path := tmp_path / "journal", "one\n")
    with open_to_append(path) as file:
        file.write(b"two\n")
        assert path.read_text() == "one\ntwo\n"


LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


@pytest.mark.parametrize("decode", [decode_plan, decode_rows, decode_snapshot])
@pytest.mark.parametrize(
    ("text", "what"),
    [
        (LFS, "this is a pointer of Git LFS, not the file itself; run git lfs pull"),
        ("{}\n>>>>>>> other\n", "a merge left its conflict markers here; keep what is right"),
    ],
)
def test_what_git_puts_in_the_place_of_a_file_is_named(
    decode: Callable[[str, str], object], text: str, what: str
) -> None:
    with pytest.raises(ReconcilerError, match=what):
        decode(text, "f.json")
