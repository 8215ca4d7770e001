"""Qwen Code: log events and, beside them, one trace for one or several prompts."""

import re

from evaluators.dialects.decoding.values import words
from evaluators.dialects.turns.place import AgentEvent, Dropped, LogAgent, Place, text

_WORK = words(
    """qwen-code.user_prompt qwen-code.api_request qwen-code.api_response qwen-code.api_error qwen-code.api_retry
    qwen-code.tool_call qwen-code.subagent_execution qwen-code.conversation_finished session.end"""
)
_ENDS = frozenset({"session.end", "qwen-code.conversation_finished"})
_TURN = re.compile(r"########\d+\Z")
"""How the id of a person's prompt ends; those of helpers end otherwise."""


def _place(event: AgentEvent) -> Place | Dropped:
    session = text(event, "session.id")
    if event.name not in _WORK or not session:
        return "diagnostics"
    return Place(
        session=session,
        turn=_turn(event, "prompt_id"),
        is_prompt=event.name == "qwen-code.user_prompt",
        is_end=event.name in _ENDS,
    )


def _place_span(event: AgentEvent) -> Place | None:
    """Prompts that come as a stream have no record: the span around the turn tells of them."""
    session, turn = text(event, "session.id"), _turn(event, "qwen-code.prompt_id")
    if not session:
        return None
    is_prompt = bool(turn) and event.name == "qwen-code.interaction"
    return Place(session=session, turn=turn, is_prompt=is_prompt)


def _turn(event: AgentEvent, key: str) -> str:
    prompt = text(event, key)
    return prompt if _TURN.search(prompt) else ""


QWEN_CODE_LOGS = LogAgent(
    name="qwen_code",
    scopes=("qwen-code",),
    place=_place,
    span_scopes=("qwen-code",),
    place_span=_place_span,
)
