"""What a session used and how that went, kept up to date turn by turn. Pure.

It depends on the set of turns, never on the order in which turns come, are revised and leave.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from collector.records.sessions import SessionTurn
from collector.records.signal import session_input_digest, turn_term
from evaluators.formulas.agreement import sample
from evaluators.matching.repeats import Answers
from evaluators.model import Turn
from evaluators.uses import SessionUses, Work

WRITE_COST = 150  # bytes of one write of a turn, here and in its state


@dataclass(slots=True, eq=False)
class RunningWork:
    """The sums over the turns that were added and not removed."""

    total: Work = field(default_factory=Work)
    with_text: int = 0  # turns whose spans carry content
    cancelled: int = 0  # turns that somebody stopped
    _made: Counter[int] = field(default_factory=Counter[int])

    @property
    def writes(self) -> tuple[int, ...]:
        return sample(self._made)

    def count(self, turn: Turn, sign: int) -> None:
        """Add the turn (`sign` 1), or remove it (-1)."""
        self.total = self.total.plus(turn.work, sign)
        self.with_text += sign * turn.has_text
        self.cancelled += sign * turn.cancelled
        for made in turn.writes:
            self._made[made] += sign
            if not self._made[made]:
                del self._made[made]


Used = tuple[str, ...]
"""Names of the trace evaluators that a session evaluator reads, sorted."""


class RunningInput:
    """The window's input digests, kept incrementally: one running sum per distinct set of trace evaluators read.

    A sum does not depend on the order in which turns are added and removed.
    """

    __slots__ = ("_sums",)

    def __init__(self, used: Iterable[Used]) -> None:
        self._sums: dict[Used, int] = dict.fromkeys(used, 0)

    def count(self, entry: SessionTurn, sign: int) -> None:
        """Add the turn (`sign` 1), or remove it (-1)."""
        turn = entry.turn
        for used in self._sums:
            term = _turn_term(turn.trace_id, turn.digest, _read(entry, used))
            self._sums[used] += sign * term

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


_turn_term = lru_cache(maxsize=64)(turn_term)
"""A turn without signals has one term, whatever reads them."""


TOOL_COST = 700  # bytes of a tool of a turn, here and in its state
SAME = 2  # repeats of one call at which it was made three times with the same result


_Alone = tuple[int, int, bool]
"""(digest of the result, times, whether it failed) of a call of which there is no other one: it repeats nothing."""


class RunningUses:
    """Which calls the turns that were added and not removed repeat."""

    __slots__ = ("_answers",)

    def __init__(self) -> None:
        self._answers: dict[int, Answers | _Alone] = {}  # by digest of tool and arguments

    def of_turn(self, turn: Turn) -> SessionUses:
        """What the turn used; its calls are repeated where the session repeats them."""
        repeated = {each.tool for each in turn.call_counts if self._is_repeated(each.asked)}
        ending = None if turn.cancelled else turn.ending
        tools = (use._replace(repeated=place in repeated) for place, use in enumerate(turn.tools))
        return SessionUses(
            tools=tuple(tools),
            model_failed=turn.model_failed if turn.model_calls else None,
            no_answer=turn.lacks_answer,
            gave_up=turn.gave_up,
            answer_cut=None if ending is None else ending == "cut",
            answer_blocked=None if ending is None else ending == "blocked",
            cancelled=turn.cancelled,
        )

    def _is_repeated(self, asked: int) -> bool:
        known = self._answers.get(asked)
        return isinstance(known, Answers) and known.counts.repeated >= SAME

    def count(self, turn: Turn, sign: int) -> None:
        """Add the turn (`sign` 1), or remove it (-1)."""
        answers = self._answers
        for asked, answered, times, failed, place in turn.call_counts:
            if place < 0:
                continue
            if asked not in answers and times <= SAME:
                answers[asked] = (answered, times, failed)
            else:
                self._repeats(asked, answered, sign * times, failed=failed)

    def _repeats(self, asked: int, answered: int, times: int, *, failed: bool) -> None:
        known = self._answers.get(asked)
        if isinstance(known, Answers):
            answers = known
        else:
            answers = self._answers[asked] = Answers()
            if known is not None:
                answers.count(known[0], known[1], failed=known[2])
        answers.count(answered, times, failed=failed)
        if not answers.calls:
            del self._answers[asked]
