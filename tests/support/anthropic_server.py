"""A scripted model that speaks Anthropic's messages."""

import json
from collections.abc import Iterator
from typing import Any

from tests.support.loopback import Reply
from tests.support.scripted_model import ANSWER, INPUT_TOKENS, OUTPUT_TOKENS, ScriptedModel


class AnthropicServer(ScriptedModel):
    """For ANTHROPIC_BASE_URL."""

    def reply(self, path: str, asked: dict[str, Any]) -> Reply:
        if "count_tokens" in path:
            return Reply.of({"input_tokens": INPUT_TOKENS})
        message = self._message(asked)
        return (
            Reply.streamed("".join(_events(message))) if asked.get("stream") else Reply.of(message)
        )

    def _message(self, asked: dict[str, Any]) -> dict[str, Any]:
        number = next(self.calls)
        uses_tool = bool(asked.get("tools")) and not _has_result(asked)
        block: dict[str, Any] = (
            {
                "type": "tool_use",
                "id": f"toolu_{number:04}",
                "name": "Bash",
                "input": {"command": self.command, "description": "Read the notes"},
            }
            if uses_tool
            else {"type": "text", "text": ANSWER}
        )
        return {
            "id": f"msg_{number:04}",
            "type": "message",
            "role": "assistant",
            "model": asked.get("model", "claude"),
            "content": [block],
            "stop_reason": "tool_use" if uses_tool else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS},
        }


def _events(whole: dict[str, Any]) -> Iterator[str]:
    """The message as it is streamed."""
    (block,) = whole["content"]
    if block["type"] == "tool_use":
        empty: dict[str, Any] = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    else:
        empty = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": block["text"]}
    begun: dict[str, Any] = {**whole, "content": [], "stop_reason": None}
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield _event("message_start", message=begun)
    yield _event("content_block_start", index=0, content_block=empty)
    yield _event("content_block_delta", index=0, delta=delta)
    yield _event("content_block_stop", index=0)
    yield _event("message_delta", delta=ended, usage={"output_tokens": OUTPUT_TOKENS})
    yield _event("message_stop")


def _has_result(asked: dict[str, Any]) -> bool:
    """Whether a tool's result came after the last words of a person."""
    messages: list[dict[str, Any]] = asked.get("messages", [])
    users = [each["content"] for each in messages if each["role"] == "user"]
    last: list[dict[str, Any]] | str = users[-1] if users else ""
    return not isinstance(last, str) and any(each["type"] == "tool_result" for each in last)


def _event(kind: str, **data: object) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n"
