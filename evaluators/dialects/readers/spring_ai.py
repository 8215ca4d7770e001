"""Spring AI: the conventions on a chat model's span, `spring.ai.*` on those of its client, advisors and tools.

Micrometer writes every value as a text.
"""

from evaluators.dialects import fields
from evaluators.dialects.content.facts import Content, Facts
from evaluators.dialects.decoding.values import as_dict, as_list, is_json, string, unwrap
from evaluators.dialects.dialect import By, Dialect, Sample, has, scope_is
from evaluators.dialects.readers import genai
from evaluators.dialects.readers.genai_tools import tool_in_span_name
from evaluators.model import JSON

_LOG = "spring.ai.chat.client.observations.log-"
_KIND = "spring.ai.kind"
_TOOLS = "spring.ai.model.request.tool.names"
_TOOL = "spring.ai.tool.definition."
_RESULT = "spring.ai.tool.call.result"
_OF_1 = "tool_call "
"""How the spans of tools begin in 1.x, where each model call states the tokens of all calls of its loop so far."""


def _messages(value: JSON, role: str) -> JSON:
    """A list of texts, one per message, of which the last is this side's own; None when there is none."""
    texts = [text for text in as_list(unwrap(value)) if isinstance(text, str)]
    return [{"role": role, "content": text} for text in texts] or None


def _questions(value: JSON) -> JSON:
    return _messages(value, "user")


def _answers(value: JSON) -> JSON:
    return _messages(value, "assistant")


def _is_bare(result: JSON) -> bool:
    return isinstance(result, str) and bool(result.strip()) and not is_json(result)


def _finish(facts: Facts) -> None:
    get = facts.span.attributes.get
    if facts.kind == "tool":
        facts.counts_on = facts.span.name.startswith(_OF_1)
        if facts.tool_error is None and _is_bare(get(_RESULT)):
            facts.tool_error = "error"
    schema = unwrap(get(f"{_TOOL}schema"))
    if facts.kind == "tool" and string(get(_KIND)) and isinstance(schema, dict):
        own: JSON = {
            "name": facts.tool_name,
            "description": get(f"{_TOOL}description"),
            "parameters": as_dict(schema),
        }
        facts.definitions = Content([own], "input")


SPRING_AI = Dialect(
    name="spring_ai",
    # A chat model's span says so only where tools were offered, or by Spring's scope.
    speaks=has(_KIND, _TOOLS) | (scope_is("org.springframework.boot") & genai.SPEAKS),
    base=genai.read,
    based=~has(_KIND),
    kind=By(_KIND, kinds={"chat_client": "agent", "tool_call": "tool"}),
    fields={
        "llm": (
            fields.over(fields.input_from("gen_ai.prompt", read=_questions)),
            fields.over(fields.output_from("gen_ai.completion", read=_answers)),
            fields.definitions(_TOOLS),
        ),
        "tool": (
            fields.tool_name(f"{_TOOL}name", default=tool_in_span_name),
            fields.tool_id("spring.ai.tool.call.id"),
            fields.arguments("spring.ai.tool.call.arguments"),
            fields.result(_RESULT),
        ),
        "agent": (
            fields.input_from("gen_ai.input.messages"),
            fields.input_from("gen_ai.prompt", read=_questions),
            fields.input_from("spring.ai.chat.client.user.text"),
            fields.output_from("gen_ai.output.messages"),
            fields.output_from("gen_ai.completion", read=_answers),
            fields.definitions("spring.ai.chat.client.tool.names"),
        ),
    },
    finish=_finish,
    reads=(fields.row("tools offered", "tool", f"{_TOOL}schema"),),
    advice=f"""
    no_content, no_question of org.springframework.boot 3.: {_LOG}prompt=true {_LOG}completion=true
        Spring AI 1.x: words then come as log records, which are to be exported too (port 4318, /v1/logs)
        source of Spring AI 1.1, ChatClientAutoConfiguration
    no_content, no_question of org.springframework.boot 4.: @Bean ObservationFilter words() {{ return context -> ...; }}
        Spring AI 2.x: a filter that adds gen_ai.input.messages and gen_ai.output.messages to the observation of the
        chat client; no property does
        recordings of Spring AI 2.0 with every switch on
    no_tool_arguments, no_tool_results: spring.ai.tools.observations.include-content=true
        source of Spring AI, ToolCallingAutoConfiguration and its tests
    no_session: chatClient.prompt().advisors(a -> a.param(ChatMemory.CONVERSATION_ID, "..."))
        with a chat memory among the client's advisors
        docs.spring.io/spring-ai/reference/observability, spring.ai.chat.client.conversation.id
    """,
    sample=Sample(
        scope="org.springframework.boot",
        spans={
            "model call": {"gen_ai.operation.name": "chat"},
            "tool": {
                "spring.ai.kind": "tool_call",
                "gen_ai.operation.name": "framework",
                "spring.ai.tool.definition.name": "some_tool",
            },
            "agent": {"spring.ai.kind": "chat_client", "gen_ai.operation.name": "framework"},
        },
    ),
)
