"""Topic `sessions`: the state of open sessions and of closed ones that wait for a verdict; and its keys. Compacted.

The session key also keeps the records of a session in one partition of `traces`.
"""

from collections.abc import Callable
from functools import partial

import msgspec

from collector.base.errors import Undecodable
from collector.records.codec import decode
from collector.records.more import MoreRecord
from collector.records.subject import Subject
from evaluators.model import Closed, Outcome, Turn

_SEPARATOR = b"\0"


class TaskClaims(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The task that a session's traces name, and its success. If several set it, the one that started last wins."""

    task_id: str | None = None
    named_at: int = 0  # start (unix nanoseconds) of the trace that named it
    named_by: str = ""
    success: bool | None = None
    stated_at: int = 0
    stated_by: str = ""


class SessionHead(msgspec.Struct, frozen=True, kw_only=True, tag="head", omit_defaults=True):
    """The session itself. Key: `session_key`."""

    service: str
    session_id: str
    session_source: str
    agent: str
    agent_version: str | None
    opened: float
    last: float  # log time of its newest trace record
    offset: int = 0  # of its newest trace record, in the window or not
    since: int = 0  # trace records below this offset belong to an earlier session of the same id, which closed
    closed: bool = False  # closed; the tombstone follows once the commit has passed `since`
    cause: int = -1  # offset of the newest verdict that changed it
    task: TaskClaims | None = None
    cost: int = 0
    """Bytes of memory that the session took when its newest trace record had been placed; 0: it has none yet."""
    began: tuple[int, str] | None = None
    """Start (unix nanoseconds) and id of the trace that began it; None: it has no trace yet."""
    more: bool = False  # it began while every session of its agent was judged (`judge.more`)


class SessionTurn(msgspec.Struct, frozen=True, kw_only=True, tag="turn", omit_defaults=True):
    """One trace in the session's window. Key: `turn_key`."""

    service: str
    session_id: str
    turn: Turn
    revision: int
    offset: int  # of its newest trace record
    seen: float
    outcomes: tuple[Outcome, ...] = ()
    """Without explanations and metadata: what formulas and repeats need."""
    signal_ids: dict[str, str] = {}  # final signal ids by evaluator
    agent: str = ""
    agent_version: str | None = None
    session_source: str = "trace"
    span_id: str | None = None  # of the trace's root
    closed: Closed = "root_ended"
    placed_at: float = 0.0  # log time of its newest trace record
    due: tuple[str, ...] = ()  # judged evaluators that have no verdict yet
    counted: tuple[str, ...] = ()
    """Judged evaluators that had a final outcome at an earlier revision."""
    started: int = 0  # start of its first revision, unix nanoseconds, where it has later ones; 0: this is the first
    more: bool = False  # of its session


class SessionAwaited(msgspec.Struct, frozen=True, kw_only=True, tag="awaited", omit_defaults=True):
    """A closed session that waits for its verdict, with everything its signals need. Key: `awaited_key`."""

    subject: Subject
    closed_at: float  # log time
    digest: str
    due: tuple[str, ...]
    task: TaskClaims | None = None  # of a run whose success the verdict decides


SessionsTopic = SessionHead | SessionTurn | SessionAwaited | MoreRecord
decode_sessions: Callable[[bytes], SessionsTopic] = partial(
    decode, msgspec.msgpack.Decoder(SessionsTopic)
)
"""A record of `sessions`.

Raises UnknownKind: a newer version wrote it. Raises Undecodable: it is not a record of `sessions`.
"""


def session_key(service: str, session_id: str) -> bytes:
    """The key of a session. Services do not contain the separator, session ids may."""
    return f"{service}\0{session_id}".encode()


def split_session_key(key: bytes) -> tuple[str, str]:
    """Service and session id of a key. Raises Undecodable: it is not a session key."""
    service, separator, session_id = key.partition(_SEPARATOR)
    if not separator:
        raise Undecodable("the key is not a session key")
    try:
        return service.decode(), session_id.decode()
    except UnicodeDecodeError as error:
        raise Undecodable("the key is not UTF-8") from error


def service_of(key: bytes) -> str:
    """The service of a session key, as a label: readable whatever the bytes are, empty if there is none."""
    return key.partition(_SEPARATOR)[0].decode(errors="replace")


def turn_key(session: bytes, trace_id: str) -> bytes:
    return session + _SEPARATOR + trace_id.encode()


def more_key(service: str, agent: str, version: str | None) -> bytes:
    """The key of what is wanted of an agent (`MoreRecord`); it begins like no session's."""
    meant = "" if version is None else f"={version}"
    return _SEPARATOR.join((b"", b"more", service.encode(), agent.encode(), meant.encode()))


def awaited_key(session: bytes, digest: str) -> bytes:
    return _SEPARATOR.join((session, b"awaited", digest.encode()))
