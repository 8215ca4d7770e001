"""Tool arguments against tool schemas. Both come from traces, so neither is trusted: no network, no costly pattern."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from evaluators.digest import canonical
from evaluators.model import JSON

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

SIZE_LIMIT = 65_536
"""Bytes of a schema or of arguments, as JSON; what is longer is not judged."""

_COSTLY = re.compile(r"\)[*+{?]|\\\d|\(\?")
_PATTERN_LIMIT = 256


def argument_error(schema: JSON, arguments: JSON) -> str | None:
    """Why the arguments do not satisfy the tool's schema; None when they do.

    Raises:
        Unjudgeable: The schema is no valid schema or refers to other documents, or either is too long.
    """
    text = canonical(schema)
    if len(text) > SIZE_LIMIT or len(canonical(arguments)) > SIZE_LIMIT:
        raise Unjudgeable("longer than 64 KiB")
    validator = _validator(text.decode(errors="replace"))
    if validator is None:
        raise Unjudgeable("not a valid schema")
    try:
        error = next(iter(validator.iter_errors(arguments)), None)
    except Exception as broken:  # a dangling or endless reference surfaces only here
        raise Unjudgeable(f"{type(broken).__name__}") from broken
    if error is None:
        return None
    path = "/".join(str(step) for step in error.absolute_path)
    return f"{path}: {error.message[:200]}" if path else error.message[:200]


class Unjudgeable(ValueError):
    """Nothing can be said about arguments against this schema."""


@lru_cache(maxsize=256)
def _validator(text: str) -> Validator | None:
    # jsonschema takes 100 ms to import: only workers that judge arguments pay for it.
    from jsonschema import validators
    from jsonschema.exceptions import SchemaError
    from referencing import Registry

    schema = json.loads(text)
    if not isinstance(schema, dict | bool):
        return None
    try:
        base = validators.validator_for(schema, default=validators.Draft202012Validator)
        base.check_schema(schema)
    except (SchemaError, RecursionError):
        return None
    tame = validators.extend(base, {"pattern": _pattern, "patternProperties": _nothing})
    # An explicit registry: the default one would fetch remote references over the network.
    return tame(schema, registry=Registry())


def _pattern(_validator: object, pattern: str, instance: JSON, _schema: object) -> Iterator[object]:
    from jsonschema.exceptions import ValidationError

    if not isinstance(instance, str) or len(instance) > _PATTERN_LIMIT or _COSTLY.search(pattern):
        return
    try:
        found = re.search(pattern, instance)
    except re.error:
        return
    if found is None:
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _nothing(*_: object) -> Iterator[object]:
    return iter(())
