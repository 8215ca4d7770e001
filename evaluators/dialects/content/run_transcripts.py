"""Spans that hold a whole run: several model calls and the tools between them in one conversation.

Haystack's Agent and Gemini's automatic function calling loop inside one call; what they export is its transcript.
"""

from __future__ import annotations

from evaluators.dialects.content import usage
from evaluators.dialects.content.facts import NO_TOKENS
from evaluators.dialects.content.messages import read_messages, unwrap_container
from evaluators.dialects.decoding.values import as_dict, as_list, unwrap
from evaluators.model import JSON, Tokens

GEMINI_HISTORY = "automatic_function_calling_history"


def this_run(items: JSON) -> list[JSON]:
    """The messages after the user's last words; what stands before them belongs to former turns."""
    messages = as_list(items)
    for index in range(len(messages) - 1, -1, -1):
        if any(m.role == "user" and m.text for m in read_messages([messages[index]], "input")):
            return messages[index + 1 :]
    return messages


def gemini_run(raw: JSON) -> JSON:
    """What a Gemini answer says and, before it, the functions that the SDK called on the way."""
    answer = as_dict(unwrap(raw))
    said = [as_dict(entry).get("content") for entry in as_list(answer.get("candidates"))[:1]]
    return [*this_run(answer.get(GEMINI_HISTORY)), *said]


def haystack_run(raw: JSON) -> list[JSON]:
    """The messages that a Haystack Agent added to the conversation."""
    answer = as_dict(unwrap(raw))
    return this_run([unwrap_container(item) for item in as_list(answer.get("messages"))])


def haystack_tokens(raw: JSON, run: list[JSON]) -> Tokens:
    """The Agent's own sum; in versions without it, the sum over its model's answers."""
    stated = usage.read_usage_object(as_dict(unwrap(raw)).get("token_usage"))
    if stated is not NO_TOKENS:
        return stated
    counts = [_counts_of(item) for item in run]
    known = [tokens for tokens in counts if tokens is not NO_TOKENS]
    if not known:
        return NO_TOKENS
    return Tokens(
        input=sum(tokens.input or 0 for tokens in known),
        output=sum(tokens.output or 0 for tokens in known),
    )


def _counts_of(item: JSON) -> Tokens:
    return usage.read_usage_object(as_dict(as_dict(item).get("meta")).get("usage"))
