"""OpenAI Codex: log events of a conversation; helpers have conversations of their own on the same machine."""

from evaluators.dialects.decoding.values import words
from evaluators.dialects.turns.place import (
    AgentEvent,
    Dropped,
    LogAgent,
    Place,
    from_resource,
    text,
)

NOT_TYPED = (
    "Generate a concise, single-line task title",
    "Write a brief catch-up for a user returning to this Codex task",
    "The following is the Codex agent history",
)
"""How prompts begin that the program sends itself, each in a conversation of its own: a title, a summary for a person
who comes back, the review of a call that wants an approval."""
_WORK = words(
    """codex.user_prompt codex.agent_response codex.api_request codex.websocket_request
    codex.tool_decision codex.tool_result"""
)


def _place(event: AgentEvent) -> Place | Dropped:
    name = event.name
    owner = f"machine {from_resource(event, 'host.name')}"
    if name == "codex.agent_communication":
        return _link(event, owner)
    session = text(event, "conversation.id")
    if name == "codex.sse_event":
        # The end of an answer is recorded twice: by a record for the event, then by one with its counts.
        if "input_token_count" not in event.attributes and not text(event, "error.message"):
            return "streamed_token"
    elif name not in _WORK and not _has_not_connected(event):
        return "diagnostics"
    if not session:
        return "diagnostics"
    is_prompt = name == "codex.user_prompt"
    if is_prompt and text(event, "prompt").startswith(NOT_TYPED):
        return Place(session=session, owner=owner, turn=session, is_helper=True)
    return Place(
        session=session,
        owner=owner,
        is_prompt=is_prompt,
        is_end=name == "codex.agent_response" and text(event, "agent.type") == "main",
    )


def _has_not_connected(event: AgentEvent) -> bool:
    failed = event.attributes.get("success") in ("false", False)
    return event.name == "codex.websocket_connect" and failed


def _link(event: AgentEvent, owner: str) -> Place | Dropped:
    sender, receiver = text(event, "sender_thread_id"), text(event, "receiver_thread_id")
    if text(event, "kind") != "spawn" or not sender or not receiver:
        return "diagnostics"
    return Place(session=sender, owner=owner, helper_session=receiver)


CODEX_LOGS = LogAgent(
    name="codex",
    scopes=("codex_otel",),
    place=_place,
)
