"""An open session as its partition holds it: awake while records come, else packed into a tenth of the memory.

Packed it is its head and its turns, as topic `sessions` holds them, and what timers and bounds ask for. Awake again it
is what a restart makes of these records (rule 5), so no score tells the one from the other. The sketches of its turns
are in the records of their traces; they are packed too only where the log takes long to read one.
"""

import struct
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec
import zstandard

from collector.config.tree import SessionWindow
from collector.records.sessions import SessionHead, SessionTurn
from collector.scoring.open_session import OpenSession
from collector.scoring.rules import Rules
from collector.scoring.session_work import LONGEST, SessionMemory
from collector.scoring.turn_sketches import KEPT, Sketches
from evaluators.model import Tokens, Turn
from evaluators.uses import CallCount, Work

AWAKE = 32 << 20
"""Bytes that the sessions take which are awake; the others are packed, but for those of more than LONGEST traces."""
_BRIEF = struct.Struct("<dqqq??")
State = tuple[SessionHead, tuple[SessionTurn, ...], tuple[str, ...], Mapping[str, Sketches]]
"""Head, traces, the ids of those that wait for a verdict, in the order in which they came to wait, and sketches."""
_NO_SKETCHES: Mapping[str, Sketches] = {}
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(State).decode


class Packer:
    """Packs sessions and wakes them.

    `keeps_sketches`: whether a session that rests keeps its sketches, because the log takes long to read one record.
    """

    def __init__(
        self, rules: Rules, limits: SessionWindow, *, keeps_sketches: bool = False
    ) -> None:
        self._rules = rules
        self._limits = limits
        self._keeps_sketches = keeps_sketches and bool(rules.sketched)
        self._costs = SessionMemory(
            outcomes=rules.outcomes, sketches=KEPT if self._keeps_sketches else 0
        )
        self._compress, self._expand = _compression(tuple(sorted(rules.emitted)))

    def pack(self, session: OpenSession) -> bytes:
        head = session.head
        waits = bool(session.pending), session.waits_for_ours
        brief = _BRIEF.pack(head.last, head.since, head.cost, session.seen, *waits)
        sketches = session.sketches.kept if self._keeps_sketches else _NO_SKETCHES
        state: State = (head, session.traces, tuple(session.pending), sketches)
        return brief + self._compress.compress(_encode(state))

    def wake(self, key: bytes, packed: bytes) -> OpenSession:
        head, traces, pending, sketches = _decode(self._expand.decompress(packed[_BRIEF.size :]))
        session = self.session(key, head, traces)
        for trace_id, each in sketches.items():
            session.sketches.put(trace_id, each)
        session.seen = _BRIEF.unpack_from(packed)[3]
        session.pending = {trace_id: session.pending[trace_id] for trace_id in pending}
        return session

    def session(
        self, key: bytes, head: SessionHead, traces: Iterable[SessionTurn] = ()
    ) -> OpenSession:
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


class CachedSession:
    """One open session, awake or packed. What is asked of a packed one does not wake it, but `wake`."""

    __slots__ = ("_held", "key", "overdue")

    def __init__(self, session: OpenSession) -> None:
        self.key = session.key
        self.overdue: float | None = None  # log time since when it waits for verdicts alone
        self._held: OpenSession | bytes = session

    @property
    def last(self) -> float:
        """Log time of its newest trace record."""
        held = self._held
        return _BRIEF.unpack_from(held)[0] if isinstance(held, bytes) else held.head.last

    @property
    def since(self) -> int:
        held = self._held
        return _BRIEF.unpack_from(held)[1] if isinstance(held, bytes) else held.head.since

    @property
    def cost(self) -> int:
        held = self._held
        return _BRIEF.unpack_from(held)[2] if isinstance(held, bytes) else held.cost

    @property
    def waits(self) -> bool:
        """Whether a trace of it waits for a verdict."""
        held = self._held
        return _BRIEF.unpack_from(held)[4] if isinstance(held, bytes) else bool(held.pending)

    @property
    def waits_for_ours(self) -> bool:
        held = self._held
        return _BRIEF.unpack_from(held)[5] if isinstance(held, bytes) else held.waits_for_ours

    def wake(self, packer: Packer) -> OpenSession:
        if isinstance(self._held, bytes):
            self._held = packer.wake(self.key, self._held)
        return self._held

    def look(self, packer: Packer) -> OpenSession:
        held = self._held
        return packer.wake(self.key, held) if isinstance(held, bytes) else held

    def pack(self, packer: Packer) -> None:
        """Let the session go, if it is awake: no one may use it any more."""
        if not isinstance(self._held, bytes):
            self._held = packer.pack(self._held)


class AwakeSessions:
    """The sessions that are awake and may be packed: the least recently used are, when together they take too much."""

    def __init__(self, packer: Packer, *, limit: int) -> None:
        """`limit` in bytes."""
        self._packer = packer
        self._limit = limit
        self._held: OrderedDict[bytes, tuple[CachedSession, int]] = OrderedDict()
        """With its cost, the least recently used first."""
        self._size = 0

    def wake(self, held: CachedSession) -> OpenSession:
        if held.key in self._held:  # awake already, at the cost that `keep` found
            self._held.move_to_end(held.key)
        else:
            self.keep(held)
        return held.wake(self._packer)

    def keep(self, held: CachedSession) -> None:
        session = held.wake(self._packer)
        self.forget(held.key)
        if session.size > LONGEST:
            return
        cost = session.awake_cost
        self._held[held.key] = held, cost
        self._size += cost
        if self._size > self._limit:
            self._make_room(held.key)

    def _make_room(self, used: bytes) -> None:
        while self._size > self._limit and (key := next(iter(self._held))) != used:
            self._held[key][0].pack(self._packer)
            self.forget(key)

    def forget(self, key: bytes) -> None:
        if (found := self._held.pop(key, None)) is not None:
            self._size -= found[1]


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
