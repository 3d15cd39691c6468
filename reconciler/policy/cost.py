"""The bounds of an expression: how much memory and work its evaluation can take, from its syntax.

The library stops comprehensions after 10,000 iterations, but 200 characters of nested `map` and `+`
have built texts of gigabytes in a few of them. So the size of every value is bounded before the
expression is evaluated, as if all of its parts were copies. Each part counts as often as the
comprehensions around it can iterate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from reconciler.policy.patterns import PatternError, compile_pattern
from reconciler.units import approximate_size

ITEM = 64
"""The size of a value without its characters, and what a step reads. Units: bytes."""

MOST_ITERATIONS = 10_000
"""The library's own limit, for one evaluation."""

MOST_MEMORY = 64 << 20
"""The limit of one evaluation; a rule for topics needs some kilobytes. Units: bytes."""

_MOST_SHOWN = 1 << 50

MOST_STEPS = 4_000_000
"""The limit of one evaluation, some tenths of a second. A step reads ITEM bytes."""

_COPIED = 4
"""A message of Protocol Buffers copies all of its parts, and needs up to 3 times their size."""

_KEY_STEPS = 2
"""A key that is not found is quoted in an error, character by character: 25 ns for each."""

_PATTERN_STEPS = 50
"""The library compiles a pattern for every evaluation: 3 µs for each instruction of RE2."""

_UNKNOWN_PATTERN_STEPS = MOST_STEPS // 2
"""For a pattern that is not a constant, only RE2's own limit holds: so there is one at most."""

# Fields of cel.expr.CheckedExpr and of what is in it: cel/expr/checked.proto, syntax.proto.
_VALUE, _REFERENCES, _EXPRESSION = 2, 2, 4
_TEXT = 6
_MESSAGE = 1
_ID, _CONSTANT, _SELECT, _CALL, _LIST, _MAP, _LOOP = 2, 3, 5, 6, 7, 8, 9
_VARIABLE, _RANGE, _RESULT, _START, _CONDITION, _STEP, _END = 1, 2, 3, 4, 5, 6, 7

_Message = Mapping[int, tuple[bytes, ...]]


class Size(NamedTuple):
    """The most that a value can be, with all of its parts, as bytes.

    `length` is the number of its items, and `largest` the size of the largest one, if it is a list
    or a map; a value whose type is unknown can be one.
    """

    whole: int = ITEM
    length: int = 0
    largest: int = 0

    def join(self, other: Size) -> Size:
        """Return the size of both in one."""
        most = max(self.largest, other.largest)
        return Size(self.whole + other.whole, self.length + other.length, most)

    def repeat(self, number: int) -> Size:
        """Return the size of a list or text that joins `number` copies."""
        return Size(number * self.whole, number * self.length, self.largest)

    def or_other(self, other: Size) -> Size:
        """Return the size of either."""
        return Size(*map(max, self, other))

    def open(self) -> Size:
        """Return the size of an item, which can have items."""
        return any_size(self.largest)


def any_size(whole: int) -> Size:
    """Return the size of a value of which only that is known: its items can be many, or large."""
    return Size(whole, whole // ITEM, whole)


_Sizes = Mapping[str, Size]
_ONE, _NOTHING = Size(), Size(0)


@dataclass(slots=True)
class Cost:
    """The most that one evaluation can take. Units: memory in bytes."""

    memory: int = 0
    steps: int = 0

    def explain_excess(self) -> str | None:
        """Return which limit it exceeds, or None."""
        if self.memory > MOST_MEMORY:
            shown = approximate_size(min(self.memory, _MOST_SHOWN))
            return f"can fill {shown} of memory, more than {approximate_size(MOST_MEMORY)}"
        if self.steps > MOST_STEPS:
            return f"can take {min(self.steps, _MOST_SHOWN):,} steps, more than {MOST_STEPS:,}"
        return None


def bound_evaluation(serialized: bytes, facts: _Sizes) -> tuple[Size, Cost]:
    """Bound the value of a compiled expression, and the cost of one evaluation.

    In: the expression as the library serializes it, and the sizes of facts by name.
    """
    checked = _read(_only(_read(serialized), _VALUE))
    bounding = _Bounding(dict(_list_references(checked)), facts)
    size = bounding.size(_only(checked, _EXPRESSION), 1, MappingProxyType({}))
    return size, bounding.cost


def measure(value: object) -> Size:
    """Return the size of a fact: a text, a number, null, or a list or map of these."""
    if isinstance(value, str):
        return Size(ITEM + (len(value) if value.isascii() else len(value.encode())))
    if isinstance(value, Mapping):
        sizes = [measure(part).whole for entry in value.items() for part in entry]
    elif isinstance(value, list):
        sizes = [measure(item).whole for item in value]
    else:
        return _ONE
    return Size(ITEM + sum(sizes), len(value), max(sizes, default=0))


class _Bounding:
    """Walks a syntax tree once, and sums up what each of its nodes can take."""

    def __init__(self, names: Mapping[bytes, str], facts: _Sizes) -> None:
        self.cost = Cost()
        self._names = names
        self._facts = facts

    def size(self, expression: bytes, times: int, variables: _Sizes) -> Size:
        """Return the size of a value, and add the cost of computing it `times` times."""
        node = _read(expression)
        self.cost.steps += times
        kind = next(iter(node.keys() - {_ID}), _CONSTANT)
        body = _only(node, kind)
        name = self._names.get(_only(node, _ID))
        if name is not None and kind != _MAP:  # a message has the name of its type
            return variables.get(name, self._facts.get(name, _ONE))
        if kind == _SELECT:
            return self.size(_only(_read(body), 1), times, variables).open()
        if kind == _CALL:
            return self._call(_read(body), times, variables)
        if kind == _LIST:
            return self._collect(_read(body).get(1, ()), times, variables)
        if kind == _MAP:
            entries = map(_read, _read(body).get(2, ()))
            parts = (part for entry in entries for key in (3, 4) for part in entry.get(key, ()))
            size = self._collect(tuple(parts), times, variables)
            return self._copy(size, times) if _only(_read(body), _MESSAGE) else size
        if kind == _LOOP:
            return self._loop(_read(body), times, variables)
        return Size(ITEM + len(body))  # a constant, which is no longer than its spelling

    def _collect(self, parts: Sequence[bytes], times: int, variables: _Sizes) -> Size:
        """Bound a list or a map, which refers to its parts."""
        self.cost.memory += times * ITEM * (1 + len(parts))
        sizes = [self.size(part, times, variables).whole for part in parts]
        return Size(ITEM + sum(sizes), len(sizes), max(sizes, default=0))

    def _copy(self, parts: Size, times: int) -> Size:
        """Bound a message, such as google.protobuf.ListValue, which refers to nothing."""
        size = any_size(_COPIED * parts.whole)
        self.cost.memory += times * size.whole
        self.cost.steps += times * size.length
        return size

    def _loop(self, loop: _Message, times: int, variables: _Sizes) -> Size:
        """Bound a comprehension: all, exists, filter or map. A step adds to its result, at most."""
        over = self.size(_only(loop, _RANGE), times, variables)
        start = self.size(_only(loop, _START), times, variables)
        number = min(over.length, MOST_ITERATIONS)
        inner = min(times * number, MOST_ITERATIONS)
        result = _only(loop, _RESULT).decode()
        around = {**variables, _only(loop, _VARIABLE).decode(): over.open(), result: _NOTHING}
        self.size(_only(loop, _CONDITION), inner, around)
        added = self.size(_only(loop, _STEP), inner, around)
        around[result] = start.join(added.repeat(number))
        return self.size(_only(loop, _END), times, around)

    def _call(self, call: _Message, times: int, variables: _Sizes) -> Size:
        function = _only(call, 2).decode()
        parts = (*call.get(1, ()), *call.get(3, ()))
        sizes = [self.size(part, times, variables) for part in parts]
        read, size, memory = sum(each.whole for each in sizes), _ONE, 0
        match function:
            case "_?_:_":
                read, size = 0, sizes[1].or_other(sizes[2])
            case "_[_]":
                read, size = _KEY_STEPS * sizes[-1].whole, sizes[0].open()
            case "dyn":
                read, size = 0, sizes[0]
            case "_&&_" | "_||_" | "!_" | "@not_strictly_false":
                read = 0
            # Nothing is read beyond the end of the shorter one.
            case "_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_" | "startsWith" | "endsWith":
                read = min(each.whole for each in sizes)
            case "@in" | "contains" | "size":
                pass
            case "matches":
                self.cost.steps += times * _count_steps(parts[-1])
            case "_+_":
                size, memory = sizes[0].join(sizes[1]), read
            case _:  # a conversion, such as a number's text, or what a later release adds
                size, memory = any_size(read + ITEM), read + ITEM
        self.cost.steps += times * read // ITEM
        self.cost.memory += times * memory
        return size


def _count_steps(pattern: bytes) -> int:
    """Return the work of compiling a pattern, an expression."""
    constant = _read(_only(_read(pattern), _CONSTANT))
    if _TEXT not in constant:
        return _UNKNOWN_PATTERN_STEPS
    try:
        program = compile_pattern(_only(constant, _TEXT).decode())
    except PatternError:  # its evaluation ends with this error
        return _UNKNOWN_PATTERN_STEPS
    return _PATTERN_STEPS * int(program.programsize)


def _list_references(checked: _Message) -> Iterator[tuple[bytes, str]]:
    """Yield the names that the compiler has resolved, such as spec.name, by the ids of nodes."""
    for entry in map(_read, checked.get(_REFERENCES, ())):
        reference = _read(_only(entry, 2))
        if 1 in reference and 3 not in reference:  # no function
            yield _only(entry, 1), _only(reference, 1).decode()


def _only(message: _Message, field: int) -> bytes:
    return message.get(field, (b"",))[-1]


def _read(raw: bytes) -> _Message:
    """Read a message of Protocol Buffers: the bytes of its fields, those of a varint as they are.

    Its library has half a megabyte of code, and no dependency of ours brings it.
    """
    fields: dict[int, tuple[bytes, ...]] = {}
    at = 0
    while at < len(raw):
        key, at = _read_varint(raw, at)
        start = at
        match key & 7:
            case 0:
                _, at = _read_varint(raw, at)
            case 1:
                at += 8
            case 2:
                length, start = _read_varint(raw, at)
                at = start + length
            case 5:
                at += 4
            case other:
                raise ValueError(f"wire type {other}")
        fields[key >> 3] = (*fields.get(key >> 3, ()), raw[start:at])
    return fields


def _read_varint(raw: bytes, at: int) -> tuple[int, int]:
    """Return a number, and where the next one begins."""
    number = shift = 0
    while True:
        byte = raw[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at
