"""Laws of the usual form: written twice it is the same, and no estate means something else."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import choose

from reconciler.adopt.draft import open_draft
from reconciler.adopt.formatting import format_estate, format_text
from reconciler.spec.configs import choose_catalogue

CATALOGUE = choose_catalogue(None)
CLUSTERS = """\
version: 1
defaults:
    replication_factor: 3   # everywhere
    config: {min.insync.replicas: "2"}
profiles: {log: {config: {retention.ms: 604800000}}}
clusters:
   prod: {}
   lab: {defaults: {labels: {tier: 'tin'}}}
"""
KEYS = {
    "owner": ("us", "'us'", '"no"', "'@acme/us'"),
    "description": ("Plain.", "'a: b'", '"1"', "|\n  two\n\n  # lines   \n", ">-\n  one\n  line\n"),
    "partitions": ("3", "12"),
    "profile": ("log", '"log"'),
    "config": (
        "{retention.ms: 86400000}",
        "{\n  flush.ms: '60000',\n  cleanup.policy: [compact]}",
        "\n    flush.ms: 60000\n    cleanup.policy:\n    - compact\n    - delete",
        "\n flush.messages: \"7\"\n preallocate: 'true'",
    ),
    "labels": ("{a: 'true', b: \"x\"}", "\n   a: x\n   b: null"),
    "overrides": (
        "{lab: {partitions: 24,\n config: {retention.ms: 36h}}}",
        "\n   lab:\n      state: absent",
    ),
    "acknowledge": ("[ordering]", "\n- ordering\n- data-loss: retention.ms 7d → 1h"),
    "rack_aware": ("false",),
}
COMMENTS = ("", "", "  # why", " #why   ")
ABOVE = ("", "", "\n", "# above\n", "\n\n  # indented\n\n", "    # deep   \n")


@st.composite
def files(draw: st.DrawFn) -> str:
    """Draw a file of topics as people write them: any spelling, comments anywhere."""
    documents = []
    for number in range(draw(st.integers(1, 3))):
        keys = draw(st.lists(st.sampled_from(sorted(KEYS)), unique=True, max_size=5))
        text = draw(st.sampled_from(ABOVE)) + f"topic:  t{number}\n"
        for key in keys:
            value = draw(st.sampled_from(KEYS[key]))
            blank = "" if value.startswith("\n") else " " * draw(st.integers(1, 3))
            comment = "" if "\n" in value else draw(st.sampled_from(COMMENTS))
            text += draw(st.sampled_from(ABOVE))
            text += f"{key}:{blank}{value.rstrip(chr(10))}{comment}\n"
        documents.append(text + draw(st.sampled_from(ABOVE)))
    return draw(st.sampled_from(("---\n", "--- # next\n", "\n\n---\n"))).join(documents)


@settings(max_examples=choose(30, 400))
@given(files())
def test_the_usual_form_is_a_fixed_point_and_means_the_same(text: str) -> None:
    draft = open_draft({"clusters.yaml": CLUSTERS.encode(), "t.yaml": text.encode()}, "topics")
    done = format_estate(draft, draft.texts)
    assert [str(note) for note in done.notes if "mean" in note.what] == []
    after = draft.change(done.texts)
    assert format_estate(after, after.texts).texts == {}
    for cluster in ("prod", "lab"):
        before, now = (
            [(s.name, s.owner, s.description, s.partitions, s.config, s.labels, s.absent, s.entries)
             for s in each.topics_for(cluster)]
            for each in (draft.estate, after.estate)
        )  # fmt: skip
        assert before == now


@settings(max_examples=choose(30, 400))
@given(files(), st.integers(0, 2**32))
def test_no_comment_is_lost(text: str, seed: int) -> None:
    marks = [f"# mark {number}" for number in range(text.count("# above") + text.count("# why"))]
    random.Random(seed).shuffle(marks)
    for mark in marks:
        text = text.replace("# above" if "# above" in text else "# why", mark, 1)
    written, _ = format_text(text, CATALOGUE)
    for mark in marks:
        assert f"{mark}\n" in written
