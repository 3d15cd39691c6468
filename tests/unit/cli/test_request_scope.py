"""A request and its merge plan the same changes, in real repositories, whatever the kind of merge.

The cluster is a snapshot on which two topics of nobody's request differ from their specs. The runs
are those of the workflows: a request since its target branch, a push since the commit that it
replaced.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from repository import Repository, start_repository

from reconciler.cli.app import run

TARGET = "refs/remotes/origin/main"
NOTHING = "0" * 40
CLUSTERS = """\
version: 1
defaults: {config: {flush.ms: 5s}}
profiles: {log: {config: {segment.ms: 1d}}}
clusters: {prod: {guards: {max_changed: 40%}}}
"""
WEEK, DAY = "604800000", "86400000"


def write_spec(name: str, partitions: int = 2, more: str = "") -> str:
    return f"topic: {name}\npartitions: {partitions}\nreplication_factor: 2\n{more}"


BASE = {
    "orders": write_spec("orders"),
    "clicks": write_spec("clicks", 4),
    "drifted": write_spec("drifted", 2, "config: {retention.ms: 7d}\n"),
    "refused": write_spec("refused", 1),
    "logs": write_spec("logs", 2, "profile: log\n"),
}
ROWS = [[1, 2], [2, 3]]
FLUSH = {"flush.ms": "5000"}
LIVE = {
    "orders": (ROWS, FLUSH),
    "clicks": ([*ROWS, *ROWS], FLUSH),
    "drifted": (ROWS, {**FLUSH, "retention.ms": DAY}),
    "refused": (ROWS, FLUSH),
    "logs": (ROWS, {**FLUSH, "segment.ms": DAY}),
}
DRIFT = ["drifted", "refused"]


class Planned(NamedTuple):
    """The exit code of a plan, and its file."""

    code: int
    file: dict[str, Any]

    @property
    def fingerprint(self) -> str:
        return str(self.file["fingerprint"])

    @property
    def topics(self) -> list[str]:
        """Return the topics that it changes or refuses."""
        changes = self.file["resource_changes"]
        return [each["name"] for each in changes if each["steps"] or each["refusals"]]

    @property
    def drift(self) -> list[str]:
        return [each["name"] for each in self.file["existing_drift"]]

    @property
    def notes(self) -> str:
        return "\n".join(note["what"] for note in self.file["notes"])


def plan(since: str | None, *more: str) -> Planned:
    """Plan as a job does, on the snapshot."""
    scope = [] if since is None else ["--changed-since", since]
    asked = ["plan", "--cluster", "prod", "--against", "../live.json", *scope, *more]
    code = run([*asked, "--detailed-exitcode", "--out", "../plan.json"])
    return Planned(code, json.loads(Path("../plan.json").read_text()))


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with an estate that is merged, and the snapshot of its cluster."""
    root = tmp_path_factory.mktemp("original")
    made = start_repository(root / "repo")
    made.commit(clusters=CLUSTERS, **BASE)
    made.git("update-ref", TARGET, "HEAD")
    topics = [{"name": n, "partitions": rows, "config": c} for n, (rows, c) in LIVE.items()]
    brokers = [{"id": number} for number in (1, 2, 3)]
    state = {"cluster_id": "one", "brokers": brokers, "topics": topics}
    (root / "live.json").write_text(json.dumps(state))
    return root


@pytest.fixture
def repository(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    root = shutil.copytree(original, tmp_path / "work")
    monkeypatch.chdir(root / "repo")
    return Repository(root / "repo")


def begin(repository: Repository, name: str, start: str = "main") -> None:
    repository.git("switch", "-qc", name, start)


def advance(repository: Repository) -> str:
    """Let another request be merged first. Returns the new commit on main."""
    repository.git("switch", "-q", "main")
    return repository.commit(other=write_spec("other"))


def grow_orders(repository: Repository) -> Planned:
    """Open a request of three commits: a larger topic, a new one, a default. Returns its plan."""
    begin(repository, "work")
    repository.commit(orders=write_spec("orders", 3))
    repository.commit(new=write_spec("new"))
    repository.commit(clusters=CLUSTERS.replace("segment.ms: 1d", "segment.ms: 2d"))
    return plan(TARGET)


def test_a_request_is_responsible_for_its_own_changes(repository: Repository) -> None:
    """Of clusters.yaml too: the profile that changed is that of one topic."""
    request = grow_orders(repository)
    assert request.code == 2
    assert request.topics == ["logs", "new", "orders"]
    assert request.drift == DRIFT
    assert "are planned: 3 of 6 topics" in request.notes


def test_without_a_base_the_same_specs_are_refused(repository: Repository) -> None:
    """This is what the nightly check plans."""
    grow_orders(repository)
    night = plan(None)
    assert night.code == 1
    assert night.topics == ["drifted", "logs", "new", "orders", "refused"]
    assert night.drift == []


def merge(repository: Repository) -> None:
    repository.git("merge", "-q", "--no-ff", "-m", "Merge", "work")


def squash(repository: Repository) -> None:
    repository.git("merge", "-q", "--squash", "work")
    repository.commit()


def rebase(repository: Repository) -> None:
    """Put the three commits onto main, one after the other."""
    repository.git("cherry-pick", "main..work")


@pytest.mark.parametrize("finish", [merge, squash, rebase])
def test_every_merge_has_the_fingerprint_of_its_request(
    repository: Repository, finish: Callable[[Repository], None]
) -> None:
    """It takes the commit on main before the push; the parent of a rebased commit is another."""
    request = grow_orders(repository)
    before = advance(repository)
    finish(repository)
    push = plan(before)
    assert push.fingerprint == request.fingerprint
    assert push.topics == request.topics
    assert push.drift == ["drifted", "other", "refused"]
    parent = plan("HEAD^1")
    assert (parent.fingerprint == request.fingerprint) is (finish is not rebase)


def test_the_temporary_merge_of_a_request_has_the_same_plan(repository: Repository) -> None:
    """GitHub checks out the request merged into its target, GitLab its own branch."""
    request = grow_orders(repository)
    repository.git("update-ref", TARGET, advance(repository))
    repository.git("switch", "-qd", "main")
    merge(repository)
    merged = plan(TARGET)
    assert (merged.fingerprint, merged.topics) == (request.fingerprint, request.topics)


def test_a_push_with_two_requests_is_neither_of_their_plans(repository: Repository) -> None:
    """Its plan has the changes of both, so nobody has approved it."""
    before = repository.git("rev-parse", "main")
    plans = {}
    for name, partitions in (("orders", 3), ("clicks", 5)):
        begin(repository, name)
        repository.commit(**{name: write_spec(name, partitions)})
        plans[name] = plan(TARGET)
        assert plans[name].topics == [name]
    repository.git("switch", "-q", "main")
    for name in plans:
        repository.git("merge", "-q", "--no-ff", "-m", f"Merge {name}", name)
    push = plan(before)
    assert push.topics == ["clicks", "orders"]
    assert push.fingerprint not in {each.fingerprint for each in plans.values()}
    assert plan("HEAD^1").topics == ["clicks"]


def test_the_first_push_plans_everything(repository: Repository) -> None:
    push = plan(NOTHING)
    assert push.topics == DRIFT
    assert push.drift == []
    assert "there was no commit before this push, so every topic is planned" in push.notes
    assert push.fingerprint == plan(None).fingerprint


def clone(repository: Repository, *more: str) -> Repository:
    """Clone a repository as a job does, and work there."""
    path = repository.root.parent / "clone"
    repository.git("clone", "-q", *more, f"file://{repository.root}", str(path))
    return Repository(path)


def test_a_forced_push_whose_commit_is_gone_says_what_to_do(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.commit(orders=write_spec("orders", 9))
    before = repository.git("rev-parse", "HEAD")
    repository.git("reset", "-q", "--hard", "HEAD^")
    repository.commit(orders=write_spec("orders", 3))
    monkeypatch.chdir(clone(repository).root)
    assert (
        run(["plan", "--cluster", "prod", "--against", "../live.json", "--changed-since", before])
        == 64
    )
    assert capsys.readouterr().err == (
        f"error: there is no commit {before} in this repository; fetch it first, or name another "
        "commit; after a forced push, name one that still exists\n"
    )


def test_a_forced_push_whose_commit_is_here_plans_since_the_fork(repository: Repository) -> None:
    """What it takes back is shown as drift, and is not undone by it."""
    before = repository.commit(orders=write_spec("orders", 9))
    repository.git("reset", "-q", "--hard", "HEAD^")
    repository.commit(clicks=write_spec("clicks", 5))
    push = plan(before)
    assert (push.topics, push.drift) == (["clicks"], DRIFT)


@pytest.mark.parametrize("since", [TARGET, "before"])
def test_a_shallow_clone_says_how_to_get_the_rest(
    since: str,
    repository: Repository,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = repository.git("rev-parse", "HEAD")
    grow_orders(repository)
    monkeypatch.chdir(clone(repository, "--depth", "1", "--branch", "work").root)
    name = before if since == "before" else since
    asked = ["plan", "--cluster", "prod", "--against", "../live.json", "--changed-since", name]
    capsys.readouterr()
    assert run(asked) == 64
    assert capsys.readouterr().err == (
        f"error: there is no commit {name} in this repository; this clone is shallow: "
        "git fetch --unshallow, or fetch-depth: 0 in the workflow\n"
    )


# Deletions.


def change_live(repository: Repository, **topics: Sequence[Sequence[int]]) -> None:
    """Let the cluster have these topics as well."""
    path = repository.root.parent / "live.json"
    state = json.loads(path.read_text())
    state["topics"] += [{"name": name, "partitions": rows} for name, rows in topics.items()]
    path.write_text(json.dumps(state))


def test_a_request_that_removes_a_spec_deletes_nothing_and_says_so(repository: Repository) -> None:
    begin(repository, "work")
    (repository.root / "topics" / "orders.yaml").unlink()
    repository.commit()
    request = plan(TARGET)
    assert (request.code, request.topics, request.drift) == (0, [], DRIFT)
    assert request.file["unmanaged"] == ["orders"]
    assert "): orders; nothing is done to them" in request.notes


def test_a_deletion_belongs_to_the_request_that_asks_for_it(repository: Repository) -> None:
    """A later request lists it as drift, as long as it is pending."""
    begin(repository, "work")
    repository.commit(orders="topic: orders\nstate: absent\n")
    request = plan(TARGET)
    assert (request.code, request.topics) == (1, ["orders"])
    (change,) = request.file["resource_changes"]
    assert "deletion-budget" in {refusal["rule"] for refusal in change["refusals"]}
    begin(repository, "next", "work")
    repository.git("update-ref", TARGET, "work")
    repository.commit(clicks=write_spec("clicks", 5))
    later = plan(TARGET)
    assert (later.code, later.topics) == (2, ["clicks"])
    assert later.drift == ["drifted", "orders", "refused"]
    orders = later.file["existing_drift"][1]
    assert (orders["actions"], orders["differs"][0]["path"]) == (["delete"], "state")


def test_a_deletion_that_is_taken_back_restores_the_topic_or_leaves_it(
    repository: Repository,
) -> None:
    """Without `state: absent`, a topic that is still there stays, and a deleted one is created."""
    repository.commit(orders="topic: orders\nstate: absent\n", gone="topic: gone\nstate: absent\n")
    repository.git("update-ref", TARGET, "HEAD")
    begin(repository, "work")
    repository.commit(orders=write_spec("orders"), gone=write_spec("gone"))
    request = plan(TARGET)
    assert (request.code, request.topics) == (2, ["gone"])
    assert request.file["resource_changes"][-1]["steps"] == ["create"]


def test_a_spec_of_a_deleted_topic_is_removed_without_a_trace(repository: Repository) -> None:
    repository.commit(gone="topic: gone\nstate: absent\n", kept="topic: kept\nstate: absent\n")
    repository.git("update-ref", TARGET, "HEAD")
    change_live(repository, kept=ROWS)
    begin(repository, "work")
    for name in ("gone", "kept"):
        (repository.root / "topics" / f"{name}.yaml").unlink()
    repository.commit()
    request = plan(TARGET)
    assert (request.code, request.topics) == (0, [])
    assert "): kept; nothing is done to them" in request.notes


# Guards.


def test_a_guard_counts_the_changes_of_the_request(repository: Repository) -> None:
    """Two topics have drifted, and a request of five is not one of seven."""
    more = {f"more{number}": write_spec(f"more{number}") for number in range(5)}
    change_live(repository, **dict.fromkeys(more, ROWS))
    repository.commit(**more)
    repository.git("update-ref", TARGET, "HEAD")
    begin(repository, "work")
    repository.commit(**{name: text.replace("s: 2", "s: 3", 1) for name, text in more.items()})
    assert plan(TARGET).code == 2
    assert plan(None).code == 1


def test_a_request_that_raises_a_guard_changes_no_other_topic(repository: Repository) -> None:
    begin(repository, "work")
    repository.commit(clusters=CLUSTERS.replace("40%", "60%"))
    request = plan(TARGET)
    assert (request.code, request.topics, request.drift) == (0, [], DRIFT)
    assert "clusters.yaml changes guards of prod since" in request.notes


def test_settings_that_other_plans_are_based_on_are_noted_where_they_change(
    repository: Repository,
) -> None:
    begin(repository, "work")
    same = CLUSTERS.replace("{max_changed", "{max_deletes: 0, max_changed")
    repository.commit(clusters=same, new=write_spec("new"))
    assert "clusters.yaml changes" not in plan(TARGET).notes
    more = "40%}, capacity: {1: 2}, strategy: striped"
    repository.commit(clusters=CLUSTERS.replace("40%}", more))
    (note,) = (n for n in plan(TARGET).file["notes"] if n["rule"] == "settings-changed")
    assert note["what"].startswith("clusters.yaml changes capacity and strategy of prod since ")
    assert "settings-changed" not in {n["rule"] for n in plan(NOTHING).file["notes"]}


def alerts(planned: Planned) -> list[str]:
    return [f"{alert['what']} [{alert['rule']}]" for alert in planned.file["alerts"]]


def test_a_request_that_only_removes_a_spec_says_what_becomes_of_the_topic(
    repository: Repository,
) -> None:
    begin(repository, "request")
    repository.git("rm", "-q", "topics/clicks.yaml")
    repository.commit()
    planned = plan(TARGET)
    assert planned.topics == []
    (note,) = (note for note in planned.file["notes"] if note["rule"] == "topics-left")
    assert note["what"].startswith("unmanaged since origin/main (")
    assert note["what"].endswith("): clicks; nothing is done to them")


def test_a_request_that_takes_topics_to_another_owner_says_so(repository: Repository) -> None:
    repository.commit(orders=write_spec("orders", more="owner: orders-team\n"))
    repository.git("update-ref", TARGET, "HEAD")
    begin(repository, "request")
    repository.commit(
        orders=write_spec("orders", more="owner: evil-team\n"),
        clicks=write_spec("clicks", 4, "owner: evil-team\n"),
    )
    planned = plan(TARGET)
    assert planned.topics == []
    assert alerts(planned) == [
        "the request changes the owner from nobody to evil-team: clicks [owner-changed]",
        "the request changes the owner from orders-team to evil-team: orders [owner-changed]",
    ]
    assert alerts(plan(None)) == []


def test_specs_of_topics_as_they_are_are_listed_as_such(repository: Repository) -> None:
    """Such as imported ones: a night may restore them, although no apply made them."""
    begin(repository, "request")
    agreed = "config: {retention.ms: 1d}\n"
    repository.commit(drifted=write_spec("drifted", 2, agreed), other=write_spec("other"))
    planned = plan(TARGET)
    assert planned.topics == ["other"]
    assert planned.file["agreed"] == ["drifted"]
    assert "as specified already: drifted" in planned.notes
    assert [n["rule"] for n in planned.file["notes"]].count("topics-agreed") == 1
    assert "agreed" not in plan(None).file


def test_a_plan_of_named_topics_leaves_the_others_as_drift(repository: Repository) -> None:
    Path("../accepted.json").write_text('{"cluster": "prod", "topics": ["drifted"]}')
    whole = plan(None)
    named = plan(None, "--only", "../accepted.json")
    assert (whole.topics, named.topics) == (["drifted", "refused"], ["drifted"])
    assert (named.code, named.drift) == (2, ["refused"])
    said = "only the named topics are planned: 1; 1 others that differ"
    assert said in named.notes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"cluster": "other"}', "--only has topics of other, not of prod"),
        ('{"topics": []}', "has no accepted topics: cluster: Field required"),
    ],
)
def test_a_file_of_named_topics_that_does_not_fit_is_refused(
    text: str, said: str, repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("../accepted.json").write_text(text)
    words = ["plan", "--cluster", "prod", "--against", "../live.json"]
    assert run([*words, "--only", "../accepted.json"]) != 0
    assert said in capsys.readouterr().err
