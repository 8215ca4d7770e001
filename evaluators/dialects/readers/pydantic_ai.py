"""pydantic-ai: the conventions, plus `final_result`, `all_messages`, and the older `events` and `tool_arguments`."""

from evaluators.dialects import fields
from evaluators.dialects.content import usage
from evaluators.dialects.content.facts import Content, Facts, Kind
from evaluators.dialects.decoding.decode import ask
from evaluators.dialects.decoding.key_sets import Among
from evaluators.dialects.decoding.values import as_dict, as_list, string, unwrap
from evaluators.dialects.dialect import Dialect, has, sample_by, scope
from evaluators.dialects.readers import genai
from evaluators.model import JSON

_ALL = ("pydantic_ai.all_messages", "all_messages_events", "all_messages")
_OF_A_RUN = Among(*_ALL, "final_result")
_RETRY = "\n\nFix the errors and try again."


def _kind(facts: Facts) -> Kind:
    return "agent" if ask(facts.span.attributes, _OF_A_RUN) else facts.kind


def _final(value: JSON) -> JSON:
    text = string(value)
    return [{"role": "assistant", "content": [{"text": text}]}] if text is not None else None


def _finish(facts: Facts) -> None:
    """The older events of a call: `gen_ai.choice` is the answer, everything else went in."""
    raw = facts.span.attributes.get("events")
    if facts.kind == "llm" and facts.input is None and raw is not None:
        facts.input = Content(lambda: _events(raw, chosen=False), "input")
        facts.output = Content(lambda: _events(raw, chosen=True), "output")


def _events(value: JSON, *, chosen: bool) -> JSON:
    events = [as_dict(event) for event in as_list(unwrap(value))]
    return [_marked(e) for e in events if (e.get("event.name") == "gen_ai.choice") is chosen]


def _marked(event: dict[str, JSON]) -> dict[str, JSON]:
    """The words of `RetryPromptPart` are the only mark of a failed tool in versions before 0.1."""
    content = event.get("content")
    failed = isinstance(content, str) and content.endswith(_RETRY) and event.get("role") == "tool"
    return {**event, "is_error": True} if failed else event


PYDANTIC_AI = Dialect(
    name="pydantic_ai",
    speaks=scope("pydantic-ai")
    | has(*_OF_A_RUN, "tool_arguments", "tool_response", "model_request_parameters"),
    base=genai.read,
    kind=_kind,
    fields={
        "llm": (fields.definitions("model_request_parameters"),),
        "tool": (fields.arguments("tool_arguments"), fields.result("tool_response")),
        "agent": (
            fields.over(fields.agent("gen_ai.agent.name", "agent_name")),
            fields.input_from(*_ALL),
            fields.output_from(*_ALL),
            fields.over(fields.output_from("final_result", read=_final)),
        ),
    },
    finish=_finish,
    reads=(
        fields.row("input", "model call", "events"),
        *fields.token_rows(usage.AGGREGATE, "agent"),
    ),
    scopes=("pydantic-ai",),
    advice="""
        content: Agent.instrument_all(InstrumentationSettings(include_content=True))
            true is its default, so something sets it to false
            ai.pydantic.dev/api/models/instrumented
    """,
    sample=sample_by(
        "gen_ai.operation.name",
        call="chat",
        tool="execute_tool",
        agent="invoke_agent",
        scope="pydantic-ai",
    ),
)
