"""Links that a pull request brings: no file outside the estate is shown, none is overwritten."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from shorthand import cluster, plan, spec

from reconciler.api.estate_files import write_texts
from reconciler.api.planning import load_estate
from reconciler.api.records import begin_record
from reconciler.api.snapshots import write_snapshot
from reconciler.cli.app import run
from reconciler.cli.journal import Journal
from reconciler.cli.plans import write_whole
from reconciler.errors import SpecError, UsageError

KEPT = "a file of somebody else\n"
SECRET = "hunter2-of-somebody-else"
SNAPSHOT = {
    "brokers": [{"id": n, "rack": f"r{n}"} for n in (1, 2, 3)],
    "topics": [{"name": "grown", "partitions": [[1, 2], [2, 3]]}],
}


@pytest.fixture(autouse=True)
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file outside the checkout, which is the current directory."""
    checkout = tmp_path / "checkout"
    (checkout / "topics").mkdir(parents=True)
    monkeypatch.chdir(checkout)
    Path("topics/clusters.yaml").write_text("version: 1\nclusters: {prod: {}}\n")
    Path("topics/grown.yaml").write_text("topic: grown\npartitions: 4\n")
    Path("s.json").write_text(json.dumps(SNAPSHOT))
    outside = tmp_path / "outside"
    outside.write_text(KEPT)
    return outside


PLAN = ("plan", "--cluster", "prod", "--against", "s.json")
IMPORT = ("import", "topics", "--cluster", "prod", "--against", "s.json")
WRITERS = {
    "p.json": (*PLAN, "--out", "p.json"),
    "x.svg": (*PLAN, "--explain", "grown", "--svg", "x.svg"),
    "topics/grown.yaml": IMPORT,
}


@pytest.mark.parametrize("file", WRITERS)
def test_the_name_of_a_file_that_is_being_written_cannot_be_foreseen(
    file: str, outside: Path
) -> None:
    path = Path(file)
    path.with_name(f".{path.name}.partial").symlink_to(outside)
    assert run(WRITERS[file]) == 0
    assert path.is_file()
    assert not path.is_symlink()
    assert outside.read_text() == KEPT


@pytest.mark.parametrize("file", ["p.json", "x.svg"])
def test_a_link_that_has_the_name_of_an_output_is_replaced(file: str, outside: Path) -> None:
    Path(file).symlink_to(outside)
    assert run(WRITERS[file]) == 0
    assert not Path(file).is_symlink()
    assert outside.read_text() == KEPT


def test_what_is_no_file_is_not_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("p.json")
    assert run(WRITERS["p.json"]) == 64
    assert "p.json cannot be written: it is not a regular file" in capsys.readouterr().err
    assert Path("p.json").is_fifo()


def test_a_journal_does_not_go_through_a_link(outside: Path) -> None:
    Path("journal.jsonl").symlink_to(outside)
    record = begin_record(plan([spec(partitions=3, replication_factor=1)], cluster()))
    with (
        pytest.raises(UsageError, match=r"cannot write the journal journal\.jsonl: it is a link"),
        Journal(Path("journal.jsonl"), record),
    ):
        raise AssertionError("it was opened")
    assert outside.read_text() == KEPT


def test_a_summary_of_a_workflow_does_not_go_through_a_link(
    outside: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("summary").symlink_to(outside)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary")
    assert run((*PLAN, "--format", "github")) == 64
    assert "summary cannot be written: it is a link" in capsys.readouterr().err
    assert outside.read_text() == KEPT


def test_nothing_is_left_of_a_file_that_could_not_be_written() -> None:
    with pytest.raises(UsageError, match="it is not a regular file"):
        write_whole(Path("topics"), "text")
    assert not list(Path().glob(".*"))


def test_a_spec_that_is_a_link_out_of_the_estate_is_refused_and_not_shown(
    outside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outside.write_text(f"{SECRET}\n")
    Path("topics/a.yaml").symlink_to(outside)
    Path("topics/b.yaml").symlink_to("../s.json")
    assert run(("validate", "topics")) == 1
    assert (said := capsys.readouterr()).out.count("is a link out of topics") == 2
    assert SECRET not in said.out + said.err
    with pytest.raises(SpecError) as refused:
        load_estate(Path("topics"))
    assert str(refused.value).splitlines()[0] == (
        "topics/a.yaml:1:1: a.yaml is a link out of topics; put the file itself there [estate-link]"
    )


@pytest.mark.parametrize("name", ["clusters.yaml", "team"])
def test_clusters_and_directories_are_no_links_out_of_the_estate_either(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x.yaml").write_text("topic: x\n")
    (tmp_path / "other" / "clusters.yaml").write_text("version: 1\n")
    Path("topics/clusters.yaml").unlink()
    Path("topics", name).symlink_to(tmp_path / "other" / (name if "." in name else ""))
    with pytest.raises(SpecError, match=rf"{name} is a link out of topics"):
        load_estate(Path("topics"))


def test_a_file_of_another_tool_is_no_link_out_of_its_directory(
    outside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outside.write_text(f"{SECRET}: [\n")
    Path("theirs").mkdir()
    Path("theirs/a.yaml").symlink_to(outside)
    assert run(("import", "--from", "topicctl", "theirs", "topics")) == 1
    assert "a.yaml is a link out of theirs" in (said := capsys.readouterr().err)
    assert SECRET not in said


def test_gits_own_files_are_not_of_the_estate() -> None:
    Path("topics/.git").mkdir()
    Path("topics/.git/config").write_text(f"{SECRET}\n")
    Path("topics/a.yaml").symlink_to(".git/config")
    with pytest.raises(SpecError, match=r"a\.yaml is a link out of topics"):
        load_estate(Path("topics"))


def test_links_within_an_estate_are_followed_as_before(tmp_path: Path) -> None:
    """As Kubernetes mounts a ConfigMap: links to a hidden directory, which is a link itself."""
    mounted = tmp_path / "mounted"
    (mounted / "..2026").mkdir(parents=True)
    counts = "partitions: 1\nreplication_factor: 1\n"
    (mounted / "..2026" / "a.yaml").write_text(f"topic: a\n{counts}")
    (mounted / "..data").symlink_to("..2026")
    (mounted / "a.yaml").symlink_to("..data/a.yaml")
    (tmp_path / "estate").symlink_to(mounted)
    assert load_estate(tmp_path / "estate").topics == ("a",)


def test_a_snapshot_is_written_under_a_name_that_cannot_be_foreseen(outside: Path) -> None:
    Path(".kept.json.partial").symlink_to(outside)
    write_snapshot(cluster(), Path("kept.json"))
    assert outside.read_text() == KEPT


def test_a_new_file_of_an_import_does_not_go_through_a_link_either(tmp_path: Path) -> None:
    Path("topics/team").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"topics/team/new\.yaml cannot be written: it is a link"):
        write_texts(Path("topics"), {"team/new.yaml": "topic: new\n"})
    assert not (tmp_path / "nowhere").exists()


def test_an_import_does_not_write_through_a_link_out_of_the_estate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("topics/grown.yaml").unlink()
    Path("topics/grown.yaml").symlink_to(tmp_path / "made")
    Path("topics/shop.yaml").symlink_to(tmp_path / "made")
    topics = [{"name": f"shop.{n}", "partitions": [[1, 2]]} for n in "ab"]
    Path("s.json").write_text(json.dumps({**SNAPSHOT, "topics": topics}))
    assert run(IMPORT) == 1
    assert "grown.yaml is a link" in capsys.readouterr().err
    assert not (tmp_path / "made").exists()
