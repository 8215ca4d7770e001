"""The step before the first tool error is pointed at; without one, nothing is."""

from msgspec import structs

from evaluators.matching.first_failure import first_failure
from evaluators.model import AgentStep, ModelCall, ToolCall, Trace
from evaluators.trace.tool_correctness import Selection, judged_tool_correctness, tool_correctness
from tests.support.evaluating import a_trace
from tests.support.table import for_each


def call(at: int, error: str | None = None) -> ToolCall:
    return ToolCall(name=f"tool{at}", start_time_unix_nano=at, error=error, span_id=f"t{at}")


STEPS = (
    ModelCall(span_id="m1", agent="planner", start_time_unix_nano=1),
    ModelCall(span_id="m3", agent="writer", start_time_unix_nano=3),
    ModelCall(span_id="m7", agent="planner", start_time_unix_nano=7),
)


def test_the_step_that_made_the_first_failing_call() -> None:
    trace = a_trace(model_calls=STEPS, tool_calls=(call(2), call(4, "no"), call(8, "no")))

    found = first_failure(trace)

    assert found is not None
    assert (found.span_id, found.agent, found.call.name) == ("m3", "writer", "tool4")
    score = tool_correctness(trace)
    assert score.evidence[0] == "m3"
    assert "first failure: the step before `tool4`, by `writer`, span m3" in str(score.explanation)


WRITERS = structs.replace(call(8, "no"), agent="writer")
CALL = call(6, "404")
SURFED = AgentStep(span_id="a5", agent="surfer", start_time_unix_nano=5)


@for_each(
    "trace,span_id,agent",
    [
        # another agent's step in between is not it
        (a_trace(model_calls=STEPS, tool_calls=(WRITERS,)), "m3", "writer"),
        # an agent's step without a model call counts
        (a_trace(model_calls=STEPS[:2], steps=(SURFED,), tool_calls=(CALL,)), "a5", "surfer"),
        # a call before every step has no step
        (a_trace(model_calls=STEPS[1:], tool_calls=(call(0, "no"),)), None, None),
    ],
)
def test_which_step_made_the_call(trace: Trace, span_id: str | None, agent: str | None) -> None:
    found = first_failure(trace)

    assert found is not None
    assert (found.span_id, found.agent) == (span_id, agent)


def test_a_judge_s_verdict_points_at_it_too() -> None:
    trace = a_trace(model_calls=STEPS, tool_calls=(call(4, "no"),))

    score = judged_tool_correctness(trace, selection=Selection(score=0.5, reason="Too many."))

    why = "Too many.; first failure: the step before `tool4`, by `writer`, span m3"
    assert (score.explanation, score.evidence) == (why, ("m3",))


def test_without_an_error_nothing_is_pointed_at() -> None:
    trace = a_trace(model_calls=STEPS, tool_calls=(call(2), call(4)))

    assert first_failure(trace) is None
    assert "first failure" not in str(tool_correctness(trace).explanation)
