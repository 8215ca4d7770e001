"""The turns of one owner, and the segments that they hold. Pure.

Every segment that its own turn does not place is in one timeline: that of the trace it was sent in, where turns own
that; that of its outermost session; or that of all prompts, where the program itself asks in its session. What becomes
known concerns a range of a timeline, and only that is looked at.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from collector.assembly.session_tree import SessionTree
from collector.assembly.timeline import BufferedSegment, OwnedTrace, Timeline
from collector.otlp.segment import Segment
from collector.records.closings import TurnFacts

MOST_LOOKS = 16
"""Times that more may become known about a segment before it stays where it is until its trace is due: n records that
come in the worst order would be moved n times each."""


class Owner:
    """The turns of one owner: of a session, or of several sessions that may share turns."""

    def __init__(self) -> None:
        self.held: dict[bytes, list[BufferedSegment]] = {}  # of open traces, by turn
        self.parked: dict[bytes, dict[BufferedSegment, None]] = {}
        """By closed turn: read again, and not known yet whether the turn has them."""
        self.closed: dict[bytes, TurnFacts] = {}
        self._came = 0
        self._tree = SessionTree()
        self._sessions: dict[bytes, Timeline] = {}
        """By outermost session. The prompts of each are those of this session alone."""
        self._all_prompts = Timeline(b"")
        """Of all sessions; it places segments of sessions in which only the program asks."""
        self._traces: dict[bytes, OwnedTrace] = {}
        self._of_session: dict[bytes, dict[BufferedSegment, None]] = {}
        """By session: its segments that time places."""
        self._prompts: dict[bytes, tuple[bytes, int]] = {}
        """By turn of a person's: its session and start."""
        self._owns: dict[bytes, set[bytes]] = {}  # by turn: the ids of the traces that it owns
        self._helpers: set[bytes] = set()
        self._asides: dict[bytes, int] = {}
        """Sessions in which only the program asks, titles for one; how many closed traces and held segments say so."""

    @property
    def is_empty(self) -> bool:
        return not (self.held or self.closed or self.parked)

    @property
    def segments(self) -> Iterator[BufferedSegment]:
        return (each for several in self.held.values() for each in several)

    def learn(self, segment: Segment) -> list[BufferedSegment]:
        """Take in what the segment says of others; returns those that this may place elsewhere, in order of arrival."""
        concerned: list[BufferedSegment] = []
        if segment.is_helper:
            concerned += self._not_typed(segment)
        elif segment.is_prompt and segment.turn:
            concerned += self._prompted(segment.session, segment.turn, segment.start)
        if segment.owns_traces and segment.turn:
            for trace_id in segment.traces:
                concerned += self._own(trace_id, segment.turn)
        if segment.helper_session and self._tree.link(segment.helper_session, segment.session):
            concerned += self._misplaced(segment.helper_session)
        return sorted(dict.fromkeys(concerned), key=lambda each: each.number)

    def _not_typed(self, segment: Segment) -> list[BufferedSegment]:
        """The turn is not a person's, and in the session the program asks."""
        turn, session = segment.turn, segment.session
        concerned: list[BufferedSegment] = []
        if turn and turn not in self._helpers:
            self._helpers.add(turn)
            concerned += [*self.held.get(turn, ()), *self.parked.get(turn, ())]
            self._disown_all(turn)
        if session not in self._asides:
            self._asides[session] = 0
            concerned += self._misplaced(session)
        return concerned

    def _prompted(self, session: bytes, turn: bytes, start: int) -> list[BufferedSegment]:
        """A person's prompt. A record and a span may both tell of it: it began when the first of them says."""
        known = self._prompts.get(turn)
        if known is not None and (known[0] != session or known[1] <= start):
            return []
        before = None if known is None else known[1]
        self._prompts[turn] = (session, start)
        is_first = not self._has_prompts(session)
        concerned = self._timeline(session).put(turn, start, before)
        concerned += self._all_prompts.put(turn, start, before)
        for trace_id in self._owns.get(turn, ()):
            concerned += self._traces[trace_id].prompted(turn, start, before)
        if is_first and session in self._asides:
            concerned += self._misplaced(session)
        return concerned

    def _own(self, trace_id: bytes, turn: bytes) -> list[BufferedSegment]:
        if turn in self._helpers or trace_id in self._owns.get(turn, ()):
            return []
        self._owns.setdefault(turn, set()).add(trace_id)
        return self._traces.setdefault(trace_id, OwnedTrace(trace_id)).own(
            turn, self._start_of(turn)
        )

    def _start_of(self, turn: bytes) -> int | None:
        prompt = self._prompts.get(turn)
        return None if prompt is None else prompt[1]

    def _misplaced(self, session: bytes) -> list[BufferedSegment]:
        concerned: list[BufferedSegment] = []
        for each in self._tree.within(session):
            held = self._of_session.get(each)
            if held:
                timeline = self._places(each)
                concerned += [one for one in held if one.timeline is not timeline]
        return concerned

    def resolve(self, segment: Segment) -> bytes:
        if self._names_turn(segment):
            return segment.turn
        trace = self._owned_trace(segment)
        if trace is not None:
            return trace.turn_at(segment.start)
        last = self._places(segment.session).last(segment.start)
        return (last and last[1]) or segment.turn or alone(segment)

    def before(self, segment: Segment) -> bytes | None:
        """The turn of the prompt before this one. None: there is none, or it is not a prompt."""
        session, start = self._prompts.get(segment.turn, (b"", 0))
        if not segment.is_prompt or session != segment.session:
            return None
        before = self._timeline(session).before((start, segment.turn))
        return None if before is None else before[1]

    def is_over(self, turn: bytes) -> bool:
        prompt = self._prompts.get(turn)
        return prompt is not None and prompt[1] < self._timeline(prompt[0]).prompts[-1][0]

    def is_end(self, segment: Segment) -> bool:
        session = segment.session
        return segment.is_end and (session not in self._asides or self._has_prompts(session))

    def _names_turn(self, segment: Segment) -> bool:
        return bool(segment.turn) and segment.turn not in self._helpers

    def _owned_trace(self, segment: Segment) -> OwnedTrace | None:
        traces = (self._traces.get(each) for each in segment.traces)
        return next((each for each in traces if each is not None and each.has_owners), None)

    def _places(self, session: bytes) -> Timeline:
        outermost = self._tree.outermost(session)
        if outermost in self._asides and not self._has_prompts(outermost):
            return self._all_prompts
        found = self._sessions.get(outermost)
        return Timeline(outermost) if found is None else found

    def _timeline(self, session: bytes) -> Timeline:
        found = self._sessions.get(session)
        if found is None:
            found = self._sessions[session] = Timeline(session)
        return found

    def _has_prompts(self, session: bytes) -> bool:
        found = self._sessions.get(session)
        return found is not None and bool(found.prompts)

    def hold(self, turn: bytes, held: BufferedSegment) -> None:
        several = self.held.setdefault(turn, [])
        held.turn, held.at = turn, len(several)
        several.append(held)
        self._enter(held)

    def park(self, turn: bytes, held: BufferedSegment) -> None:
        """The segment waits until it is known whether the closed turn has it."""
        self.parked.setdefault(turn, {})[held] = None
        held.turn, held.is_parked = turn, True
        self._enter(held)

    def let_go(self, held: BufferedSegment) -> None:
        """The segment is in no trace, and does not wait; the last of its trace takes its place."""
        if held.is_parked:
            waiting = self.parked[held.turn]
            del waiting[held]
            if not waiting:
                del self.parked[held.turn]
        else:
            several = self.held[held.turn]
            last = several.pop()
            if last is not held:
                several[held.at], last.at = last, held.at
            if not several:
                del self.held[held.turn]
        self._leave(held)

    def take_all(self, turn: bytes) -> Sequence[BufferedSegment]:
        """The segments of an open trace, which closes, in the order of their offsets."""
        several = self.held.pop(turn, [])
        for each in several:
            self._leave(each)
        return sorted(several, key=lambda each: (each.offset, each.number))

    def look(self, held: BufferedSegment) -> bool:
        """More is known of the segment: enter it where that may place it. False: it stays where it is for now."""
        held.looks += 1
        self._leave_timeline(held)
        if held.looks > MOST_LOOKS:
            return False
        self._enter_timeline(held)
        return True

    def _enter(self, held: BufferedSegment) -> None:
        if not held.number:
            self._came += 1
            held.number = self._came
        if held.segment.is_helper:
            self._asides[held.segment.session] = self._asides.get(held.segment.session, 0) + 1
        if held.looks <= MOST_LOOKS:
            self._enter_timeline(held)

    def _leave(self, held: BufferedSegment) -> None:
        self._leave_timeline(held)
        if held.segment.is_helper:
            self._asides[held.segment.session] -= 1
        held.turn, held.is_parked = b"", False

    def _enter_timeline(self, held: BufferedSegment) -> None:
        segment = held.segment
        if self._names_turn(segment):
            return
        for trace_id in segment.traces:
            self._traces.setdefault(trace_id, OwnedTrace(trace_id)).carriers[held] = None
        held.timeline = self._owned_trace(segment)
        if held.timeline is None:
            held.timeline = self._places(segment.session)
            if held.timeline is not self._all_prompts:
                held.timeline = self._sessions.setdefault(held.timeline.key, held.timeline)
            self._of_session.setdefault(segment.session, {})[held] = None
        held.timeline.add(held)

    def _leave_timeline(self, held: BufferedSegment) -> None:
        if held.timeline is None:
            return
        timeline, held.timeline = held.timeline, None
        timeline.remove(held)
        session = held.segment.session
        if held in (of_session := self._of_session.get(session, {})):
            del of_session[held]
            if not of_session:
                del self._of_session[session]
            self._sweep_timeline(timeline.key)
        for trace_id in held.segment.traces:
            self._traces[trace_id].carriers.pop(held, None)
            self._sweep_trace(trace_id)

    def _sweep_timeline(self, session: bytes) -> None:
        found = self._sessions.get(session)
        if found is not None and found.is_empty:
            del self._sessions[session]

    def _sweep_trace(self, trace_id: bytes) -> None:
        if self._traces[trace_id].is_empty:
            del self._traces[trace_id]

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
        earlier = self.closed.get(turn)
        self._count_asides(facts.asides, 1)
        self._count_asides(() if earlier is None else earlier.asides, -1)
        self.closed[turn] = facts
        if facts.start is not None:
            self._prompted(facts.session, turn, facts.start)
        for trace_id in facts.traces:
            self._own(trace_id, turn)
        for helper in facts.helpers:
            self._helpers.add(helper)
            self._disown_all(helper)
        for helper, session in facts.parents:
            self._tree.link(helper, session)

    def forget(self, turn: bytes) -> None:
        facts = self.closed.pop(turn, None)
        if facts is None:
            return
        self._count_asides(facts.asides, -1)
        if turn in self.held:
            return
        self._disown_all(turn)
        self._forget_prompt(turn)
        self._helpers.difference_update(facts.helpers)
        for helper, session in facts.parents:
            self._tree.unlink(helper, session)

    def _count_asides(self, sessions: Iterable[bytes], more: int) -> None:
        for session in sessions:
            count = self._asides.get(session, 0) + more
            if count > 0:
                self._asides[session] = count
            else:
                self._asides.pop(session, None)

    def _forget_prompt(self, turn: bytes) -> None:
        session, start = self._prompts.pop(turn, (b"", 0))
        if session:
            self._timeline(session).take(turn, start)
            self._all_prompts.take(turn, start)
            self._sweep_timeline(session)

    def _disown_all(self, turn: bytes) -> None:
        for trace_id in self._owns.pop(turn, ()):
            self._traces[trace_id].disown(turn, self._start_of(turn))
            self._sweep_trace(trace_id)


def alone(segment: Segment) -> bytes:
    """The trace of a segment of which no turn is known: one for its session, and for the trace its spans were sent in.

    Never that trace itself: it may hold spans of others, of who called the agent or of what its commands ran, which
    stay there when the segment is moved to its turn.
    """
    sent_in = segment.traces[0] if segment.has_spans and segment.traces else b""
    return hashlib.sha256(b"alone" + segment.owner + segment.session + sent_in).digest()[:16]
