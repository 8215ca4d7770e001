"""A model on loopback that answers agents from a script, in each of the languages that agents speak to a model.

It asks for its tool whenever a person has spoken last, and says its answer to all else.
"""

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

from tests.support.loopback import Body, LoopbackServer, Reply

ANSWER = "The release is 4.2."
ORDER_ANSWER = "Order A-1001 is on its way."
INPUT_TOKENS, OUTPUT_TOKENS = 100, 20
"""What each call is said to have taken."""
TOTAL_TOKENS = INPUT_TOKENS + OUTPUT_TOKENS


class ScriptedModel(LoopbackServer):
    def __init__(self, command: str) -> None:
        """`command` is what it asks for."""
        super().__init__()
        self.command = command
        self.calls = count(1)


class AnthropicServer(ScriptedModel):
    """Anthropic's messages, for ANTHROPIC_BASE_URL."""

    def reply(self, path: str, asked: Body) -> Reply:
        if "count_tokens" in path:
            return Reply.of({"input_tokens": INPUT_TOKENS})
        number = next(self.calls)
        users = [each["content"] for each in asked.get("messages", []) if each["role"] == "user"]
        last: list[Body] | str = users[-1] if users else ""
        has_result = not isinstance(last, str) and any(e["type"] == "tool_result" for e in last)
        uses_tool = bool(asked.get("tools")) and not has_result
        block: Body = {"type": "text", "text": ANSWER}
        if uses_tool:
            given = {"command": self.command, "description": "Read the notes"}
            block = {"type": "tool_use", "id": f"toolu_{number:04}", "name": "Bash", "input": given}
        message: Body = {
            "id": f"msg_{number:04}",
            "type": "message",
            "role": "assistant",
            "model": asked.get("model", "claude"),
            "content": [block],
            "stop_reason": "tool_use" if uses_tool else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS},
        }
        if asked.get("stream"):
            return Reply.streamed("".join(_message_events(message, block)))
        return Reply.of(message)


def _message_events(whole: Body, block: Body) -> Iterator[str]:
    if block["type"] == "tool_use":
        empty: Body = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    else:
        empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield _event("message_start", message={**whole, "content": [], "stop_reason": None})
    yield _event("content_block_start", index=0, content_block=empty)
    yield _event("content_block_delta", index=0, delta=delta)
    yield _event("content_block_stop", index=0)
    yield _event("message_delta", delta=ended, usage={"output_tokens": OUTPUT_TOKENS})
    yield _event("message_stop")


class GeminiServer(ScriptedModel):
    """Gemini's `generateContent`, for GOOGLE_GEMINI_BASE_URL."""

    def reply(self, path: str, asked: Body) -> Reply:
        if "countTokens" in path:
            return Reply.of({"totalTokens": INPUT_TOKENS})
        number = next(self.calls)
        has_result = any("functionResponse" in part for part in asked["contents"][-1]["parts"])
        part: Body = {"text": ANSWER}
        if asked.get("tools") and not has_result:
            call = {"id": f"call_{number}", "name": "run_shell_command"}
            part = {"functionCall": {**call, "args": {"command": self.command}}}
        content = {"role": "model", "parts": [part]}
        answer: Body = {
            "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {
                "promptTokenCount": INPUT_TOKENS,
                "candidatesTokenCount": OUTPUT_TOKENS,
                "totalTokenCount": TOTAL_TOKENS,
            },
            "modelVersion": "gemini-2.5-pro",
            "responseId": f"response_{number}",
        }
        if "streamGenerateContent" in path:
            return Reply.streamed(f"data: {json.dumps(answer)}\r\n\r\n")
        return Reply.of(answer)


class ResponsesServer(ScriptedModel):
    """OpenAI's responses, for the `base_url` of a provider, with `/v1` behind it."""

    def reply(self, path: str, asked: Body) -> Reply:
        if not path.endswith("/responses"):
            return Reply.of({"data": [], "models": []})
        number = next(self.calls)
        item = self._item(asked, number)
        response = {"id": f"resp_{number}"}
        usage = {
            "input_tokens": INPUT_TOKENS,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": OUTPUT_TOKENS,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": TOTAL_TOKENS,
        }
        ended = {**response, "status": "completed", "output": [item], "usage": usage}
        events = (
            _event("response.created", response=response),
            _event("response.output_item.added", output_index=0, item=item),
            _event("response.output_item.done", output_index=0, item=item),
            _event("response.completed", response=ended),
        )
        return Reply.streamed("".join(events))

    def _item(self, asked: Body, number: int) -> Body:
        kinds = (
            each.get("type") if each.get("role") != "user" else "user"
            for each in reversed(asked["input"])
        )
        newest = next((each for each in kinds if each in ("user", "function_call_output")), "user")
        if asked.get("tools") and newest == "user":
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


class ChatServer(ScriptedModel):
    """OpenAI's chat completions, for OPENAI_BASE_URL, with `/v1` behind it: it finds an order, then answers."""

    def __init__(self) -> None:
        super().__init__("find_order")

    def reply(self, path: str, asked: Body) -> Reply:
        if not path.endswith("/chat/completions"):
            return Reply.of({"data": []})
        number = next(self.calls)
        message, reason = self._message(asked, number)
        head = {"id": f"chat-{number}", "created": 1, "model": asked["model"]}
        usage = {
            "prompt_tokens": INPUT_TOKENS,
            "completion_tokens": OUTPUT_TOKENS,
            "total_tokens": TOTAL_TOKENS,
        }
        if not asked.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": reason}
            whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
            return Reply.of(whole)
        calls = [{"index": at, **each} for at, each in enumerate(message.get("tool_calls", ()))]
        delta = {**message, **({"tool_calls": calls} if calls else {})}
        chunks: list[Body] = [
            {"choices": [{"index": 0, "delta": delta, "finish_reason": None}], "usage": None},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": None},
            {"choices": [], "usage": usage},
        ]
        head["object"] = "chat.completion.chunk"
        said = [f"data: {json.dumps({**head, **each})}\n\n" for each in chunks]
        return Reply.streamed("".join((*said, "data: [DONE]\n\n")))

    def _message(self, asked: Body, number: int) -> tuple[Body, str]:
        """The message, and why it ends: in the form that the framework's prompt asks for."""
        offered = [each["function"]["name"] for each in asked.get("tools") or ()]
        has_result = any(
            each["role"] == "tool" or "Observation" in str(each.get("content"))
            for each in asked["messages"][1:]
        )
        wanted = "final_answer" if has_result else self.command
        name = next((each for each in offered if wanted in each), None)
        if name is not None:
            given = {"answer": ORDER_ANSWER} if has_result else {"order": "A-1001"}
            call = {"name": name, "arguments": json.dumps(given)}
            calls = [{"id": f"call_{number}", "type": "function", "function": call}]
            return {"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls"
        prompt, said = str(asked["messages"]), ORDER_ANSWER
        if "[[ ## answer ## ]]" in prompt:
            said = f"[[ ## answer ## ]]\n{ORDER_ANSWER}\n\n[[ ## completed ## ]]"
        elif "Final Answer:" in prompt:
            said = f"Thought: I now can give a great answer\nFinal Answer: {ORDER_ANSWER}"
        return {"role": "assistant", "content": said}, "stop"


def _event(kind: str, **data: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n"
