"""Which sessions an address asks for: the same parameters on the page and in `/api/v1/sessions`. Pure."""

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from collector.api.session_list import SORTS, STATUSES, SessionFilter
from collector.api.store import micros

_NAMES = ("service", "agent", "version", "tool", "model", "user", "failed")
"""What is taken as it is given."""
_LIMITS = ("min_reliability", "max_reliability", "min_cost", "min_seconds")
PARAMETERS = (*_NAMES, "q", "attribute", "since", "until", "status", *_LIMITS, "sort")
RUNAWAY = "runaway"
_UNITS = {"m": 60, "h": 3_600, "d": 86_400}
_LENGTH = re.compile(r"(\d{1,6})([mhd])")
_LATEST = 253_402_300_799
"""The last second of the year 9999, which is the last that `datetime` can write."""


def filter_of(
    given: Mapping[str, str],
    *,
    now: float,
    running_away: Callable[[], frozenset[tuple[str, str]]],
) -> tuple[SessionFilter, list[str]]:
    """What the parameters ask for, and what is wrong with those that ask for nothing; empty means not given.

    `given`: by name; those that are not in `PARAMETERS` are passed over. `now`: Unix seconds, from which lengths count
    back. `running_away`: (Service, session id) of the sessions with an open trace that runs away.
    """
    wrong: list[str] = []

    def read(name: str, parse: Callable[[str], float | None], expected: str) -> float | None:
        text = given.get(name)
        value = parse(text.strip()) if text else None
        if text and value is None:
            wrong.append(f'{name}: expected {expected}, got "{text[:40]}"')
        return value

    def moment(name: str) -> int | None:
        expected = (
            "a time (2026-02-03T14:05, Unix seconds) or a length back from now (30m, 24h, 7d)"
        )
        seconds = read(name, lambda text: moment_of(text, now), expected)
        return None if seconds is None else micros(seconds)

    status = given.get("status") or None
    if status is not None and status != RUNAWAY and status not in STATUSES:
        wrong.append(f'status: expected {", ".join(STATUSES)} or {RUNAWAY}, got "{status[:40]}"')
        status = None
    attribute = tuple(given.get("attribute", "").partition("=")[::2])
    if given.get("attribute") and not all(attribute):
        wrong.append(f'attribute: expected name=value, got "{given["attribute"][:40]}"')
    asked = SessionFilter(
        **{name: given.get(name) or None for name in _NAMES},
        since=moment("since"),
        until=moment("until"),
        least=read("min_reliability", _share, "a number from 0 to 1"),
        most=read("max_reliability", _share, "a number from 0 to 1"),
        cost=read("min_cost", _amount, "US dollars"),
        seconds=read("min_seconds", _amount, "seconds"),
        status=None if status == RUNAWAY else status,
        text=given.get("q", "").strip() or None,
        attribute=attribute if all(attribute) else None,
        names=sorted(running_away()) if status == RUNAWAY else None,
    )
    return asked, wrong


def sort_of(given: Mapping[str, str], usual: str) -> tuple[str, list[str]]:
    """The name of the order, and what is wrong with it."""
    name = given.get("sort") or usual
    if name in SORTS:
        return name, []
    return usual, [f'sort: expected one of {", ".join(SORTS)}, got "{name[:40]}"']


def moment_of(text: str, now: float) -> float | None:
    """Unix seconds of a time, or of a length back from now (30m, 24h, 7d); None: it is neither."""
    length = _LENGTH.fullmatch(text)
    if length is not None:
        return max(0.0, now - int(length[1]) * _UNITS[length[2]])
    try:
        seconds = float(text) if text.replace(".", "", 1).isdigit() else _time(text)
    except (ValueError, OverflowError):
        return None
    return seconds if 0 <= seconds <= _LATEST else None


def _time(text: str) -> float:
    time = datetime.fromisoformat(text)
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _amount(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _share(text: str) -> float | None:
    value = _amount(text)
    return value if value is not None and value <= 1 else None
