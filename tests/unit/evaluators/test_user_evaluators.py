"""What users write also runs: the file that pyright checks, discovered as a third party's."""

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from evaluators.plan import Plan, make_plan
from evaluators.registry import GROUP, Registry
from evaluators.run import MESSAGE_LIMIT, score_trace
from tests.support.bad_plugins import FAILS, bad
from tests.support.evaluating import a_call, a_trace, a_turn, session_outcomes

POINT = EntryPoint("this_test", "tests.typing.user_evaluators", GROUP)


def test_a_third_party_s_evaluators_are_found_planned_and_run() -> None:
    only = ["this_test/tool_success", "this_test/patience"]
    plan = make_plan(Registry.discover([POINT]), {}, embedder=None, only=only)
    trace = a_trace(tool_calls=(a_call(span_id="1", error="no"), a_call(span_id="2")))
    patient, succeeds = plan.plugins
    turn = a_turn("t1", 1, {}, duration=31.0)

    (outcome,) = score_trace(Plan(trace=(succeeds,)), trace)
    (patience,) = session_outcomes(Plan(session=(patient,)), turn, closed=False).values()

    assert (outcome.evaluator, outcome.method) == ("this_test/tool_success", "custom")
    assert (outcome.score, outcome.success, outcome.evidence) == (0.5, False, ("1",))
    assert (patience.evaluator, patience.score) == ("this_test/patience", 0.0)


def test_a_running_state_that_breaks_fails_its_own_evaluator_only() -> None:
    registry = Registry.discover([POINT])
    plan = make_plan(registry, {}, embedder=None, only=["this_test/patience", "agent_reliability"])
    both = Plan(session=(*plan.plugins, *plan.session))
    turn = a_turn("t1", 1, {"confidence": 0.5}, duration="not a number")

    outcomes = session_outcomes(both, turn, closed=False)

    assert {name: each.state for name, each in outcomes.items()} == {
        "this_test/patience": "failed",
        "agent_reliability": "scored",
    }


@pytest.mark.parametrize("scope", ["trace", "session"])
@pytest.mark.filterwarnings("ignore:coroutine 'sleep' was never awaited")
def test_whatever_one_raises_or_returns_is_its_own_outcome_also_in_the_program_s_process(
    tmp_path: Path, scope: str
) -> None:
    # A program's Ctrl-C is its own. What takes hundreds of MB takes seconds, too.
    large = {"takes_memory", "raises_long", "returns_much", "returns_much_metadata"}
    kinds = sorted(FAILS.keys() - {"interrupts", *large})
    registry = Registry.discover(plugins=[str(bad(tmp_path, *kinds, scope=scope))])
    plan = make_plan(registry, {}, embedder=None)
    due = tuple(each for each in plan.plugins if each.spec.name.startswith("bad/"))

    if scope == "trace":
        outcomes = score_trace(Plan(trace=due), a_trace())
    else:
        outcomes = session_outcomes(Plan(session=due), a_turn("t1", 1, {})).values()

    failed = {each.evaluator for each in outcomes if each.state == "failed"}
    assert len(outcomes) == len(kinds)
    assert failed == {f"bad/{kind}" for kind in kinds}
    told = [each.error.message for each in outcomes if each.error is not None]
    assert max(map(len, told)) <= MESSAGE_LIMIT
    assert all(each.encode() for each in told)
