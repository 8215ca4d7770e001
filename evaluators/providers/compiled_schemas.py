"""The common part of JSON Schema as closures, some thirty times faster than jsonschema.

A check says "it fits", having spent exactly the steps that jsonschema with this package's counting spends on a value
that fits; in any other case it is `Unsure`, and jsonschema is asked. So a message, an order of errors or a limit can
not differ: only jsonschema gives them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

from evaluators.matching.json_values import list_of, object_of
from evaluators.model import JSON

AT_ONCE = 16  # members of a container, or characters, that are looked at in the time of a step
DEPTH = 16  # levels of a schema that are compiled: jsonschema's stack is far from its limit there
NODES = 2_000  # schemas within a schema that are compiled, references followed


class Unsure(Exception):
    """The value may not fit, or may take too many steps."""


class StepBudget(Protocol):
    """What a call may still spend."""

    left: int
    forms: dict[int, frozenset[bytes]]
    """Of the members of an `enum`, by the identity of the list: they take their steps once for a call."""


Check: TypeAlias = Callable[[JSON, StepBudget], bool]
"""True: the value fits. False: only its type is wrong, which an `anyOf` may still allow. Else raises `Unsure`."""
_Type: TypeAlias = type[Any]
_Test: TypeAlias = Callable[[Any, StepBudget], None]
"""One keyword on a value of a type that it looks at; raises `Unsure` unless the value fits."""
_Made: TypeAlias = tuple[Collection[_Type], _Test]
"""The types of values that a keyword looks at, and how."""


class SchemaDialect(NamedTuple):
    """What the compiler has to know of the draft that a schema is written in."""

    keywords: Collection[str]  # all that mean something
    ref_alone: bool  # whether a `$ref` makes the keywords beside it mean nothing
    form: Callable[[JSON], bytes]  # equal for equal values
    own: Mapping[str, Callable[[Any, Any, Any, Any], Iterable[object] | None]]
    """This package's keywords, which spend their steps themselves: pattern, multipleOf, uniqueItems."""


def compiled(schema: JSON, dialect: SchemaDialect) -> Check:
    """The check of a valid schema. What is not compiled is `Unsure` once a value gets there."""
    return _Compiler(schema, dialect).schema(schema, 0)


def unsure(_value: JSON, _budget: StepBudget) -> bool:
    """The check of a schema that is not compiled."""
    raise Unsure


def _anything(_value: JSON, _budget: StepBudget) -> bool:
    return True


_NONE: _Type = type(None)
_TYPES: Mapping[str, _Type] = {
    "string": str,
    "boolean": bool,
    "null": _NONE,
    "object": dict,
    "array": list,
    "integer": int,
    "number": int,
}
"""Of JSON's types, Python's; doubles are looked at by themselves."""
_SCALARS = frozenset({str, bool, int, float, _NONE})
_SIZED = frozenset({str, dict, list})
_REF = re.compile(r"#(?:/[A-Za-z0-9_.$-]+)+")
"""References within the schema without anything to unescape."""
_RESOLVING = frozenset({"$id", "$schema", "$anchor", "$dynamicAnchor", "$recursiveAnchor"})
"""What may lead references beneath it elsewhere."""


class _Compiler:
    def __init__(self, root: JSON, dialect: SchemaDialect) -> None:
        self._root = root
        self._dialect = dialect
        self._left = NODES

    def schema(self, schema: JSON, depth: int) -> Check:
        """The check of a schema that is `depth` levels below the root."""
        if schema is True:
            return _anything
        members = object_of(schema)
        self._left -= 1
        if members is None or depth > DEPTH or self._left < 0:
            return unsure
        if self._is_resolved(members):
            return unsure
        if self._dialect.ref_alone and "$ref" in members:
            members = {"$ref": members["$ref"]}
        known = {k: v for k, v in members.items() if k in self._dialect.keywords}
        tests = {kind: list[_Test]() for kind in _EVERY}
        tests[float].append(_finite)
        for name, value in known.items():
            if name in ("type", "format"):
                continue
            made = self._keyword(name, value, members, depth)
            if made is None:
                return unsure
            kinds, test = made
            for kind in kinds:
                tests[kind].append(test)
        types = _types(members["type"]) if "type" in members else ()
        if types is None:
            return unsure
        sizes = [_size(value) for value in known.values()]
        return _check(types, sizes, {kind: tuple(every) for kind, every in tests.items()})

    def _keyword(
        self, name: str, value: JSON, schema: Mapping[str, JSON], depth: int
    ) -> _Made | None:
        """The keyword as a test; None: it is not compiled."""
        if name in _LIMITS:
            return _LIMITS[name](value) if _is_number(value) else None
        makers: dict[str, Callable[[], _Made | None]] = {
            "properties": lambda: self._properties(value, depth),
            "required": lambda: _required(value),
            "additionalProperties": lambda: self._additional(value, schema, depth),
            "items": lambda: self._items(value, depth),
            "enum": lambda: _one_of(list_of(value), self._dialect.form, is_list=True),
            "const": lambda: _one_of([value], self._dialect.form, is_list=False),
            "anyOf": lambda: self._branches(list_of(value), _any_of, depth),
            "allOf": lambda: self._branches(list_of(value), _all_of, depth),
            "$ref": lambda: self._branches([self._found(value)], _all_of, depth),
        }
        return makers[name]() if name in makers else self._own(name, value)

    def _properties(self, value: JSON, depth: int) -> _Made | None:
        members = object_of(value)
        if members is None:
            return None
        checks = {name: self.schema(each, depth + 1) for name, each in members.items()}

        def test(instance: Mapping[str, JSON], budget: StepBudget) -> None:
            if len(instance) < len(checks):
                for name, inner in instance.items():
                    check = checks.get(name)
                    if check is not None and not check(inner, budget):
                        raise Unsure
                return
            for name, check in checks.items():
                if name in instance and not check(instance[name], budget):
                    raise Unsure

        return (dict,), test

    def _additional(self, value: JSON, schema: Mapping[str, JSON], depth: int) -> _Made | None:
        named = object_of(schema.get("properties", {}))
        if named is None:
            return None
        known = frozenset(named)
        check = self.schema(value, depth + 1)

        def test(instance: Mapping[str, JSON], budget: StepBudget) -> None:
            if instance.keys() <= known:
                return
            for name, inner in instance.items():
                if name not in known and not check(inner, budget):
                    raise Unsure

        return (dict,), test

    def _items(self, value: JSON, depth: int) -> _Made | None:
        if isinstance(value, list):  # one for each place, in older drafts
            return None
        check = self.schema(value, depth + 1)

        def test(instance: Sequence[JSON], budget: StepBudget) -> None:
            for inner in instance:
                if not check(inner, budget):
                    raise Unsure

        return (list,), test

    def _branches(
        self, every: Sequence[JSON] | None, joined: Callable[[Sequence[Check]], _Test], depth: int
    ) -> _Made | None:
        if not every:
            return None
        return _EVERY, joined([self.schema(each, depth + 1) for each in every])

    def _own(self, name: str, value: JSON) -> _Made | None:
        run = self._dialect.own.get(name)
        kinds, expected = _OWN_KINDS.get(name, ((), ()))
        if run is None or type(value) not in expected:
            return None

        def test(instance: JSON, _: StepBudget) -> None:
            items = list_of(instance)
            # Only what is flat: how deep a value may be depends on the stack beneath.
            if items is not None and not _is_flat(items):
                raise Unsure
            for _error in run(None, value, instance, None) or ():
                raise Unsure

        return kinds, test

    def _found(self, reference: JSON) -> JSON:
        """What a reference leads to; None, which is not a schema, where that takes more than a look."""
        if not isinstance(reference, str) or not _REF.fullmatch(reference):
            return None
        place: JSON = self._root
        for step in reference[2:].split("/"):
            members = object_of(place)
            if members is None or step not in members or self._is_resolved(members):
                return None
            place = members[step]
        return place

    def _is_resolved(self, members: Mapping[str, JSON]) -> bool:
        """Whether references beneath it may lead elsewhere; the root's draft has been looked at."""
        ignored = {"$schema"} if members is self._root else set[str]()
        return not _RESOLVING.isdisjoint(members.keys() - ignored)


def _check(
    types: Sequence[str], sizes: Sequence[int], tests: Mapping[_Type, Sequence[_Test]]
) -> Check:
    """All keywords of one schema: each takes a step, and one more for 16 members of its value and the instance."""
    count = len(sizes)
    least = sum(1 + size // AT_ONCE for size in sizes)
    # How many of the keywords take one more step for what the instance has above a multiple of 16.
    above = [sum(size % AT_ONCE + rest >= AT_ONCE for size in sizes) for rest in range(AT_ONCE)]
    kinds = frozenset(_TYPES[each] for each in types)
    named = len(" is not of type " + ", ".join(map(repr, types)))
    whole, any_number = "integer" in types, "number" in types

    def check(instance: JSON, budget: StepBudget) -> bool:
        kind = cast("_Type", type(instance))
        size = len(instance) if kind in _SIZED else 0
        budget.left -= least + count * (size // AT_ONCE) + above[size % AT_ONCE]
        if budget.left < 0:
            raise Unsure
        for test in tests[kind]:
            test(instance, budget)
        if not types or kind in kinds:
            return True
        if kind is float and (any_number or (whole and instance.is_integer())):
            return True
        if kind in _SCALARS or _is_flat(instance.values() if kind is dict else instance):
            budget.left -= (len(repr(instance)) + named) // AT_ONCE
            return False
        raise Unsure

    return check


def _types(value: JSON) -> tuple[str, ...] | None:
    """The names of a `type`; None: not all are known."""
    names = (value,) if isinstance(value, str) else tuple(list_of(value) or ())
    is_known = names and all(isinstance(each, str) and each in _TYPES for each in names)
    return names if is_known else None


def _size(value: JSON) -> int:
    return len(value) if type(value) in _SIZED else 0


def _is_number(value: JSON) -> bool:
    return type(value) in (int, float)


def _is_flat(values: Iterable[JSON]) -> bool:
    return all(type(each) in _SCALARS for each in values)


# --- keywords without a schema inside ---------------------------------------------------------------------------------

_EVERY: Collection[_Type] = (*_SCALARS, dict, list)
_OWN_KINDS: Mapping[str, tuple[Collection[_Type], Collection[_Type]]] = {
    "pattern": ((str,), (str,)),
    "multipleOf": ((int, float), (int, float)),
    "uniqueItems": ((list,), (bool,)),
}
"""The types that the keyword looks at, and those of its value."""


def _limit(kinds: Collection[_Type], fits: Callable[[Any, Any], bool]) -> Callable[[JSON], _Made]:
    def made(limit: JSON) -> _Made:
        def test(instance: JSON, _: StepBudget) -> None:
            if not fits(instance, limit):
                raise Unsure

        return kinds, test

    return made


_NUMBERS = (int, float)
_LIMITS: Mapping[str, Callable[[JSON], _Made]] = {
    "minimum": _limit(_NUMBERS, lambda value, limit: value >= limit),
    "maximum": _limit(_NUMBERS, lambda value, limit: value <= limit),
    "exclusiveMinimum": _limit(_NUMBERS, lambda value, limit: value > limit),
    "exclusiveMaximum": _limit(_NUMBERS, lambda value, limit: value < limit),
    "minLength": _limit((str,), lambda value, limit: len(value) >= limit),
    "maxLength": _limit((str,), lambda value, limit: len(value) <= limit),
    "minItems": _limit((list,), lambda value, limit: len(value) >= limit),
    "maxItems": _limit((list,), lambda value, limit: len(value) <= limit),
    "minProperties": _limit((dict,), lambda value, limit: len(value) >= limit),
    "maxProperties": _limit((dict,), lambda value, limit: len(value) <= limit),
}


def _finite(instance: float, _: StepBudget) -> None:
    # No JSON: what jsonschema gets in its place depends on how it was encoded.
    if not math.isfinite(instance):
        raise Unsure


def _required(value: JSON) -> _Made | None:
    names = list_of(value)
    if names is None or not all(isinstance(each, str) for each in names):
        return None

    def test(instance: Mapping[str, JSON], _: StepBudget) -> None:
        for name in names:
            if name not in instance:
                raise Unsure

    return (dict,), test


def _one_of(
    members: Sequence[JSON] | None, form: Callable[[JSON], bytes], *, is_list: bool
) -> _Made | None:
    if members is None or not _is_flat(members):
        return None
    forms = [form(each) for each in members]
    allowed = frozenset(forms)
    steps = sum(len(each) // AT_ONCE for each in forms)
    known = id(members)

    def test(instance: JSON, budget: StepBudget) -> None:
        if type(instance) not in _SCALARS:
            raise Unsure
        mine = form(instance)
        budget.left -= len(mine) // AT_ONCE
        if not is_list:
            budget.left -= steps
        elif known not in budget.forms:
            budget.forms[known] = allowed
            budget.left -= steps
        if mine not in allowed:
            raise Unsure

    return _EVERY, test


def _all_of(checks: Sequence[Check]) -> _Test:
    def test(instance: JSON, budget: StepBudget) -> None:
        for check in checks:
            if not check(instance, budget):
                raise Unsure

    return test


def _any_of(checks: Sequence[Check]) -> _Test:
    def test(instance: JSON, budget: StepBudget) -> None:
        for check in checks:
            if check(instance, budget):
                return
        raise Unsure

    return test
