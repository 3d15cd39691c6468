"""Whatever bytes an estate is made of, the answer is an estate or findings, and nothing else."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.api.planning import load_estate
from reconciler.errors import Finding, SpecError
from reconciler.spec.syntax import load_text
from reconciler.spec.values import YamlList, YamlMap, YamlText, YamlValue

ROOT = Path(__file__).parents[2]
CLUSTERS = (
    (ROOT / "topics" / "clusters.yaml").read_bytes()
    + b"""\
    known_configs: [retention.ms]
    policy:
      exempt: {policy-owner: [shop.*]}
      rules:
        few: {when: spec.partitions != null, check: spec.partitions < 9, message: Few., on: spec}
        big: {check: "spec.config['segment.bytes'] < 1 * GiB", message: Small., severity: note}
"""
)
TOPICS = (
    (ROOT / "topics" / "shop.yaml").read_bytes()
    + b"""\
---
topic: a
clusters: [prod-eu]
assignment: {0: [1, 2, 3], 1: [2, 3, 1]}
acknowledge: [ordering: 1 -> 2, data-loss: retention.ms 7d -> 1h]
overrides: {prod-eu: {state: absent, acknowledge: [data-loss], rack_aware: false}}
---
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaTopic
metadata: {name: b, labels: {strimzi.io/cluster: prod-eu}, annotations: {jikkou.io/delete: true}}
spec: {partitions: 3, replicas: 3, config: {retention.ms: 7d}}
"""
)
TOKENS = [
    *(token.encode() for token in ("- ", ": ", "{", "}", "[", "]", "&a ", "*a", "!!int ", "!x ")),
    *(
        token.encode()
        for token in ("'", '"', "|\n", ">\n", "? ", "#", "---\n", "...\n", "%YAML 1.2\n")
    ),
    *(
        token.encode()
        for token in ("\t", "\r", "\u2028", "\x85", "\ufeff", "\x00", "<<: ", "~", "null")
    ),
    *(
        token.encode()
        for token in ("012", "1e3", ".inf", "-1", "9" * 30, "yes", "${env:", "'0': [1]")
    ),
    b"\xff",
    b"\xed\xa0\x80",
    b"",
]

mutations = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 40), st.sampled_from(TOKENS)),
    min_size=1,
    max_size=4,
)


def mutate(text: bytes, changes: list[tuple[float, int, bytes]]) -> bytes:
    """Replace some bytes here and there by tokens that mean something to YAML."""
    for place, length, token in changes:
        start = int(place * len(text))
        text = text[:start] + token + text[start + length :]
    return text


def explain(estate: Path) -> tuple[Finding, ...]:
    """Load an estate for every cluster; return what is wrong."""
    try:
        loaded = load_estate(estate)
        for cluster in loaded.clusters:
            loaded.topics_for(cluster)
    except SpecError as error:
        return error.findings
    return ()


def hold(clusters: bytes, topics: bytes) -> None:
    """Load an estate of two files: it loads, or it says what is wrong, where, in plain text."""
    with tempfile.TemporaryDirectory() as work:
        (Path(work) / "clusters.yaml").write_bytes(clusters)
        (Path(work) / "topics.yaml").write_bytes(topics)
        for finding in explain(Path(work)):
            assert finding.where is not None
            assert finding.where.line >= 1
            assert finding.where.column >= 1
            assert str(finding).isprintable()


@given(st.binary(max_size=300))
@example(b"\xef\xbb\xbftopic: a")
@example(b"a: &a [*a]")
def test_any_bytes(content: bytes) -> None:
    hold(CLUSTERS, content)


@given(st.text(max_size=200))
def test_any_text(content: str) -> None:
    hold(CLUSTERS, content.encode("utf-8", "surrogatepass"))


@given(mutations)
def test_mutated_topics(changes: list[tuple[float, int, bytes]]) -> None:
    hold(CLUSTERS, mutate(TOPICS, changes))


@given(mutations)
def test_mutated_clusters(changes: list[tuple[float, int, bytes]]) -> None:
    hold(mutate(CLUSTERS, changes), TOPICS)


scalars = st.sampled_from(
    [
        *("1", "012", "-3", "yes", "null", "~", "''", "'x'", "1.5", "true", "2024-01-01"),
        *("prod-eu", "é", "6 → 12", "retention.ms 7d -> 1h"),
    ]
)
keys = st.sampled_from(
    [
        *("topic", "partitions", "replication_factor", "config", "assignment", "overrides"),
        *("clusters", "profile", "state", "acknowledge", "rack_aware", "prod-eu", "retention.ms"),
        *("data-loss", "ordering"),
        *(
            "cleanup.policy",
            "0",
            "apiVersion",
            "kind",
            "metadata",
            "spec",
            "items",
            "name",
            "labels",
        ),
    ]
)
flow = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: f"[{', '.join(items)}]"),
        st.dictionaries(keys, inner, max_size=5).map(
            lambda table: "{" + ", ".join(f"{key}: {value}" for key, value in table.items()) + "}"
        ),
    ),
    max_leaves=12,
)


@given(st.dictionaries(keys, flow, max_size=6))
def test_right_keys_with_wrong_values(table: dict[str, str]) -> None:
    lines = "".join(f"{key}: {value}\n" for key, value in table.items())
    hold(CLUSTERS, f"topic: a\n---\n{lines}".encode())
    hold(f"version: 1\n{lines}".encode(), TOPICS)


def list_texts(value: YamlValue) -> list[YamlText]:
    """List the keys and values of a document, in no order."""
    match value:
        case YamlText():
            return [value]
        case YamlList():
            return [text for item in value for text in list_texts(item)]
        case YamlMap():
            return [t for key, item in value.entries() for t in (key, *list_texts(item))]


words = st.text("abcé🐘", min_size=1, max_size=5)
breaks = st.sampled_from(["\n", "\r\n", "\u2028", "\u2029", "\x85"])


@given(st.lists(st.tuples(words, words, breaks), max_size=5), st.sampled_from(["\n", "\r\n"]))
def test_every_place_is_where_an_editor_finds_it(
    entries: list[tuple[str, str, str]], end: str
) -> None:
    lines = [
        f"k{number}{key}: '{value}{odd if odd > '~' else ' '}{value}'  # {key}"
        for number, (key, value, odd) in enumerate(entries)
    ]
    text = end.join(lines)
    loaded = load_text(text.encode(), "f.yaml")
    assert not loaded.findings
    shown = text.split("\n")
    for document in loaded.documents:
        for found in list_texts(document):
            at = shown[found.line - 1][found.column - 1 :]
            assert at.startswith("'" if found.quoted else str(found))
