"""What is said of tool calls: uses of tools, classes of their errors, and the step before the first failure."""

from msgspec import structs

from evaluators.matching.first_failure import first_failure
from evaluators.matching.tool_uses import error_class, is_nothing, tool_uses
from evaluators.model import JSON, AgentStep, ModelCall, ToolCall, Trace
from evaluators.trace.tool_correctness import Selection, judged_tool_correctness, tool_correctness
from evaluators.uses import MOST_TOOLS
from tests.support.evaluating import a_trace
from tests.support.table import for_each

SECOND = 1_000_000_000


def call(name: str = "find", **facts: JSON) -> ToolCall:
    return ToolCall(name=name, **facts)


@for_each(
    "calls,failed,returned,empty",
    [
        ([call(result="a"), call(error="TimeoutError: after 5 s")], True, True, False),
        ([call(unanswered=True)], False, False, False),  # it waits
        ([call()], False, False, False),  # its result was not exported
        ([call(result="", error="boom")], True, False, False),
    ],
)
def test_one_failed_call_makes_a_failed_use_and_nothing_is_what_was_returned(
    calls: list[ToolCall], failed: bool, returned: bool, empty: bool
) -> None:
    (use,) = tool_uses(calls)
    assert (use.calls, use.failed, use.returned, use.empty) == (len(calls), failed, returned, empty)


def test_a_refused_call_is_no_use() -> None:
    assert tool_uses([call(error="User rejected it", rejected="user")]) == ()


def test_the_longest_call_counts_and_one_without_a_span_has_no_duration() -> None:
    slow = call(span_id="a", start_time_unix_nano=SECOND, end_time_unix_nano=3 * SECOND)
    fast = call(span_id="b", start_time_unix_nano=SECOND, end_time_unix_nano=2 * SECOND)
    assert tool_uses([fast, slow, call()])[0].slowest == 2.0
    assert tool_uses([call()])[0].slowest < 0


def test_the_tools_that_were_called_most_are_kept() -> None:
    calls = [call(f"t{number:04}") for number in range(1000)] + [call("t0999")]
    uses = tool_uses(calls)
    assert len(uses) == MOST_TOOLS
    assert [use.tool for use in uses if use.calls > 1] == ["t0999"]


def deep() -> JSON:
    made: JSON = []
    for _ in range(10_000):
        made = [made]
    return made


PART: JSON = {"type": "text"}


NOTHING: list[JSON] = [
    *("", " \n", "[]", "{}", "null", [], {}, [[]], [PART | {"text": ""}], {"content": []}),
]
SOMETHING: list[JSON] = [
    *(0, False, "0", "no", [0], {"found": []}, [PART | {"text": "a"}], {"content": "a"}, deep()),
]


@for_each(
    "result,nothing",
    [*((each, True) for each in NOTHING), *((each, False) for each in SOMETHING)],
)
def test_a_number_or_a_truth_value_is_something_and_any_depth_ends(
    result: JSON, nothing: bool
) -> None:
    assert is_nothing(result) is nothing


@for_each(
    ("text", "expected"),
    [
        ("TimeoutError: no answer after 5 s", "TimeoutError"),
        ("requests.exceptions.ConnectionError: HTTPSConnectionPool", "ConnectionError"),
        ("java.lang.IllegalStateException: closed", "IllegalStateException"),
        ("the request timed out", "timeout"),
        ("HTTP 429 Too Many Requests", "rate_limited"),
        ("403: permission denied for tenant 4711", "denied"),
        ("order 12 does not exist", "not_found"),
        ("ECONNREFUSED", "unreachable"),
        ("502 Bad Gateway", "server_error"),
        ("missing field `id`", "invalid_arguments"),
        ("<script>alert(1)</script>", "error"),
        ("", "error"),
    ],
)
def test_classes_of_errors(text: str, expected: str) -> None:
    assert error_class(text) == expected


# --- the step before the first tool error is pointed at ---------------------------------------------------------------


def made(at: int, error: str | None = None) -> ToolCall:
    return ToolCall(name=f"tool{at}", start_time_unix_nano=at, error=error, span_id=f"t{at}")


STEPS = (
    ModelCall(span_id="m1", agent="planner", start_time_unix_nano=1),
    ModelCall(span_id="m3", agent="writer", start_time_unix_nano=3),
    ModelCall(span_id="m7", agent="planner", start_time_unix_nano=7),
)


def test_the_step_that_made_the_first_failing_call() -> None:
    trace = a_trace(model_calls=STEPS, tool_calls=(made(2), made(4, "no"), made(8, "no")))

    found = first_failure(trace)

    assert found is not None
    assert (found.span_id, found.agent, found.call.name) == ("m3", "writer", "tool4")
    score = tool_correctness(trace)
    assert score.evidence[0] == "m3"
    assert "first failure: the step before `tool4`, by `writer`, span m3" in str(score.explanation)


WRITERS = structs.replace(made(8, "no"), agent="writer")
CALL = made(6, "404")
SURFED = AgentStep(span_id="a5", agent="surfer", start_time_unix_nano=5)


@for_each(
    "trace,span_id,agent",
    [
        # another agent's step in between is not it
        (a_trace(model_calls=STEPS, tool_calls=(WRITERS,)), "m3", "writer"),
        # an agent's step without a model call counts
        (a_trace(model_calls=STEPS[:2], steps=(SURFED,), tool_calls=(CALL,)), "a5", "surfer"),
        # a call before every step has no step
        (a_trace(model_calls=STEPS[1:], tool_calls=(made(0, "no"),)), None, None),
    ],
)
def test_which_step_made_the_call(trace: Trace, span_id: str | None, agent: str | None) -> None:
    found = first_failure(trace)

    assert found is not None
    assert (found.span_id, found.agent) == (span_id, agent)


def test_a_judge_s_verdict_points_at_it_too() -> None:
    trace = a_trace(model_calls=STEPS, tool_calls=(made(4, "no"),))

    score = judged_tool_correctness(trace, selection=Selection(score=0.5, reason="Too many."))

    why = "Too many.; first failure: the step before `tool4`, by `writer`, span m3"
    assert (score.explanation, score.evidence) == (why, ("m3",))


def test_without_an_error_nothing_is_pointed_at() -> None:
    trace = a_trace(model_calls=STEPS, tool_calls=(made(2), made(4)))

    assert first_failure(trace) is None
    assert "first failure" not in str(tool_correctness(trace).explanation)
