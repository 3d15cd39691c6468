"""`plan --base REV`: what a request loosens comes first, and the base's guards may hold."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from repository import Repository, start_repository

from reconciler.cli.app import run

TOPICS = [f"t{n}" for n in range(40)]
SNAPSHOT = {
    "brokers": [{"id": n} for n in (1, 2, 3)],
    "topics": [{"name": name, "partitions": [[1]]} for name in TOPICS],
    "config_defaults": {},
}
CLUSTERS = """\
version: 1
clusters:
  prod:
    client: {bootstrap.servers: 'a:1'}
    guards: {max_changed: 30%FROM}
"""
PLAN = ("plan", "--cluster", "prod", "--against", "s.json", "--base", "main")


def specs(partitions: int) -> str:
    return "---\n".join(f"topic: {name}\npartitions: {partitions}\n" for name in TOPICS)


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Repository]:
    """Return what starts a repository, on a branch of its own, by the guards of its main."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.json").write_text(json.dumps(SNAPSHOT))

    def start(more: str) -> Repository:
        made = start_repository(tmp_path)
        made.commit(clusters=CLUSTERS.replace("FROM", more), a=specs(1))
        made.git("switch", "-qc", "work")
        return made

    return start


def loosen(repository: Repository, partitions: int = 1) -> str:
    """Loosen the guard, on a line that the request adds, and return the base, short."""
    text = Path("topics/clusters.yaml").read_text().replace("30%", "100%")
    repository.commit(clusters=f"# ours\n{text}", a=specs(partitions))
    return repository.git("rev-parse", "main")[:10]


SAID = (
    "topics/clusters.yaml:6: the request loosens guards.max_changed of prod: 30% → 100%; the new "
    "value applies once this is merged; review it first [guard-loosened]"
)


def test_a_looser_guard_comes_first_even_if_nothing_else_changes(
    start: Callable[[str], Repository], capsys: pytest.CaptureFixture[str]
) -> None:
    loosen(start(""))
    assert run([*PLAN, "--detailed-exitcode"]) == 0
    first, second, *_ = capsys.readouterr().out.split("\n\n")
    assert first.startswith("prod · ")
    assert second == f"warning: {SAID}"


def test_every_form_shows_a_looser_guard_first(
    start: Callable[[str], Repository], capsys: pytest.CaptureFixture[str]
) -> None:
    loosen(start(""), partitions=2)
    said = {}
    for form in ("json", "markdown", "github"):
        assert run([*PLAN, "--format", form]) == 0
        said[form] = capsys.readouterr().out
    document = json.loads(said["json"])
    (alert,) = document["alerts"]
    assert (alert["rule"], alert["severity"]) == ("guard-loosened", "warning")
    assert alert["where"] == {"file": "topics/clusters.yaml", "line": 6, "column": 14}
    assert "guard-loosened" not in json.dumps(document["notes"])
    _, _, _, alarm, *_ = said["markdown"].split("\n\n")
    assert alarm == (
        "> [!CAUTION]\n> - **The request loosens guards.max_changed of prod: 30% → 100%.** "
        "`guard-loosened` `topics/clusters.yaml:6`\n>\n"
        "> The new value applies once this is merged; review it first."
    )
    assert said["github"].startswith(
        "::warning file=topics/clusters.yaml,line=6,col=14,title=guard-loosened::the request "
    )


def test_a_tighter_guard_is_no_danger(
    start: Callable[[str], Repository], capsys: pytest.CaptureFixture[str]
) -> None:
    made = start("")
    made.commit(clusters=CLUSTERS.replace("30%FROM", "5%, unused_for: 30d"))
    assert run([*PLAN, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["alerts"] == []


def test_what_the_base_loosened_later_is_not_shown(
    start: Callable[[str], Repository], capsys: pytest.CaptureFixture[str]
) -> None:
    made = start("")
    made.git("switch", "-q", "main")
    loosen(made)
    made.git("switch", "-q", "work")
    assert run([*PLAN, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["alerts"] == []


def test_alerts_are_in_the_file_and_not_in_the_fingerprint(
    start: Callable[[str], Repository], capsys: pytest.CaptureFixture[str]
) -> None:
    loosen(start(""), partitions=2)
    assert run([*PLAN, "--out", "request.json"]) == 0
    assert run([*PLAN[:-2], "--out", "merged.json"]) == 0
    request, merged = (json.loads(Path(f).read_text()) for f in ("request.json", "merged.json"))
    assert [bool(plan["alerts"]) for plan in (request, merged)] == [True, False]
    assert request["fingerprint"] == merged["fingerprint"]
    capsys.readouterr()
    assert run(["show", "request.json"]) == 0
    assert SAID in capsys.readouterr().out


def test_the_guards_of_the_base_refuse_what_the_new_ones_allow(
    start: Callable[[str], Repository], capsys: pytest.CaptureFixture[str]
) -> None:
    base = loosen(start(", from: base"), partitions=2)
    assert run([*PLAN, "--out", "request.json"]) == 1
    said = capsys.readouterr().out
    assert "max_changed: 30% allows 12." in said
    assert f"this plan uses the guard of {base}, because of guards: {{from: base}} there" in said
    assert run([*PLAN[:-2], "--out", "merged.json"]) == 0
    request, merged = (json.loads(Path(f).read_text()) for f in ("request.json", "merged.json"))
    assert request["fingerprint"] != merged["fingerprint"]  # so the merge applies nothing


def test_a_request_cannot_switch_the_guards_of_the_base_off(
    start: Callable[[str], Repository], capsys: pytest.CaptureFixture[str]
) -> None:
    made = start(", from: base")
    made.commit(clusters=CLUSTERS.replace("30%FROM", "100%"), a=specs(2))
    assert run(PLAN) == 1
    said = capsys.readouterr().out
    assert "the request loosens guards.from of prod: base → request" in said
    assert "[guard-max-changed]" in said


def test_specs_that_only_the_new_policy_allows_get_no_plan(
    start: Callable[[str], Repository], capsys: pytest.CaptureFixture[str]
) -> None:
    made = start(", from: base")
    made.git("switch", "-q", "main")
    policy = "policy: {partitions: {max: 4}}\n"
    text = Path("topics/clusters.yaml").read_text()
    made.commit(clusters=text + policy)
    made.git("switch", "-qc", "more")
    made.commit(clusters=text + policy.replace("4", "9"), a=specs(6))
    assert run(PLAN) == 1
    said = capsys.readouterr().err
    assert "partitions 6 exceeds 4, the most that the policy of prod allows" in said
    assert "the request loosens policy.partitions.max of prod: 4 → 9" in said
    assert run(["validate"]) == 0


def test_moves_that_only_the_request_allows_get_no_plan(
    start: Callable[[str], Repository], capsys: pytest.CaptureFixture[str]
) -> None:
    made = start(", from: base")
    text = Path("topics/clusters.yaml").read_text()
    made.commit(clusters=f"{text}    moves: {{allow: [drain], rate: 1MiB}}\n")
    assert run([*PLAN, "--moves"]) == 64
    said = capsys.readouterr().err
    assert "prod allows no moves" in said
    assert "the request loosens moves of prod: none → drain" in said


def test_a_changed_client_comes_before_looser_guards(
    start: Callable[[str], Repository], capsys: pytest.CaptureFixture[str]
) -> None:
    made = start("")
    base = loosen(made)
    text = Path("topics/clusters.yaml").read_text().replace("'a:1'", "'b:2', client.id: x")
    made.commit(clusters=text)
    assert run(PLAN) == 0
    alerts = capsys.readouterr().out.split("\n\n")[1].splitlines()
    assert [line.rpartition(" ")[2] for line in alerts] == ["[client-changed]", "[guard-loosened]"]
    assert f"not that of {base}: it differs in bootstrap.servers, client.id;" in alerts[0]


def test_usage(start: Callable[[str], Repository], capsys: pytest.CaptureFixture[str]) -> None:
    start("")
    assert run([*PLAN[:-1], "nosuch"]) == 64
    assert "there is no commit nosuch in this repository" in capsys.readouterr().err


def test_without_git_there_is_no_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.json").write_text(json.dumps(SNAPSHOT))
    Path("topics").mkdir()
    assert run(PLAN) == 64
    assert "leave out --base" in capsys.readouterr().err


POLICY = CLUSTERS.replace("{max_changed: 30%FROM}", "{FROM}") + "policy: {partitions: {max: 3}}\n"
ENTRY = "topic: {}\nrule: policy-partitions\nvalue: {}\nreason: It is older.\n"
SAID_OF_BASELINE = (
    "topics/policy-baseline.yaml:1: the request loosens policy.baseline of prod: 2 new or wider "
    "exemptions: t0 (policy-partitions 6), t2 (policy-partitions 4)"
)


def start_baseline(repository: Repository, guard: str = "") -> None:
    """Let a topic of main be exempt from the policy, and go to the branch of a request."""
    repository.git("switch", "-q", "main")
    Path("topics/policy-baseline.yaml").write_text(ENTRY.format("t0", 5))
    clusters = POLICY.replace("FROM", guard)
    repository.commit(clusters=clusters, a="topic: t0\npartitions: 5\n---\ntopic: t2\n")
    repository.git("branch", "-f", "work", "main")
    repository.git("switch", "-q", "work")


def widen_baseline(repository: Repository) -> None:
    """Exempt one more topic, and another one for more than it had."""
    entries = [ENTRY.format("t0", 6), ENTRY.format("t2", 4)]
    Path("topics/policy-baseline.yaml").write_text("---\n".join(entries))
    repository.commit(a="topic: t0\npartitions: 6\n---\ntopic: t2\npartitions: 4\n")


def test_a_baseline_does_not_grow_unnoticed(
    start: Callable[[str], Repository], capsys: pytest.CaptureFixture[str]
) -> None:
    made = start("")
    start_baseline(made)
    widen_baseline(made)
    assert run(PLAN) == 0
    said = f"warning: {SAID_OF_BASELINE}; the new value applies once this is merged"
    assert said in capsys.readouterr().out
    assert run([*PLAN, "--format", "markdown"]) == 0
    assert (
        "> [!CAUTION]\n> - **The request loosens policy.baseline of prod: 2 new or wider "
        "exemptions: t0 (policy-partitions 6), t2 (policy-partitions 4).**"
    ) in capsys.readouterr().out


def test_the_baseline_of_the_base_holds_if_it_asks_for_that(
    start: Callable[[str], Repository], capsys: pytest.CaptureFixture[str]
) -> None:
    made = start("")
    start_baseline(made, "from: base")
    widen_baseline(made)
    assert run(PLAN) == 1
    said = capsys.readouterr().err
    assert "partitions 6 exceeds 3" in said
    assert "(the baseline exempts 5)" in said
    assert "partitions 4 exceeds 3" in said
    assert SAID_OF_BASELINE.removeprefix("topics/policy-baseline.yaml:1: ") in said
    assert "this plan uses the guard of " in said
    assert run(["validate"]) == 0  # which checks what is written


@pytest.mark.parametrize("guard", ["", "from: base"])
def test_a_smaller_baseline_holds_at_once_and_is_no_danger(
    guard: str, start: Callable[[str], Repository], capsys: pytest.CaptureFixture[str]
) -> None:
    made = start("")
    start_baseline(made, guard)
    Path("topics/policy-baseline.yaml").unlink()
    made.commit(a="topic: t0\npartitions: 3\n")
    assert run([*PLAN, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["alerts"] == []
    made.commit(a="topic: t0\npartitions: 5\n")
    assert run(PLAN) == 1


def test_a_policy_can_come_with_its_baseline(
    start: Callable[[str], Repository], capsys: pytest.CaptureFixture[str]
) -> None:
    made = start(", from: base")
    Path("topics/policy-baseline.yaml").write_text(ENTRY.format("t0", 5))
    text = CLUSTERS.replace("FROM", ", from: base") + "policy: {partitions: {max: 3}}\n"
    made.commit(clusters=text, a="topic: t0\npartitions: 5\n")
    assert run([*PLAN, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["alerts"] == []


def test_no_link_decides_what_the_base_exempts(
    start: Callable[[str], Repository], capsys: pytest.CaptureFixture[str]
) -> None:
    made = start("")
    start_baseline(made)
    place = Path("topics/policy-baseline.yaml")
    place.rename("topics/other.txt")
    place.symlink_to("other.txt")
    assert run(PLAN) == 1
    assert "policy-baseline.yaml is a symbolic link" in capsys.readouterr().err
    made.commit()
    made.git("branch", "-f", "main", "work")
    place.unlink()
    place.write_text(ENTRY.format("t0", 5))
    assert run(PLAN) == 1
    assert "policy-baseline.yaml is a symbolic link at " in capsys.readouterr().err
