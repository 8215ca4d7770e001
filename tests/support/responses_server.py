"""A scripted model that speaks OpenAI's responses."""

import json
from collections.abc import Iterator
from typing import Any

from tests.support.loopback import Reply
from tests.support.scripted_model import ANSWER, INPUT_TOKENS, OUTPUT_TOKENS, ScriptedModel


class ResponsesServer(ScriptedModel):
    """For the `base_url` of a provider, with `/v1` behind it."""

    def reply(self, path: str, asked: dict[str, Any]) -> Reply:
        if not path.endswith("/responses"):
            return Reply.of({"data": [], "models": []})
        return Reply.streamed("".join(self._events(asked)))

    def _events(self, asked: dict[str, Any]) -> Iterator[str]:
        number = next(self.calls)
        item = self._item(asked, number)
        response = {"id": f"resp_{number}"}
        usage = {
            "input_tokens": INPUT_TOKENS,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": OUTPUT_TOKENS,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        }
        ended = {**response, "status": "completed", "output": [item], "usage": usage}
        for kind, content in (
            ("response.created", {"response": response}),
            ("response.output_item.added", {"output_index": 0, "item": item}),
            ("response.output_item.done", {"output_index": 0, "item": item}),
            ("response.completed", {"response": ended}),
        ):
            yield f"event: {kind}\ndata: {json.dumps({'type': kind, **content})}\n\n"

    def _item(self, asked: dict[str, Any], number: int) -> dict[str, Any]:
        if asked.get("tools") and not _has_result(asked["input"]):
            return {
                "type": "function_call",
                "id": f"fc_{number}",
                "call_id": f"call_{number:04}",
                "name": "exec_command",
                "arguments": json.dumps({"cmd": self.command}),
                "status": "completed",
            }
        return {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            "phase": "final_answer",
            "content": [{"type": "output_text", "text": ANSWER, "annotations": []}],
        }


def _has_result(items: list[dict[str, Any]]) -> bool:
    """Whether the tool has answered since a person spoke."""
    for item in reversed(items):
        if item.get("type") == "function_call_output":
            return True
        if item.get("role") == "user":
            return False
    return False
