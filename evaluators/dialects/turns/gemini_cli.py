"""Gemini CLI: log events and, beside them, a trace for every model call and every batch of tools."""

from evaluators.dialects.decoding.values import words
from evaluators.dialects.turns.place import (
    AgentEvent,
    Dropped,
    LogAgent,
    Place,
    from_resource,
    text,
)

_WORK = words(
    """gemini_cli.user_prompt gemini_cli.api_request gemini_cli.api_response gemini_cli.api_error
    gemini_cli.tool_call gemini_cli.agent.start gemini_cli.agent.finish gemini_cli.conversation_finished"""
)
"""Not `gen_ai.client.inference.operation.details`: it repeats the requests and responses, history and all."""


def _place(event: AgentEvent) -> Place | Dropped:
    session = text(event, "session.id") or from_resource(event, "session.id")
    if event.name not in _WORK or not session:
        return "diagnostics"
    is_prompt = event.name == "gemini_cli.user_prompt"
    return Place(
        session=session,
        is_prompt=is_prompt,
        owns_trace=is_prompt and bool(event.trace_id),  # in a terminal, where it has one per prompt
        is_end=event.name == "gemini_cli.conversation_finished",
    )


def _place_span(event: AgentEvent) -> Place | None:
    session = text(event, "session.id", "gen_ai.conversation.id")
    session = from_resource(event, "session.id") or session
    return Place(session=session) if session else None


GEMINI_CLI_LOGS = LogAgent(
    name="gemini_cli",
    scopes=("gemini-cli",),
    place=_place,
    span_scopes=("gemini-cli",),
    place_span=_place_span,
)
