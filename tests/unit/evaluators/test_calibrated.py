"""What session formulas make of scores: calibrated risks, or the documents' own."""

import pytest

from evaluators.formulas.signals import risks
from evaluators.model import Outcome, Previous, Score, ToolCall
from evaluators.plan import make_plan
from evaluators.providers.scripted import ScriptedEmbedder
from evaluators.resources import History
from evaluators.run import score_trace
from evaluators.trace.confidence import confidence
from evaluators.trace.loop_detection import loop_detection
from evaluators.trace.tool_correctness import tool_correctness
from tests.support.evaluating import OURS, HashEmbedder, a_call, a_tool, a_trace, a_turn
from tests.support.table import for_each

BROKEN = a_call("weather", {"city": "Rom"}, error="no such city")
FIXED = a_call("weather", {"city": "Rome"})
FIXED_TOO = a_call("weather", {"city": "Oslo"})


def same_calls(count: int) -> tuple[ToolCall, ...]:
    return tuple(a_call("weather", {"city": "Rome"}) for _ in range(count))


@for_each(
    "calls,tools,doubt",
    [
        ((BROKEN, FIXED), (0.5, 0.05), (0.9, 0.05)),  # recovered
        ((FIXED, FIXED_TOO, BROKEN), (2 / 3, 1 / 3), (0.7, 0.55)),  # given up
        ((BROKEN, a_call("climate", {"city": "Rome"})), (0.5, 0.2), (0.7, 0.2)),  # a way around
        (same_calls(2), (0.5, 0.05), (0.8, 0.05)),  # a second look
        ((FIXED_TOO, a_call("login", {}), *same_calls(3)), (0.6, 0.4), (0.6, 0.6)),  # a circle
    ],
)
def test_what_becomes_of_an_error_or_a_repeat_decides_what_it_costs(
    calls: tuple[ToolCall, ...], tools: tuple[float, float], doubt: tuple[float, float]
) -> None:
    """Value and risk: a failure that was given up is trouble whatever went well before."""
    trace = a_trace(tool_calls=calls)

    for evaluate, expected in ((tool_correctness, tools), (confidence, doubt)):
        score = evaluate(trace)
        assert (score.value, score.risk) == pytest.approx(expected)


QUESTION = "Has my order 4711 shipped?"
AGAIN = "Once more: has my order 4711 shipped?"
ANSWER = "I am sorry, the status of the order is not known at the moment."


def looped(*questions: str | None, answer: str = ANSWER, calls: tuple[ToolCall, ...] = ()) -> Score:
    *earlier, now = questions
    previous = (
        Previous(trace_id=f"{n}", digest="d", output=answer, input=question)
        for n, question in enumerate(earlier)
    )
    trace = a_trace(input=now, output=answer, tool_calls=calls)
    return loop_detection(trace, history=History(tuple(previous)), embedder=HashEmbedder())


@pytest.mark.parametrize(
    "questions", [(QUESTION, AGAIN, QUESTION), (QUESTION, QUESTION, AGAIN), (None, None)]
)
def test_the_same_answer_to_the_same_question_is_a_loop(questions: tuple[str | None, ...]) -> None:
    score = looped(*questions)

    assert (score.value, score.risk, score.success) == (0.0, 1.0, None)


@pytest.mark.parametrize(
    ("score", "why"),
    [
        (looped(QUESTION, "Which museums are open?"), "to another question, or with other numbers"),
        (looped(QUESTION, AGAIN), "asked for once more"),
        (looped(QUESTION, QUESTION, QUESTION, answer="Still running."), "too short to tell"),
        (looped("Thanks", "Thanks", "Thanks"), "to another question, or with other numbers"),
        (looped(QUESTION, AGAIN, AGAIN, calls=(FIXED,)), "after a new look at the facts"),
    ],
)
def test_the_same_answer_can_be_right(score: Score, why: str) -> None:
    assert (score.value, score.risk, score.success) == (0.0, 0.0, True)
    assert str(score.explanation).endswith(why)


def test_another_number_in_the_answer_is_progress() -> None:
    said = [f"The build is at {n} percent, please check back soon." for n in (20, 45, 70)]
    earlier = (
        Previous(trace_id=text, digest="d", output=text, input=QUESTION) for text in said[:2]
    )

    score = loop_detection(
        a_trace(input=QUESTION, output=said[2]),
        history=History(tuple(earlier)),
        embedder=ScriptedEmbedder({text: [1.0] for text in said}),
    )

    assert (score.value or 0) < 0.5
    assert (score.risk, score.success) == (0.0, True)


def test_a_tool_that_ran_was_there_whatever_the_spans_say_was_offered() -> None:
    offered = (a_tool("weather"),)
    ran, invented = a_call("climate", {}, span_id="s"), a_call("climate", {})

    assert tool_correctness(a_trace(tool_calls=(ran,), tools_offered=offered)).risk == 0.1
    assert tool_correctness(a_trace(tool_calls=(invented,), tools_offered=offered)).risk == 1.0


@pytest.mark.parametrize("calls", [(BROKEN,), same_calls(2), (a_call("weather", None), FIXED)])
def test_a_call_that_tells_nothing_new_excuses_no_loop(calls: tuple[ToolCall, ...]) -> None:
    assert looped(QUESTION, AGAIN, AGAIN, calls=calls).risk == 1.0


def test_formulas_read_the_risk_that_their_option_names() -> None:
    turn = a_turn("t", 1, {"confidence": 0.5, "tool_correctness": 0.5}, risks={"confidence": 0.1})
    signals = ("confidence", "tool_correctness")

    assert risks(turn, signals, "calibrated") == {"confidence": 0.1, "tool_correctness": 0.5}
    assert risks(turn, signals, "raw") == {"confidence": 0.5, "tool_correctness": 0.5}


def coherence_outcome(model: str) -> Outcome:
    plan = make_plan(OURS, {}, embedder=model, only=["coherence"])
    return score_trace(plan, a_trace(), embedder=HashEmbedder())[0]


def test_coherence_is_measured_where_its_scale_is_not_calibrated() -> None:
    local, hosted = coherence_outcome("wordllama-l2"), coherence_outcome("text-embedding-3")

    assert local.state == "measured"
    assert (local.score, local.success, local.threshold) == (None, None, None)
    assert local.metadata["value"] == local.measured == hosted.score
    assert (hosted.state, hosted.measured) == ("scored", None)
