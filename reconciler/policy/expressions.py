"""Expressions in CEL, compiled and evaluated: the only module that knows the library.

The library is Google's implementation. It checks types while it compiles, refuses more than 32
levels of nesting, matches patterns in linear time (RE2) and stops comprehensions after 10,000
iterations. It is imported only if a rule exists.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from reconciler.errors import say_install
from reconciler.policy.facts import FACTS_OF_CHANGES, FACTS_OF_SPECS, FactType
from reconciler.policy.policy import Subject

if TYPE_CHECKING:
    from reconciler.policy.facts import Facts

_ERROR = re.compile(r"ERROR: <input>:(-?\d+):(-?\d+): (.*)")
_STATUS = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_OMITTED = re.compile(r'No value with name "[\w.]+" found')
_UNKNOWN = re.compile(r"undeclared reference to '([^']+)'")
_OTHER_VERB = re.compile(
    r"""(['"])(config|update|create_topic|add_partitions|alter_config|delete_topic)\1"""
)
"""Names of steps in earlier plans, in their texts and in Terraform, which are not verbs here."""
_EXPECTING = re.compile(r" expecting \{.*")


Bound = Any
"""Facts in the types of the library."""


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


class Expression:
    """A condition on a subject. Its types are checked if they are known."""

    def __init__(self, text: str, subject: Subject) -> None:
        """Compile `text`. Errors: ExpressionError, also if CEL is not installed."""
        # `change.actions` never contains these names. CEL would compile such a rule, and it would
        # have no effect.
        if "change.actions" in text and (found := _OTHER_VERB.search(text)):
            from reconciler.model import Verb

            what = f"change.actions never holds '{found[2]}'"
            raise ExpressionError(what, f"the verbs are {', '.join(Verb)}")
        try:
            self._compiled = _environment(subject).compile(text.encode().decode())
        except UnicodeEncodeError as error:
            raise ExpressionError("it holds half a character") from error
        except RuntimeError as error:
            raise _refuse_text(str(error), subject) from error
        kind = self._compiled.return_type().name()
        if kind not in ("BOOL", "DYN"):
            raise _refuse_kind(kind)

    def holds(self, facts: Bound) -> bool:
        """Return whether it is true for a subject. Errors: ExpressionError if it has no answer."""
        try:
            answer = self._compiled.eval(facts)
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
    return _environment(subject).Activation(facts)


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
        FactType.NULLABLE: cel.Type.DYN,
    }
    known = FACTS_OF_SPECS if subject is Subject.SPEC else FACTS_OF_CHANGES
    return cel.NewEnv(variables={name: kinds[kind] for name, kind in known.items()})


def _refuse_answer(message: str) -> ExpressionError:
    """Return the error of an evaluation. What is not written in a topic is null."""
    what = _STATUS.sub("", message)
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
