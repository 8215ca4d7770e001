"""Which traces run away: ten repeats of one call, or far more model calls than other traces of the agent."""

import msgspec
import pytest

from evaluators.formulas.trace_calls import LEAST_TRACES, MOST_TRACES, TraceCallsHistory
from evaluators.model import JSON, ModelCall, Outcome, ToolCall
from evaluators.plan import make_plan
from evaluators.run import score_trace
from evaluators.trace.runaway import may_be_found, repeats_missing, with_usual_calls
from tests.support.evaluating import OURS, a_trace
from tests.support.table import for_each


def calls(number: int, *, result: JSON = "none", error: str | None = None) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall(
            name="search", arguments={"q": "x"}, result=result, error=error, span_id=f"{n:016x}"
        )
        for n in range(number)
    )


def scored(*tools: ToolCall, models: int = 1, gaps: tuple[str, ...] = ()) -> Outcome:
    plan = make_plan(OURS, {}, embedder=None, only=["runaway"])
    trace = a_trace(
        tool_calls=tools,
        model_calls=tuple(ModelCall(span_id=f"m{n}") for n in range(models)),
        gaps=gaps,
    )
    (outcome,) = score_trace(plan, trace)
    return outcome


@for_each("error,result", [(None, "none"), ("HTTP 500", None)])
def test_ten_repeats_of_one_call_run_away_failed_or_not(error: str | None, result: JSON) -> None:
    ten, eleven = (scored(*calls(n, result=result, error=error)) for n in (10, 11))

    assert (ten.score, ten.success, ten.evidence) == (1.0, True, ())
    assert (eleven.score, eleven.success) == (0.0, False)
    assert eleven.metadata["most_of_one_call"] == 10
    assert "`search` was repeated 10 times" in str(eleven.explanation)
    assert eleven.evidence == tuple(f"{n:016x}" for n in range(1, 11))
    assert scored(*calls(29), *calls(1, result="done")).score == 1.0, (
        "a changing result is progress"
    )


def test_nothing_to_compare_is_no_score() -> None:
    blind = tuple(ToolCall(name="search", span_id=f"{n:016x}") for n in range(20))

    assert scored().reason == "nothing_to_judge"
    assert scored(*blind).reason == "no_content"
    assert scored(models=0).reason == "not_a_turn"
    assert scored(*calls(2), gaps=("no_content",)).reason == "no_content"
    assert scored(*calls(11), gaps=("no_content",)).score == 0.0


def history(*counts: int) -> TraceCallsHistory:
    made = TraceCallsHistory()
    for number, count in enumerate(counts, 1):
        made.put(number, (count,))
    return made


USUAL = history(*[5] * LEAST_TRACES)


@for_each("alone", [scored(*calls(2)), scored(), scored(*calls(2), gaps=("no_content",))])
def test_more_than_four_times_the_usual_model_calls_run_away(alone: Outcome) -> None:
    at_four, above = (with_usual_calls(alone, n, USUAL, 99) for n in (20, 21))

    assert at_four is alone
    assert (above.state, above.score, above.success, above.reason) == ("scored", 0.0, False, None)
    assert above.metadata["usual_model_calls"] == 5
    assert str(above.explanation).startswith("21 model calls, 4.2x the usual 5 of a trace")


def test_what_is_usual_needs_ten_other_traces_and_twenty_calls() -> None:
    alone, loop = scored(*calls(2)), scored(*calls(11), models=90)

    assert with_usual_calls(alone, 90, history(*[5] * 9), 99) is alone
    assert with_usual_calls(alone, 90, history(*[5] * 10), 1) is alone, "not its own"
    assert with_usual_calls(alone, 19, history(*[1] * 20), 99) is alone
    assert with_usual_calls(alone, 90, history(*[0] * 20), 99) is alone, "no usual number"
    assert with_usual_calls(loop, 90, USUAL, 99) is loop, "a loop is reported as a loop"


def test_only_what_may_be_found_goes_on() -> None:
    fine, loop = scored(*calls(2)), scored(*calls(11))

    assert [may_be_found(fine, n) for n in (19, 20)] == [False, True]
    assert may_be_found(loop, 0)
    assert not may_be_found(msgspec.structs.replace(fine, state="failed"), 90)
    for number, missing in ((0, 10), (1, 10), (4, 7), (11, 1), (40, 1)):
        assert repeats_missing(a_trace(tool_calls=calls(number)), {"limit": 10}) == missing


def test_the_history_is_bounded_replaces_and_comes_back() -> None:
    made = history(*range(MOST_TRACES + 5))
    made.put(MOST_TRACES, (7,))

    again = TraceCallsHistory(made.pack())

    assert len(again) == MOST_TRACES
    assert again.pack() == made.pack()
    assert again.digest(0) == made.digest(0) != made.digest(MOST_TRACES)
    with pytest.raises(ValueError, match="not a history"):
        TraceCallsHistory(b"torn")
