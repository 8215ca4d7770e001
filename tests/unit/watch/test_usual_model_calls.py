"""`repeated_calls` flags a session that made far more model calls than its agent usually makes."""

import msgspec
import pytest

from collector.records.signal import Signal
from collector.records.traces import WorkRecord
from collector.scoring.rules import Rules
from evaluators.formulas.work import LEAST_HISTORY
from evaluators.model import Outcome
from evaluators.plan import make_plan
from evaluators.run import SessionScorer
from evaluators.uses import Work
from tests.support.evaluating import OURS
from tests.support.ranking import a_session, after, of
from tests.support.table import for_each

FINE = Outcome(
    evaluator="repeated_calls",
    version="3",
    method="formula",
    state="scored",
    score=1.0,
    success=True,
    threshold=0.5,
    explanation="0 of 4 tool calls repeated an earlier one",
)
NO_TOOLS = msgspec.structs.replace(
    FINE, state="not_applicable", score=None, success=None, reason="nothing_to_judge"
)


def made(calls: int, alone: Outcome = FINE, *, turns: int = 1) -> WorkRecord:
    return a_session(f"s-{calls}", work=Work(model_calls=calls, turns=turns), repeated=alone)


def ranked(record: WorkRecord, *, earlier: int = LEAST_HISTORY, usual: int = 5) -> Signal:
    ranker = after(earlier, work=Work(model_calls=usual, questions=1, turns=1))
    return of(ranker.take(record).signals, "repeated_calls")


@pytest.mark.parametrize("alone", [FINE, NO_TOOLS])
def test_more_than_four_times_the_usual_is_flagged(alone: Outcome) -> None:
    signal = ranked(made(21, alone))

    assert (signal.outcome, signal.score, signal.success) == ("scored", 0.0, False)
    assert signal.reason is None
    assert signal.metadata["usual_model_calls"] == 5
    assert str(signal.explanation).startswith("21 model calls, 4.2x the agent's usual 5")


@pytest.mark.parametrize(
    ("calls", "turns", "earlier", "usual"),
    [
        (20, 1, LEAST_HISTORY, 5),
        (21, 1, LEAST_HISTORY - 1, 5),
        (9, 1, LEAST_HISTORY, 2),
        (60, 15, LEAST_HISTORY, 4),
    ],
    ids=["four times", "warming up", "short", "a long chat"],
)
def test_anything_less_says_what_the_session_alone_says(
    calls: int, turns: int, earlier: int, usual: int
) -> None:
    signal = ranked(made(calls, turns=turns), earlier=earlier, usual=usual)

    assert (signal.score, signal.success, signal.explanation) == (1.0, True, FINE.explanation)
    assert signal.id == of(after(0).take(made(calls, turns=turns)).signals, "repeated_calls").id


def test_an_open_session_is_flagged_at_once() -> None:
    open_ = msgspec.structs.replace(made(40), closed=None)

    signal = ranked(open_)

    assert (signal.success, signal.final) == (False, False)


@for_each("only,ranks", [(["repeated_calls"], True), (None, True), (["agent_reliability"], False)])
def test_scoring_leaves_its_publication_to_where_earlier_sessions_are_known(
    only: list[str] | None, ranks: bool
) -> None:
    plan = make_plan(OURS, {}, embedder=None, only=only)

    rules = Rules.of(plan, lambda: SessionScorer(plan))

    assert (rules.ranks, rules.completes) == (ranks, ranks)
    assert "repeated_calls" not in rules.emitted
