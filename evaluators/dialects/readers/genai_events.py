"""Content in span events: Strands, Azure AI inference, Semantic Kernel, older instrumentations."""

from evaluators.dialects.content.blocks import is_block, read_content
from evaluators.dialects.content.facts import Content, Facts
from evaluators.dialects.content.messages import Side
from evaluators.dialects.content.tools import arguments_of
from evaluators.dialects.decoding.decode import (
    CHOICE,
    COMPLETIONS,
    DETAILS,
    PROMPTS,
    carries_messages,
)
from evaluators.dialects.decoding.values import as_dict, as_list, string, unwrap
from evaluators.dialects.fields import row
from evaluators.model import JSON, Event, Span


def read_conversation(span: Span, facts: Facts) -> None:
    """Fill input and output of `facts` from the span's events, where attributes gave none."""
    events = [event for event in span.events if carries_messages(event.name)]
    if not events:
        return
    if span.attributes.get("gen_ai.operation.name") == "process_thread_run":
        events, answers = _split_run(events)
        facts.output = facts.output or _side(answers, "output")
    if facts.input is None:
        facts.input = _side(
            [e for e in events if e.name != CHOICE and e.name not in COMPLETIONS], "input"
        )
    if facts.output is None:
        facts.output = _side(
            [e for e in events if e.name in (CHOICE, DETAILS) or e.name in COMPLETIONS], "output"
        )


def _split_run(events: list[Event]) -> tuple[list[Event], list[Event]]:
    """Azure's thread run has no choice: the assistant's messages after the user's last one are the output."""
    users = [index for index, event in enumerate(events) if event.name == "gen_ai.user.message"]
    start = users[-1] + 1 if users else 0
    answers = [e for e in events[start:] if e.name == "gen_ai.assistant.message"]
    return [e for e in events if e not in answers], answers


def _side(events: list[Event], side: Side) -> Content | None:
    if not events:
        return None
    return Content(lambda: [m for event in events for m in _messages(event, side)], side)


def _messages(event: Event, side: Side) -> list[JSON]:
    attributes = event.attributes
    if event.name == DETAILS:
        return as_list(unwrap(attributes.get(f"gen_ai.{side}.messages")))
    if event.name in PROMPTS or event.name in COMPLETIONS:
        value = unwrap(
            attributes.get("gen_ai.prompt" if side == "input" else "gen_ai.completion")
            or attributes.get("gen_ai.event.content")
        )
        texts = as_list(value) or [value]  # Spring AI: one text per message
        role = "user" if side == "input" else "assistant"
        return [{"role": role, "content": t} if isinstance(t, str) else t for t in texts]
    return [_message(event)]


def _message(event: Event) -> JSON:
    """One `gen_ai.<role>.message` or `gen_ai.choice` event as a message object."""
    role = "assistant" if event.name == CHOICE else event.name.split(".")[1]
    body = as_dict(unwrap(event.attributes.get("gen_ai.event.content")))
    item: dict[str, JSON] = {**body, **{k: event.attributes.get(k) for k in event.attributes}}
    inner = item.get("message")
    if isinstance(inner, str):
        inner = unwrap(inner)
    if isinstance(inner, dict):
        beside = {k: item[k] for k in ("tool_calls",) if k in item}  # Vertex AI: beside the message
        return {"role": role, **beside, **as_dict(inner)}
    if inner is not None:
        item["content"] = inner
    for key in ("content", "tool_calls"):
        if isinstance(item.get(key), str):
            item[key] = unwrap(item[key])
    content = as_dict(item.get("content"))
    # google-genai: the message with its own role, also where it is a candidate
    if "parts" in content and role != "tool":
        return {"role": string(content.get("role")) or role, "parts": content["parts"]}
    return {**item, "role": role}


def read_tool(span: Span, facts: Facts) -> None:
    """Arguments and result of a tool span whose events carry them (Strands)."""
    for event in span.events:
        attributes = event.attributes
        if event.name == "gen_ai.tool.message" and facts.arguments is None:
            facts.arguments = arguments_of(attributes.get("content"))
            facts.tool_id = facts.tool_id or string(attributes.get("id"))
        elif event.name == CHOICE and facts.result is None:
            message = unwrap(attributes.get("message"))
            blocks = as_list(message)
            are_blocks = blocks and all(is_block(as_dict(each)) for each in blocks)
            facts.result = (read_content(blocks).text if are_blocks else None) or message


ROWS = (
    row(
        "input",
        "model call",
        "event gen_ai.user.message: content",
        "event gen_ai.user.message: gen_ai.event.content",
        "event gen_ai.content.prompt: gen_ai.prompt",
        "event gen_ai.client.inference.operation.details: gen_ai.input.messages",
    ),
    row(
        "output",
        "model call",
        "event gen_ai.choice: message",
        "event gen_ai.choice: gen_ai.event.content",
        "event gen_ai.content.completion: gen_ai.completion",
        "event gen_ai.client.inference.operation.details: gen_ai.output.messages",
    ),
    row("arguments", "tool", "event gen_ai.tool.message: content"),
    row("result", "tool", "event gen_ai.choice: message"),
)
