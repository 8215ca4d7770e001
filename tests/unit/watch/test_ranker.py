"""A session is ranked among its agent's earlier ones, also by its model calls, a run among those of its task."""

from typing import Any

import msgspec
import pytest

from collector.records.signal import Signal
from collector.records.traces import WorkRecord
from collector.scoring.rules import Rules
from collector.watch.ranking.ranker import RECENT, Ranker
from evaluators.formulas.work import LEAST_HISTORY
from evaluators.model import Outcome
from evaluators.plan import make_plan
from evaluators.run import SessionScorer
from evaluators.uses import Work
from tests.support.evaluating import OURS
from tests.support.ranking import RANKED, a_session, after, of
from tests.support.table import for_each


def test_an_agent_warms_up() -> None:
    ranker = after(LEAST_HISTORY - 1)

    warming = of(ranker.take(a_session("tenth")).signals, "work_baseline")
    ranked = of(ranker.take(a_session("eleventh", 1000)).signals, "work_baseline")

    assert (warming.outcome, warming.reason, warming.score) == (
        "not_applicable",
        "warming_up",
        None,
    )
    assert (ranked.outcome, ranked.final, ranked.success, ranked.threshold) == (
        "scored",
        True,
        None,
        None,
    )
    assert ranked.score is not None
    assert ranked.score < 0.5


def test_an_open_session_is_ranked_so_far_and_remembered_when_it_closes() -> None:
    ranker = after(LEAST_HISTORY)
    open_ = a_session("s", 5, closed=None)

    first = of(ranker.take(open_).signals, "work_baseline")
    second = of(ranker.take(open_).signals, "work_baseline")

    assert (first.final, first.closed) == (False, None)
    assert first == second
    assert len(after(1).take(open_).signals) == 0  # nothing to say before it closes


def test_a_session_that_is_opened_again_never_ranks_against_itself() -> None:
    ranker = after(LEAST_HISTORY)
    alone = of(ranker.take(a_session("s", 50)).signals, "work_baseline")

    again = of(ranker.take(a_session("s", 50, revision=9)).signals, "work_baseline")

    assert again.score == alone.score
    assert again.metadata["sessions"] == LEAST_HISTORY


@pytest.mark.parametrize("other", [("agent", "writer"), ("model", "o3"), ("service", "web")])
def test_agents_are_apart(other: tuple[str, str]) -> None:
    ranker = after(LEAST_HISTORY)

    session = msgspec.structs.replace(a_session("s"), **dict([other]))
    signal = of(ranker.take(session).signals, "work_baseline")

    assert signal.reason == "warming_up"


def test_the_id_names_the_history_that_it_was_ranked_in() -> None:
    def ranked(earlier: int) -> str:
        return of(after(earlier).take(a_session("s")).signals, "work_baseline").id

    assert ranked(12) == ranked(12) != ranked(13)
    assert ranked(2) == ranked(3), "a session that was ranked in no history does not depend on it"


def test_another_record_of_a_closed_session_is_a_repeat() -> None:
    ranker = after(LEAST_HISTORY)
    closed = a_session("s")
    ranker.take(closed)

    assert ranker.take(closed).signals == ()
    assert len(ranker.recent) == LEAST_HISTORY + 1
    assert len(after(RECENT + 5).recent) == RECENT


def test_runs_of_a_task_are_compared() -> None:
    ranker = Ranker(RANKED)
    runs = [
        of(ranker.take(a_session(name, task_id="t-1", writes=made)).signals, "task_agreement")
        for name, made in (("a", (1, 2)), ("b", (1, 2)), ("c", (1, 2)), ("d", (3,)))
    ]

    assert [each.outcome for each in runs] == [
        "not_applicable",
        "not_applicable",
        "scored",
        "scored",
    ]
    assert [each.score for each in runs] == [None, None, 1.0, 0.0]
    assert runs[2].explanation == "2 of 2 other runs of the task made the same writes"
    assert runs[0].reason == "nothing_to_judge"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "nothing_to_judge"),
        ({"task_id": "t-1", "has_text": False}, "no_content"),
        ({"work": Work()}, "not_a_turn"),
    ],
)
def test_what_cannot_be_compared_says_why(fields: dict[str, Any], reason: str) -> None:
    ranker = after(LEAST_HISTORY, task_id="t-1", writes=(1,))

    signal = of(ranker.take(a_session("s", **fields)).signals, "task_agreement")

    assert (signal.outcome, signal.reason, signal.score) == ("not_applicable", reason, None)


def test_a_session_that_somebody_stopped_is_neither_ranked_nor_remembered() -> None:
    ranker = after(LEAST_HISTORY)
    stopped = msgspec.structs.replace(a_session("stopped", 1000), cancelled=True)

    signal = of(ranker.take(stopped).signals, "work_baseline")
    later = of(ranker.take(a_session("later")).signals, "work_baseline")

    assert (signal.outcome, signal.reason) == ("not_applicable", "nothing_to_judge")
    assert later.metadata["sessions"] == LEAST_HISTORY


def test_a_session_without_turns_is_not_remembered() -> None:
    ranker = Ranker(RANKED)

    signals = ranker.take(a_session("s", work=Work())).signals

    assert of(signals, "work_baseline").reason == "not_a_turn"
    assert ranker.sizes == (0, 0)


def test_a_service_that_makes_up_agents_evicts_its_own() -> None:
    ranker = Ranker(RANKED, max_agents=3, max_tasks=2)
    ranker.take(a_session("s", service="web", task_id="t"))
    for number in range(4):
        ranker.take(a_session(f"s-{number}", agent=f"agent-{number}", task_id=f"t-{number}"))

    changes = [record for table in ranker.tables for record in table.pending()]

    assert ranker.sizes == (3, 2)
    assert ranker.evicted() == {"agents": 2, "tasks": 3}
    assert sum(each.value is None for each in changes) == 5
    assert ranker.evicted() == {"agents": 0, "tasks": 0}


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
