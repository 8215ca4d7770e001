"""JSON Schema (jsonschema), for schemas out of traces and for a user's own. Import it lazily."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple, cast

import re2
from jsonschema import validators
from jsonschema.exceptions import ValidationError
from referencing import Registry

from evaluators.errors import Unjudgeable
from evaluators.matching import ecmascript
from evaluators.matching.json_values import encoded, list_of, object_of
from evaluators.model import JSON

AT_ONCE = 16  # members of a container, or characters, that are looked at in the time of a step
_PATTERN_MEMORY = 1 << 20  # bytes that RE2 may use for a pattern
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)
"""ECMAScript's escapes; RE2 writes `\\u00e9` as `\\x{00e9}`."""
PATTERN_LIMIT = 256  # characters of a string that a pattern out of a trace is tried on
STEPS = 30_000  # keywords of a schema out of a trace that are looked at for one value, each some microseconds
CHECK_STEPS = 100_000  # the same to check whether it is a valid schema
COSTLY = "too costly"  # the reason of `Unjudgeable` for a schema that takes more than its steps
TRUSTED_STEPS = 1_000_000  # the same of a user's own schema, on a value out of a trace


_Keyword = Callable[[Any, Any, JSON, Any], "Iterable[ValidationError] | None"]


@dataclass(slots=True)
class _Work:
    """What one call may still do."""

    left: int
    untried: bool = False  # whether a pattern was not tried, because RE2 cannot run it
    forms: dict[int, frozenset[bytes]] = field(default_factory=dict[int, frozenset[bytes]])
    """Canonical forms of the members of an `enum`, by the identity of the list, which lives as long as its schema."""

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise Unjudgeable(COSTLY)


_work: ContextVar[_Work] = ContextVar("work")


def first_error(text: str, instance: JSON, *, trusted: bool = False) -> str | None:
    """Why the instance does not satisfy the schema (JSON text); None when it does.

    A trusted schema is the user's own: all its patterns are tried, as ECMAScript means them. No reference is ever
    fetched, and infinity is not a number. Raises Unjudgeable: the schema is not valid, a reference leads nowhere or
    only to itself, or it would take more than its steps.
    """
    return counted_error(text, instance, trusted=trusted).error


class SchemaCheck(NamedTuple):
    """What came of a check, and what it took."""

    error: str | None  # why the instance does not satisfy the schema; None when it does
    steps: int  # that the instance took
    checked: int  # steps that the schema takes once
    untried: bool  # whether a pattern was not tried, because RE2 cannot run it


def counted_error(text: str, instance: JSON, *, trusted: bool = False) -> SchemaCheck:
    """As `first_error`, with the steps. Raises Unjudgeable: see `first_error`."""
    known = _known(text, trusted=trusted)
    if isinstance(known.validator, str):
        raise Unjudgeable(known.validator)
    steps = TRUSTED_STEPS if trusted else STEPS
    error, work = _first(known.validator, instance, steps)
    shown = None
    if error is not None:
        path = "/".join(str(step) for step in error.absolute_path)
        shown = f"{path}: {error.message[:200]}" if path else error.message[:200]
    return SchemaCheck(shown, steps - work.left, known.checked, work.untried)


def _first(validator: Any, instance: JSON, steps: int) -> tuple[ValidationError | None, _Work]:
    work = _Work(steps)
    before = _work.set(work)
    try:
        return next(iter(validator.iter_errors(instance)), None), work
    except Unjudgeable:
        raise
    except Exception as broken:  # a dangling or endless reference surfaces only here
        raise Unjudgeable(type(broken).__name__) from broken
    except BaseException as broken:
        # What a library in Rust makes of a RecursionError is not an Exception, and would end the process.
        if type(broken).__name__ != "PanicException":
            raise
        raise Unjudgeable(RecursionError.__name__) from broken
    finally:
        _work.reset(before)


class _KnownSchema(NamedTuple):
    """What is made of a schema once."""

    validator: Any  # or the text why there is none
    checked: int  # steps that the check of the schema itself took


@lru_cache(maxsize=256)
def _known(text: str, *, trusted: bool) -> _KnownSchema:
    schema: JSON = json.loads(text)
    # Not isinstance: that would narrow Any to a half-known dict.
    if type(schema) not in (dict, bool):
        return _KnownSchema("not a valid schema", 0)
    # jsonschema's own types do not say that a boolean is a schema.
    known = cast("Any", validators)
    base = known.validator_for(schema, default=known.Draft202012Validator)
    checking = _counting(base, "schemas")(base.META_SCHEMA, format_checker=base.FORMAT_CHECKER)
    steps = TRUSTED_STEPS if trusted else CHECK_STEPS
    try:
        fault, work = _first(checking, schema, steps)
    except Unjudgeable as why:
        return _KnownSchema(str(why), steps)
    if fault is not None:
        return _KnownSchema("not a valid schema", steps - work.left)
    # An empty registry: the default one would fetch remote references over the network.
    nowhere: Registry[Any] = Registry()
    counting = _counting(base, "trusted" if trusted else "untrusted")
    return _KnownSchema(counting(schema, registry=nowhere), steps - work.left)


_Use = Literal["schemas", "trusted", "untrusted"]
"""What is checked: schemas themselves, or values by a schema."""


@cache  # jsonschema has a handful of drafts
def _counting(base: Any, use: _Use) -> Any:
    """The validator with this package's keywords, each of which spends steps, and a search for a name many more."""
    own = _KEYWORDS[use]
    search = 1 if use == "schemas" else _SEARCH
    keywords = {**base.VALIDATORS, **{k: v for k, v in own.items() if k in base.VALIDATORS}}
    made = cast("Any", validators).extend(
        base,
        {name: _counted(name, keyword, search) for name, keyword in keywords.items()},
        type_checker=base.TYPE_CHECKER.redefine("number", _is_number),
    )
    made.evolve = _evolve
    return made


def _evolve(self: Any, **changes: Any) -> Any:
    """As jsonschema's own, but a `$schema` inside the schema does not lead back to keywords that spend nothing."""
    kept = {alias: getattr(self, name) for alias, name in _fields(self.__class__)}
    return type(self)(**(kept | changes))


@cache
def _fields(kind: Any) -> Sequence[tuple[str, str]]:
    """The arguments of its constructor and the attributes that keep them."""
    return [(each.alias, each.name) for each in kind.__attrs_attrs__ if each.init]


def _counted(name: str, keyword: _Keyword, search: int) -> _Keyword:
    def run(validator: Any, value: Any, instance: JSON, schema: Any) -> Iterator[ValidationError]:
        work = _work.get()
        work.spend(1 + (_size(value) + _size(instance)) // AT_ONCE)
        if name in _REFERENCES and not (value == "#" or value.startswith("#/")):
            work.spend(search)
        for error in keyword(validator, value, instance, schema) or ():
            work.spend(len(error.message) // AT_ONCE)
            yield error

    return run


_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_SEARCH = 1_000
"""Steps to find a name anywhere in a schema that was not searched before."""


def _size(value: JSON) -> int:
    return len(value) if type(value) in (str, dict, list) else 0


def _pattern(_: object, pattern: str, instance: JSON, _schema: object) -> Iterator[ValidationError]:
    if not isinstance(instance, str) or len(instance) > PATTERN_LIMIT:
        return
    work = _work.get()
    work.spend(len(pattern) * len(instance) // AT_ONCE)
    compiled = _linear(pattern)
    if compiled is None:
        work.untried = True
    elif compiled.search(instance.encode(errors="replace")) is None:
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


@lru_cache(maxsize=256)
def _linear(pattern: str) -> re2.Pattern | None:
    """The pattern as RE2 runs it, in time in proportion to pattern and text; None: it cannot, as with look-around."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _PATTERN_MEMORY
    spelled = _ESCAPE.sub(lambda each: rf"\x{{{each[1]}}}" if each[1] else each[0], pattern)
    try:
        return re2.compile(spelled, options)
    except (re2.error, UnicodeEncodeError):
        return None


def _trusted_pattern(
    _: object, pattern: str, instance: JSON, _schema: object
) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not ecmascript.found(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _multiple(_: object, step: float, instance: JSON, _schema: object) -> Iterator[ValidationError]:
    # As written in decimal: 0.7 is a multiple of 0.1, though not as doubles.
    if _is_number(None, instance) and Fraction(str(instance)) % Fraction(str(step)):
        yield ValidationError(f"{instance!r} is not a multiple of {step!r}")


def _unique(
    _: object, wanted: object, instance: JSON, _schema: object
) -> Iterator[ValidationError]:
    items = list_of(instance)
    if wanted and items is not None and len({_form(item) for item in items}) < len(items):
        yield ValidationError("the items are not unique")


def _const(_: object, value: JSON, instance: JSON, _schema: object) -> Iterator[ValidationError]:
    if _form(value) != _form(instance):
        yield ValidationError(f"{value!r} was expected")


def _enum(
    _: object, members: list[JSON], instance: JSON, _schema: object
) -> Iterator[ValidationError]:
    forms = _work.get().forms
    if id(members) not in forms:
        forms[id(members)] = frozenset(map(_form, members))
    if _form(instance) not in forms[id(members)]:
        yield ValidationError(f"{instance!r} is not one of {members!r}")


def _additional(
    validator: Any, value: Any, instance: JSON, schema: Any
) -> Iterable[ValidationError] | None:
    # Which properties are additional depends on patterns that are not tried.
    return (
        ()
        if "patternProperties" in schema
        else _trusted_additional(validator, value, instance, schema)
    )


def _trusted_additional(
    validator: Any, value: Any, instance: JSON, schema: Any
) -> Iterable[ValidationError] | None:
    members = object_of(instance)
    if members is None or object_of(value) is None or "patternProperties" in schema:
        known = cast("Any", validators).Draft202012Validator.VALIDATORS
        return known["additionalProperties"](validator, value, instance, schema)
    # In their order: jsonschema's is that of a set, another one in each process.
    named = schema.get("properties", {})
    extras = ((name, inner) for name, inner in members.items() if name not in named)
    return (error for name, inner in extras for error in validator.descend(inner, value, path=name))


def _nothing(*_: object) -> Iterator[ValidationError]:
    return iter(())


def _form(value: JSON) -> bytes:
    """Equal for values that JSON Schema calls equal: 1 is 1.0, and is not true."""
    form = encoded(_numbers(value))
    _work.get().spend(len(form) // AT_ONCE)
    return form


def _numbers(value: JSON) -> JSON:
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    inner, items = object_of(value), list_of(value)
    if inner is not None:
        return {key: _numbers(each) for key, each in inner.items()}
    return value if items is None else [_numbers(each) for each in items]


def _is_number(_: object, instance: object) -> bool:
    if isinstance(instance, float):
        return math.isfinite(instance)
    return isinstance(instance, int) and not isinstance(instance, bool)


_OWN: dict[str, _Keyword] = {
    "multipleOf": _multiple,
    "uniqueItems": _unique,
    "const": _const,
    "enum": _enum,
}
_KEYWORDS: Mapping[_Use, Mapping[str, _Keyword]] = {
    "schemas": _OWN,
    "trusted": _OWN | {"pattern": _trusted_pattern, "additionalProperties": _trusted_additional},
    "untrusted": {
        **_OWN,
        "pattern": _pattern,
        "patternProperties": _nothing,
        "additionalProperties": _additional,
        # Their search for what other keywords have looked at goes around the counting.
        "unevaluatedItems": _nothing,
        "unevaluatedProperties": _nothing,
    },
}
