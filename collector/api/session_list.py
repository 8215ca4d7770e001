"""The list of sessions: which ones, in what order, from where on. Pure: it makes the statement that `Reading` runs.

Every order is total and descending, its last key the session's row, so that a cursor (the keys of the last session of a
page) divides the list: what is not on the pages before is on those after, whatever is written meanwhile.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from collector.api.outcomes import LAST_BIT
from collector.api.search import FOUND, Used, query, word_of

SqlValue = str | int | float
STATUSES: Mapping[str, str] = {
    "open": "closed IS NULL",
    "closed": "closed IS NOT NULL",
    "error": "errors > 0",
    "unscored": "reliability IS NULL",
}
"""What `status` may be, and the sessions that it means; `runaway` is in no row, so its sessions are named."""
# The statements below are made of these and of the keys of `SORTS`; what was asked for is always a bound value.
_BIT = f"SELECT 1 << id FROM evaluators WHERE name = ? AND id <= {LAST_BIT}"  # noqa: S608
_NAMED = """id IN (SELECT s.id FROM json_each(?) AS named JOIN sessions AS s
  ON s.session_id = json_extract(named.value, '$[1]') AND s.service = json_extract(named.value, '$[0]'))"""
_BEGINNING = """SELECT id FROM (SELECT id FROM sessions INDEXED BY sessions_by_id
  WHERE session_id >= ? AND session_id < ? LIMIT ?)"""
_SAID = """SELECT session FROM traces INDEXED BY traces_in_order
  WHERE id IN (SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rowid DESC LIMIT ?)"""
_BEYOND = "\U0010ffff"
_WHOLE = 1 << 63
"""SQLite's whole numbers have 64 bits, one of them for the sign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFilter:
    """Which sessions; what is None excludes none. All of it has to fit."""

    service: str | None = None
    agent: str | None = None
    version: str | None = None
    since: int | None = None
    """Log time of the newest record of a session, in microseconds; `until` too, which is excluded."""
    until: int | None = None
    least: float | None = None  # reliability, and `most`: a session without one does not fit
    most: float | None = None
    cost: float | None = None
    """At least so many US dollars, and `seconds`: of its traces together. A session without does not fit."""
    seconds: float | None = None
    status: str | None = None  # one of `STATUSES`
    failed: str | None = None  # an evaluator that the session or one of its traces did not pass
    text: str | None = None
    """Words of a question or an answer, the beginning of a session id, or a trace id."""
    tool: str | None = None
    """A tool that a trace called; likewise `model`, and `user`, the id that the spans name."""
    model: str | None = None
    user: str | None = None
    attribute: tuple[str, ...] | None = None  # name and value of one that `attributes.filter` keeps
    names: Sequence[tuple[str, str]] | None = None
    """(Service, session id) of the only ones that fit."""


EVERY = SessionFilter()


@dataclass(frozen=True, slots=True)
class Sort:
    keys: tuple[str, ...]  # what is compared, the highest first; the row follows as the last key
    index: str | None = None  # that holds all sessions in this order


SORTS: Mapping[str, Sort] = {
    "worst": Sort(("-ifnull(work, 2)", "-ifnull(reliability, 2)"), "sessions_by_worst"),
    "newest": Sort(("last",), "sessions_by_last"),
    "reliability": Sort(("-ifnull(reliability, 2)",)),
    "cost": Sort(("ifnull(cost, -1)",)),
    "tokens": Sort(("coalesce(input_tokens + output_tokens, input_tokens, output_tokens, -1)",)),
    "length": Sort(("ifnull(seconds, -1)",)),
}
"""By name. Scores are from 0 to 1, so 2 puts a session without one behind those with."""
NUMBERS = "sessions_of_agent"
"""The index that has every number by which sessions are chosen and sorted, those of an agent together."""


def statement(
    asked: SessionFilter, sort: Sort, place: Sequence[SqlValue] | None, limit: int
) -> tuple[str, list[SqlValue]]:
    found = list(_conditions(asked))
    if place is not None:
        keys = ", ".join((*sort.keys, "id"))
        found.append((f"{sort.keys[0]} <= ?", [place[0]]))
        found.append((f"({keys}) < ({', '.join('?' * len(place))})", list(place)))
    where = " AND ".join(each for each, _ in found) or "1"
    order = ", ".join(f"{key} DESC" for key in (*sort.keys, "id"))
    select = f"SELECT id, {', '.join(sort.keys)} FROM sessions{_source(asked, sort)}"  # noqa: S608
    values = [value for _, values in found for value in values]
    return f"{select} WHERE {where} ORDER BY {order} LIMIT ?", [*values, limit]


def _source(asked: SessionFilter, sort: Sort) -> str:
    """The index that is read; what is searched for is looked up row by row, and is bounded."""
    if any(
        (asked.text, asked.names is not None, asked.tool, asked.model, asked.user, asked.attribute)
    ):
        return ""
    is_whole = asked == EVERY
    if sort.index is not None and (is_whole or (sort.keys == ("last",) and _only_time(asked))):
        return f" INDEXED BY {sort.index}"
    return f" INDEXED BY {NUMBERS}"


def _only_time(asked: SessionFilter) -> bool:
    return asked == SessionFilter(since=asked.since, until=asked.until)


def _conditions(asked: SessionFilter) -> Iterator[tuple[str, list[SqlValue]]]:
    named = (("service", asked.service), ("agent", asked.agent), ("agent_version", asked.version))
    chosen = [(f"{name} = ?", value) for name, value in named if value is not None]
    if chosen:
        agents = " AND ".join(each for each, _ in chosen)
        values: list[SqlValue] = [value for _, value in chosen]
        yield f"agent IN (SELECT id FROM agents WHERE {agents})", values  # noqa: S608
    for condition, bound in (
        ("last >= ?", asked.since),
        ("last < ?", asked.until),
        ("reliability >= ?", asked.least),
        ("reliability <= ?", asked.most),
        ("cost >= ?", asked.cost),
        ("seconds >= ?", asked.seconds),
    ):
        if bound is not None:
            yield condition, [bound]
    if asked.status is not None:
        yield STATUSES[asked.status], []
    if asked.failed is not None:
        yield f"failed & ({_BIT}) != 0", [asked.failed]
    if asked.text is not None:
        yield _searched(asked.text)
    used: tuple[tuple[Used, str | None], ...] = (
        ("tool", asked.tool),
        ("model", asked.model),
        ("user", asked.user),
    )
    words = [word_of(kind, name) for kind, name in used if name is not None]
    if asked.attribute is not None:
        words.append(word_of("attribute", *asked.attribute))
    for word in words:
        yield f"id IN ({_SAID})", [f'"{word}"', FOUND]
    if asked.names is not None:
        names = msgspec.json.encode(asked.names).decode()
        yield _NAMED, [names]


def _searched(text: str) -> tuple[str, list[SqlValue]]:
    parts = [_BEGINNING, "SELECT session FROM traces WHERE trace_id = ?"]
    values: list[SqlValue] = [text, text + _BEYOND, FOUND, text.lower()]
    words = query(text)
    if words is not None:
        parts.append(_SAID)
        values += [words, FOUND]
    return f"id IN ({' UNION '.join(parts)})", values


def key_after(sort: str, place: Sequence[SqlValue]) -> bytes:
    """The key of a cursor: the order, and the keys of the last session of a page."""
    return msgspec.msgpack.encode([sort, *place])


def place_after(sort: str, key: bytes | None) -> list[SqlValue] | None:
    """The place of a cursor; None: it is of another order or another list, which starts at the top."""
    try:
        given = msgspec.msgpack.decode(key or b"")
    except msgspec.DecodeError:
        return None
    if not isinstance(given, list):
        return None
    name, *place = cast(list[Any], given) or [None]
    if name != sort or len(place) != len(SORTS[sort].keys) + 1 or not all(map(_is_key, place)):
        return None
    return place


def _is_key(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and -_WHOLE <= value < _WHOLE
