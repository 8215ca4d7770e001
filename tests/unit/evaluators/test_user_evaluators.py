"""What users write also runs: the file that pyright checks, discovered as a third party's."""

from importlib.metadata import EntryPoint

from evaluators.model import Session
from evaluators.plan import Plan, make_plan
from evaluators.registry import GROUP, Registry
from evaluators.run import SessionScorer, score_trace
from tests.support.evaluating import a_call, a_trace, a_turn

POINT = EntryPoint("this_test", "tests.typing.user_evaluators", GROUP)


def test_a_third_party_s_evaluators_are_found_planned_and_run() -> None:
    registry = Registry.discover([POINT])
    plan = make_plan(
        registry, {}, embedder=None, only=["this_test/tool_success", "this_test/patience"]
    )
    trace = a_trace(tool_calls=(a_call(span_id="1", error="no"), a_call(span_id="2")))
    patient, succeeds = plan.plugins
    scorer = SessionScorer(Plan(session=(patient,)))
    turns = [a_turn("t1", 1, {}, duration=31.0)]
    scorer.put(turns[0])

    (outcome,) = score_trace(Plan(trace=(succeeds,)), trace)
    (patience,) = scorer.outcomes(
        Session(service="s", session_id="s", agent="a", turns=turns), closed=False
    )

    assert (outcome.evaluator, outcome.method) == ("this_test/tool_success", "custom")
    assert (outcome.score, outcome.success, outcome.evidence) == (0.5, False, ("1",))
    assert (patience.evaluator, patience.score) == ("this_test/patience", 0.0)


def test_a_running_state_that_breaks_fails_its_own_evaluator_only() -> None:
    registry = Registry.discover([POINT])
    plan = make_plan(registry, {}, embedder=None, only=["this_test/patience", "agent_reliability"])
    scorer = SessionScorer(Plan(session=(*plan.plugins, *plan.session)))
    turn = a_turn("t1", 1, {"confidence": 0.5}, duration="not a number")
    scorer.put(turn)

    outcomes = scorer.outcomes(
        Session(service="s", session_id="s", agent="a", turns=[turn]), closed=False
    )

    assert {each.evaluator: each.state for each in outcomes} == {
        "this_test/patience": "failed",
        "agent_reliability": "scored",
    }
