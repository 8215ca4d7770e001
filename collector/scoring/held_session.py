"""An open session as its partition holds it: awake while records come, else packed into a tenth of the memory.

Packed it is its head and its turns, as topic `sessions` holds them, and what timers and bounds ask for. Where the log
finds a record by its key, the texts of the turns stay there alone: all that a session wrote is written by then. Awake
again it is what a restart makes of these records (rule 5), so no score tells the one from the other.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeAlias

import msgspec
import zstandard
from msgspec.structs import replace

from collector.base.errors import Undecodable
from collector.config.tree import SessionWindow
from collector.records.sessions import SessionHead, SessionTurn, decode_sessions, turn_key
from collector.scoring.open_session import OpenSession
from collector.scoring.rules import Rules
from collector.scoring.session_cost import LONGEST, SessionCosts
from collector.scoring.sliding_window import without_texts
from evaluators.model import Tokens, Turn
from evaluators.uses import CallCount
from evaluators.work import Work

AWAKE = 32 << 20
"""Bytes that the sessions take which are awake; the others are packed, but for those of more than LONGEST traces."""
_BRIEF = struct.Struct("<dqqqq?")
State: TypeAlias = tuple[SessionHead, tuple[SessionTurn, ...], tuple[str, ...], tuple[str, ...]]
"""Head, traces, the ids of those that wait for a verdict in the order in which they came to wait, and the ids of those
whose texts stand in the log alone."""
ReadBack: TypeAlias = Callable[[bytes], bytes | None]
"""Key -> the newest record of topic `sessions` of this key, in the session's partition; None: it cannot be read."""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(State).decode


class Packer:
    """Packs sessions and wakes them.

    Args:
        rules: The plan.
        limits: Of the sessions' windows.
        read_back: Where texts are read that stay in the log; None: they are packed too.
        lost: Called for each trace whose texts could not be read back. They are looked for in its trace record then,
            as those of older turns are.
    """

    def __init__(
        self,
        rules: Rules,
        limits: SessionWindow,
        *,
        read_back: ReadBack | None = None,
        lost: Callable[[], None] = lambda: None,
    ) -> None:
        self._rules = rules
        self._limits = limits
        self._read_back = read_back
        self._lost = lost
        self._costs = SessionCosts(outcomes=rules.outcomes, texts_in_log=read_back is not None)
        self._compress, self._expand = _compression(tuple(sorted(rules.emitted)))

    def pack(self, session: OpenSession) -> bytes:
        """Everything of the session, its key apart."""
        head = session.head
        brief = _BRIEF.pack(
            head.last, head.offset, head.since, head.cost, session.seen, bool(session.pending)
        )
        traces, in_log = session.traces, list[str]()
        if self._read_back is not None:
            in_log = [each.turn.trace_id for each in traces if _has_texts(each)]
            traces = tuple(without_texts(each) if _has_texts(each) else each for each in traces)
        state: State = (head, traces, tuple(session.pending), tuple(in_log))
        return brief + self._compress.compress(_encode(state))

    def wake(self, key: bytes, packed: bytes, *, texts: bool = True) -> OpenSession:
        """The session of these bytes; without `texts` it is only good to be looked at, or to be closed.

        Raises:
            LogUnavailable: its texts cannot be read back now.
        """
        head, traces, pending, in_log = _decode(self._expand.decompress(packed[_BRIEF.size :]))
        if texts and in_log:
            of = frozenset(in_log)
            traces = tuple(
                self._with_texts(key, each) if each.turn.trace_id in of else each for each in traces
            )
        session = self.session(key, head, traces)
        session.seen = _BRIEF.unpack_from(packed)[4]
        session.pending = {trace_id: session.pending[trace_id] for trace_id in pending}
        return session

    def _with_texts(self, key: bytes, trace: SessionTurn) -> SessionTurn:
        stored = self._stored(turn_key(key, trace.turn.trace_id))
        if stored is None or stored.turn.digest != trace.turn.digest or not stored.kept:
            self._lost()
            return replace(trace, kept=False)
        texts = replace(trace.turn, output=stored.turn.output, input=stored.turn.input)
        return replace(trace, turn=texts)

    def _stored(self, key: bytes) -> SessionTurn | None:
        value = None if self._read_back is None else self._read_back(key)
        try:
            record = None if value is None else decode_sessions(value)
        except Undecodable:
            return None
        return record if isinstance(record, SessionTurn) else None

    def session(
        self, key: bytes, head: SessionHead, traces: Iterable[SessionTurn] = ()
    ) -> OpenSession:
        """A session as it stands in the log."""
        session = OpenSession(
            key,
            head,
            rules=self._rules,
            limits=self._limits,
            costs=self._costs,
        )
        for each in traces:
            session.restore(each)
        return session


class HeldSession:
    """One open session, awake or packed. What is asked of a packed one does not wake it, but `wake`."""

    __slots__ = ("_held", "key")

    def __init__(self, session: OpenSession) -> None:
        self.key = session.key
        self._held: OpenSession | bytes = session

    @property
    def last(self) -> float:
        """Log time of its newest trace record."""
        held = self._held
        return _BRIEF.unpack_from(held)[0] if isinstance(held, bytes) else held.head.last

    @property
    def offset(self) -> int:
        """Of its newest trace record."""
        held = self._held
        return _BRIEF.unpack_from(held)[1] if isinstance(held, bytes) else held.head.offset

    @property
    def since(self) -> int:
        """Trace records below this offset belong to an earlier session of the same id."""
        held = self._held
        return _BRIEF.unpack_from(held)[2] if isinstance(held, bytes) else held.head.since

    @property
    def cost(self) -> int:
        """See `OpenSession.cost`."""
        held = self._held
        return _BRIEF.unpack_from(held)[3] if isinstance(held, bytes) else held.cost

    @property
    def waits(self) -> bool:
        """Whether a trace of it waits for a verdict."""
        held = self._held
        return _BRIEF.unpack_from(held)[5] if isinstance(held, bytes) else bool(held.pending)

    @property
    def is_packed(self) -> bool:
        """Whether it is not awake."""
        return isinstance(self._held, bytes)

    def wake(self, packer: Packer) -> OpenSession:
        """The session itself; what is done to it holds until it is packed the next time."""
        if isinstance(self._held, bytes):
            self._held = packer.wake(self.key, self._held)
        return self._held

    def look(self, packer: Packer) -> OpenSession:
        """The session as it is, to be read or to be closed: it stays packed, and its texts may be left out."""
        held = self._held
        return packer.wake(self.key, held, texts=False) if isinstance(held, bytes) else held

    def pack(self, packer: Packer) -> None:
        """Let the session go, if it is awake: no one may use it any more."""
        if not isinstance(self._held, bytes):
            self._held = packer.pack(self._held)


class AwakeSessions:
    """The sessions that are awake and may be packed: the least recently used are, when together they take too much."""

    def __init__(self, packer: Packer, *, limit: int, stays: Callable[[bytes], bool]) -> None:
        """`limit` in bytes; `stays` says of a key that its session must not be packed now."""
        self._packer = packer
        self._limit = limit
        self._stays = stays
        self._held: OrderedDict[bytes, tuple[HeldSession, int]] = OrderedDict()
        """With its cost, the least recently used first."""
        self._size = 0

    def wake(self, held: HeldSession) -> OpenSession:
        """The session, for which others make room. It may be packed as soon as another one is woken."""
        if held.key in self._held:  # awake already, at the cost that `keep` found
            self._held.move_to_end(held.key)
        else:
            self.keep(held)
        return held.wake(self._packer)

    def keep(self, held: HeldSession) -> None:
        """The session was used, or has changed."""
        session = held.wake(self._packer)
        self.forget(held.key)
        if session.size > LONGEST:
            return
        cost = session.awake_cost
        self._held[held.key] = held, cost
        self._size += cost
        self.make_room(held.key)

    def make_room(self, used: bytes | None = None) -> None:
        """Pack what exceeds the limit, but not the session of this key."""
        if self._size <= self._limit:
            return
        for key in self._surplus(used):
            self._held[key][0].pack(self._packer)
            self.forget(key)

    def forget(self, key: bytes) -> None:
        """The session was packed, or has closed."""
        if (found := self._held.pop(key, None)) is not None:
            self._size -= found[1]

    def _surplus(self, used: bytes | None) -> list[bytes]:
        """The least recently used without which the others fit."""
        size, keys = self._size, list[bytes]()
        for key, (_, cost) in self._held.items():
            if size <= self._limit:
                break
            if key != used and not self._stays(key):
                size -= cost
                keys.append(key)
        return keys


def _has_texts(trace: SessionTurn) -> bool:
    return trace.turn.output is not None or trace.turn.input is not None


@lru_cache(maxsize=2)
def _compression(
    names: tuple[str, ...],
) -> tuple[zstandard.ZstdCompressor, zstandard.ZstdDecompressor]:
    """With what every session repeats as the dictionary: the names of fields and of evaluators."""
    turn = SessionTurn(
        service="",
        session_id="",
        turn=Turn(
            trace_id="",
            start_time_unix_nano=0,
            duration=1.5,
            digest="",
            output=None,
            tokens=Tokens(input=1, output=1),
            cost_usd=0.5,
            model_calls=1,
            tool_calls=1,
            call_counts=(CallCount(1 << 63, 1 << 63, 1),),
            scores=dict.fromkeys(names, 1.0),
            unscored=names[:1],
            unscored_why=dict.fromkeys(names[:1], "no_content"),
            assumed=names[:1],
            work=Work(1, 1, 1, 1, 1, 1),
            model="gpt-",
        ),
        revision=0,
        offset=0,
        seen=1.7e9,
        signal_ids=dict.fromkeys(names, ""),
        agent="",
        agent_version="",
        session_source="session.id",
        span_id="",
        placed_at=1.7e9,
    )
    known = zstandard.ZstdCompressionDict(_encode(turn), dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    # The bytes never leave the process: they need no checksum and no number of their dictionary.
    compress = zstandard.ZstdCompressor(
        level=1, dict_data=known, write_checksum=False, write_dict_id=False
    )
    return compress, zstandard.ZstdDecompressor(dict_data=known)
