"""Which made trace each segment belongs to. Pure.

An agent that speaks in logs has no trace of its own for a turn (one prompt of a person). What places a segment is said
by other segments, which may come later, in any order:

    segment names a turn, which is a person's                          -> that turn
    segment has spans of a trace that only one other turn owns         -> that turn
    its session (of a helper's, the outermost) has prompts before it   -> the last of them
    else                                                               -> what it would be alone

What is known grows only while segments arrive, so the answer depends on the set of segments and not on their order, as
long as none of their traces has closed. A trace that has closed leaves its facts with its mark.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from collector.assembly.low_water import Hold
from collector.otlp.segment import Segment
from collector.otlp.span_head import SpanHead
from collector.records.closings import TurnFacts
from collector.records.span_refs import Piece

SEGMENT_COST = 700
"""Bytes that a held segment takes besides its piece, rounded up."""
SPAN_BEFORE_PROMPT = 250_000_000
"""Nanoseconds. The span around one of Claude's turns starts up to 120 ms before the record of its prompt; no call of a
model that is followed by another prompt ends within this."""


@dataclass(slots=True, kw_only=True, eq=False)
class HeldSegment:
    """A segment of a trace that has not closed."""

    segment: Segment
    spans: Sequence[SpanHead]
    piece: Piece
    offset: int
    time: float
    hold: Hold
    service: str


class Owner:
    """The turns of one owner: of a session, or of several sessions that may share turns."""

    def __init__(self) -> None:
        self.held: dict[bytes, list[HeldSegment]] = {}
        """Of open traces, by turn."""
        self._turns_of: dict[bytes, set[bytes]] = {}
        """By session: the turns that hold a segment of it."""
        self.closed: dict[bytes, TurnFacts] = {}
        self.parked: list[HeldSegment] = []
        """Read again, and not known yet whether the closed trace they seem to be of has them."""
        self._prompts: dict[bytes, dict[bytes, int]] = {}
        """By session: the turns of persons, with their starts."""
        self._session_of: dict[bytes, bytes] = {}
        """By turn of a person's: its session."""
        self._order: dict[bytes, list[tuple[int, bytes]]] = {}
        """By session: start and turn of each of its prompts, ascending."""
        self._owned: dict[bytes, set[bytes]] = {}
        """Turns by the id of a trace that each owns: one, but for helpers'."""
        self._helpers: set[bytes] = set()
        self._parents: dict[bytes, bytes] = {}
        self._asides: set[bytes] = set()
        """Sessions in which nobody prompts: titles are asked for in them."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known any more."""
        return not (self.held or self.closed or self.parked)

    @property
    def segments(self) -> Iterable[tuple[bytes, HeldSegment]]:
        """Every held segment with its turn."""
        return [(turn, each) for turn, several in self.held.items() for each in several]

    def hold(self, turn: bytes, held: HeldSegment) -> None:
        """The segment is one of the open trace's."""
        self.held.setdefault(turn, []).append(held)
        self._turns_of.setdefault(held.segment.session, set()).add(turn)

    def keep(self, turn: bytes, stay: Sequence[HeldSegment] = ()) -> list[HeldSegment]:
        """Of the open trace's segments only these stay; returns all that it had."""
        before = self.held.pop(turn, [])
        if stay:
            self.held[turn] = [*stay]
        sessions = {each.segment.session for each in before}
        for session in sessions - {each.segment.session for each in stay}:
            turns = self._turns_of[session]
            turns.discard(turn)
            if not turns:
                del self._turns_of[session]
        return before

    def learn(self, segment: Segment) -> bool:
        """Take in what the segment says of others; returns whether that may place them anew."""
        before = self._size()
        is_earlier = is_another = False
        if segment.is_helper:
            self._helpers.add(segment.turn)
            self._asides.add(segment.session)
        elif segment.is_prompt:
            known = self._prompts.get(segment.session, {}).get(segment.turn, segment.start)
            is_earlier = segment.start < known  # a record and a span may both tell of one prompt
            self._prompt(segment.session, segment.turn, min(segment.start, known))
        if segment.owns_traces and segment.turn:
            for trace_id in segment.traces:
                self._owned.setdefault(trace_id, set()).add(segment.turn)
        if segment.helper_session:
            is_another = self._started(segment.helper_session, segment.session)
        return is_earlier or is_another or self._size() != before

    def _started(self, helper: bytes, session: bytes) -> bool:
        """A session started a helper's; of several that say so the least counts. Returns whether that is news."""
        known = self._parents.get(helper)
        if helper == session or (known is not None and known <= session):
            return False
        self._parents[helper] = session
        return True

    def _prompt(self, session: bytes, turn: bytes, start: int) -> None:
        prompts, order = self._prompts.setdefault(session, {}), self._order.setdefault(session, [])
        if turn in prompts:
            del order[bisect_left(order, (prompts[turn], turn))]
        prompts[turn] = start
        insort(order, (start, turn))
        self._session_of[turn] = session

    def affected(self, segment: Segment) -> list[tuple[bytes, HeldSegment]]:
        """The held segments, with their turns, that what was learned of this one may place anew."""
        if self._owned:
            return list(self.segments)  # an owner of one session
        sessions = self._inside({segment.helper_session or segment.session})
        before = self.before(segment)
        turns = None if before is None else {before, segment.turn}
        found = self._held_of(sessions, turns)
        if segment.is_prompt:
            asides = {each for each in self._asides if each not in self._prompts}
            found += self._held_of(self._inside(asides) - sessions, None)
        return found

    def before(self, segment: Segment) -> bytes | None:
        """The turn of the prompt before this one: what it held may be of this one. None: there is none."""
        if not segment.is_prompt:
            return None
        order = self._order[segment.session]
        at = bisect_left(order, (self._prompts[segment.session][segment.turn], segment.turn))
        return order[at - 1][1] if at else None

    def _held_of(
        self, sessions: Set[bytes], turns: Set[bytes] | None
    ) -> list[tuple[bytes, HeldSegment]]:
        """The held segments of these sessions, in these turns only where some are given."""
        return [
            (turn, held)
            for session in sessions
            for turn in (self._turns_of.get(session, set()) if turns is None else turns)
            for held in self.held.get(turn, ())
            if held.segment.session == session
        ]

    def _outer(self, session: bytes) -> bytes:
        """The outermost session that started this one; of several that started each other, the least."""
        way = [session]
        while (parent := self._parents.get(way[-1])) is not None:
            if parent in way:
                return min(way[way.index(parent) :])
            way.append(parent)
        return way[-1]

    def _inside(self, sessions: Set[bytes]) -> set[bytes]:
        """These sessions, and all that they started."""
        inside, known = set(sessions), -1
        while len(inside) != known:
            known = len(inside)
            inside |= {each for each, parent in self._parents.items() if parent in inside}
        return inside

    def _size(self) -> int:
        prompts = sum(map(len, self._prompts.values()))
        owned = sum(map(len, self._owned.values()))
        known = len(self._helpers) + len(self._asides) + len(self._parents)
        return prompts + owned + known

    def resolve(self, segment: Segment) -> bytes:
        """The trace that the segment belongs to, as far as is known."""
        if segment.turn and segment.turn not in self._helpers:
            return segment.turn
        for trace_id in segment.traces:
            turns = self._owned.get(trace_id, set()) - self._helpers
            if len(turns) == 1:
                return next(iter(turns))
            if turns:  # prompts of one session under one span of their caller
                return self._last_of(turns, segment)
        turn = self._last_prompt(segment)
        return turn or segment.turn or alone(segment)

    def _last_of(self, turns: Set[bytes], segment: Segment) -> bytes:
        """The turn whose prompt came last before the segment; the span around a turn starts before its prompt."""
        prompts = self._prompts.get(segment.session, {})
        began = [(prompts[turn], turn) for turn in turns if turn in prompts]
        past = [each for each in began if each[0] <= segment.start + SPAN_BEFORE_PROMPT]
        return max(past)[1] if past else min(began, default=(0, min(turns)))[1]

    def _last_prompt(self, segment: Segment) -> bytes | None:
        session = self._outer(segment.session)
        sessions = [session]
        if session in self._asides and session not in self._prompts:
            sessions = [*self._prompts]
        began = (self._last_in(each, segment.start) for each in sessions)
        return max((each for each in began if each is not None), default=(0, None))[1]

    def _last_in(self, session: bytes, start: int) -> tuple[int, bytes] | None:
        """The session's last prompt that began no later."""
        order = self._order.get(session, ())
        at = bisect_left(order, (start + 1, b""))
        return order[at - 1] if at else None

    def is_over(self, turn: bytes) -> bool:
        """Whether an event said that it ended, or its session had a later prompt."""
        session = self._session_of.get(turn)
        if session is not None and self._prompts[session][turn] < self._order[session][-1][0]:
            return True
        return any(self.is_end(each.segment) for each in self.held.get(turn, ()))

    def is_end(self, segment: Segment) -> bool:
        """Whether it ends its turn. A session in which nobody prompts ends that of nobody: a title is there at once."""
        is_aside = segment.session in self._asides and segment.session not in self._prompts
        return segment.is_end and not is_aside

    def facts(self, turn: bytes, owner: bytes, *, until: int) -> TurnFacts:
        """What stays known of a trace that closes, `until` this offset having been read."""
        before = self.closed.get(turn, TurnFacts(owner=owner))
        session, start = before.session, before.start
        traces, helpers, parents = set(before.traces), set(before.helpers), set(before.parents)
        asides = set(before.asides)
        for each in self.held.get(turn, ()):
            segment = each.segment
            session = session or segment.session
            if segment.is_prompt and segment.turn == turn:
                session = segment.session
                start = segment.start if start is None else min(start, segment.start)
            if segment.owns_traces and segment.turn == turn:
                traces.update(segment.traces)
            if segment.is_helper:
                helpers.add(segment.turn)
                asides.add(segment.session)
            if segment.helper_session:
                parents.add((segment.helper_session, segment.session))
        return TurnFacts(
            owner=owner,
            session=session,
            start=start,
            traces=tuple(sorted(traces)),
            helpers=tuple(sorted(helpers)),
            parents=tuple(sorted(parents)),
            until=until,
            asides=tuple(sorted(asides)),
        )

    def close(self, turn: bytes, facts: TurnFacts) -> None:
        """The trace has closed: of what was said by its segments, its facts stay."""
        self.closed[turn] = facts
        if facts.start is not None:
            self._prompt(facts.session, turn, facts.start)
        for trace_id in facts.traces:
            self._owned.setdefault(trace_id, set()).add(turn)
        self._helpers.update(facts.helpers)
        self._asides.update(facts.asides)
        for helper, session in facts.parents:
            self._started(helper, session)

    def forget(self, turn: bytes) -> None:
        """The closed trace is not remembered any more."""
        facts = self.closed.pop(turn, None)
        if facts is None or turn in self.held:
            return
        self._forget_prompt(turn)
        for trace_id in facts.traces:
            turns = self._owned.get(trace_id, set())
            turns.discard(turn)
            if not turns:
                self._owned.pop(trace_id, None)
        self._helpers.difference_update(facts.helpers)
        if facts.asides:
            self._asides.difference_update(set(facts.asides) - self._asides_told())
        for session, _ in facts.parents:
            self._parents.pop(session, None)

    def _forget_prompt(self, turn: bytes) -> None:
        session = self._session_of.pop(turn, None)
        if session is None:
            return
        prompts, order = self._prompts[session], self._order[session]
        del order[bisect_left(order, (prompts.pop(turn), turn))]
        if not order:
            del self._prompts[session], self._order[session]

    def _asides_told(self) -> set[bytes]:
        """Those of `_asides` that what is still known tells of."""
        held = {each.segment.session for _, each in self.segments if each.segment.is_helper}
        return held.union(*(each.asides for each in self.closed.values()))


class Turns:
    """The owners of one partition."""

    def __init__(self) -> None:
        self._owners: dict[bytes, Owner] = {}
        self._of_closed: dict[bytes, bytes] = {}
        """Owner by closed trace."""

    def __len__(self) -> int:
        return len(self._owners)

    def owner(self, owner_id: bytes) -> Owner:
        """The owner of that id."""
        return self._owners.setdefault(owner_id, Owner())

    def remember(self, trace_id: bytes, facts: TurnFacts) -> None:
        """A made trace has closed."""
        self._of_closed[trace_id] = facts.owner
        self.owner(facts.owner).close(trace_id, facts)

    def forget(self, trace_id: bytes) -> None:
        """A closed trace is not remembered any more; nothing where it was not made."""
        owner_id = self._of_closed.pop(trace_id, None)
        if owner_id is None:
            return
        self.owner(owner_id).forget(trace_id)
        self.sweep(owner_id)

    def sweep(self, owner_id: bytes) -> None:
        """Forget the owner if nothing of it is known any more."""
        if self._owners[owner_id].is_empty:
            del self._owners[owner_id]


def alone(segment: Segment) -> bytes:
    """The trace of a segment of which no turn is known: one for its session, and for the trace its spans were sent in.

    Never that trace itself: it may hold spans of others, of who called the agent or of what its commands ran, which
    stay there when the segment is moved to its turn.
    """
    sent_in = segment.traces[0] if segment.has_spans and segment.traces else b""
    return hashlib.sha256(b"alone" + segment.owner + segment.session + sent_in).digest()[:16]
