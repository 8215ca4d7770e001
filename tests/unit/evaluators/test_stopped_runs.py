"""Runs and calls that somebody stopped or refused: neither the tool's fault nor the agent's."""

import pytest
from msgspec import structs

from evaluators.formulas.agreement import writes
from evaluators.judging.transcript import trace_recording
from evaluators.matching.first_failure import first_failure
from evaluators.matching.repeats import call_counts, repeats
from evaluators.matching.tool_calls import failures
from evaluators.model import JSON, Outcome, Rejection, ToolCall
from evaluators.plan import make_plan
from evaluators.run import CANCELLED, score_trace
from evaluators.trace.confidence import confidence
from evaluators.trace.runaway import runaway
from evaluators.trace.tool_correctness import tool_correctness
from tests.support.evaluating import OURS, HashEmbedder, a_call, a_tool, a_trace

# --- a run that somebody stopped: no answer of it is judged, its tool calls are ---------------------------------------


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


# --- a tool call that a person or a rule refused ----------------------------------------------------------------------


SCHEMA = {"type": "object", "required": ["command"]}
REFUSERS: tuple[Rejection, ...] = ("user", "policy")


def refused(by: Rejection = "user", arguments: JSON = None, *, name: str = "run") -> ToolCall:
    arguments = {"command": "rm -r build"} if arguments is None else arguments
    return ToolCall(name=name, arguments=arguments, error="denied", rejected=by, span_id="r")


RAN = a_call("run", {"command": "ls"}, span_id="1")
BROKEN = a_call("run", {"command": "make"}, span_id="2", error="exit 2")


def test_it_does_not_count_against_tool_correctness_nor_do_its_name_and_arguments() -> None:
    for by in REFUSERS:
        assert tool_correctness(a_trace(tool_calls=(RAN, refused(by)))).value == 1.0
        assert tool_correctness(a_trace(tool_calls=(RAN, BROKEN, refused(by)))).value == 0.5
    offered = (a_tool("run", SCHEMA),)
    calls = (RAN, refused(arguments={"cmd": "x"}), refused(name="teleport"))

    score = tool_correctness(a_trace(tool_calls=calls, tools_offered=offered))
    alone = tool_correctness(a_trace(tool_calls=(refused(),)))

    assert (score.value, score.evidence) == (1.0, ())
    assert (alone.state, alone.explanation) == ("not_applicable", "every tool call was refused")


def test_it_is_no_failure_recovers_none_and_writes_nothing() -> None:
    assert failures((BROKEN, refused())) == ((BROKEN,), ())
    assert failures((refused(), RAN)) == ((), ())
    assert first_failure(a_trace(tool_calls=(refused(),))) is None
    assert not refused().failed
    assert writes((refused(),)) == ()
    assert len(writes((a_call("run", {"command": "rm -r build"}),))) == 1


@pytest.mark.parametrize("output", ["I did not delete the folder.", None])
def test_it_is_no_sign_of_doubt_though_it_ends_the_work(output: str | None) -> None:
    late = ToolCall(name="run", error="denied", rejected="user", start_time_unix_nano=9)

    assert confidence(a_trace(tool_calls=(late,), output=output)).value == 1.0


def test_asking_again_what_was_refused_is_a_repeat_in_whatever_words_it_was_refused() -> None:
    again = refused()
    once_more = structs.replace(again, error="no!")

    assert repeats((again, once_more)) == (once_more,)
    assert len(call_counts((again, once_more))) == 1
    score = runaway(a_trace(tool_calls=tuple(refused() for _ in range(12))))
    assert (score.value, score.explanation) == (
        0.0,
        "11 of 12 tool calls of the trace repeated an earlier one; `run` was repeated 11 times",
    )


def test_a_judge_reads_who_refused_it() -> None:
    trace = a_trace(tool_calls=(refused("user"), refused("policy")))

    shown = trace_recording(trace, max_tokens=1000).text

    assert "refused by the user: denied" in shown
    assert "refused by a rule: denied" in shown
    assert "failed" not in shown
