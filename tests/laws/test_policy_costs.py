"""Laws of the bounds of expressions: no value exceeds its bound, and larger facts cost more."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from reconciler.policy.cost import Size, bound_evaluation, measure
from reconciler.policy.expressions import _environment
from reconciler.policy.policy import Subject

FACTS = {
    "spec.name": "orders.events",
    "spec.owner": "é" * 40,
    "spec.file": "topics/orders.yaml",
    "spec.partitions": 6,
    "spec.acknowledge": ["ordering", "traffic", "data-loss"],
    "spec.config": {"retention.ms": 604_800_000, "cleanup.policy": ["compact", "delete"]},
}
SIZES = {name: measure(value) for name, value in FACTS.items()}

atoms = st.sampled_from(
    [
        f"dyn({atom})"
        for atom in ("1", "'ab'", "'é'", "b'x'", "['a', 'b']", "[['a'], [1]]", "{'x': 'v'}", *FACTS)
    ]
    + ["a", "b"]
)


PATTERNS = (
    *("%s + %s", "%s + %s + %s", "[%s, %s]", "{'x': %s, 'y': %s}", "[%s + %s].map(a, a + a)"),
    *("%s.map(a, %s)", "%s.map(b, %s)", "%s.map(a, true, %s)", "%s.filter(b, b != %s)"),
    *("true ? %s : %s", "string(%s)", "bytes(%s)", "%s[0]", "%s.x", "%s.exists(a, a == %s)"),
    *("%s in %s", "%s.all(a, a == a)", "type(%s)", "%s.map(a, [a, a]).map(b, [b, b])"),
)


def combine(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Put parts together, of any type: most of these fit."""

    def write(pattern: str) -> st.SearchStrategy[str]:
        return st.tuples(*[parts] * pattern.count("%s")).map(
            lambda chosen: f"dyn({pattern % chosen})"
        )

    return st.one_of(map(write, PATTERNS))


expressions = st.recursive(atoms, combine, max_leaves=12).map(
    lambda text: f"['q'].map(b, ['r'].map(a, {text}))"
)


@given(expressions)
def test_no_value_is_larger_than_its_bound(text: str) -> None:
    environment = _environment(Subject.SPEC)
    try:
        compiled = environment.compile(text)
    except RuntimeError:
        assume(False)
    size, cost = bound_evaluation(compiled.serialize(), SIZES)
    if cost.explain_excess() is not None:
        return
    answer = compiled.eval(environment.Activation(FACTS))
    if answer.type().name() == "ERROR":  # parts that do not fit
        return
    value = answer.plain_value()
    true_size = Size(64 + len(value)) if isinstance(value, bytes | bytearray) else measure(value)
    assert true_size.whole <= size.whole
    assert true_size.length <= size.length
    assert true_size.largest <= size.largest


@given(expressions, st.integers(2, 8))
def test_larger_facts_cost_no_less(text: str, scale: int) -> None:
    try:
        serialized = _environment(Subject.SPEC).compile(text).serialize()
    except RuntimeError:
        assume(False)
    larger = {name: Size(*(scale * number for number in size)) for name, size in SIZES.items()}
    _, cost = bound_evaluation(serialized, SIZES)
    _, more = bound_evaluation(serialized, larger)
    assert more.memory >= cost.memory
    assert more.steps >= cost.steps
