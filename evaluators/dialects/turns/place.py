"""One log record (or span) of an agent, and where it belongs. Pure; nothing here knows of a particular agent.

An agent that speaks in logs has no trace per prompt of a person. A trace is made: one turn, from the prompt to what
comes before the next one. Each of its records is placed by itself, so that what is made does not depend on the order
in which records arrive:

    session  s  |prompt p1 . . . . . end|prompt p2 . . . .
    turns       |-------- p1 -----------|------ p2 -------
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import msgspec

from evaluators.model import JSON

Dropped = Literal["diagnostics", "streamed_token", "no_agent", "own", "evaluation"]
"""Why a record is dropped before it is written: it is about the program itself, repeats what a later record says
whole, is of no agent that is known, is one of our own signals, or is a score that somebody else gave."""


_SHORT = 200  # characters up to which texts are kept with their digests; ids are 36


class AgentEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One log record, or one span, as its producer sent it."""

    name: str  # of a record, attribute `event.name`, else its field `event_name`, else ""; of a span, its name
    time_unix_nano: int
    """Of a record, its time, where that is 0 its observed time; of a span, its start."""
    scope: str  # name of the instrumentation scope
    attributes: Mapping[str, JSON]
    body: JSON = None
    resource: Mapping[str, JSON] = {}
    trace_id: str = ""  # lower-case hex; "" for a record without
    span_id: str = ""
    is_span: bool = False


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where an event of an agent belongs.

    The turn of an event is, in this order: `turn`, unless a record says that it is not a person's turn; the turn of
    a record that owns the trace whose id the event carries; the last turn of the session (for a
    helper's, of its outermost session) that began no later than the event.
    """

    session: str  # the session's own id
    owner: str = ""
    """What has all sessions that may share a turn, where these are several; "": the session itself. With it and the
    service, assembly's partition is found."""
    turn: str = ""  # what names the turn within the session, where each event says it; "" otherwise
    is_prompt: bool = False  # whether a person's prompt, which begins a turn
    is_helper: bool = False
    """Whether `turn` is of a helper's report or a title's prompt: its events belong to the turn before."""
    owns_trace: bool = False
    """Whether all spans of the trace whose id the event carries are of the same turn."""
    is_end: bool = False  # whether nothing more of the turn is expected
    helper_session: str = ""  # the session of a helper that this session has started


def turn_trace_id(service: str, session: str, turn: str) -> bytes:
    """The id of a made trace: the same whoever makes it, and in which order.

    `turn` is what names the turn: the id of its prompt, or the digest of the record that holds it.
    """
    return _digest("turn", service, session, turn)[:16]


def owner_id(service: str, place: Place) -> bytes:
    """16 bytes that name who has all records which may share a turn with this one."""
    return _digest("owner", service, place.owner or place.session)[:16]


def session_mark(service: str, session: str) -> bytes:
    """8 bytes that tell the sessions of one owner apart."""
    return _digest("session", service, session)[:8]


def _digest(*texts: str) -> bytes:
    return _kept(texts) if sum(map(len, texts)) <= _SHORT else _digest_of(texts)


def _digest_of(texts: tuple[str, ...]) -> bytes:
    whole = hashlib.sha256()
    for text in texts:
        raw = text.encode(errors="surrogatepass")
        whole.update(len(raw).to_bytes(4, "big") + raw)
    return whole.digest()


_kept = lru_cache(maxsize=4096)(_digest_of)


# Values of events' attributes as texts: producers write numbers and ids in several types.


def text(event: AgentEvent, *keys: str) -> str:
    """The first of these attributes that holds a text which is not empty; "" where none does."""
    for key in keys:
        value = event.attributes.get(key)
        if isinstance(value, str) and value:
            return value
    return ""


def from_resource(event: AgentEvent, key: str) -> str:
    """A text of the resource; "" where it has none."""
    value = event.resource.get(key)
    return value if isinstance(value, str) else ""


@dataclass(frozen=True, kw_only=True, eq=False)
class LogAgent:
    """One agent. Its file in `turns/` declares it, `registry.LOG_AGENTS` names it; its words are read in `readers/`."""

    name: str  # as its dialect is called
    scopes: tuple[str, ...]  # how the instrumentation scopes of its log records begin
    place: Callable[[AgentEvent], Place | Dropped]  # where one of its log records belongs
    span_scopes: tuple[str, ...] = ()  # scopes of spans that belong to its turns
    place_span: Callable[[AgentEvent], Place | None] | None = None
    """Where a span of a resource with one of `span_scopes` belongs; None: it stays in its own trace."""
    turn_span: str = ""
    """The span that is a whole turn. Without a parent it begins a trace of its own, by whose id the turn goes."""
