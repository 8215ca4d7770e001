"""Why the last model call of a turn stopped, and what ends a span in order to wait: no failure."""

from dataclasses import replace
from typing import Any

from collector.records.trace_summary import Summariser
from collector.scoring.running import RunningUses
from evaluators.model import Ending
from evaluators.uses import SessionUses
from tests.support.conventions import AGENT, answered, call, dump, model, raised, ran, said
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.table import for_each
from tests.support.weather import one_call

REASONS: list[tuple[Any, Ending]] = [
    (["length"], "cut"),
    (["max_tokens"], "cut"),
    ("MAX_TOKENS", "cut"),
    ('["max_output_tokens"]', "cut"),
    ("FinishReason.MAX_TOKENS", "cut"),
    ("FINISH_REASON_SAFETY", "blocked"),
    (["content_filter"], "blocked"),
    ("content-filter", "blocked"),
    (["refusal"], "blocked"),
    (["stop"], "whole"),
    (["tool_calls"], "whole"),
]
KEYS = (
    "gen_ai.response.finish_reasons",
    "gen_ai.response.finish_reason",
    "gen_ai.completion.0.finish_reason",
    "llm.response.finish_reason",
    "ai.response.finishReason",
    "gen_ai.response.stop_reason",
)

ANSWERS: list[tuple[Any, Ending | None]] = [
    ({"choices": [{"message": {"content": "The"}, "finish_reason": "length"}]}, "cut"),
    ({"role": "assistant", "content": "The", "stop_reason": "max_tokens"}, "cut"),
    ({"candidates": [{"content": {"parts": []}, "finishReason": "SAFETY"}]}, "blocked"),
    ([{"role": "assistant", "parts": [], "finish_reason": "content_filter"}], "blocked"),
    ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "cut"),
    ({"choices": [{"message": {"content": None, "refusal": "I will not."}}]}, "blocked"),
    ({"generations": [[{"generation_info": {"finish_reason": "stop"}}]]}, "whole"),
    ({"role": "assistant", "content": "stop_reason: max_tokens"}, None),
    ({"tool_calls": [{"arguments": {"finish_reason": "length"}}]}, None),
]


ROOT = SpanSpec(id=1, attributes=AGENT, end=9)


def ending_of(attributes: dict[str, Any]) -> Ending | None:
    return trace_of(ROOT, model(2, end=5, attributes=attributes)).model_calls[-1].ending


@for_each("key", KEYS)
@for_each(("reason", "ending"), REASONS)
def test_an_attribute_says_it(key: str, reason: Any, ending: Ending) -> None:
    assert ending_of({key: reason}) == ending


@for_each("answer,ending", ANSWERS)
def test_an_answer_says_it(answer: Any, ending: Ending | None) -> None:
    assert ending_of({"gen_ai.output.messages": dump(answer)}) == ending
    assert ending_of({"output.value": dump(answer), "openinference.span.kind": "LLM"}) == ending


def test_the_last_call_decides() -> None:
    reasons = enumerate((["length"], ["stop"]), 2)
    key = "gen_ai.response.finish_reasons"
    trace = trace_of(ROOT, *(model(n, n, attributes={key: reason}) for n, reason in reasons))

    assert [call.ending for call in trace.model_calls] == [None, "whole"]


def uses_of(reason: str | None, **root: Any) -> SessionUses:
    stated = {} if reason is None else {"gen_ai.response.finish_reasons": [reason]}
    top = SpanSpec(id=1, attributes={**AGENT, **root}, end=9)
    trace = trace_of(top, model(2, answer=said("The order"), end=5, attributes=stated))
    return RunningUses().of_turn(Summariser().summary(trace).turn)


@for_each(
    "reason,cut,blocked,cancelled",
    [
        ("length", True, False, False),
        ("refusal", False, True, False),
        ("stop", False, False, False),
        ("cancelled", None, None, True),
        (None, None, None, False),
    ],
)
def test_a_turn_is_a_use_of_what_it_tells(
    reason: str | None, cut: bool | None, blocked: bool | None, cancelled: bool
) -> None:
    uses = uses_of(reason)

    assert (uses.answer_cut, uses.answer_blocked, uses.cancelled) == (cut, blocked, cancelled)


def test_a_stopped_turn_is_a_failed_use_of_nothing_else() -> None:
    uses = uses_of("length", **{"error.type": "AbortError"})

    assert uses == SessionUses(model_failed=False, cancelled=True)


# --- pauses - the type says so, not the words ------------------------------------------------------------------------


PAUSES = (
    "langgraph.errors.GraphInterrupt",
    "langgraph.errors.NodeInterrupt",
    "langgraph.errors.ParentCommand",
    "GraphInterrupt",
    "pydantic_ai.exceptions.ApprovalRequired",
    "pydantic_ai.exceptions.CallDeferred",
)
GRAPH = "langgraph.errors.GraphInterrupt"
REQUESTED = said("", call("send_mail", "c1", to="ann"))


AGENTS_SPAN = SpanSpec(id=1, attributes=AGENT, end=9)


def ended_by(*kinds: str, message: str = "approve?", **more: Any) -> SpanSpec:
    events = [raised(kind, message) for kind in kinds]
    return ran(3, 2, "send_mail", "c1", status=2, events=events, **more)


@for_each("kind", PAUSES)
def test_a_tool_that_waits_has_not_failed(kind: str) -> None:
    trace = trace_of(AGENTS_SPAN, model(2, answer=REQUESTED), ended_by(kind))

    paused = one_call(trace)
    assert (paused.error, paused.unanswered, trace.status) == (None, True, "unset")


@for_each("status", [0, 2])
@for_each("key", ["error.type", "exception.type"])
def test_an_attribute_says_it_where_no_exception_is_recorded(key: str, status: int) -> None:
    waits = ran(2, 0, "send_mail", status=status, attributes={key: GRAPH})

    assert one_call(trace_of(AGENTS_SPAN, waits)).error is None


@for_each(
    "kinds,message",
    [
        (["TimeoutError"], "GraphInterrupt: approval timed out"),
        (["app.ApprovalRequiredButDenied"], "ApprovalRequired"),
        (["InterruptedError"], "interrupt"),
        (["GraphInterrupt", "SMTPError"], "no route"),  # the last one decides
    ],
)
def test_words_of_a_failure_make_no_pause(kinds: list[str], message: str) -> None:
    failed = one_call(trace_of(AGENTS_SPAN, ended_by(*kinds, message=message)))

    assert (failed.error, failed.unanswered) == (message, False)


def test_a_root_that_a_pause_ended_is_no_error() -> None:
    failed = replace(AGENTS_SPAN, status=2, message="bad")
    own = trace_of(
        replace(AGENTS_SPAN, status=2, events=[raised("langgraph.errors.GraphInterrupt")])
    )
    around = trace_of(failed, ended_by("GraphInterrupt"))
    stated = replace(failed, attributes=AGENT | {"error.type": "ValueError"})
    beside = trace_of(stated, ended_by("GraphInterrupt"))

    assert [(t.status, t.error) for t in (own, around)] == [("unset", None)] * 2
    assert (beside.status, beside.error) == ("error", "bad")


def test_a_paused_call_that_ran_after_all_is_one_call() -> None:
    in_span = trace_of(
        AGENTS_SPAN, ended_by("GraphInterrupt"), ran(4, 5, "send_mail", "c1", result="sent")
    )
    paused = model(2, answer=REQUESTED), ended_by("pydantic_ai.exceptions.ApprovalRequired")
    in_messages = trace_of(AGENTS_SPAN, *paused, model(4, 5, answered("c1", "sent")))

    for trace in (in_span, in_messages):
        done = one_call(trace)
        assert (done.result, done.error, done.unanswered) == ("sent", None, False)
