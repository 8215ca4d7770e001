"""Tool arguments against tool schemas, both as a trace gave them: neither is trusted."""

from __future__ import annotations

import json
from functools import lru_cache

from evaluators.errors import Unjudgeable
from evaluators.matching.shapes import encoded
from evaluators.model import JSON

SIZE_LIMIT = 65_536
"""Bytes of a schema or of arguments, as JSON; what is longer is not judged."""


def argument_error(schema: JSON, arguments: JSON) -> str | None:
    """Why the arguments do not satisfy the tool's schema; None when they do.

    Raises:
        Unjudgeable: The schema is no valid schema or refers to other documents, or either is too long.
    """
    schema_text, text = encoded(schema), encoded(arguments)
    if max(len(schema_text), len(text)) > SIZE_LIMIT:
        raise Unjudgeable("longer than 64 KiB")
    error, is_judged = _judged(schema_text, text)
    if not is_judged:
        raise Unjudgeable(error)
    return error


@lru_cache(maxsize=256)
def _judged(schema: bytes, arguments: bytes) -> tuple[str | None, bool]:
    # Two evaluators ask the same of every call. jsonschema takes 100 ms to import: only workers pay for it.
    from evaluators.providers.schemas import first_error  # noqa: PLC0415

    try:
        return first_error(schema.decode(), json.loads(arguments)), True
    except Unjudgeable as why:
        return str(why), False
