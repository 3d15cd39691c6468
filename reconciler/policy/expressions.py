"""Expressions in CEL, compiled and evaluated: the only module that knows the library.

The library is Google's implementation. It checks types while it compiles, refuses more than 32
levels of nesting, matches patterns in linear time (RE2) and stops comprehensions after 10,000
iterations. It limits no memory, so `cost` does. It is imported only if a rule exists.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from reconciler.errors import say_install
from reconciler.policy.cost import Size, any_size, bound_evaluation, measure
from reconciler.policy.facts import FACTS_OF_CHANGES, FACTS_OF_SPECS, Facts, FactType
from reconciler.policy.policy import Subject

_ERROR = re.compile(r"ERROR: <input>:(-?\d+):(-?\d+): (.*)")
_STATUS = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_OMITTED = re.compile(r'No value with name "[\w.]+" found')
_UNKNOWN = re.compile(r"undeclared reference to '([^']+)'")
_OTHER_VERB = re.compile(
    r"""(['"])(config|update|create_topic|add_partitions|alter_config|delete_topic)\1"""
)
"""Names of steps in earlier plans, in their texts and in Terraform, which are not verbs here."""
_EXPECTING = re.compile(r" expecting \{.*")


_SIZES: Mapping[FactType, Size] = {
    FactType.FLAG: Size(),
    FactType.COUNT: Size(),
    FactType.TEXT: Size(1 << 10),
    FactType.TEXTS: Size(1 << 13, 64, 1 << 10),
    FactType.CONFIG: Size(1 << 14, 128, 1 << 12),
    FactType.LABELS: Size(1 << 13, 128, 1 << 10),
    FactType.NULLABLE: any_size(1 << 14),
}
"""The sizes of facts for which the cost of a rule is bounded; larger ones scale all of them."""


_SHORT = 200
"""Fits each of these, for a text of any script. Units: characters."""


_MOST_SAID = 500
"""The length of an error of the library in a message. Units: characters."""


class Bound(NamedTuple):
    """Facts in the types of the library, and how many times larger they are than `_SIZES`."""

    activation: Any
    scale: int


class ExpressionError(ValueError):
    """An expression is invalid, or has the wrong type for a rule. `what` is text for a message.

    `is_of_rule`: its types do not fit, whatever the subject is. `is_omitted`: the answer depends on
    a fact that the subject does not have.
    """

    def __init__(
        self,
        what: str,
        way_out: str = "fix the expression",
        *,
        is_of_rule: bool = False,
        is_omitted: bool = False,
    ) -> None:
        self.what = what
        self.way_out = way_out
        self.is_of_rule = is_of_rule
        self.is_omitted = is_omitted
        super().__init__(what)


class CostlyExpressionError(ExpressionError):
    """The evaluation of an expression can take too much memory, or too long."""


class Expression:
    """A condition on a subject. Its types are checked if they are known."""

    def __init__(self, text: str, subject: Subject) -> None:
        """Compile `text`. Errors: ExpressionError, also if CEL is not installed.

        CostlyExpressionError if no evaluation would be safe.
        """
        # `change.actions` never contains these names. CEL would compile such a rule, and it would
        # have no effect.
        if "change.actions" in text and (found := _OTHER_VERB.search(text)):
            from reconciler.model.steps import Verb

            what = f"change.actions never holds '{found[2]}'"
            raise ExpressionError(what, f"the verbs are {', '.join(Verb)}")
        try:
            self._compiled = _environment(subject).compile(text.encode().decode())
        except UnicodeEncodeError as error:
            raise ExpressionError("it contains half of a character") from error
        except RuntimeError as error:
            raise _refuse_text(str(error), subject) from error
        kind = self._compiled.return_type().name()
        if kind not in ("BOOL", "DYN"):
            raise _refuse_kind(kind)
        self._subject = subject
        self._allowed: set[int] = set()
        self._allow(1)

    def _allow(self, scale: int) -> None:
        """Check that an evaluation for facts of a size is safe. Errors: CostlyExpressionError."""
        if scale in self._allowed:
            return
        sizes = {
            name: Size(*(scale * number for number in _SIZES[kind]))
            for name, kind in _list_known(self._subject).items()
        }
        _, cost = bound_evaluation(self._compiled.serialize(), sizes)
        excess = cost.explain_excess()
        if excess is not None:
            way_out = (
                "nest fewer comprehensions, join fewer texts and lists in them, and match patterns "
                "that are constants"
            )
            raise CostlyExpressionError(excess, way_out)
        self._allowed.add(scale)

    def holds(self, facts: Bound) -> bool:
        """Return whether it is true for a subject. Errors: ExpressionError if it has no answer."""
        self._allow(facts.scale)
        try:
            answer = self._compiled.eval(facts.activation)
        except RuntimeError as error:
            raise _refuse_answer(str(error)) from error
        kind = answer.type().name()
        if kind == "ERROR":  # the library returns some errors as values
            raise _refuse_answer(str(answer.value()))
        if kind != "BOOL":
            raise _refuse_kind(kind)
        return bool(answer.value())


def bind_facts(facts: Facts, subject: Subject) -> Bound:
    """Bind facts once for all expressions."""
    # A topic to be deleted has no values.
    varied = _list_varied(subject)
    scale = max(_scale(facts[name], kind) for name, kind in varied if name in facts)
    return Bound(_environment(subject).Activation(facts), scale)


@cache
def _list_varied(subject: Subject) -> tuple[tuple[str, FactType], ...]:
    """List the facts whose values differ in size."""
    same = (FactType.FLAG, FactType.COUNT)
    return tuple((name, kind) for name, kind in _list_known(subject).items() if kind not in same)


def _scale(fact: object, kind: FactType) -> int:
    """Return how many times larger a fact is than those of its kind, as a power of two."""
    if isinstance(fact, str) and len(fact) <= _SHORT:
        return 1
    scale, size = 1, measure(fact)
    while any(number > scale * most for number, most in zip(size, _SIZES[kind], strict=True)):
        scale *= 2
    return scale


def _list_known(subject: Subject) -> Mapping[str, FactType]:
    return FACTS_OF_SPECS if subject is Subject.SPEC else FACTS_OF_CHANGES


@cache
def _environment(subject: Subject) -> Any:
    try:
        from cel_expr_python import cel
    except ImportError as error:
        what = "rules are written in CEL, which is not installed"
        raise ExpressionError(what, say_install("cel")) from error
    kinds = {
        FactType.FLAG: cel.Type.BOOL,
        FactType.COUNT: cel.Type.INT,
        FactType.TEXT: cel.Type.STRING,
        FactType.TEXTS: cel.Type.List(cel.Type.STRING),
        FactType.CONFIG: cel.Type.Map(cel.Type.STRING, cel.Type.DYN),
        FactType.LABELS: cel.Type.Map(cel.Type.STRING, cel.Type.STRING),
        FactType.NULLABLE: cel.Type.DYN,
    }
    known = _list_known(subject)
    return cel.NewEnv(variables={name: kinds[kind] for name, kind in known.items()})


def _refuse_answer(message: str) -> ExpressionError:
    """Return the error of an evaluation. What is not written in a topic is null."""
    what = _STATUS.sub("", message)
    if len(what) > _MOST_SAID:  # it can quote a key of any length
        what = f"{what[:_MOST_SAID]}…"
    is_of_rule = "matching overload" in message and "null" not in message
    is_omitted = _OMITTED.match(what) is not None
    return ExpressionError(what, is_of_rule=is_of_rule, is_omitted=is_omitted)


def _refuse_kind(kind: str) -> ExpressionError:
    what = f"its value is of the type {kind.lower()}, not true or false"
    way_out = "compare it with something; what is not written is null"
    return ExpressionError(what, way_out, is_of_rule="NULL" not in kind)


def _refuse_text(message: str, subject: Subject) -> ExpressionError:
    """Return the error for a text that does not compile."""
    what = _explain(message)
    unknown = _UNKNOWN.match(what)
    if unknown is None:
        return ExpressionError(what)
    if subject is Subject.SPEC and unknown[1] in FACTS_OF_CHANGES:
        return ExpressionError(what, "write on: change next to it")
    from difflib import get_close_matches

    near = get_close_matches(unknown[1], FACTS_OF_CHANGES, n=1)
    return ExpressionError(what, f"did you mean {near[0]}?" if near else "fix the expression")


def _explain(message: str) -> str:
    """Return the first error of the compiler and its place in the expression, on one line."""
    found = _ERROR.search(message)
    if found is None:
        return _STATUS.sub("", message).partition("\n")[0]
    line, column, what = int(found[1]), int(found[2]), found[3]
    what = _EXPECTING.sub("", _STATUS.sub("", what)).replace(" (in container '')", "")
    if line < 1:
        return what  # an expression that is nested too deep has no place
    return f"{what} at " + (f"line {line}, " if line > 1 else "") + f"character {column}"
