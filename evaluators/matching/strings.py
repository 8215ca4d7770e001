"""Cogitator's deterministic comparisons: 1 or 0, with the reason of a 0."""

from __future__ import annotations

from evaluators.digest import canonical
from evaluators.matching.ecmascript import found, trim
from evaluators.matching.json_values import parse_json
from evaluators.model import JSON

SHOWN = 200


def exact_match(output: str, expected: str | None, *, case_sensitive: bool = False) -> str | None:
    """Why the texts differ once trimmed; None when they do not."""
    if expected is None:
        return "no expected output"
    mine, theirs = trim(output), trim(expected)
    if not case_sensitive:
        mine, theirs = mine.lower(), theirs.lower()
    return None if mine == theirs else f"expected {theirs[:SHOWN]!r}, got {mine[:SHOWN]!r}"


def contains(output: str, expected: str | None, *, case_sensitive: bool = False) -> str | None:
    """Why the output does not contain the expected text; None when it does. Nothing is trimmed."""
    if expected is None:
        return "no expected output"
    mine, theirs = output, expected
    if not case_sensitive:
        mine, theirs = mine.lower(), theirs.lower()
    return None if theirs in mine else f"output does not contain {theirs[:SHOWN]!r}"


def regex(output: str, pattern: str, flags: str = "") -> str | None:
    """Why nothing in the output matches; None when something does.

    Raises:
        re.error: The pattern is not valid, or Python cannot run it.
    """
    if found(pattern, output, flags):
        return None
    return f"output does not match /{pattern[:SHOWN]}/{flags}"


def json_schema(output: str, schema: JSON) -> tuple[str, str] | None:
    """(`parse` or `validation`, why) when the output is not JSON or does not satisfy the schema; None when it does.

    Raises:
        Unjudgeable: The schema is no valid schema.
    """
    try:
        value = parse_json(output)
    except (ValueError, RecursionError) as error:
        return "parse", f"not JSON: {error}"
    # jsonschema takes 100 ms to import: only who uses it pays for it.
    from evaluators.providers.schemas import first_error  # noqa: PLC0415

    error = first_error(canonical(schema).decode(), value, trusted=True)
    return None if error is None else ("validation", error)
