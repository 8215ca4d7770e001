"""The demo's agent: it answers questions about orders, well at first, then, when its order service fails, in circles.

    python -m collector.commands.demo_agent ENDPOINT [GOOD_SECONDS]

Its model and tool are scripted; its spans are not: they go through the OpenTelemetry SDK and its OTLP exporter, with
the OTel GenAI conventions, as any agent's do. Runs until its standard input closes, or Ctrl-C.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import FrameType

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, StatusCode, Tracer

SERVICE = "support-bot"
AGENT = "order-desk"
VERSION = "1.4.2"
GOOD_SECONDS = 20.0
TURNS = 3
PAUSE = 0.25
EXPORT_TIMEOUT = 1
"""Seconds; the service is on this machine."""
MODEL = "gpt-4o-mini"
TOOL = {
    "type": "function",
    "name": "find_order",
    "description": "Look an order up by its number",
    "parameters": {
        "type": "object",
        "properties": {"number": {"type": "string"}},
        "required": ["number"],
    },
}
QUESTIONS = (
    "Where is my order {}?",
    "Can I still change the address of {}?",
    "When will {} arrive?",
)
ANSWERS = (
    "Order {} left our warehouse in Lyon yesterday evening and is with the carrier.",
    "Yes. I have noted the new address for {}, the label is printed tomorrow morning.",
    "The carrier announces {} for Thursday between nine and noon.",
)
NON_ANSWER = "I am sorry, I could not find that. Let me look into it again."


def main() -> None:
    """Talk to customers until standard input closes, or Ctrl-C."""
    endpoint = sys.argv[1]
    good_seconds = float(sys.argv[2]) if len(sys.argv) > 2 else GOOD_SECONDS
    # When both are stopped, the service may be gone before our last spans: nothing to complain of.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    ended = threading.Event()

    def interrupted(number: int, frame: FrameType | None) -> None:
        ended.set()

    signal.signal(signal.SIGINT, interrupted)  # Ctrl-C reaches the whole group
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    begin = time.monotonic()
    agent = _Agent(endpoint)
    number = 0
    while not ended.is_set():
        number += 1
        agent.is_good = time.monotonic() - begin < good_seconds
        agent.serve(session=f"demo-{number:05d}", order=f"A{1000 + number}")
        ended.wait(PAUSE)
    agent.close()


class _Agent:
    """The agent and its exporter."""

    def __init__(self, endpoint: str) -> None:
        self.is_good = True
        resource = Resource.create({"service.name": SERVICE, "service.version": VERSION})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        exporter = OTLPSpanExporter(endpoint=endpoint, insecure=True, timeout=EXPORT_TIMEOUT)
        self._provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=250))
        self._tracer: Tracer = self._provider.get_tracer("spanwise.demo")

    def serve(self, *, session: str, order: str) -> None:
        """One conversation."""
        for turn in range(TURNS):
            with self._span("invoke_agent", AGENT, session, {"gen_ai.agent.name": AGENT}):
                self._answer(session, order, turn)

    def close(self) -> None:
        """Flush."""
        self._provider.shutdown()

    def _answer(self, session: str, order: str, turn: int) -> None:
        question = QUESTIONS[turn].format(order)
        tries = 1 if self.is_good else 3
        for attempt in range(tries):
            call = f"{session}-{turn}-{attempt}"
            self._ask_model(session, question, f"{call}-plan", _tool_call(call, order))
            self._run_tool(session, call, order)
        text = ANSWERS[turn].format(order) if self.is_good else NON_ANSWER
        self._ask_model(session, question, f"{session}-{turn}", {"type": "text", "content": text})

    def _ask_model(self, session: str, question: str, reply: str, part: dict[str, object]) -> None:
        asked = [{"role": "user", "parts": [{"type": "text", "content": question}]}]
        answered = [{"role": "assistant", "parts": [part]}]
        attributes = {
            "gen_ai.request.model": MODEL,
            "gen_ai.response.id": reply,
            "gen_ai.input.messages": json.dumps(asked),
            "gen_ai.output.messages": json.dumps(answered),
            "gen_ai.tool.definitions": json.dumps([TOOL]),
            "gen_ai.usage.input_tokens": len(question) * 4,
            "gen_ai.usage.output_tokens": 24,
        }
        with self._span("chat", MODEL, session, attributes):
            time.sleep(0.005)

    def _run_tool(self, session: str, call: str, order: str) -> None:
        attributes = {
            "gen_ai.tool.name": "find_order",
            "gen_ai.tool.call.id": call,
            "gen_ai.tool.call.arguments": json.dumps({"number": order}),
        }
        with self._span("execute_tool", "find_order", session, attributes) as span:
            if self.is_good:
                span.set_attribute("gen_ai.tool.call.result", json.dumps({"state": "shipped"}))
            else:
                span.set_status(StatusCode.ERROR, "TimeoutError: order service did not answer")

    def _span(
        self, operation: str, name: str, session: str, attributes: Mapping[str, str | int]
    ) -> AbstractContextManager[Span]:
        return self._tracer.start_as_current_span(
            f"{operation} {name}",
            attributes={
                "gen_ai.operation.name": operation,
                "gen_ai.conversation.id": session,
                **attributes,
            },
        )


def _tool_call(call: str, order: str) -> dict[str, object]:
    return {"type": "tool_call", "id": call, "name": "find_order", "arguments": {"number": order}}


if __name__ == "__main__":
    main()
