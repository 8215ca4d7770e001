"""A run that somebody stopped did not fail: types and codes say so, never the words of a message."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from evaluators.matching.final_answer import gives_up, lacks_answer
from evaluators.model import Trace
from tests.support.conventions import AGENT, call, model, raised, ran, said
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.table import for_each
from tests.support.weather import one_call

_NAMES: dict[str, list[str]] = yaml.safe_load(
    (Path(__file__).parents[3] / "data" / "dialects" / "stops.yaml").read_text("utf-8")
)
TYPES, TIME_OUTS = _NAMES["stops"], _NAMES["time_outs"]
NO_STOPS = [*TIME_OUTS, *_NAMES["others"]]
ASKED = model(2, answer=said("", call("find_order", "c1", id=7)))


def stopped(root: SpanSpec, *inner: SpanSpec) -> Trace:
    return trace_of(root, ASKED, *inner)


def root_of(*kinds: str, status: int = 2, message: str = "stopped", stack: str = "") -> SpanSpec:
    more = {"exception.stacktrace": stack} if stack else {}
    events = [raised(kind, message, **more) for kind in kinds]
    return SpanSpec(id=1, attributes=AGENT, end=9, status=status, message=message, events=events)


def tool_of(kind: str, start: int = 2, **more: Any) -> SpanSpec:
    events = [raised(kind, "stopped")]
    fields: dict[str, Any] = {"end": 9, "status": 2, "events": events, **more}
    return ran(3, start, "find_order", "c1", **fields)


@for_each("status", [0, 2])
@for_each("kind", TYPES)
def test_what_somebody_stopped_has_not_failed(kind: str, status: int) -> None:
    trace = stopped(root_of(kind, status=status), tool_of(kind))
    by_type = model(2, 1, end=8, status=2, attributes={"error.type": kind})
    of_model = trace_of(root_of(), by_type)

    left = one_call(trace)
    assert (left.error, left.unanswered) == (None, True)
    assert (lacks_answer(trace), gives_up(trace)) == (None, None)
    assert [each.error for each in of_model.model_calls] == [None]
    assert [(t.status, t.error) for t in (trace, of_model)] == [("cancelled", None)] * 2


@for_each(
    "codes",
    [
        {"rpc.grpc.status_code": 1},
        {"rpc.response.status_code": "CANCELLED"},
        {"http.response.status_code": 499},
        {"http.status_code": 499},
        {"error.type": "io.grpc.StatusRuntimeException", "rpc.grpc.status_code": 1},
        {"strands.cancellation.type": "user"},
    ],
)
def test_codes_say_it(codes: dict[str, Any]) -> None:
    root = SpanSpec(id=1, attributes={**AGENT, **codes}, end=9, status=2)
    trace = trace_of(root, model(2, end=5))

    assert (trace.status, trace.error) == ("cancelled", None)


@for_each("reason", ["cancelled", "canceled", "abort", "user_cancelled"])
def test_a_finish_reason_says_it(reason: str) -> None:
    of_choice = json.dumps({"choices": [{"finish_reason": reason, "message": {}}]})
    flat = {f"llm.output_messages.0.message.{each}": "The or" for each in ("role", "content")}
    by_openinference = {"openinference.span.kind": "LLM", "output.value": of_choice, **flat}
    for answer in (
        model(2, answer=said("The or"), attributes={"gen_ai.response.finish_reasons": [reason]}),
        model(2, answer=said("The or"), attributes={"ai.response.finishReason": reason}),
        SpanSpec(id=2, parent=1, attributes=by_openinference, end=5),
    ):
        assert trace_of(SpanSpec(id=1, attributes=AGENT, end=9), answer).status == "cancelled"


@for_each("kind", NO_STOPS)
def test_a_time_out_is_a_failure(kind: str) -> None:
    trace = stopped(root_of(kind), tool_of(kind))

    assert (trace.status, trace.error, one_call(trace).error) == ("error", "stopped", "stopped")


@for_each("kind", TIME_OUTS)
def test_what_a_time_out_around_it_stopped_has_failed(kind: str) -> None:
    events = [raised(kind, "stopped")]
    around = SpanSpec(id=4, parent=1, start=2, end=9, status=2, events=events)
    inner = tool_of("asyncio.exceptions.CancelledError", 3, parent=4)
    trace = stopped(root_of(message=""), inner, around)

    assert (trace.status, one_call(trace).error) == ("error", "stopped")


DOTNET = "System.Threading.Tasks.TaskCanceledException"


@for_each(
    "kind,stack,status",
    [
        ("DOMException", "AbortError: This operation was aborted\n    at new ...", "cancelled"),
        ("DOMException", "DOMException [AbortError]: This was aborted\n    at ...", "cancelled"),
        ("DOMException", "TimeoutError: The operation timed out\n    at ...", "error"),
        ("DOMException", "NotFoundError: AbortError: no\n    at ...", "error"),
        # .NET's time-out is known by what led to it
        (DOTNET, "TaskCanceledException: ...\n ---> System.TimeoutException: x", "error"),
    ],
)
def test_the_head_of_its_stack_or_what_led_to_it_says_which_one_it_is(
    kind: str, stack: str, status: str
) -> None:
    assert trace_of(root_of(kind, stack=stack)).status == status


@for_each(
    "kinds,message",
    [
        *((["RuntimeError"], text) for text in ("CancelledError", "the user cancelled")),
        *((["RuntimeError"], text) for text in ("AbortError: aborted", "context canceled")),
        (["asyncio.exceptions.CancelledError", "ValueError"], "bad"),  # the last one decides
    ],
)
def test_words_make_nothing_cancelled(kinds: list[str], message: str) -> None:
    trace = trace_of(root_of(*kinds, message=message))

    assert (trace.status, trace.error) == ("error", message)


def test_an_error_without_a_type_is_the_stops_where_nothing_began_after_it() -> None:
    bare = ran(3, 2, "find_order", end=9, status=2)
    around = stopped(root_of("AbortError"), bare)
    went_on = stopped(root_of("AbortError"), replace(bare, end=3), model(5, 4, end=9))

    assert stopped(root_of(message="run ended"), tool_of("AbortError")).status == "cancelled"
    assert (around.status, one_call(around).error) == ("cancelled", None)
    assert (went_on.status, one_call(went_on).error) == ("cancelled", "error")


def test_a_run_that_went_on_after_a_stopped_call_is_not_cancelled() -> None:
    stopped_call = tool_of("asyncio.exceptions.CancelledError", end=3)
    last = model(4, 5, answer=said("No order 7."), end=8)
    trace = stopped(SpanSpec(id=1, attributes=AGENT, end=9), stopped_call, last)

    assert (trace.status, trace.output) == ("unset", "No order 7.")
    assert one_call(trace).error is None


def test_a_failure_that_stopped_the_work_beside_it_is_a_failure() -> None:
    events = [raised("ValueError", "no such city")]
    failing = ran(4, 2, "get_weather", "c2", end=8, status=2, events=events)
    trace = stopped(root_of("ValueError"), tool_of("CancelledError"), failing)

    errors = {"find_order": None, "get_weather": "no such city"}
    assert trace.status == "error"
    assert {c.name: c.error for c in trace.tool_calls} == errors
