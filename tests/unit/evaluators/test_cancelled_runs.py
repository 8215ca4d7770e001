"""A run that somebody stopped: no answer of it is judged, its tool calls are."""

import pytest

from evaluators.model import Outcome, ToolCall
from evaluators.plan import make_plan
from evaluators.run import CANCELLED, score_trace
from tests.support.evaluating import OURS, HashEmbedder, a_call, a_trace

PLAN = make_plan(OURS, {}, embedder="hash", expectations=True)
LEFT = ToolCall(name="find_order", arguments={"id": 7}, span_id="2", unanswered=True)


def outcomes(*calls: ToolCall) -> dict[str, Outcome]:
    trace = a_trace(tool_calls=calls, output=None, status="cancelled")
    return {each.evaluator: each for each in score_trace(PLAN, trace, embedder=HashEmbedder())}


def test_what_reads_answers_has_nothing_to_judge() -> None:
    found = outcomes(LEFT)

    for name in ("confidence", "coherence"):
        outcome = found[name]
        assert (outcome.state, outcome.reason) == ("not_applicable", "nothing_to_judge")
        assert outcome.explanation == CANCELLED
    assert [each.evaluator for each in found.values() if each.success is False] == []


def test_a_loop_that_somebody_ended_is_still_seen() -> None:
    again = [a_call("find_order", {"id": 7}, span_id=str(number)) for number in range(12)]

    assert outcomes(*again)["runaway"].success is False
    assert outcomes(*again)["tool_correctness"].score == pytest.approx(1 / 12, abs=1e-4)
