"""What the doctor finds in traces, whom it stops, and what it says to set."""

from collections.abc import Mapping
from typing import Any

from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.doctor.diagnosis import (
    Diagnosis,
    ExaminedTrace,
    diagnose,
    examine,
    stops,
    without_tasks,
)
from collector.otlp import display
from evaluators.dialects.advise import advise, all_advice
from evaluators.dialects.dialect import LACKS, Lack
from evaluators.dialects.show import show
from evaluators.registry import Registry
from tests.support.agent_records import claude
from tests.support.dialect_spans import SpanSpec, request, trace_of
from tests.support.table import for_each

CHAT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "gpt-4o-mini",
    "gen_ai.agent.version": "1.4.2",
}
TEXT = {
    "gen_ai.input.messages": '[{"role":"user","parts":[{"type":"text","content":"Hi?"}]}]',
    "gen_ai.output.messages": '[{"role":"assistant","parts":[{"type":"text","content":"Ho."}]}]',
    "gen_ai.tool.definitions": '[{"type":"function","name":"look_up","parameters":{}}]',
    "gen_ai.usage.input_tokens": 3,
}


WHOLE = {**TEXT, "session.id": "s"}
BARE = {"session.id": "s", "gen_ai.usage.input_tokens": 3}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look_up"}


def seen_of(*made: SpanSpec, **more: bool) -> ExaminedTrace:
    shown = display.decode([request(*made)], content=True)
    return examine(show(trace_of(*made)), shown, **more)


def diagnosed(*seen: ExaminedTrace, config: Config | None = None) -> Diagnosis:
    config = config or Config()
    registry = Registry.discover()
    return diagnose(seen, plan=plan_from(config, registry=registry), stops=stops(registry, config))


def chat(
    more: Mapping[str, Any] | None = None, *, scope: str = "my.agent", dropped: int = 0
) -> SpanSpec:
    return SpanSpec(id=1, attributes={**CHAT, **(more or {})}, scope=scope, dropped=dropped)


def test_a_trace_that_says_everything_lacks_nothing() -> None:
    seen = seen_of(chat({**TEXT, "session.id": "s-1", "spanwise.task.id": "t"}))

    (stack,) = diagnosed(seen).stacks

    assert (stack.service, stack.dialects, stack.scopes) == ("shop", ("genai",), ("my.agent",))
    assert (stack.turns, stack.findings) == (1, ())
    assert without_tasks([seen]) == ()
    (stop,) = without_tasks([seen_of(chat(TEXT))])
    assert "spanwise.task.id" in stop.setting


@for_each(
    "made,lacks",
    [
        (chat({"session.id": "s"}), {"no_content", "no_tool_definitions", "no_tokens"}),
        (chat(TEXT), {"no_session"}),
        (chat({**TEXT, "session_id": "[Scrubbed due to 'session']"}), {"scrubbed"}),
        (chat(WHOLE, dropped=4), {"dropped_attributes"}),
        (chat({**WHOLE, "gen_ai.input.messages": '[{"role":"user","parts":[{"ty'}), {"truncated"}),
        (SpanSpec(id=1, attributes={"gen_ai.operation.name": "chat", **WHOLE}), {"no_version"}),
        (chat({**WHOLE, "gen_ai.input.messages": ""}), {"no_question"}),
        (chat({**WHOLE, "gen_ai.agent.version": ""}), {"no_version"}),
        (SpanSpec(id=1, parent=9, attributes={**CHAT, **WHOLE}), {"no_root"}),
        (SpanSpec(id=1, parent=9, flags=0x301, attributes={**CHAT, **WHOLE}), {"late_root"}),
    ],
)
def test_each_lack_is_seen(made: SpanSpec, lacks: set[str]) -> None:
    assert seen_of(made).lacks == lacks


def test_tool_calls_without_arguments_are_a_lack_unless_the_service_hides_them() -> None:
    made = (chat(WHOLE), SpanSpec(id=2, parent=1, attributes=TOOL))
    attributes = {**TOOL, "gen_ai.tool.call.arguments": '{"a": 1}'}
    failed = SpanSpec(id=2, parent=1, attributes=attributes, status=2, message="no answer")

    assert seen_of(*made).lacks == {"no_tool_arguments", "no_tool_results"}
    assert seen_of(*made, redacted=True).lacks == set()
    assert seen_of(chat(WHOLE), failed).lacks == set(), "it has no result"


def test_content_that_came_as_log_records_is_distinguished_from_content_that_never_came() -> None:
    seen = seen_of(
        chat({"session.id": "s"}, scope="opentelemetry.instrumentation.openai_v2"),
        content_in_logs=True,
    )

    (stack,) = diagnosed(seen).stacks

    finding = stack.findings[0]
    assert finding.lack == "content_in_logs"
    (advice,) = finding.advice
    assert advice.setting == (
        "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental"
        " OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_and_event"
    )
    assert {"coherence", "loop_detection", "confidence"} <= set(finding.stops)


def test_spans_of_a_library_that_no_dialect_knows_are_said_to_be_unread() -> None:
    said = {"entity.1.type": "agent.custom", "said": "a\nb" * 99}

    seen = seen_of(SpanSpec(id=1, name="run", scope="tracer_of_agents", attributes=said))
    (stack,) = diagnosed(seen).stacks

    assert (seen.is_turn, seen.lacks, seen.unread) == (False, {"not_read"}, ("tracer_of_agents",))
    (finding,) = stack.findings
    assert finding.says == "spans of tracer_of_agents are not read"
    assert (finding.traces, "coherence" in finding.stops) == (1, True)


@for_each(
    ("more", "scope", "lacks"),
    [
        (BARE, "shop.llm", {"not_read", "no_tool_definitions"}),  # instead of its content
        (BARE, "another", {"not_read", "no_content", "no_tool_definitions"}),
        (WHOLE, "shop.llm", set[str]()),
    ],
)
def test_an_unread_library_is_named_instead_of_its_content_where_all_scopes_are_its(
    more: Mapping[str, Any], scope: str, lacks: set[str]
) -> None:
    unread = SpanSpec(id=2, parent=1, scope="shop.llm", attributes={"kind": "tool"})

    assert seen_of(chat(more, scope=scope), unread).lacks == lacks


@for_each(
    "scope,attributes",
    [
        ("opentelemetry.instrumentation.fastapi", {"http.user_agent": "x", "user-agent": "y"}),
        ("opentelemetry.instrumentation.httpx", {"url.path": "/v1/chat/completions"}),
        ("shop.checkout", {"order": "the agent asked for a prompt answer, " * 3}),
        ("haystack", {"haystack.agent.step": 1}),
        ("my.agent", {"gen_ai.operation.name": "create_agent"}),
    ],
)
def test_spans_of_anything_else_are_not_missed(scope: str, attributes: dict[str, Any]) -> None:
    seen = seen_of(SpanSpec(id=1, scope=scope, attributes=attributes))

    assert (seen.is_turn, seen.lacks) == (False, frozenset())
    assert diagnosed(seen).stacks[0].findings == ()


def test_stacks_are_distinguished_by_service_and_dialects_and_counted() -> None:
    whole, bare = seen_of(chat(WHOLE)), seen_of(chat(TEXT))

    (stack,) = diagnosed(whole, bare, bare).stacks

    assert (stack.traces, stack.turns) == (3, 3)
    assert [(f.lack, f.traces) for f in stack.findings] == [("no_session", 2)]


def test_the_configuration_stops_what_needs_a_judge_expectations_or_an_embedder() -> None:
    def why(**config: Any) -> dict[tuple[str, str], tuple[str, str]]:
        found = stops(Registry.discover(), Config.model_validate(config))
        return {(each.evaluator, each.method): (each.why, each.setting) for each in found}

    off = {"latency": {"enabled": False}}
    found = why()
    other = why(embedder={"kind": "none"}, judge={"model": "m"}, evaluators=off)

    assert found["task_completion", "llm_judge"][0] == "no_judge"
    assert found["exact_match", "deterministic"][0] == "no_expectations"
    assert ("coherence", "embedding") not in found
    assert other["coherence", "embedding"][0] == "no_embedder"
    assert ("task_completion", "llm_judge") not in other
    (latency,) = (said for (name, _), said in other.items() if name == "latency")
    assert latency == ("off", "evaluators.latency.enabled: true")


@for_each("lack", LACKS)
def test_every_lack_has_advice_for_any_stack(lack: Lack) -> None:
    scrubs = (["logfire 5.2.0"], ["logfire"])
    scopes, dialects = scrubs if lack == "scrubbed" else (["my.agent"], [])

    assert advise(lack, scopes=scopes, dialects=dialects)
    assert all(a.source and a.lacks and a.setting for a in all_advice())


@for_each(
    ("scope", "sdk", "words"),
    [
        ("langfuse-sdk 5.0.4", "python 1.4", 'with propagate_attributes(session_id="..."):'),
        ("my.agent", "java 1.57.0", "Span.current().setAttribute("),
        ("my.agent", "nodejs 2.2.0", "span.setAttribute("),
        ("my.agent", "rust 0.31.1", "span.set_attribute("),
    ],
)
def test_a_stacks_own_advice_comes_instead_of_the_general_one_in_the_language_of_the_sdk(
    scope: str, sdk: str, words: str
) -> None:
    dialects = ["langfuse"] if "langfuse" in scope else []
    (advice,) = advise("no_session", scopes=[scope], dialects=dialects, sdks=[sdk])

    assert advice.setting.startswith(words)


@for_each(
    ("lack", "switches"),
    [
        ("no_content", ["OTEL_LOG_USER_PROMPTS", "OTEL_LOG_ASSISTANT_RESPONSES"]),
        ("no_tool_arguments", ["OTEL_LOG_TOOL_DETAILS"]),
        ("no_tool_results", ["OTEL_LOG_TOOL_CONTENT"]),
    ],
)
def test_what_agents_in_logs_leave_out_is_supplied_by_a_switch_that_says_what_it_gives_away(
    lack: Lack, switches: list[str]
) -> None:
    seen = seen_of(
        claude(1, "user_prompt", 1, prompt="<REDACTED>"),
        claude(2, "api_request", 2, input_tokens=9, output_tokens=3, request_id="r"),
        claude(3, "tool_result", 3, tool_name="Bash", tool_use_id="t", success="true"),
        claude(4, "api_request", 4, input_tokens=9, output_tokens=3, request_id="q"),
    )

    given = advise(lack, scopes=seen.scopes, dialects=seen.dialects)
    assert lack in seen.lacks
    for switch in switches:
        (advice,) = [each for each in given if f"{switch}=1" in each.setting]
        assert "exports" in advice.note
    (prompt,) = advise("no_question", scopes=("codex_otel.log_only",), dialects=("codex",))
    assert prompt.setting == "config.toml: [otel] log_user_prompt = true"
