"""Status, body and headers of an error and the errors behind it, read from attributes by their names."""

from __future__ import annotations

import email.utils
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, cast

from evaluators.matching.json_values import object_of
from evaluators.model import JSON

_CAUSES = 20
"""Errors behind an error that are looked at."""


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """The error, then those behind it."""
    behind: BaseException | None = error
    for _ in range(_CAUSES):
        if behind is None:
            return
        yield behind
        behind = behind.__cause__ or behind.__context__


def is_named(error: BaseException, *names: str) -> bool:
    """Whether its class, or one above it, has one of these names."""
    return any(kind.__name__ in names for kind in type(error).__mro__)


def status_of(error: BaseException | None) -> int | None:
    """The HTTP status that it bears."""
    own = getattr(error, "status_code", None) or getattr(
        getattr(error, "response", None), "status_code", None
    )
    return own if isinstance(own, int) else None


def is_error_in_answer(error: BaseException) -> bool:
    """Whether the response had status 200 and an error as its body: litellm raises a bare Exception for it."""
    return type(error) is Exception and hasattr(error, "status_code")


def status_in_answer(error: BaseException) -> int:
    named = str(getattr(error, "status_code", None))
    return int(named) if named.isdecimal() and 400 <= int(named) < 600 and named != "422" else 200


def bodies_of(error: BaseException) -> Iterator[Mapping[str, JSON]]:
    """What an error holds of the response's body: the error in it, and itself."""
    for value in (getattr(error, "body", None), _json(getattr(error, "message", None))):
        body = object_of(value)
        if body is not None:
            yield body
            inner = object_of(body.get("error"))
            if inner is not None:
                yield inner


def _json(text: Any) -> JSON:
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def places(detail: JSON) -> Iterator[str]:
    """The fields that a FastAPI server names."""
    for each in cast("list[JSON]", detail) if isinstance(detail, list) else ():
        place = (object_of(each) or {}).get("loc")
        yield from map(str, cast("list[JSON]", place) if isinstance(place, list) else ())


def retry_after(chain: tuple[BaseException, ...]) -> float | None:
    """Seconds that the provider asks to wait."""
    for each in chain:
        headers: Any = (
            getattr(each, "litellm_response_headers", None)
            or getattr(getattr(each, "response", None), "headers", None)
            or {}
        )
        milliseconds = _seconds(headers.get("retry-after-ms"))
        if milliseconds is not None:
            return milliseconds / 1000
        asked = headers.get("retry-after")
        if asked is not None:
            return _seconds(asked) if _seconds(asked) is not None else _until(asked, headers)
    return None


def _seconds(text: Any) -> float | None:
    try:
        seconds = float(str(text))
    except ValueError:
        return None
    return seconds if 0 <= seconds < math.inf else None


def _until(date: Any, headers: Any) -> float | None:
    """Seconds until a date, by the server's own clock; None where it does not give its time."""
    try:
        then = email.utils.parsedate_to_datetime(str(date))
        begin = email.utils.parsedate_to_datetime(str(headers.get("date")))
        return max(0.0, (then - begin).total_seconds())
    except (ValueError, TypeError):
        return None
