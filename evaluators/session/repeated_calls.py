"""Repeated calls: the two rules that are certain enough to flag one session.

All 46 labelled sessions in which one call was repeated ten times failed their task, and all 43 that made more than
four times the model calls that their agent usually makes. A long chat does that, too, among short ones: there must be
as many times the usual model calls in a turn.
"""

from collections.abc import Mapping
from typing import Annotated

import msgspec

from evaluators.declare import evaluator
from evaluators.formulas.trace_calls import far_more_calls
from evaluators.formulas.work import WorkHistory
from evaluators.matching.repeats import NO_REPEATS, Answers, RepeatCounts
from evaluators.model import JSON, Outcome, Score, Session, Turn
from evaluators.resources import Running
from evaluators.uses import Work


class RepeatCount(Running):
    """How often each tool call was made in the window with the same result (`matching.repeats`)."""

    def __init__(self, options: Mapping[str, JSON]) -> None:
        self._turns: dict[str, Turn] = {}
        self._answers: dict[int, Answers] = {}  # by digest of tool and arguments
        self._levels: dict[int, int] = {}
        """How many calls were repeated just so often, above 0: few entries, so that the greatest is found at once."""
        self.calls = self.compared = 0
        self._counts = NO_REPEATS

    def put(self, turn: Turn) -> None:
        earlier = self._turns.get(turn.trace_id)
        self._turns[turn.trace_id] = turn
        if earlier is not None:
            if (earlier.call_counts, earlier.tool_calls) == (turn.call_counts, turn.tool_calls):
                return
            self._count(earlier, -1)
        self._count(turn, 1)

    def drop(self, trace_id: str) -> None:
        turn = self._turns.pop(trace_id, None)
        if turn is not None:
            self._count(turn, -1)

    @property
    def most(self) -> int:
        return max(self._levels, default=0)

    @property
    def counts(self) -> RepeatCounts:
        return self._counts

    def _count(self, turn: Turn, sign: int) -> None:
        self.calls += sign * turn.tool_calls
        for asked, answered, times, failed, _ in turn.call_counts:
            self.compared += sign * times
            answers = self._answers.get(asked)
            if answers is None:
                answers = self._answers[asked] = Answers()
            before = answers.counts
            answers.count(answered, sign * times, failed=failed)
            if (after := answers.counts) != before:
                self._level(before, -1)
                self._level(after, 1)
            if not answers.calls:
                del self._answers[asked]

    def _level(self, counts: RepeatCounts, sign: int) -> None:
        self._counts = RepeatCounts(
            *(all_ + sign * its for all_, its in zip(self._counts, counts, strict=True))
        )
        if not counts.repeated:
            return
        level = self._levels.get(counts.repeated, 0) + sign
        if level:
            self._levels[counts.repeated] = level
        else:
            del self._levels[counts.repeated]


TIMES = 4  # a session that makes more than this many times the agent's usual model calls, also in a turn, is flagged
LEAST_CALLS = 10  # model calls below which no session is flagged, whatever is usual


def with_usual_calls(outcome: Outcome, work: Work, history: WorkHistory, session: int) -> Outcome:
    """The outcome of `repeated_calls`, flagged if the session made far more model calls than usual.

    `history`: the agent's earlier sessions, in which it has the number `session`.
    """
    calls, usual = work.model_calls, history.model_calls_median(session)
    if not usual or calls < LEAST_CALLS or calls <= TIMES * usual:
        return outcome
    if calls / max(1, work.turns) <= TIMES * history.calls_a_turn_median(session):
        return outcome
    return far_more_calls(outcome, calls, usual, f"the agent's usual {usual:g}")


@evaluator(version="3", source="Spanwise", reads={"session", "tool_calls"})
def repeated_calls(
    session: Session, *, count: RepeatCount, limit: Annotated[int, msgspec.Meta(ge=1)] = 10
) -> Score:
    """0 once one tool call was repeated `limit` times in the session with the same result, else 1.

    Failed calls count too; a changing result is progress. It is 0 as well for a session that made at least 10 model
    calls, and more than four times those of the agent's earlier sessions, in all and in a turn. These are medians,
    once there are 10 sessions.
    """
    if not count.calls:
        return Score.not_applicable("the session called no tools")
    if count.calls > 1 and not count.compared:
        return Score.not_applicable(
            "no two tool calls of the session can be compared: their arguments were not exported, or they only wait",
            "no_content",
        )
    one = f"; one call was repeated {count.most} times" if count.most > 1 else ""
    return Score(
        value=float(count.most < limit),
        explanation=f"{count.counts.explanation(count.calls, 'session')}{one}",
        metadata={
            "repeated_calls": count.counts.repeated,
            "most_of_one_call": count.most,
            "tool_calls": count.calls,
        },
    )
