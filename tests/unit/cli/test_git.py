"""What git tells of an estate, in real repositories."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from repository import Repository, start_repository

from reconciler.api.planning import load_estate
from reconciler.cli.base import find_changes
from reconciler.cli.git import Checkout, GitError, read_commit
from reconciler.errors import UsageError
from reconciler.model.plan import Commit

CLUSTERS = "version: 1\nclusters: {prod: {}}\n"
ESTATE = Path("topics")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with three topics on main, on a branch of its own."""
    made = start_repository(tmp_path_factory.mktemp("original"))
    made.commit(clusters=CLUSTERS, a="topic: a", b="topic: b", team__c="topic: c")
    made.git("switch", "-qc", "work")
    return made.root


@pytest.fixture
def repository(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """Return a copy of it, worked in: a copy costs less than five commands of git."""
    made = Repository(shutil.copytree(original, tmp_path / "repo", symlinks=True))
    monkeypatch.chdir(made.root)
    return made


def changed(ref: str = "main", estate: Path = ESTATE) -> set[str]:
    """Return the files that differ from the last commit in common with a branch."""
    checkout = Checkout(estate)
    return set(checkout.compare(checkout.find_merge_base(ref)).files)


def find(ref: str = "main", cluster: str = "prod") -> tuple[set[str], set[str]]:
    """Return the topics of a cluster that changed, and those that left it."""
    estate = load_estate(ESTATE)
    changes = find_changes(ESTATE, [cluster], ref)
    specs, entry = estate.topics_for(cluster), estate.clusters[cluster]
    touched = {spec.name for spec in specs if changes.touch(spec, entry)}
    return touched, set(changes.list_left(cluster, specs))


PLANTED = """\
[core]
    repositoryformatversion = 0
    bare = false
    worktree = .
    fsmonitor = {program}
"""


OLDER_GIT = """\
#!/bin/sh
if [ "$2" = safe.bareRepository=explicit ]; then shift 2; fi
exec {git} "$@"
"""


@pytest.mark.parametrize("older", [False, True])
def test_a_repository_among_the_files_of_a_commit_is_not_that_of_the_estate(
    *, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, older: bool
) -> None:
    """Its branch would be what a request is compared with, and git would run its program."""
    head = repository.git("rev-parse", "HEAD")
    shutil.copytree(repository.root / ".git", ESTATE, dirs_exist_ok=True)
    ran, program = tmp_path / "ran", tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    (ESTATE / "config").write_text(PLANTED.format(program=program))
    repository.commit()
    repository.git("-C", "topics", "status")
    assert ran.exists()
    ran.unlink()
    if older:  # before 2.38, it does not know the setting
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "git").write_text(OLDER_GIT.format(git=shutil.which("git")))
        (tmp_path / "bin" / "git").chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    checkout = Checkout(ESTATE)
    assert checkout.top == repository.root
    assert not checkout.compare(head)
    assert not ran.exists()


# The commit.


def test_the_commit_of_an_estate(repository: Repository) -> None:
    head = repository.git("rev-parse", "HEAD")
    assert read_commit(ESTATE) == Commit(head)


@pytest.mark.parametrize("file", ["a", "new", "team__c"])
def test_an_estate_that_is_not_as_committed_is_dirty(repository: Repository, file: str) -> None:
    repository.write(**{file: "topic: other"})
    commit = read_commit(ESTATE)
    assert commit is not None
    assert commit.dirty


def test_a_deleted_spec_is_dirty(repository: Repository) -> None:
    (ESTATE / "a.yaml").unlink()
    commit = read_commit(ESTATE)
    assert commit is not None
    assert commit.dirty


def test_what_is_not_of_the_estate_makes_it_not_dirty(repository: Repository) -> None:
    (ESTATE / "plan.json").write_text("{}")
    (repository.root / "README.yaml").write_text("")
    commit = read_commit(ESTATE)
    assert commit is not None
    assert not commit.dirty


def test_a_repository_without_a_commit(tmp_path: Path) -> None:
    start_repository(tmp_path).write(a="topic: a")
    assert read_commit(tmp_path / "topics") is None


def test_no_repository(tmp_path: Path) -> None:
    with pytest.raises(GitError) as error:
        read_commit(tmp_path)
    assert not error.value.is_surprising


def test_a_repository_of_somebody_else_is_a_surprise(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(GitError, match="detected dubious ownership") as error:
        read_commit(ESTATE)
    assert error.value.is_surprising


def test_a_hook_of_another_repository_misleads_nobody(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = start_repository(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other.root / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.root / ".git" / "index"))
    commit = read_commit(ESTATE)
    assert commit is not None
    assert not commit.dirty


def test_git_is_not_installed(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError, match="git is not installed"):
        find_changes(ESTATE, ["prod"], "main")


# What changed.


def test_nothing_changed(repository: Repository) -> None:
    assert changed() == set()
    assert find() == (set(), set())
    assert find_changes(ESTATE, ["prod"], "main").everything == ""


def test_committed_staged_unstaged_and_untracked(repository: Repository) -> None:
    repository.commit(a="topic: a\npartitions: 1")
    repository.write(b="topic: b\npartitions: 1")
    repository.git("add", "-A")
    repository.write(team__c="topic: c\npartitions: 1", new="topic: new")
    everything = {"topics/a.yaml", "topics/b.yaml", "topics/team/c.yaml", "topics/new.yaml"}
    assert changed() == everything


def test_what_others_did_on_the_branch_meanwhile_is_not_ours(repository: Repository) -> None:
    repository.commit(a="topic: a\npartitions: 1")
    repository.git("switch", "-q", "main")
    repository.commit(b="topic: b\npartitions: 1")
    repository.git("switch", "-q", "work")
    assert changed() == {"topics/a.yaml"}


def test_what_was_changed_back_is_unchanged(repository: Repository) -> None:
    repository.commit(a="topic: a\npartitions: 1")
    repository.write(a="topic: a")
    assert changed() == set()


def test_a_renamed_file_is_a_changed_one_and_its_topic_is_still_there(
    repository: Repository,
) -> None:
    repository.git("mv", "topics/a.yaml", "topics/zebra crossing ü.yaml")
    repository.commit()
    assert changed() == {"topics/zebra crossing ü.yaml"}
    assert find() == (set(), set())


def test_topics_that_left_their_files_are_named(repository: Repository) -> None:
    resource = "apiVersion: kafka.strimzi.io/v1\nkind: KafkaTopic\nmetadata: {name: d}\nspec: {}\n"
    repository.git("switch", "-q", "main")
    repository.commit(several=f"topic: x\n---\ntopic: y\n---\n{resource}")
    repository.git("switch", "-qc", "more")
    (ESTATE / "a.yaml").unlink()
    repository.commit(several="topic: y")
    other = repository.root / "deploy" / "other.yaml"
    other.parent.mkdir()
    other.write_text("topic: not-of-the-estate")
    assert find() == (set(), {"a", "x", "d"})
    assert changed() == {"topics/several.yaml"}


@pytest.mark.parametrize(
    ("old", "new", "touched"),
    [
        ("version: 1", "version: 1 # more", set()),
        ("prod: {}", "prod: {guards: {max_changed: 50%}}", set()),
        ("retention.ms: 1d", "retention.ms: 2d", {"a", "b"}),
        ("defaults: {", "defaults: {partitions: 3, ", {"a", "c"}),
        ("log: {partitions: 2}", "log: {partitions: 3}", {"b"}),
    ],
)
def test_clusters_yaml_changes_the_topics_that_it_reaches(
    repository: Repository, old: str, new: str, touched: set[str]
) -> None:
    """A topic with a value of its own, or with another profile, asks for the same as before."""
    base = f"{CLUSTERS}profiles: {{log: {{partitions: 2}}}}\n"
    base += "defaults: {config: {retention.ms: 1d}}\n"
    repository.git("switch", "-q", "main")
    more = {"b": "topic: b\nprofile: log", "team__c": "topic: c\nconfig: {retention.ms: 7d}"}
    repository.commit(clusters=base, **more)
    repository.git("switch", "-qc", "more")
    repository.write(clusters=base.replace(old, new))
    assert find() == (touched, set())


def test_where_clusters_yaml_could_not_be_read_every_topic_changed(repository: Repository) -> None:
    repository.git("switch", "-q", "main")
    base = repository.commit(clusters="version: 1\nclusters: {prod: {nonsense: 1}}\n")
    repository.git("switch", "-qc", "more")
    repository.write(clusters=CLUSTERS)
    assert find() == ({"a", "b", "c"}, set())
    said = find_changes(ESTATE, ["prod"], "main").everything
    assert said == f"clusters.yaml at main ({base[:10]}) has errors"


def test_a_topic_changes_on_the_cluster_that_its_override_is_for(repository: Repository) -> None:
    clusters = "version: 1\nclusters: {prod: {}, test: {}}\n"
    repository.git("switch", "-q", "main")
    repository.commit(clusters=clusters)
    repository.git("switch", "-qc", "more")
    repository.write(
        a="topic: a\noverrides: {test: {partitions: 3}}", b="topic: b\nclusters: [test]"
    )
    assert find(cluster="prod") == (set(), {"b"})
    assert find(cluster="test") == ({"a"}, set())


def test_of_a_file_with_several_topics_only_the_one_that_changed(repository: Repository) -> None:
    repository.git("switch", "-q", "main")
    repository.commit(several="topic: x\n---\ntopic: y # why\npartitions: 2\nowner: shop\n")
    repository.git("switch", "-qc", "more")
    repository.write(several="# moved\ntopic: y\npartitions: 2\n---\ntopic: x\npartitions: 3\n")
    assert find() == ({"x"}, set())


def test_a_spec_that_could_not_be_read_then_changed(repository: Repository) -> None:
    repository.git("switch", "-q", "main")
    repository.commit(a="topic: a\npartitions: many", b="topic: [")
    repository.git("switch", "-qc", "more")
    repository.write(a="topic: a\npartitions: 3", b="topic: b")
    assert find() == ({"a", "b"}, set())


def test_a_commit_of_zeros_is_that_of_a_push_that_begins_a_branch(repository: Repository) -> None:
    changes = find_changes(ESTATE, ["prod"], "0" * 40)
    assert changes.everything == "there was no commit before this push"
    assert find("0" * 40) == ({"a", "b", "c"}, set())


def test_an_ignored_file_is_one_that_git_does_not_know(repository: Repository) -> None:
    (repository.root / ".gitignore").write_text("made.yaml\n")
    repository.write(made="topic: made")
    assert changed() == {"topics/made.yaml"}


def test_an_estate_is_found_from_wherever_it_is_named(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.write(team__c="topic: c\npartitions: 1")
    link = tmp_path / "link"
    link.symlink_to(repository.root / "topics")
    monkeypatch.chdir(repository.root / "topics" / "team")
    assert changed(estate=link) == {f"{link}/team/c.yaml"}
    assert changed(estate=Path("..")) == {"../team/c.yaml"}
    assert changed(estate=repository.root / "topics") == {f"{repository.root}/topics/team/c.yaml"}


def test_links_lead_to_what_changed(repository: Repository) -> None:
    """A file behind a link changed, a link leads elsewhere now, a link of a directory does."""
    root = repository.root
    for name in (".one", ".two"):
        (ESTATE / name).mkdir()
        (ESTATE / name / "x.yaml").write_text(f"topic: {name}.x")
    (ESTATE / ".y.yaml").write_text("topic: y")
    (root / "topics" / "linked").symlink_to(".one")
    (root / "topics" / "y.yaml").symlink_to(".y.yaml")
    repository.commit()
    assert (changed("HEAD"), find("HEAD")) == (set(), (set(), set()))
    (ESTATE / ".y.yaml").write_text("topic: y\npartitions: 1")
    assert changed("HEAD") == {"topics/y.yaml"}
    assert find("HEAD") == ({"y"}, set())
    repository.commit()
    (root / "topics" / "linked").unlink()
    (root / "topics" / "linked").symlink_to(".two")
    assert changed("HEAD") == {"topics/linked/x.yaml"}
    assert find("HEAD") == ({".two.x"}, {".one.x"})


def test_links_that_lead_nowhere_or_in_circles_are_passed_over(repository: Repository) -> None:
    for name, target in (("out", "../.."), ("gone.yaml", "none"), ("a-loop", "b-loop")):
        (ESTATE / name).symlink_to(target)
    (ESTATE / "b-loop").symlink_to("a-loop")
    (ESTATE / "team" / "self").symlink_to("..")
    repository.commit()
    assert set(find_changes(ESTATE, ["prod"], "HEAD").then["prod"].specs) == {"a", "b", "c"}


def test_the_merge_base_of_two_branches_is_found(repository: Repository) -> None:
    base = repository.git("rev-parse", "HEAD")
    repository.commit(a="topic: a\npartitions: 1")
    assert find_changes(ESTATE, ["prod"], "main").since == f"main ({base[:10]})"
    repository.git("update-ref", "refs/remotes/origin/main", base)
    since = find_changes(ESTATE, ["prod"], "refs/remotes/origin/main").since
    assert since == f"origin/main ({base[:10]})"
    assert find_changes(ESTATE, ["prod"], base).since == base[:10]


# What was acknowledged at the base.

LOSS, GROWTH = ("data-loss",), ("ordering", "partitions", "6", "12")


@pytest.mark.parametrize(
    ("base", "now", "standing"),
    [
        ("topic: a", "topic: a\nacknowledge: [data-loss]", set()),
        ("topic: other", "topic: a\nacknowledge: [data-loss]", set()),
        (
            "topic: a\nacknowledge: [data-loss]",
            "topic: a\npartitions: 1\nacknowledge: [ordering, data-loss]",
            {LOSS},
        ),
        (
            "topic: a\nacknowledge: [{ordering: 6 → 12}, traffic]",
            "topic: a\npartitions: 1\nacknowledge: [ordering: partitions 6 -> 12, data-loss]",
            {GROWTH},
        ),
        (
            "topic: a\nacknowledge: [ordering: 6 → 12]",
            "topic: a\nacknowledge: [ordering: 6 → 13]",
            set(),
        ),
        (
            "topic: a\nacknowledge: [data-loss]\noverrides: {prod: {acknowledge: [traffic]}}",
            "topic: a\nacknowledge: [data-loss]",
            set(),
        ),
        (
            "topic: a\noverrides: {prod: {acknowledge: [data-loss]}}",
            "topic: a\nacknowledge: [data-loss]",
            {LOSS},
        ),
        (
            "topic: a\nacknowledge: [data-loss]\noverrides: {prod: {partitions: 1}}",
            "topic: a\nacknowledge: [data-loss]",
            {LOSS},
        ),
        ("topic: a\nacknowledge: [fire]", "topic: a\nacknowledge: [data-loss]", set()),
        ("topic: a\nacknowledge: data-loss", "topic: a\nacknowledge: [data-loss]", set()),
    ],
)
def test_an_acknowledgement_is_compared_with_the_base(
    repository: Repository, base: str, now: str, standing: set[tuple[str, ...]]
) -> None:
    repository.git("switch", "-q", "main")
    repository.commit(a=base)
    repository.git("switch", "-qc", "more")
    repository.write(a=now)
    estate = load_estate(ESTATE)
    (spec,) = (spec for spec in estate.topics_for("prod") if spec.name == "a")
    found = find_changes(ESTATE, ["prod"], "main").recall(spec, "prod")
    assert found.standing == standing
    assert found.entries == spec.entries


def test_every_acknowledgement_of_an_unchanged_file_was_there_before(
    repository: Repository,
) -> None:
    repository.git("switch", "-q", "main")
    repository.commit(a="topic: a\nacknowledge: [data-loss]")
    repository.git("switch", "-qc", "more")
    repository.write(clusters=f"{CLUSTERS}defaults: {{config: {{retention.ms: 1h}}}}\n")
    estate = load_estate(ESTATE)
    (spec,) = (spec for spec in estate.topics_for("prod") if spec.name == "a")
    changes = find_changes(ESTATE, ["prod"], "main")
    assert changes.touch(spec, estate.clusters["prod"])
    assert changes.recall(spec, "prod").standing == {LOSS}


# What cannot be told.


@pytest.mark.parametrize("ref", ["nosuch", "--help", "main..work", "topics/a.yaml", ""])
def test_an_unknown_commit_is_a_usage_error(repository: Repository, ref: str) -> None:
    with pytest.raises(UsageError, match=r"there is no commit .* in this repository; fetch it"):
        changed(ref)


def test_branches_that_share_nothing(repository: Repository) -> None:
    repository.git("switch", "-q", "--orphan", "alone")
    repository.commit(a="topic: a")
    with pytest.raises(UsageError, match="HEAD and main share no commit; name a branch"):
        changed()


def test_a_shallow_clone_says_how_to_deepen_it(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit(a="topic: a\npartitions: 1")
    clone = tmp_path / "clone"
    repository.git("clone", "-q", "--depth", "1", f"file://{repository.root}", str(clone))
    monkeypatch.chdir(clone)
    with pytest.raises(UsageError, match="this clone is shallow: git fetch --unshallow, or fetch-"):
        changed("main")
    Repository(clone).git("fetch", "-q", "--depth", "1", "origin", "main:main")
    with pytest.raises(UsageError, match="share no commit; this clone is shallow: "):
        changed("main")


def test_a_damaged_repository_is_an_error(repository: Repository) -> None:
    blob = repository.git("rev-parse", "HEAD:topics/a.yaml")
    (repository.root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(GitError, match=f"cannot read an object of this repository: {blob} missing"):
        find_changes(ESTATE, ["prod"], "main")


def test_a_commit_that_is_not_here_is_told_apart(repository: Repository) -> None:
    with pytest.raises(UsageError, match=r"there is no commit f{40} in this repository"):
        Checkout(ESTATE).find_commit("f" * 40)


def test_what_differs_from_a_commit(repository: Repository) -> None:
    head = repository.git("rev-parse", "HEAD")
    repository.commit(new="topic: new")
    shutil.rmtree(ESTATE / "team")
    found = Checkout(ESTATE).compare(head)
    assert (found.files, found.gone) == ({"topics/new.yaml"}, {"topics/team/c.yaml"})
