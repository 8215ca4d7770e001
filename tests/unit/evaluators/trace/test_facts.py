"""What each trace evaluator sees in a trace."""

from collections.abc import Mapping
from typing import Any

import pytest

from evaluators.model import ModelCall, Previous, Score, ToolCall
from evaluators.resources import History
from evaluators.trace.argument_correctness import argument_correctness
from evaluators.trace.coherence import coherence
from evaluators.trace.confidence import confidence
from evaluators.trace.loop_detection import loop_detection
from evaluators.trace.step_efficiency import step_efficiency
from evaluators.trace.tool_correctness import tool_correctness
from tests.support.evaluating import HashEmbedder, a_call, a_tool, a_trace
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

    def test_metadata_are_the_document_s_fields(self) -> None:
        score = tool_correctness(calls(PARIS))

        assert score.metadata == {
            "user_input": "What is the weather in Paris?",
            "tools_called": [{"name": "weather", "parameters": {"city": "Paris"}}],
            "available_tools": [
                {"name": "weather", "description": None},
                {"name": "book", "description": None},
            ],
        }

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

    def test_no_tool_calls_is_the_document_s_perfect_score_as_an_assumption(self) -> None:
        score = argument_correctness(a_trace())

        assert (score.state, score.assumed) == ("not_applicable", 1.0)

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

    @for_each("pattern,city", [("^(a+)+$", "a" * 200 + "!"), ("^[A-Z]", "paris")])
    def test_a_pattern_is_tried_also_one_of_exponential_cost_elsewhere(
        self, pattern: str, city: str
    ) -> None:
        schema = {"properties": {"city": {"type": "string", "pattern": pattern}}}
        call, tool = a_call("weather", {"city": city}), a_tool("weather", schema)

        assert argument_correctness(a_trace(tool_calls=(call,), tools_offered=(tool,))).value == 0.0


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


def test_the_same_output_again_is_a_loop_however_long_it_is() -> None:
    text = "the order could not be found today " * 2000
    history = History((Previous(trace_id="0", digest="d", output=text[:8192]),))

    score = loop_detection(a_trace(output=text), history=history, embedder=HashEmbedder())

    assert score.value == pytest.approx(0.0, abs=0.05)
