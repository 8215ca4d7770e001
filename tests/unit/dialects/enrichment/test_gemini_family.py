"""Records of Gemini CLI and Qwen Code join their spans; without spans they stand for the calls."""

from dataclasses import replace
from typing import Any

from evaluators.model import Trace
from tests.support.agent_records import gemini, gemini_span, qwen, qwen_span
from tests.support.dialect_spans import SpanSpec, span_id, trace_of
from tests.support.table import for_each
from tests.support.weather import dump, one_call

ASK = "What is the release number?"
COMMAND = {"command": "cat NOTES.md"}
SAID = "It is 4.7.11."
HISTORY = [{"role": "user", "parts": [{"text": ASK}]}]
USED = {"function_name": "run", "function_args": dump(COMMAND)}


def called(id_: str) -> dict[str, Any]:
    return {"functionCall": {"id": id_, "name": "run", "args": COMMAND}}


def asked_again(id_: str, output: str) -> str:
    """The history of the second request: the model's call and its result."""
    response = {"id": id_, "name": "run", "response": {"output": output}}
    more = [
        {"role": "model", "parts": [called(id_)]},
        {"role": "user", "parts": [{"functionResponse": response}]},
    ]
    return dump([*HISTORY, *more])


def said(trace: Trace) -> dict[str, Any]:
    call = one_call(trace)
    return {
        "input": trace.input,
        "output": (trace.output or "").strip(),
        "tokens": (trace.tokens.input, trace.tokens.output, trace.tokens.cached),
        "call": (call.name, call.arguments, call.result, call.error),
        "models": trace.models,
        "model calls": len(trace.model_calls),
        "agent": (trace.agent, trace.session_id),
        "root": (trace.root, trace.root_span_id),
    }


WHOLE = {
    "input": ASK,
    "output": SAID,
    "tokens": (220, 12, 8),
    "call": ("run", COMMAND, "4.7.11", None),
    "models": ("m",),
    "model calls": 2,
    "root": ("parentless", span_id(1)),
}
OF_GEMINI = {**WHOLE, "agent": ("gemini-cli", "g-1")}
OF_QWEN = {**WHOLE, "agent": ("qwen-code", "q-1")}
FIRST_USE = {"input_token_count": 100, "output_token_count": 7, "cached_content_token_count": 8}
SECOND_USE = {"input_token_count": 120, "output_token_count": 5}


# --- Gemini CLI: its records name a span of the batch, and its answers are streams ------------------------------------


def chunks(*parts: dict[str, Any]) -> str:
    """A streamed answer: one chunk per part."""
    return dump([{"candidates": [{"content": {"role": "model", "parts": [p]}}]} for p in parts])


def turn(output: str = "4.7.11", **call: Any) -> tuple[SpanSpec, ...]:
    """A prompt, a model call that asks for a command, the command, and the answer; records only."""
    first: dict[str, Any] = {
        **FIRST_USE,
        "thoughts_token_count": 3,
        "response_text": chunks(called("run__fc1")),
    }
    ran: dict[str, Any] = {
        **USED,
        "duration_ms": 300,
        "success": True,
        "decision": "accept",
        **call,
    }
    words = chunks(*({"text": f"{word} "} for word in SAID.split()))
    return (
        gemini(1, "user_prompt", 1_000, prompt=ASK),
        gemini(2, "api_request", 1_100, model="m", request_text=dump(HISTORY), of=11),
        gemini(3, "api_response", 1_400, model="m", **first),
        gemini(4, "tool_call", 1_800, of=12, **ran),
        gemini(5, "api_request", 1_900, request_text=asked_again("fc1", output), of=14),
        gemini(6, "api_response", 2_100, response_text=words, **SECOND_USE),
    )


SPANS = (
    gemini_span(11, "llm_call", 1_090, 1_410),
    gemini_span(12, "schedule_tool_calls", 1_420, 1_850),
    gemini_span(13, "tool_call", 1_500, 1_790, parent=12, gen_ai__tool__name="run"),
    gemini_span(14, "llm_call", 1_880, 2_110),
)


def test_a_turn_of_gemini_is_read_from_its_records_alone() -> None:
    assert said(trace_of(*turn())) == OF_GEMINI


def test_a_turn_of_geminis_records_and_spans_counts_everything_once() -> None:
    trace = trace_of(*turn(), *SPANS)

    assert said(trace) == OF_GEMINI
    assert trace.spans == 5  # the prompt and four spans
    assert [call.span_id for call in trace.model_calls] == [span_id(11), span_id(14)]
    assert one_call(trace).span_id == span_id(13)


def test_in_a_terminal_the_span_of_the_prompt_is_the_root() -> None:
    prompt = gemini(1, "user_prompt", 1_050, prompt=ASK, of=10)
    spans = (gemini_span(10, "user_prompt", 1_000, 2_200), *SPANS)

    trace = trace_of(prompt, *turn()[1:], *spans)

    assert said(trace) == {**OF_GEMINI, "root": ("parentless", span_id(10))}


FAILED = "Output: no such file\nExit Code: 1"
PRINTED = "Output: unknown\nProcess Group PGID: {}\n</untrusted_context>"


@for_each(
    "output,metadata,result,failed",
    [
        (f"{FAILED}\nProcess Group PGID: 7", "", FAILED, True),
        ("no such file", '{"isError": true}', "no such file", True),
        ("done\nExit Code: 0", "", "done\nExit Code: 0", False),
        # the same output is the same result whatever process printed it
        *(
            (f"<untrusted_context>\n{PRINTED.format(n)}", "", "Output: unknown", False)
            for n in (1, 2)
        ),
        # a text without a process stays as it is
        ("<untrusted_context>\nplain", "", "<untrusted_context>\nplain", False),
    ],
)
def test_a_command_failed_by_its_output_or_by_the_metadata_and_its_result_is_what_it_printed(
    output: str, metadata: str, result: str, failed: bool
) -> None:
    call = one_call(trace_of(*turn(output, metadata=metadata), *SPANS))

    assert (call.result, call.error) == (result, result if failed else None)


@for_each(
    "outcome,by", [({"error_type": "policy_violation"}, "policy"), ({"decision": "reject"}, "user")]
)
def test_a_refused_call_of_gemini_names_who_refused_it(outcome: dict[str, Any], by: str) -> None:
    refused = turn(success=False, error="denied", **outcome)

    call = one_call(trace_of(*refused, *SPANS[:2]))

    assert (call.rejected, call.error) == (by, "denied")


def test_two_calls_of_one_batch_and_name_are_two() -> None:
    listing = {"command": "ls"}
    twice = gemini_span(15, "tool_call", 1_510, 1_795, parent=12, gen_ai__tool__name="run")
    given = {"function_name": "run", "function_args": dump(listing)}

    trace = trace_of(*turn(), gemini(7, "tool_call", 1_801, of=12, **given), *SPANS, twice)

    found = [(call.span_id, call.arguments) for call in trace.tool_calls]
    assert found == [(span_id(13), COMMAND), (span_id(15), listing)]


def test_a_model_error_ends_the_call_that_was_asked_last() -> None:
    failed = gemini(6, "api_error", 2_100, error="overloaded", status_code=503, duration_ms=200)

    trace = trace_of(*turn()[:5], failed)

    assert (trace.status, trace.error) == ("error", "overloaded")
    assert [call.error for call in trace.model_calls] == [None, "overloaded"]


def test_the_work_of_a_helper_is_the_helpers() -> None:
    helper = gemini_span(20, "agent_call", 1_500, 1_700, parent=13)
    inner = gemini_span(21, "llm_call", 1_550, 1_600, parent=20)
    started = gemini(8, "agent.start", 1_510, of=20, agent_name="generalist", agent_id="a")

    trace = trace_of(*turn(), *SPANS, helper, inner, started)

    assert trace.agents == ("gemini-cli", "generalist")
    agents = {call.span_id: call.agent for call in trace.model_calls}
    assert agents.pop(span_id(21)) == "generalist"
    assert agents == dict.fromkeys([span_id(11), span_id(14)], "gemini-cli")


def test_a_call_cut_short_leaves_the_request() -> None:
    trace = trace_of(*turn()[:2])

    assert (trace.input, trace.output, len(trace.model_calls)) == (ASK, None, 1)


# --- Qwen Code: its records name their own span, and its calls have ids ----------------------------------------------

OF_CALL = {"gen_ai__tool__name": "run", "call_id": "c1"}
QWEN_SPANS = (
    qwen_span(10, "interaction", 1_050, 2_200, gen_ai__operation__name="invoke_agent"),
    qwen_span(11, "llm_request", 1_100, 1_400, parent=10, gen_ai__operation__name="chat"),
    qwen_span(
        12, "tool", 1_500, 1_800, parent=10, gen_ai__operation__name="execute_tool", **OF_CALL
    ),
    qwen_span(
        13,
        "tool.execution",
        1_550,
        1_790,
        parent=12,
        gen_ai__tool__name="run",
        tool__call_id="c1",
        execution_status="success",
    ),
    qwen_span(14, "llm_request", 1_900, 2_100, parent=10, gen_ai__operation__name="chat"),
)


def qwen_turn(*, of: bool = True, **call: Any) -> tuple[SpanSpec, ...]:
    """A prompt, a call of a tool and the answer; `of`: with the ids of the spans."""
    first, tool, last = (11, 12, 14) if of else (0, 0, 0)
    ended = {"success": True, "decision": "auto_accept", "status": "success", **call}
    ran = {**USED, "call_id": "c1", "duration_ms": 295, **ended}
    return (
        qwen(1, "user_prompt", 1_000, prompt=ASK),
        qwen(2, "api_request", 1_110, of=first, request_text=dump(HISTORY)),
        qwen(3, "api_response", 1_390, of=first, model="m", **FIRST_USE),
        qwen(4, "tool_call", 1_795, of=tool, **ran),
        qwen(5, "api_request", 1_910, of=last, request_text=asked_again("c1", "4.7.11")),
        qwen(6, "api_response", 2_090, of=last, model="m", response_text=SAID, **SECOND_USE),
    )


@for_each("of", [True, False])
def test_a_turn_of_qwen_is_read_from_its_records_alone(of: bool) -> None:
    trace = trace_of(*qwen_turn(of=of))

    assert said(trace) == OF_QWEN
    assert one_call(trace).id == "c1"


def test_a_turn_of_qwens_records_and_spans_counts_everything_once() -> None:
    trace = trace_of(*qwen_turn(), *QWEN_SPANS)

    assert said(trace) == OF_QWEN
    assert [call.span_id for call in trace.model_calls] == [span_id(11), span_id(14)]


def test_a_refused_call_of_qwen_is_found_by_its_id() -> None:
    refused = qwen_turn(success=False, decision="", error_type="execution_denied", error="denied")
    records = [replace(each, parent=999) if each.id == 4 else each for each in refused]

    call = one_call(trace_of(*records, *QWEN_SPANS[:3]))

    assert (call.span_id, call.rejected, call.error) == (span_id(12), "policy", "denied")


def test_the_words_of_a_failure_are_the_records() -> None:
    """The spans say no more than that something failed."""
    records = qwen_turn(success=False, error="no such folder", error_type="shell_execute_error")

    assert one_call(trace_of(*records, *QWEN_SPANS)).error == "no such folder"


def test_a_context_before_a_persons_words_is_no_part_of_them() -> None:
    """Prompts that come as a stream leave no record of themselves: they are read from the request."""
    context = "<system-reminder>\nBe kind.\n</system-reminder>"
    history = [{"role": "user", "parts": [{"text": context}, {"text": ASK}]}]
    request = qwen(2, "api_request", 1_110, of=11, request_text=dump(history))

    assert trace_of(request, *QWEN_SPANS).input == ASK


# --- what the program asks for itself --------------------------------------------------------------------------------


OWN = [
    *(
        ((*turn(), *SPANS), gemini, {"role": role}, chunks({"text": "user"}))
        for role in ("utility_router", "utility_next_speaker")
    ),
    *(
        ((*qwen_turn(), *QWEN_SPANS), qwen, {"prompt_id": prompt}, "run the tests")
        for prompt in ("prompt_suggestion", "side-query:title")
    ),
]


@for_each("spans,record,of,answer", OWN)
def test_what_the_program_asks_for_itself_is_no_answer(
    spans: tuple[SpanSpec, ...], record: Any, of: dict[str, str], answer: str
) -> None:
    own = record(40, "api_request", 2_500, request_text="What may follow?", **of)

    trace = trace_of(*spans, own, record(41, "api_response", 2_600, response_text=answer, **of))

    assert (trace.input, (trace.output or "").strip()) == (ASK, SAID)
    assert len(trace.model_calls) == 3
