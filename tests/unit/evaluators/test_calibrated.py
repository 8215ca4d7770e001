"""What session formulas make of scores: calibrated risks, or the documents' own."""

from __future__ import annotations

from typing import Any

import pytest

from evaluators.formulas.signals import risks
from evaluators.matching.text import asks_again
from evaluators.model import ModelCall, Outcome, Previous, Score, ToolCall
from evaluators.plan import Settings, make_plan
from evaluators.providers.scripted import HashEmbedder
from evaluators.resources import History
from evaluators.run import score_trace
from evaluators.trace.confidence import confidence
from evaluators.trace.loop_detection import loop_detection
from evaluators.trace.tool_correctness import tool_correctness
from tests.support.evaluating import OURS, a_call, a_trace, a_turn

BROKEN = a_call("weather", {"city": "Rom"}, error="no such city")
MENDED = a_call("weather", {"city": "Rome"})


def test_a_recovered_error_costs_little() -> None:
    trace = a_trace(tool_calls=(BROKEN, MENDED))

    assert tool_correctness(trace).value == 0.5
    assert tool_correctness(trace).risk == pytest.approx(0.05)
    assert confidence(trace).risk == pytest.approx(0.05)


def test_an_error_that_was_not_recovered_costs_what_its_score_says() -> None:
    trace = a_trace(tool_calls=(MENDED, BROKEN))

    assert tool_correctness(trace).risk == pytest.approx(0.5)
    assert confidence(trace).risk == pytest.approx(0.3)


def test_an_honest_i_do_not_know_costs_less_than_a_failure() -> None:
    doubtful = confidence(a_trace(output="I don't know when the museum opens."))

    assert (doubtful.value, doubtful.risk) == (0.75, 0.15)


def pending(**fields: Any) -> ToolCall:
    return ToolCall(name="book", arguments={}, start_time_unix_nano=5, **fields)


@pytest.mark.parametrize(
    ("call", "root", "closed", "broke_off"),
    [
        (pending(), "missing", "idle", True),
        (pending(), "parentless", "root_ended", False),
        (pending(), "local", "idle", False),
        (pending(result="ok"), "missing", "idle", False),
        (pending(error="timeout"), "missing", "idle", False),
        (pending(span_id="s"), "missing", "idle", False),
    ],
)
def test_a_trace_that_ends_in_a_tool_call_broke_off(
    call: ToolCall, root: Any, closed: Any, *, broke_off: bool
) -> None:
    trace = a_trace(tool_calls=(call,), root=root, closed=closed)

    score = confidence(trace)

    assert ("it broke off in a tool call" in str(score.explanation)) is broke_off


def test_a_model_that_went_on_after_the_call_did_not_break_off() -> None:
    later = (ModelCall(span_id="m", start_time_unix_nano=9),)

    score = confidence(
        a_trace(tool_calls=(pending(),), model_calls=later, root="missing", closed="idle")
    )

    assert score.value == 1.0


QUESTION = "Has my order 4711 shipped?"


@pytest.mark.parametrize(
    ("question", "again"),
    [
        ("I am asking again: has my order 4711 shipped yet?", True),
        ("Hello?? has my order 4711 shipped or not?", True),
        ("What is the weather in Berlin?", False),
        ("Has my invoice been paid?", False),
        (None, True),
    ],
)
def test_a_question_is_asked_again_in_other_words(question: str | None, *, again: bool) -> None:
    assert asks_again(question, QUESTION) is again


def looped(question: str) -> Score:
    answer = "I am sorry, the status of the order is not known at the moment."
    history = History((Previous(trace_id="1", digest="d", output=answer, input=QUESTION),))
    return loop_detection(
        a_trace(input=question, output=answer), history=history, embedder=HashEmbedder()
    )


def test_the_same_answer_to_the_same_question_is_a_loop() -> None:
    score = looped("Once more: has my order 4711 shipped?")

    assert (score.value, score.risk, score.success) == (0.0, 1.0, None)


def test_the_same_answer_to_another_question_is_none() -> None:
    score = looped("Which museums are open on Monday?")

    assert (score.value, score.risk, score.success) == (0.0, 0.0, True)
    assert str(score.explanation).endswith("to another question")


def test_formulas_read_the_risk_that_their_option_names() -> None:
    turn = a_turn("t", 1, {"confidence": 0.5, "tool_correctness": 0.5}, risks={"confidence": 0.1})
    signals = ("confidence", "tool_correctness")

    assert risks(turn, signals, "calibrated") == {"confidence": 0.1, "tool_correctness": 0.5}
    assert risks(turn, signals, "raw") == {"confidence": 0.5, "tool_correctness": 0.5}


@pytest.mark.parametrize("name", ["agent_reliability", "agent_consistency"])
def test_the_documents_own_inputs_can_be_chosen(name: str) -> None:
    raw = make_plan(OURS, {name: Settings(options={"inputs": "raw"})}, embedder=None)
    default = make_plan(OURS, {}, embedder=None)

    inputs = [
        {each.spec.name: each.options.get("inputs") for each in plan.session}[name]
        for plan in (raw, default)
    ]
    assert inputs == ["raw", "calibrated"]


def coherence_outcome(model: str) -> Outcome:
    plan = make_plan(OURS, {}, embedder=model)
    outcomes = score_trace(plan, a_trace(), embedder=HashEmbedder())
    return next(each for each in outcomes if each.evaluator == "coherence")


def test_coherence_is_measured_where_its_scale_is_not_calibrated() -> None:
    local, hosted = coherence_outcome("wordllama-l2"), coherence_outcome("text-embedding-3")

    assert (local.state, local.score, local.success, local.threshold) == (
        "measured",
        None,
        None,
        None,
    )
    assert local.metadata["value"] == local.measured == hosted.score
    assert (hosted.state, hosted.measured) == ("scored", None)
