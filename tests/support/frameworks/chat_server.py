"""A scripted model that speaks OpenAI's chat completions, to agents that have a tool to find an order."""

import json
from collections.abc import Iterator
from typing import Any

from tests.support.loopback import Reply
from tests.support.scripted_model import INPUT_TOKENS, OUTPUT_TOKENS, ScriptedModel

ORDER_ANSWER = "Order A-1001 is on its way."


class ChatServer(ScriptedModel):
    """For OPENAI_BASE_URL, with `/v1` behind it. It calls `find_order` once where it is offered, then answers."""

    def __init__(self) -> None:
        super().__init__("find_order")

    def reply(self, path: str, asked: dict[str, Any]) -> Reply:
        if not path.endswith("/chat/completions"):
            return Reply.of({"data": []})
        number = next(self.calls)
        message, reason = self._message(asked, number)
        if asked.get("stream"):
            return Reply.streamed("".join(_chunks(asked, number, message, reason)))
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return Reply.of(
            {**_head(asked, number, "chat.completion"), "choices": [choice], "usage": _USAGE}
        )

    def _message(self, asked: dict[str, Any], number: int) -> tuple[dict[str, Any], str]:
        offered = [each["function"]["name"] for each in asked.get("tools") or ()]
        wanted = "final_answer" if _has_result(asked["messages"]) else self.command
        name = next((each for each in offered if wanted in each), None)
        if name is None:
            return {"role": "assistant", "content": _worded(asked["messages"])}, "stop"
        given = {"answer": ORDER_ANSWER} if wanted == "final_answer" else {"order": "A-1001"}
        call = {"name": name, "arguments": json.dumps(given)}
        calls = [{"id": f"call_{number}", "type": "function", "function": call}]
        return {"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls"


_USAGE = {
    "prompt_tokens": INPUT_TOKENS,
    "completion_tokens": OUTPUT_TOKENS,
    "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
}


def _head(asked: dict[str, Any], number: int, kind: str) -> dict[str, Any]:
    return {"id": f"chat-{number}", "object": kind, "created": 1, "model": asked["model"]}


def _has_result(messages: list[dict[str, Any]]) -> bool:
    return any(
        each["role"] == "tool" or "Observation" in str(each.get("content")) for each in messages[1:]
    )


def _worded(messages: list[dict[str, Any]]) -> str:
    """The answer in the form that the framework's prompt asks for."""
    prompt = str(messages)
    if "[[ ## answer ## ]]" in prompt:
        return f"[[ ## answer ## ]]\n{ORDER_ANSWER}\n\n[[ ## completed ## ]]"
    if "Final Answer:" in prompt:
        return f"Thought: I now can give a great answer\nFinal Answer: {ORDER_ANSWER}"
    return ORDER_ANSWER


def _chunks(
    asked: dict[str, Any], number: int, message: dict[str, Any], reason: str
) -> Iterator[str]:
    head = _head(asked, number, "chat.completion.chunk")
    calls = [{"index": at, **each} for at, each in enumerate(message.get("tool_calls", ()))]
    delta = {**message, **({"tool_calls": calls} if calls else {})}
    chunks: tuple[tuple[list[dict[str, Any]], Any], ...] = (
        ([{"index": 0, "delta": delta, "finish_reason": None}], None),
        ([{"index": 0, "delta": {}, "finish_reason": reason}], None),
        ([], _USAGE),
    )
    for choices, usage in chunks:
        yield f"data: {json.dumps({**head, 'choices': choices, 'usage': usage})}\n\n"
    yield "data: [DONE]\n\n"
