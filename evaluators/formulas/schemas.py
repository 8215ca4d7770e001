"""Tool arguments against tool schemas, both as a trace gave them: neither is trusted."""

from __future__ import annotations

from evaluators.digest import canonical
from evaluators.model import JSON

SIZE_LIMIT = 65_536
"""Bytes of a schema or of arguments, as JSON; what is longer is not judged."""


class Unjudgeable(ValueError):
    """Nothing can be said about arguments against this schema."""


def argument_error(schema: JSON, arguments: JSON) -> str | None:
    """Why the arguments do not satisfy the tool's schema; None when they do.

    Raises:
        Unjudgeable: The schema is no valid schema or refers to other documents, or either is too long.
    """
    text = canonical(schema).decode("utf-8", "replace")
    if max(len(text), len(canonical(arguments))) > SIZE_LIMIT:
        raise Unjudgeable("longer than 64 KiB")
    # jsonschema takes 100 ms to import: only workers that judge arguments pay for it.
    from evaluators.providers.schemas import first_error  # noqa: PLC0415

    return first_error(text, arguments)
