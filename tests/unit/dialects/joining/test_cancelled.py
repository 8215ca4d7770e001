"""A run that somebody stopped did not fail: types and codes say so, never the words of a message."""

import json
from dataclasses import replace
from typing import Any

import pytest

from evaluators.matching.final_answer import gives_up, lacks_answer
from tests.support.conventions import AGENT, CHAT, call, said, tool
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.table import for_each
from tests.support.weather import one_call

TYPES = (
    "asyncio.exceptions.CancelledError",
    "concurrent.futures._base.CancelledError",
    "GeneratorExit",
    "KeyboardInterrupt",
    "AbortError",
    "20",
    "ABORT_ERR",
    "context.Canceled",
    "java.util.concurrent.CancellationException",
    "kotlinx.coroutines.JobCancellationException",
    "System.OperationCanceledException",
    "System.Threading.Tasks.TaskCanceledException",
    "openai.APIUserAbortError",
    "starlette.requests.ClientDisconnect",
    "client_disconnect",
    "client_closed_request",
    "CANCELLED",
    "context canceled",
    "RunCancelledError",
    "499",
    "DOMException [AbortError]",
    "ModelAbortError",
    "undici.RequestAbortedError",
    "java.lang.InterruptedException",
    "java.nio.channels.ClosedByInterruptException",
    "System.Threading.ThreadInterruptedException",
    "io.temporal.failure.CanceledFailure",
    "reactor.core.Exceptions$CancelException",
    "tokio::task::JoinError::Cancelled(Id(7))",
    "trio.Cancelled",
    "grpc.FutureCancelledError",
    "gevent.GreenletExit",
    "celery.exceptions.TaskRevokedError",
    "Swift.CancellationError",
    "NSURLErrorCancelled",
    "Amp\\CancelledException",
    "Async::Stop",
    "Interrupt",
    "SIGINT",
)
TIME_OUTS = (
    "TimeoutError",
    "asyncio.exceptions.TimeoutError",
    "context.DeadlineExceeded",
    "context.deadlineExceededError",
    "kotlinx.coroutines.TimeoutCancellationException",
    "DEADLINE_EXCEEDED",
    "23",
    "httpx.ReadTimeout",
)
NO_STOPS = (
    *TIME_OUTS,
    "shop.OrderCancelledError",
    "ABORTED",
    "*errors.errorString",
    "java.io.InterruptedIOException",
    "psycopg.errors.QueryCanceled",
    "DOMException",
    "Pit::Stop",
)
"""An order that is cancelled is no run, gRPC's ABORTED is a conflict; the types of the others do not say it."""
ASKED = {**CHAT, "gen_ai.output.messages": said("", call("find_order", "c1", id=7))}


def exception(kind: str, message: str = "stopped", **more: str) -> tuple[str, dict[str, Any]]:
    return "exception", {"exception.type": kind, "exception.message": message, **more}


def stopped(root: SpanSpec, tool_span: SpanSpec) -> tuple[SpanSpec, ...]:
    return root, SpanSpec(id=2, parent=1, attributes=ASKED, end=1), tool_span


def root_of(kind: str, status: int = 2) -> SpanSpec:
    return SpanSpec(id=1, attributes=AGENT, end=9, status=status, events=[exception(kind)])


def tool_of(kind: str, **more: Any) -> SpanSpec:
    attributes = tool("find_order", **{"gen_ai.tool.call.id": "c1"}, **more)
    return SpanSpec(
        id=3, parent=1, attributes=attributes, start=2, end=9, status=2, events=[exception(kind)]
    )


@for_each("status", [0, 2])
@for_each("kind", TYPES)
def test_what_somebody_stopped_has_not_failed(kind: str, status: int) -> None:
    trace = trace_of(*stopped(root_of(kind, status), tool_of(kind)))

    left = one_call(trace)
    assert (trace.status, trace.error) == ("cancelled", None)
    assert (left.error, left.unanswered) == (None, True)
    assert (lacks_answer(trace), gives_up(trace)) == (None, None)


@for_each("kind", TYPES)
def test_a_model_call_that_somebody_stopped_has_not_failed(kind: str) -> None:
    attributes = {**CHAT, "error.type": kind}
    by_type = SpanSpec(id=2, parent=1, attributes=attributes, start=1, end=8, status=2)
    trace = trace_of(SpanSpec(id=1, attributes=AGENT, end=9, status=2, message="stop"), by_type)

    assert [each.error for each in trace.model_calls] == [None]
    assert (trace.status, trace.error) == ("cancelled", None)


@pytest.mark.parametrize(
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
    trace = trace_of(
        SpanSpec(id=1, attributes={**AGENT, **codes}, end=9, status=2),
        SpanSpec(id=2, parent=1, attributes=CHAT, end=5),
    )

    assert (trace.status, trace.error) == ("cancelled", None)


@pytest.mark.parametrize("reason", ["cancelled", "canceled", "abort", "user_cancelled"])
def test_a_finish_reason_says_it(reason: str) -> None:
    of_choice = json.dumps({"choices": [{"finish_reason": reason, "message": {}}]})
    flat = {f"llm.output_messages.0.message.{each}": "The or" for each in ("role", "content")}
    by_openinference = {"openinference.span.kind": "LLM", "output.value": of_choice, **flat}
    answered = {**CHAT, "gen_ai.output.messages": said("The or")}
    for answer in (
        {**answered, "gen_ai.response.finish_reasons": [reason]},
        {**answered, "ai.response.finishReason": reason},
        by_openinference,
    ):
        trace = trace_of(
            SpanSpec(id=1, attributes=AGENT, end=9),
            SpanSpec(id=2, parent=1, attributes=answer, end=5),
        )

        assert trace.status == "cancelled"


@pytest.mark.parametrize("kind", NO_STOPS)
def test_a_time_out_is_a_failure(kind: str) -> None:
    trace = trace_of(*stopped(root_of(kind), tool_of(kind)))

    assert (trace.status, trace.error, one_call(trace).error) == ("error", "stopped", "stopped")


@pytest.mark.parametrize("kind", TIME_OUTS)
def test_what_a_time_out_around_it_stopped_has_failed(kind: str) -> None:
    around = SpanSpec(id=4, parent=1, start=2, end=9, status=2, events=[exception(kind)])
    inner = replace(tool_of("asyncio.exceptions.CancelledError"), parent=4, start=3)
    trace = trace_of(*stopped(SpanSpec(id=1, attributes=AGENT, end=9, status=2), inner), around)

    assert (trace.status, one_call(trace).error) == ("error", "stopped")


def test_a_time_out_of_dotnet_is_known_by_what_led_to_it() -> None:
    calls = {"exception.stacktrace": "TaskCanceledException: ...\n ---> System.TimeoutException: x"}
    event = exception("System.Threading.Tasks.TaskCanceledException", **calls)
    trace = trace_of(SpanSpec(id=1, attributes=AGENT, end=9, status=2, events=[event]))

    assert trace.status == "error"


@for_each(
    "stack,status",
    [
        ("AbortError: This operation was aborted\n    at new DOMException (...)", "cancelled"),
        ("DOMException [AbortError]: This operation was aborted\n    at ...", "cancelled"),
        ("TimeoutError: The operation timed out\n    at ...", "error"),
        ("NotFoundError: AbortError: no\n    at ...", "error"),
    ],
)
def test_a_dom_exception_says_at_the_head_of_its_stack_which_one_it_is(
    stack: str, status: str
) -> None:
    event = exception("DOMException", **{"exception.stacktrace": stack})
    trace = trace_of(SpanSpec(id=1, attributes=AGENT, end=9, status=2, events=[event]))

    assert trace.status == status


@pytest.mark.parametrize(
    "message", ["CancelledError", "the user cancelled", "AbortError: aborted", "context canceled"]
)
def test_words_make_nothing_cancelled(message: str) -> None:
    events = [exception("RuntimeError", message)]
    trace = trace_of(
        SpanSpec(id=1, attributes=AGENT, end=9, status=2, message=message, events=events)
    )

    assert (trace.status, trace.error) == ("error", message)


def test_the_last_exception_decides() -> None:
    events = [exception("asyncio.exceptions.CancelledError"), exception("ValueError", "bad")]
    trace = trace_of(SpanSpec(id=1, attributes=AGENT, end=9, status=2, events=events))

    assert (trace.status, trace.error) == ("error", "bad")


def test_an_error_without_a_type_is_the_stops_where_nothing_began_after_it() -> None:
    untold = SpanSpec(id=1, attributes=AGENT, end=9, status=2, message="run ended")
    assert trace_of(*stopped(untold, tool_of("AbortError"))).status == "cancelled"

    bare = SpanSpec(id=3, parent=1, attributes=tool("find_order"), start=2, end=9, status=2)
    stopped_around = trace_of(*stopped(root_of("AbortError"), bare))
    assert (stopped_around.status, one_call(stopped_around).error) == ("cancelled", None)

    earlier = SpanSpec(id=3, parent=1, attributes=tool("find_order"), start=2, end=3, status=2)
    went_on = SpanSpec(id=5, parent=1, attributes=CHAT, start=4, end=9)
    failed = trace_of(*stopped(root_of("AbortError"), earlier), went_on)
    assert (failed.status, one_call(failed).error) == ("cancelled", "error")


def test_a_run_that_went_on_after_a_stopped_call_is_not_cancelled() -> None:
    answer = {**CHAT, "gen_ai.output.messages": said("No order 7.")}
    root = SpanSpec(id=1, attributes=AGENT, end=9)
    stopped_call = SpanSpec(
        id=3,
        parent=1,
        attributes=tool("find_order", **{"gen_ai.tool.call.id": "c1"}),
        start=2,
        end=3,
        status=2,
        events=[exception("asyncio.exceptions.CancelledError")],
    )
    last = SpanSpec(id=4, parent=1, attributes=answer, start=5, end=8)
    trace = trace_of(*stopped(root, stopped_call), last)

    assert (trace.status, trace.output) == ("unset", "No order 7.")
    assert one_call(trace).error is None


def test_a_failure_that_stopped_the_work_beside_it_is_a_failure() -> None:
    failing = SpanSpec(
        id=4,
        parent=1,
        attributes=tool("get_weather", **{"gen_ai.tool.call.id": "c2"}),
        start=2,
        end=8,
        status=2,
        events=[exception("ValueError", "no such city")],
    )
    trace = trace_of(*stopped(root_of("ValueError"), tool_of("CancelledError")), failing)

    assert trace.status == "error"
    assert {c.name: c.error for c in trace.tool_calls} == {
        "find_order": None,
        "get_weather": "no such city",
    }
