"""Notes that a cluster mutes: which can be, what a plan says instead, and what never is."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from shorthand import brokers, cluster, may_move, topic

import reconciler
from reconciler.api.planning import load_estate
from reconciler.changes.plan import plan_cluster
from reconciler.diff.notes import mute_notes
from reconciler.errors import Finding, FindingsError, Location, Severity
from reconciler.moves.plan import plan_moves
from reconciler.moves.rebalance import plan_rebalance
from reconciler.rulebook import MUTABLE
from reconciler.spec.entry import ClusterEntry

FOUR = brokers(None, None, None, None)
ENTRY = ClusterEntry("prod", Location("topics/clusters.yaml", 2), moves=may_move())
COMPUTED = {"kafka-version-newer", "kafka-version-older"}
"""Rules whose ids are not literals where their notes are made."""


def test_every_plan_leaves_out_muted_notes_and_counts_them() -> None:
    muted = frozenset({"internal-replication", "broker-not-registered"})
    entry = replace(ENTRY, mute=muted, capacity={9: 2})
    offsets = replace(topic("1", "__consumer_offsets"), internal=True)
    state = cluster(offsets, topic("1,2,3"), nodes=FOUR)
    for make in (plan_cluster, plan_moves, plan_rebalance):
        before = {note.rule for note in make(replace(entry, mute=frozenset()), [], state).notes}
        assert muted <= before
        notes = make(entry, [], state).notes
        assert {note.rule for note in notes} == before - muted | {"notes-muted"}
        (line,) = (note for note in notes if note.rule == "notes-muted")
        assert line.severity is Severity.NOTE
        said = "2 notes muted by clusters.yaml: 1 broker-not-registered, 1 internal-replication"
        assert line.what == said


def test_a_warning_and_an_error_are_never_muted() -> None:
    entry = replace(ENTRY, mute=frozenset({"not-managed"}))
    kept = [Finding("not-managed", "a", severity=s) for s in (Severity.WARNING, Severity.ERROR)]
    assert mute_notes(entry, kept) == tuple(kept)
    note = replace(kept[0], severity=Severity.NOTE)
    left = mute_notes(entry, [note, *kept, note])
    assert left[:-1] == tuple(kept)
    assert left[-1].what == "2 notes muted by clusters.yaml: 2 not-managed"


def test_only_notes_have_a_rule_that_can_be_muted() -> None:
    """A rule of an error or a warning as well would say more than a note."""
    found: dict[str, set[str]] = {}
    for file in Path(reconciler.__file__).parent.rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "Finding":
                rule, *more = map(ast.unparse, call.args)
                given = [*more[3:], *(ast.unparse(k.value) for k in call.keywords
                                      if k.arg == "severity")]  # fmt: skip
                found.setdefault(rule.strip("'"), set()).add(given[0] if given else "error")
    direct = set(MUTABLE) - COMPUTED
    assert {rule: found[rule] for rule in direct} == {rule: {"Severity.NOTE"} for rule in direct}
    assert not COMPUTED & found.keys()


def estate(tmp_path: Path, mute: str) -> Path:
    text = f"version: 1\nclusters: {{prod: {{mute: {mute}}}}}\n"
    (tmp_path / "clusters.yaml").write_text(text)
    (tmp_path / "a.yaml").write_text("topic: a\npartitions: 1\nreplication_factor: 1\n")
    return tmp_path


def test_clusters_yaml_mutes_the_notes_of_a_cluster(tmp_path: Path) -> None:
    entry = load_estate(estate(tmp_path, "[not-managed]")).clusters["prod"]
    assert entry.mute == {"not-managed"}
    assert entry.where("mute").line == 2


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("not-manged", "mute 'not-manged' is unknown; did you mean not-managed? [value-choice]"),
        (
            "nothing",
            f"mute 'nothing' is unknown; write one of {', '.join(MUTABLE)} [value-choice]",
        ),
        *(
            (
                rule,
                f"{rule} cannot be muted, only notes that repeat in every plan of a cluster can; "
                f"remove it, or write one of {', '.join(MUTABLE)} [value-choice]",
            )
            for rule in ("rf-le-brokers", "directory-offline", "notes-muted")
        ),
    ],
)
def test_any_other_rule_is_an_error(rule: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(FindingsError) as caught:
        load_estate(estate(tmp_path, f"[{rule}]"))
    assert [str(one).partition(": ")[2] for one in caught.value.findings] == [said]
