"""JSON values of unknown shape: parsed, narrowed, encoded, cut to a size."""

import json
from collections.abc import Sequence
from typing import NoReturn, cast

import msgspec

from evaluators.model import JSON

_DIGITS = 300  # a longer integer is read as a double, if need be infinite

VALUE_LIMIT = 2000  # characters of a value in a score's metadata
LIST_LIMIT = 16_000  # bytes, as JSON, of a list in a score's metadata


def parse_json(text: str) -> JSON:
    """The value as ECMAScript's JSON.parse reads it.

    A number too large for a double is infinite, half a surrogate pair stays one, the last of equal keys wins. Raises
    ValueError: the text is not strict JSON: NaN, a byte order mark or anything around the value is not allowed. Raises
    RecursionError: it is nested too deeply.
    """
    return json.loads(text, parse_constant=_refused, parse_int=_integer)


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _integer(digits: str) -> float:
    # Python refuses to read some thousand digits.
    return int(digits) if len(digits) <= _DIGITS else float(digits)


def object_of(value: JSON) -> dict[str, JSON] | None:
    return cast("dict[str, JSON]", value) if isinstance(value, dict) else None


def list_of(value: JSON) -> list[JSON] | None:
    return cast("list[JSON]", value) if isinstance(value, list) else None


def encoded(value: JSON) -> bytes:
    """As JSON bytes, equal for equal values: to compare and to measure, a tenth of `digest.canonical`'s cost."""
    try:
        return msgspec.json.encode(value, order="sorted")
    # Half a surrogate pair out of an escape, for one.
    except (UnicodeEncodeError, TypeError, RecursionError):
        return json.dumps(value, sort_keys=True, default=str).encode()


def brief(value: JSON) -> JSON:
    if isinstance(value, str):
        return value if len(value) <= VALUE_LIMIT else value[:VALUE_LIMIT] + "..."
    text = encoded(value)
    return value if len(text) <= VALUE_LIMIT else text[:VALUE_LIMIT].decode(errors="ignore") + "..."


def bounded(entries: Sequence[JSON]) -> list[JSON]:
    """As many of the first entries as fit into 16 kB of JSON."""
    if len(encoded(entries)) <= LIST_LIMIT:  # the whole list is longer than its entries together
        return list(entries)
    kept: list[JSON] = []
    room = LIST_LIMIT
    for entry in entries:
        room -= len(encoded(entry))
        if room < 0:
            break
        kept.append(entry)
    return kept


def left_out(name: str, kept: Sequence[JSON], every: Sequence[object]) -> str | None:
    """How much a bounded list leaves out, for `truncated`; None when it is whole."""
    return None if len(kept) == len(every) else f"{name}: {len(kept)} of {len(every)}"
