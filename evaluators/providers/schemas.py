"""JSON Schema (jsonschema), for schemas out of traces and for a user's own. Import it lazily."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol, cast

from jsonschema import validators
from jsonschema.exceptions import SchemaError, ValidationError
from referencing import Registry

from evaluators.errors import Unjudgeable
from evaluators.matching import ecmascript
from evaluators.model import JSON

PATTERN_LIMIT = 256
"""Characters of a string that a pattern out of a trace is tried on."""

# Groups that repeat, back-references and extensions can take exponential time.
_COSTLY = re.compile(r"\)[*+{?]|\\\d|\(\?")


class _Validator(Protocol):
    def iter_errors(self, instance: JSON) -> Iterator[ValidationError]: ...


def first_error(text: str, instance: JSON, *, trusted: bool = False) -> str | None:
    """Why the instance does not satisfy the schema (JSON text); None when it does.

    A trusted schema is the user's own: all its patterns are tried, as ECMAScript means them. No reference is ever
    fetched, and infinity is no number.

    Raises:
        Unjudgeable: The schema is no valid schema, or a reference leads nowhere or nowhere but to itself.
    """
    validator = _validator(text, trusted=trusted)
    if validator is None:
        raise Unjudgeable("not a valid schema")
    try:
        error = next(validator.iter_errors(instance), None)
    except Exception as broken:  # a dangling or endless reference surfaces only here
        raise Unjudgeable(type(broken).__name__) from broken
    if error is None:
        return None
    path = "/".join(str(step) for step in error.absolute_path)
    return f"{path}: {error.message[:200]}" if path else error.message[:200]


@lru_cache(maxsize=256)
def _validator(text: str, *, trusted: bool) -> _Validator | None:
    schema: JSON = json.loads(text)
    # Not isinstance: that would narrow Any to a half-known dict.
    if type(schema) not in (dict, bool):
        return None
    # jsonschema's own types do not say that a boolean is a schema.
    known = cast("Any", validators)
    base = known.validator_for(schema, default=known.Draft202012Validator)
    try:
        base.check_schema(schema)
    except (SchemaError, RecursionError):
        return None
    base = known.extend(
        base,
        {"multipleOf": _multiple, **(_TRUSTED if trusted else _UNTRUSTED)},
        type_checker=base.TYPE_CHECKER.redefine("number", _is_number),
    )
    # An empty registry: the default one would fetch remote references over the network.
    nowhere: Registry[Any] = Registry()
    return cast("_Validator", base(schema, registry=nowhere))


def _pattern(_: object, pattern: str, instance: JSON, _schema: object) -> Iterator[ValidationError]:
    if not isinstance(instance, str) or len(instance) > PATTERN_LIMIT or _COSTLY.search(pattern):
        return
    try:
        found = re.search(pattern, instance)
    except re.error:
        return
    if found is None:
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _trusted_pattern(
    _: object, pattern: str, instance: JSON, _schema: object
) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not ecmascript.found(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _multiple(_: object, step: float, instance: JSON, _schema: object) -> Iterator[ValidationError]:
    # As written in decimal: 0.7 is a multiple of 0.1, though not as doubles.
    if _is_number(None, instance) and Fraction(str(instance)) % Fraction(str(step)):
        yield ValidationError(f"{instance!r} is not a multiple of {step!r}")


def _is_number(_: object, instance: object) -> bool:
    if isinstance(instance, float):
        return math.isfinite(instance)
    return isinstance(instance, int) and not isinstance(instance, bool)


def _nothing(*_: object) -> Iterator[ValidationError]:
    return iter(())


_TRUSTED = {"pattern": _trusted_pattern}
_UNTRUSTED = {"pattern": _pattern, "patternProperties": _nothing}
