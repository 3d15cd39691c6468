"""Needs: a rehearsal that would not fit is refused with the numbers and the way out."""

from __future__ import annotations

import pytest
from shorthand import cluster, plan, said, spec, topic

from reconciler.rehearse.needs import Machine, Needs, measure_needs
from reconciler.rehearse.setup import choose_release, prepare_setup


def test_needs_are_close_to_what_clusters_took_at_work() -> None:
    assert Needs(60, 7_200).memory_mb == pytest.approx(1_938, rel=0.1)
    assert Needs(3, 4_000).memory_mb == pytest.approx(387, rel=0.1)


@pytest.mark.parametrize(
    ("brokers", "replicas", "files"), [(3, 0, 155), (12, 0, 417), (60, 0, 1808), (3, 4000, 4184)]
)
def test_files_are_close_to_what_clusters_held_open(
    brokers: int, replicas: int, files: int
) -> None:
    assert Needs(brokers, replicas).files == pytest.approx(files, rel=0.1)


def test_a_scene_and_the_plan_on_it_are_added_up() -> None:
    state = cluster(topic("1,2"), topic("1", "audit"))
    made = plan([spec(partitions=3)], state)
    assert measure_needs(prepare_setup(made, state, "4.4.0"), made) == Needs(3, 7)


def test_what_fits_is_not_refused() -> None:
    assert [*Needs(60, 10_000).refuse_beyond(Machine(2_000, 20_000))] == []
    assert [*Needs(60, 10_000).refuse_beyond(Machine(None, None))] == []


def test_what_does_not_fit_is_refused_with_the_numbers() -> None:
    assert said(Needs(60, 30_000).refuse_beyond(Machine(1_000, 20_000))) == [
        "60 brokers and 30,000 replicas take about 2,490 MB; 1,000 MB are free; rehearse fewer "
        "topics with --topic GLOB, or on a larger machine; `reconciler simulate` needs no brokers "
        "[rehearsal-fits]",
        "60 brokers and 30,000 replicas take 31,870 open files; a process may have 20,000; "
        "rehearse fewer topics with --topic GLOB, or on a larger machine; `reconciler simulate` "
        "needs no brokers [rehearsal-fits]",
    ]


KNOWN = ("3.9.2", "4.1.2", "4.4.0")


@pytest.mark.parametrize(
    ("wanted", "release", "noted"),
    [
        ("4.1.2", "4.1.2", False),
        ("4.1", "4.1.2", False),
        ("4.1.0", "4.1.2", True),
        ("4.2", "4.1.2", True),
        ("3.6", "3.9.2", True),
        ("5.0", "4.4.0", True),
        (None, "4.4.0", True),
    ],
)
def test_the_release_is_the_clusters_own_or_the_nearest(
    wanted: str | None, release: str, noted: bool
) -> None:
    chosen, notes = choose_release(wanted, KNOWN)
    assert (chosen, bool(notes)) == (release, noted)
