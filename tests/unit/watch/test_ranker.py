"""A session is ranked among its agent's earlier ones, also by its model calls, a run among those of its task."""

from collections.abc import Mapping
from typing import Any

import msgspec

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


def usual(model_calls: int, earlier: int = LEAST_HISTORY) -> Ranker:
    """A ranker after sessions of so many model calls each."""
    return after(earlier, work=Work(model_calls=model_calls, questions=1, turns=1))


def calling(
    model_calls: int, alone: Outcome = FINE, *, turns: int = 1, **fields: Any
) -> WorkRecord:
    work = Work(model_calls=model_calls, turns=turns)
    return a_session(f"s-{model_calls}", work=work, repeated=alone, **fields)


NONE = {"outcome": "not_applicable", "score": None}
WARMING = {**NONE, "reason": "warming_up"}
NOTHING = {**NONE, "reason": "nothing_to_judge"}
RUN: dict[str, Any] = {"task_id": "t-1"}
OTHERS: list[dict[str, Any]] = [{"agent": "writer"}, {"model": "o3"}, {"service": "web"}]
INCOMPARABLE: list[tuple[dict[str, Any], str]] = [
    ({}, "nothing_to_judge"),
    ({**RUN, "has_text": False}, "no_content"),
    ({"work": Work()}, "not_a_turn"),
]
FLAGGED = {"outcome": "scored", "score": 0.0, "success": False, "reason": None}
ALONE = {"score": 1.0, "success": True, "explanation": FINE.explanation}


@for_each(
    "ranker,session,evaluator,expected",
    [
        (after(LEAST_HISTORY - 1), a_session("tenth"), "work_baseline", WARMING),
        (
            after(LEAST_HISTORY),
            a_session("eleventh", 1000),
            "work_baseline",
            {"outcome": "scored", "final": True, "success": None, "threshold": None},
        ),
        # Agents are apart.
        *(
            (after(LEAST_HISTORY), a_session("s", **each), "work_baseline", WARMING)
            for each in OTHERS
        ),
        (after(LEAST_HISTORY), a_session("s", cancelled=True), "work_baseline", NOTHING),
        (
            Ranker(RANKED),
            a_session("s", work=Work()),
            "work_baseline",
            {**NONE, "reason": "not_a_turn"},
        ),
        # What cannot be compared says why.
        *(
            (
                after(LEAST_HISTORY, **RUN, writes=(1,)),
                a_session("s", **fields),
                "task_agreement",
                {**NONE, "reason": reason},
            )
            for fields, reason in INCOMPARABLE
        ),
        # More than four times the usual model calls are flagged, in an open session at once.
        *((usual(5), calling(21, alone), "repeated_calls", FLAGGED) for alone in (FINE, NO_TOOLS)),
        (usual(5), calling(40, closed=None), "repeated_calls", {**FLAGGED, "final": False}),
        # Else it is said what the session alone says: four times, warming up, short, a long chat.
        (usual(5), calling(20), "repeated_calls", ALONE),
        (usual(5, LEAST_HISTORY - 1), calling(21), "repeated_calls", ALONE),
        (usual(2), calling(9), "repeated_calls", ALONE),
        (usual(4), calling(60, turns=15), "repeated_calls", ALONE),
    ],
)
def test_what_a_session_is_ranked(
    ranker: Ranker, session: WorkRecord, evaluator: str, expected: Mapping[str, object]
) -> None:
    signal = of(ranker.take(session).signals, evaluator)

    assert {name: getattr(signal, name) for name in expected} == expected


def test_what_is_unusual_ranks_low_and_is_said_in_numbers() -> None:
    ranked = of(after(LEAST_HISTORY).take(a_session("s", 1000)).signals, "work_baseline")
    flagged = of(usual(5).take(calling(21)).signals, "repeated_calls")

    assert ranked.score is not None
    assert ranked.score < 0.5
    assert flagged.metadata["usual_model_calls"] == 5
    assert str(flagged.explanation).startswith("21 model calls, 4.2x the agent's usual 5")


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


def test_the_id_names_the_history_that_it_was_ranked_in() -> None:
    def ranked(earlier: int) -> str:
        return of(after(earlier).take(a_session("s")).signals, "work_baseline").id

    assert ranked(12) == ranked(12) != ranked(13)
    assert ranked(2) == ranked(3), "a session that was ranked in no history does not depend on it"
    of_calls = [
        of(each.take(calling(20)).signals, "repeated_calls").id for each in (usual(5), after(0))
    ]
    assert of_calls[0] == of_calls[1], "nor one that is said what it says alone"


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


def test_a_session_that_somebody_stopped_or_without_turns_is_not_remembered() -> None:
    ranker = after(LEAST_HISTORY)
    for each in (a_session("stopped", 1000, cancelled=True), a_session("none", work=Work())):
        ranker.take(each)

    later = of(ranker.take(a_session("later")).signals, "work_baseline")

    assert later.metadata["sessions"] == LEAST_HISTORY


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


@for_each("only,ranks", [(["repeated_calls"], True), (None, True), (["agent_reliability"], False)])
def test_scoring_leaves_its_publication_to_where_earlier_sessions_are_known(
    only: list[str] | None, ranks: bool
) -> None:
    plan = make_plan(OURS, {}, embedder=None, only=only)

    rules = Rules.of(plan, lambda: SessionScorer(plan))

    assert (rules.ranks, rules.completes) == (ranks, ranks)
    assert "repeated_calls" not in rules.emitted
