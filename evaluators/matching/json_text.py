"""JSON text as ECMAScript's JSON.parse reads it."""

from __future__ import annotations

import json
from typing import NoReturn

from evaluators.model import JSON

_DIGITS = 300
"""A longer integer is read as a double, if need be infinite."""


def parse(text: str) -> JSON:
    """The value; a number too large for a double is infinite, half a surrogate pair stays one, the last key wins.

    Raises:
        ValueError: The text is not strict JSON: NaN, a byte order mark or anything around the value is not allowed.
        RecursionError: It is nested too deeply.
    """
    return json.loads(text, parse_constant=_refused, parse_int=_integer)


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _integer(digits: str) -> float:
    # Python refuses to read some thousand digits.
    return int(digits) if len(digits) <= _DIGITS else float(digits)
