"""The files of an estate: which are read, and what becomes of those that cannot be."""

from __future__ import annotations

from pathlib import Path

from reconciler.api.estate_files import list_estate_files, read_estate_files
from reconciler.errors import Finding


def test_hidden_files_and_others_are_skipped(tmp_path: Path) -> None:
    for name in ("b.yml", "a.yaml", "C.YAML", ".hidden.yaml", "notes.md", "a.yaml.orig"):
        (tmp_path / name).touch()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.yaml").touch()
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "t.yaml").touch()
    names = [str(path.relative_to(tmp_path)) for path in list_estate_files(tmp_path)]
    assert names == ["C.YAML", "a.yaml", "b.yml", "team/t.yaml"]


def test_linked_directories_are_read_once(tmp_path: Path) -> None:
    estate, shared = tmp_path / "topics", tmp_path / "topics" / ".shared"
    shared.mkdir(parents=True)
    (shared / "s.yaml").touch()
    (shared / "loop").symlink_to(estate)
    (estate / "one").symlink_to(shared)
    (estate / "two").symlink_to(shared)
    names = [str(path.relative_to(estate)) for path in list_estate_files(estate)]
    assert names == ["one/s.yaml"]


def test_texts_are_found_by_their_path_in_the_estate(tmp_path: Path) -> None:
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "t.yaml").write_text("topic: a")
    (tmp_path / "gone.yaml").symlink_to("nowhere.yaml")
    files = read_estate_files(tmp_path, "topics")
    assert files["team/t.yaml"] == b"topic: a"
    assert isinstance(gone := files["gone.yaml"], Finding)
    assert str(gone).startswith("topics/gone.yaml:1:1: gone.yaml is a link to nowhere")
