"""What each trace evaluator sees in a trace."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from evaluators.formulas.trace_calls import LEAST_TRACES, MOST_TRACES, TraceCallsHistory
from evaluators.model import JSON, ModelCall, Outcome, Score, ToolCall
from evaluators.plan import make_plan
from evaluators.run import score_trace
from evaluators.trace.argument_correctness import argument_correctness
from evaluators.trace.coherence import coherence
from evaluators.trace.confidence import confidence
from evaluators.trace.runaway import may_be_found, repeats_missing, with_usual_calls
from evaluators.trace.step_efficiency import step_efficiency
from evaluators.trace.tool_correctness import tool_correctness
from tests.support.evaluating import OURS, HashEmbedder, a_call, a_tool, a_trace
from tests.support.table import for_each

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def calls(*many: ToolCall) -> Any:
    return a_trace(tool_calls=many, tools_offered=(a_tool("weather", CITY), a_tool("book")))


PARIS = a_call("weather", {"city": "Paris"}, span_id="1")
OSLO = a_call("weather", {"city": "Oslo"}, span_id="2")
PARIS_AGAIN = a_call("weather", {"city": "Paris"}, span_id="3")
BROKEN = a_call("weather", {"city": "Rome"}, span_id="4", error="no such city")
MISFIT = a_call("weather", {"town": "Rome"}, span_id="5")
SPOKE = ModelCall(span_id="m", output="I look it up.")
LOST = a_call("book", {}, span_id="8", error="timed out")
INVENTED = a_call("teleport", {}, span_id="6")


class TestToolCorrectness:
    @for_each(
        "made,value,evidence",
        [
            ((PARIS, OSLO), 1.0, ()),
            ((PARIS, PARIS_AGAIN), 0.5, ("3",)),
            ((PARIS, BROKEN), 0.5, ("m1", "4")),
            ((PARIS, MISFIT), 0.5, ("5",)),
            ((PARIS, INVENTED), 0.5, ("6",)),
            ((PARIS, PARIS_AGAIN, BROKEN, MISFIT), 0.25, ("m1", "3", "4", "5")),
            # a failed call that is tried again is a retry and no repeat
            ((BROKEN, a_call("weather", {"city": "Rome"}, span_id="7")), 0.5, ("m1", "4")),
        ],
    )
    def test_every_fault_counts_its_call_once(
        self, made: tuple[ToolCall, ...], value: float, evidence: tuple[str, ...]
    ) -> None:
        score = tool_correctness(calls(*made))

        assert score.value == pytest.approx(value)
        assert score.evidence == evidence

    def test_what_is_not_said_is_no_fault(self) -> None:
        assert tool_correctness(a_trace()).state == "not_applicable"
        assert tool_correctness(a_trace(tool_calls=(INVENTED,))).value == 1.0

    def test_a_huge_trace_has_small_metadata_and_names_the_parts_left_out(self) -> None:
        many = tuple(a_call("weather", {"city": "x" * 5000, "n": n}) for n in range(300))

        score = tool_correctness(calls(*many))

        assert len(str(score.metadata)) < 40_000
        assert str(score.truncated).startswith("tools_called: ")


class TestArgumentCorrectness:
    def test_share_of_calls_that_fit_their_schema(self) -> None:
        score = argument_correctness(calls(PARIS, MISFIT, a_call("book", {"x": 1})))

        assert score.value == 0.5
        assert score.evidence == ("5",)
        assert score.metadata["verdicts"] == [
            {"verdict": "yes", "reason": None},
            {"verdict": "no", "reason": "'city' is a required property"},
        ]

    @for_each(
        "schema",
        [
            *(None, {"type": "no such type"}, {"$ref": "http://127.0.0.1:1/elsewhere.json"}),
            *({"$ref": "#/nowhere"}, {"$ref": "#"}, "not a schema", {"enum": ["x" * 70_000]}),
        ],
    )
    def test_arguments_against_an_unusable_schema_are_not_judged(self, schema: Any) -> None:
        trace = a_trace(tool_calls=(PARIS,), tools_offered=(a_tool("weather", schema),))

        score = argument_correctness(trace)

        assert (score.state, score.assumed) == ("not_applicable", None)
        assert argument_correctness(a_trace()).assumed == 1.0, "no tool call is the document's 1"


def test_step_efficiency_counts_calls_that_repeat_none() -> None:
    score = step_efficiency(calls(PARIS, PARIS_AGAIN, BROKEN, OSLO))

    assert score.value == 0.75
    assert score.evidence == ("3",)
    assert score.explanation == "1 of 4 tool calls of the trace repeated an earlier one"
    assert score.metadata == {"task": "What is the weather in Paris?"}
    assert step_efficiency(a_trace()).state == "not_applicable"


LATE = ToolCall(name="run", unanswered=True, start_time_unix_nano=9)
FAILED = ModelCall(span_id="m", error="400")
EVERY_SIGN = {
    "tool_calls": (PARIS, *[PARIS_AGAIN] * 9, INVENTED, LOST),
    "model_calls": (FAILED,),
    "output": None,
}


def rootless(call: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """A trace whose root never came, and whose last call is this one."""
    last = ToolCall(name="book", arguments={}, start_time_unix_nano=5, **call)
    return {"root": "missing", "closed": "idle", "tool_calls": (last,), **fields}


@for_each(
    "fields,value,risk",
    [
        ({"tool_calls": (BROKEN,)}, 0.7, 0.55),
        ({"tool_calls": (BROKEN, OSLO)}, 0.9, 0.05),
        ({"tool_calls": (PARIS, PARIS_AGAIN)}, 0.8, 0.05),
        ({"tool_calls": (PARIS, *[PARIS_AGAIN] * 50)}, 0.4, 0.6),
        ({"model_calls": (FAILED,)}, 0.6, 0.6),
        ({"model_calls": (FAILED,), "output": None, "gaps": ("no_content",)}, 0.6, 0.6),
        ({"model_calls": (FAILED, ModelCall(span_id="n"))}, 0.9, 0.1),
        ({"status": "error"}, 0.7, 0.3),
        ({"output": None, "model_calls": (SPOKE,)}, 0.5, 0.5),
        ({"output": "  \n", "model_calls": (SPOKE,)}, 0.5, 0.5),
        ({"output": None, "model_calls": (SPOKE, ModelCall(span_id="n"))}, 0.5, 0.5),
        ({"output": None}, 1.0, 0.0),  # no answer of a model was exported
        ({"output": None, "tool_calls": (PARIS,)}, 0.8, 0.1),
        ({"output": None, "tool_calls": (BROKEN,)}, 0.2, 1.0),
        ({"output": "I'm sorry, I am unable to cancel a used ticket."}, 1.0, 0.0),
        ({"output": None, "gaps": ("no_content",)}, 1.0, 0.0),
        ({"output": "I am not sure, maybe Paris."}, 0.75, 0.15),
        ({"output": "I don't know when the museum opens."}, 0.75, 0.15),
        ({"output": "I am sorry, I could not find your order. Try again later."}, 0.75, 0.15),
        # a call without a recorded end broke off under a root that came first
        ({"tool_calls": (LATE,), "closed": "idle"}, 0.4, 0.6),
        ({"tool_calls": (LATE,), "closed": "root_ended"}, 0.4, 0.6),
        ({"tool_calls": (LATE,), "closed": "max_age"}, 1.0, 0.0),
        # a trace without a root that ends in a tool call broke off
        (rootless({}), 0.4, 0.6),
        (rootless({}, root="parentless", closed="root_ended"), 1.0, 0.0),
        (rootless({}, root="local"), 1.0, 0.0),
        (rootless({}, closed="max_age"), 1.0, 0.0),
        (rootless({}, closed="max_spans"), 1.0, 0.0),
        (rootless({"result": "ok"}), 1.0, 0.0),
        (rootless({"error": "timeout"}), 0.7, 0.55),
        (rootless({"span_id": "s"}), 1.0, 0.0),
        (rootless({}, model_calls=(ModelCall(span_id="m", start_time_unix_nano=9),)), 1.0, 0.0),
        (rootless({}, model_calls=()), 1.0, 0.0),  # a tool's own trace
        (EVERY_SIGN, 0.0, 1.0),
    ],
)
def test_each_sign_of_doubt_costs_confidence(
    fields: dict[str, Any], value: float, risk: float
) -> None:
    score = confidence(a_trace(**fields))

    assert (score.value, score.risk) == pytest.approx((value, risk))


def test_confidence_says_what_it_doubts() -> None:
    score = confidence(a_trace(tool_calls=(PARIS, PARIS_AGAIN)))

    assert score.explanation == "1 of 2 tool calls repeated an earlier one (`weather`)"
    assert score.evidence == ("3",)
    assert confidence(a_trace(tool_calls=(PARIS, OSLO))) == Score(
        value=1.0, risk=0.0, explanation="no sign of hesitation"
    )


def test_coherence_reads_eight_kib_at_most() -> None:
    class Lengths(HashEmbedder):
        longest = 0

        def embed(self, texts: Any) -> Any:
            self.longest = max(len(text.encode()) for text in texts)
            return super().embed(texts)

    embedder = Lengths()

    coherence(a_trace(input="é" * 50_000, output="y" * 50_000), embedder=embedder)

    assert embedder.longest == 8192


# --- runaway: ten repeats of one call, or far more model calls than other traces of the agent -------------------------


def same_calls(
    number: int, *, result: JSON = "none", error: str | None = None
) -> tuple[ToolCall, ...]:
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
    ten, eleven = (scored(*same_calls(n, result=result, error=error)) for n in (10, 11))

    assert (ten.score, ten.success, ten.evidence) == (1.0, True, ())
    assert (eleven.score, eleven.success) == (0.0, False)
    assert eleven.metadata["most_of_one_call"] == 10
    assert "`search` was repeated 10 times" in str(eleven.explanation)
    assert eleven.evidence == tuple(f"{n:016x}" for n in range(1, 11))
    assert scored(*same_calls(29), *same_calls(1, result="done")).score == 1.0, (
        "a changing result is progress"
    )


def test_nothing_to_compare_is_no_score() -> None:
    blind = tuple(ToolCall(name="search", span_id=f"{n:016x}") for n in range(20))

    assert scored().reason == "nothing_to_judge"
    assert scored(*blind).reason == "no_content"
    assert scored(models=0).reason == "not_a_turn"
    assert scored(*same_calls(2), gaps=("no_content",)).reason == "no_content"
    assert scored(*same_calls(11), gaps=("no_content",)).score == 0.0


def history(*counts: int) -> TraceCallsHistory:
    made = TraceCallsHistory()
    for number, count in enumerate(counts, 1):
        made.put(number, (count,))
    return made


USUAL = history(*[5] * LEAST_TRACES)


@for_each("alone", [scored(*same_calls(2)), scored(), scored(*same_calls(2), gaps=("no_content",))])
def test_more_than_four_times_the_usual_model_calls_run_away(alone: Outcome) -> None:
    at_four, above = (with_usual_calls(alone, n, USUAL, 99) for n in (20, 21))

    assert at_four is alone
    assert (above.state, above.score, above.success, above.reason) == ("scored", 0.0, False, None)
    assert above.metadata["usual_model_calls"] == 5
    assert str(above.explanation).startswith("21 model calls, 4.2x the usual 5 of a trace")


def test_what_is_usual_needs_ten_other_traces_and_twenty_calls() -> None:
    alone, loop = scored(*same_calls(2)), scored(*same_calls(11), models=90)

    assert with_usual_calls(alone, 90, history(*[5] * 9), 99) is alone
    assert with_usual_calls(alone, 90, history(*[5] * 10), 1) is alone, "not its own"
    assert with_usual_calls(alone, 19, history(*[1] * 20), 99) is alone
    assert with_usual_calls(alone, 90, history(*[0] * 20), 99) is alone, "no usual number"
    assert with_usual_calls(loop, 90, USUAL, 99) is loop, "a loop is reported as a loop"


def test_only_what_may_be_found_goes_on() -> None:
    fine, loop = scored(*same_calls(2)), scored(*same_calls(11))

    assert [may_be_found(fine, n) for n in (19, 20)] == [False, True]
    assert may_be_found(loop, 0)
    assert not may_be_found(msgspec.structs.replace(fine, state="failed"), 90)
    for number, missing in ((0, 10), (1, 10), (4, 7), (11, 1), (40, 1)):
        assert repeats_missing(a_trace(tool_calls=same_calls(number)), {"limit": 10}) == missing


def test_the_history_is_bounded_replaces_and_comes_back() -> None:
    made = history(*range(MOST_TRACES + 5))
    made.put(MOST_TRACES, (7,))

    again = TraceCallsHistory(made.pack())

    assert len(again) == MOST_TRACES
    assert again.pack() == made.pack()
    assert again.digest(0) == made.digest(0) != made.digest(MOST_TRACES)
    with pytest.raises(ValueError, match="not a history"):
        TraceCallsHistory(b"torn")
