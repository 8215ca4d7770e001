"""What a session used and how that went, kept up to date turn by turn. Pure.

It depends on the set of turns, never on the order in which turns come, are revised and leave.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import TypeAlias

from collector.records.sessions import SessionTurn
from collector.records.signal import session_input_digest, turn_term
from evaluators.formulas.agreement import sample
from evaluators.matching.repeats import Answers
from evaluators.model import Turn
from evaluators.uses import MOST_TOOLS, SessionUses, ToolUse, Work

WRITE_COST = 150  # bytes of one write of a turn, here and in its state


class RunningWork:
    """The sums over the turns that were added and not removed."""

    __slots__ = ("_made", "total", "with_text")

    def __init__(self) -> None:
        self.total = Work()
        self.with_text = 0  # turns whose spans carry content
        self._made: Counter[int] = Counter()

    @property
    def writes(self) -> tuple[int, ...]:
        return sample(self._made)

    def add(self, entry: SessionTurn) -> None:
        self._count(entry.turn, 1)

    def remove(self, entry: SessionTurn) -> None:
        self._count(entry.turn, -1)

    def _count(self, turn: Turn, sign: int) -> None:
        self.total = self.total.plus(turn.work, sign)
        self.with_text += sign * turn.has_text
        for made in turn.writes:
            self._made[made] += sign
            if not self._made[made]:
                del self._made[made]


Used: TypeAlias = tuple[str, ...]
"""Names of the trace evaluators that a session evaluator reads, sorted."""


class RunningInput:
    """The window's input digests, kept incrementally: one running sum per distinct set of trace evaluators read.

    A sum does not depend on the order in which turns are added and removed.
    """

    __slots__ = ("_sums",)

    def __init__(self, used: Iterable[Used]) -> None:
        self._sums: dict[Used, int] = dict.fromkeys(used, 0)

    def add(self, entry: SessionTurn) -> None:
        for used in self._sums:
            self._sums[used] += _term(entry, used)

    def remove(self, entry: SessionTurn) -> None:
        """Subtract the turn exactly as it was added."""
        for used in self._sums:
            self._sums[used] -= _term(entry, used)

    def replace(self, earlier: SessionTurn, entry: SessionTurn) -> None:
        """The same turn with other signals: only sums that read them change."""
        for used in self._sums:
            was, now = _read(earlier, used), _read(entry, used)
            if was != now:
                turn = entry.turn
                more = _turn_term(turn.trace_id, turn.digest, now)
                self._sums[used] += more - _turn_term(turn.trace_id, turn.digest, was)

    def digest(self, used: Used) -> str:
        """Of the turns and their signals by the evaluators `used`."""
        return session_input_digest([self._sums[used]])


def _read(entry: SessionTurn, used: Used) -> tuple[str, ...]:
    ids = entry.signal_ids
    return tuple([ids[name] for name in used if name in ids]) if ids else ()


def _term(entry: SessionTurn, used: Used) -> int:
    return _turn_term(entry.turn.trace_id, entry.turn.digest, _read(entry, used))


_turn_term = lru_cache(maxsize=64)(turn_term)
"""A turn without signals has one term, whatever reads them."""


TOOL_COST = 700  # bytes of a tool of a turn, here and in its state
SAME = 2  # repeats of one call at which it was made three times with the same result


_Alone: TypeAlias = tuple[int, int, bool]
"""(digest of the result, times, whether it failed) of a call of which there is no other one: it repeats nothing."""


class RunningUses:
    """The sums over the turns that were added and not removed."""

    __slots__ = ("_answered", "_answers", "_gave_up", "_models", "_models_failed", "_tools")

    def __init__(self) -> None:
        self._tools: dict[str, _Tool] = {}
        self._answers: dict[int, Answers | _Alone] = {}  # by digest of tool and arguments
        self._answered = self._gave_up = 0  # answers, and those that say that the agent could not
        self._models = self._models_failed = 0
        """Turns that called a model, and those in which a call of it failed."""

    def add(self, turn: Turn) -> None:
        self._count(turn, 1)

    def remove(self, turn: Turn) -> None:
        self._count(turn, -1)

    def session(self, newest: Turn | None) -> SessionUses:
        """All of it, `newest` being the session's newest turn; of the tools those that were called most."""
        tools = [tool.use(name) for name, tool in self._tools.items()]
        if len(tools) > MOST_TOOLS:
            tools = sorted(tools, key=lambda each: (-each.calls, each.tool))[:MOST_TOOLS]
        return SessionUses(
            tools=tuple(sorted(tools)),
            model_failed=self._models_failed > 0 if self._models else None,
            no_answer=None if newest is None else newest.lacks_answer,
            gave_up=self._gave_up > 0 if self._answered else None,
        )

    def _count(self, turn: Turn, sign: int) -> None:
        self._models += sign * (turn.model_calls > 0)
        self._models_failed += sign * turn.model_failed
        if turn.gave_up is not None:
            self._answered += sign
            self._gave_up += sign * turn.gave_up
        tools, answers = self._tools, self._answers
        for use in turn.tools:
            tool = tools.get(use.tool)
            if tool is None:
                tool = tools[use.tool] = _Tool()
            tool.count(use, sign)
        for asked, answered, times, failed, place in turn.call_counts:
            if place < 0:
                continue
            if asked not in answers and times <= SAME:
                answers[asked] = (answered, times, failed)
            else:
                self._repeats(turn.tools[place].tool, asked, answered, sign * times, failed=failed)
        if sign < 0:
            for use in turn.tools:
                if not tools[use.tool].calls:
                    del tools[use.tool]

    def _repeats(self, tool: str, asked: int, answered: int, times: int, *, failed: bool) -> None:
        known = self._answers.get(asked)
        if isinstance(known, Answers):
            answers = known
        else:
            answers = self._answers[asked] = Answers()
            if known is not None:
                answers.count(known[0], known[1], failed=known[2])
        before = answers.counts.repeated >= SAME
        answers.count(answered, times, failed=failed)
        self._tools[tool].repeated += (answers.counts.repeated >= SAME) - before
        if not answers.calls:
            del self._answers[asked]


class _Tool:
    __slots__ = ("_durations", "_empty", "_errors", "_failed", "_returned", "calls", "repeated")

    def __init__(self) -> None:
        self.calls = 0
        self.repeated = 0  # calls that were made three times with the same result
        self._failed = self._returned = self._empty = 0  # turns with such a call
        self._errors: dict[str, int] = {}
        self._durations: list[float] = []  # the longest of each turn, ascending

    def count(self, use: ToolUse, sign: int) -> None:
        self.calls += sign * use.calls
        self._failed += sign * use.failed
        self._returned += sign * use.returned
        self._empty += sign * use.empty
        if use.error:
            self._errors[use.error] = self._errors.get(use.error, 0) + sign
            if not self._errors[use.error]:
                del self._errors[use.error]
        if use.slowest < 0:
            return
        if sign > 0:
            insort(self._durations, use.slowest)
        else:
            del self._durations[bisect_left(self._durations, use.slowest)]

    def use(self, tool: str) -> ToolUse:
        return ToolUse(
            tool=tool,
            calls=self.calls,
            failed=self._failed > 0,
            returned=self._returned > 0,
            empty=self._empty > 0,
            slowest=self._durations[-1] if self._durations else -1.0,
            error=min(self._errors) if self._errors else "",
            repeated=self.repeated > 0,
        )
