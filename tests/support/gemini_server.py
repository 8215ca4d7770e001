"""A scripted model that speaks Gemini's `generateContent`."""

import json
from typing import Any

from tests.support.loopback import Reply
from tests.support.scripted_model import ANSWER, INPUT_TOKENS, OUTPUT_TOKENS, ScriptedModel


class GeminiServer(ScriptedModel):
    """For GOOGLE_GEMINI_BASE_URL."""

    def reply(self, path: str, asked: dict[str, Any]) -> Reply:
        if "countTokens" in path:
            return Reply.of({"totalTokens": INPUT_TOKENS})
        answer = self._content_for(asked)
        if "streamGenerateContent" in path:
            return Reply.streamed(f"data: {json.dumps(answer)}\r\n\r\n")
        return Reply.of(answer)

    def _content_for(self, asked: dict[str, Any]) -> dict[str, Any]:
        number = next(self.calls)
        part: dict[str, Any] = {"text": ANSWER}
        if asked.get("tools") and not _has_result(asked):
            arguments = {"command": self.command}
            call = {"id": f"call_{number}", "name": "run_shell_command", "args": arguments}
            part = {"functionCall": call}
        content = {"role": "model", "parts": [part]}
        return {
            "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {
                "promptTokenCount": INPUT_TOKENS,
                "candidatesTokenCount": OUTPUT_TOKENS,
                "totalTokenCount": INPUT_TOKENS + OUTPUT_TOKENS,
            },
            "modelVersion": "gemini-2.5-pro",
            "responseId": f"response_{number}",
        }


def _has_result(asked: dict[str, Any]) -> bool:
    """Whether what was said last is a tool's result."""
    return any("functionResponse" in part for part in asked["contents"][-1]["parts"])
