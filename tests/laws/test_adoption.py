"""Laws of imports: whatever a cluster has, the plan after an import is empty, and stays so."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st
from shorthand import cluster
from sizes import choose
from worlds import NAMES, broker_lists, live_topics

from reconciler.adopt.draft import Adoption, open_draft
from reconciler.adopt.live import AdoptionRequest, adopt_topics
from reconciler.api.estate_files import read_estate_files, write_texts
from reconciler.api.planning import build_plan, load_estate
from reconciler.model.cluster import ClusterState, TopicState
from reconciler.model.plan import PlannedTopic
from reconciler.model.steps import steps_of

ODD_NAMES = ("null", "true", "012", "1e3", "-", "_", ".x", "no", "clusters", "0x1f")


few = settings(max_examples=choose(6, 40))
"""Each example writes files and reads them four times."""


@st.composite
def found(draw: st.DrawFn) -> ClusterState:
    """Draw a cluster and what is on it: odd names, collisions, mixed replication, left-overs."""
    nodes = draw(broker_lists(least=3))
    ids = [broker.id for broker in nodes]
    names = draw(st.sets(st.sampled_from((*NAMES, *ODD_NAMES)), max_size=9))
    topics = {name: draw(live_topics(name, ids)) for name in sorted(names)}
    return ClusterState("cluster-1", nodes, topics, {"min.insync.replicas": "1"})


def adopt(root: Path, state: ClusterState, name: str = "prod", *, rows: bool) -> Adoption:
    draft = open_draft(read_estate_files(root), str(root))
    adoption = adopt_topics(draft, state, AdoptionRequest(name, assignments=rows))
    write_texts(root, adoption.texts)
    return adoption


def list_work(root: Path, state: ClusterState, name: str = "prod") -> list[PlannedTopic]:
    plan = build_plan(load_estate(root), name, state)
    return [topic for topic in plan.topics if steps_of(topic) or topic.refusals]


@few
@given(found(), st.booleans())
def test_the_plan_after_an_import_is_empty(state: ClusterState, rows: bool) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        adoption = adopt(root, state, rows=rows)
        assert adoption.differences == 0
        assert list_work(root, state) == []
        left_out = {note.what.split()[0] for note in adoption.notes if "left-out" in note.rule}
        assert {*adoption.written} | left_out == {*state.topics}


@few
@given(found(), st.booleans())
def test_a_second_import_changes_nothing(state: ClusterState, rows: bool) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        adopt(root, state, rows=rows)
        again = adopt(root, state, rows=rows)
        assert dict(again.texts) == {}
        assert again.written == again.updated == ()


def found_with(config: dict[str, str]) -> ClusterState:
    topic = TopicState("a", "id-a", ((0,),), config)
    return cluster(topic, defaults={"min.insync.replicas": "1"})


def only_makes_explicit(topic: PlannedTopic) -> bool:
    if topic.before is None or topic.after is None:
        return False
    changed = {
        key
        for key in {*topic.before.config, *topic.after.config}
        if topic.before.config.get(key) != topic.after.config.get(key)
    }
    same = topic.before.assignment == topic.after.assignment
    return bool(changed) and same and changed <= {*topic.explicit}


WRITTEN = found_with({"cleanup.policy": "delete", "min.insync.replicas": "1"})
BY_DEFAULT = found_with({})
"""What is written of the one is in force on the other by the defaults of its brokers."""


@few
@given(found(), found(), st.booleans())
@example(WRITTEN, BY_DEFAULT, False)
def test_an_import_follows_a_cluster_that_moved(
    before: ClusterState, after: ClusterState, rows: bool
) -> None:
    """But for values that are written, and in force by the brokers' defaults alone."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        adopt(root, before, rows=rows)
        adoption = adopt(root, after, rows=rows)
        stuck = {note.what.split()[0] for note in adoption.notes}
        work = list_work(root, after)
        explicit = {topic.name for topic in work if only_makes_explicit(topic)}
        assert bool(explicit) == any(note.rule == "import-explicit" for note in adoption.notes)
        moving = {topic.name for topic in work} - explicit
        assert moving - stuck == set()
        assert moving & {*adoption.written, *adoption.updated} == set()


@few
@given(found(), found())
@example(WRITTEN, BY_DEFAULT)
def test_a_second_cluster_joins_and_both_plans_are_empty(
    first: ClusterState, second: ClusterState
) -> None:
    """But for values that are written, and in force there by the brokers' defaults alone."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        adopt(root, first, rows=False)
        adoption = adopt(root, second, "staging", rows=False)
        rules = [note.rule for note in adoption.notes]
        work = list_work(root, second, "staging")
        explicit = [topic for topic in work if only_makes_explicit(topic)]
        assert len(work) - len(explicit) == rules.count("import-differs")
        assert bool(explicit) == ("import-explicit" in rules)
        assert list_work(root, first) == []
