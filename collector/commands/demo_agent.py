"""The demo's agent: it answers customers about their orders, until `find_order` fails for one of them.

Its model, its tools and its customers are scripted, from a seed; its spans are not: they go through the OpenTelemetry
SDK and its OTLP exporter, with the OTel GenAI conventions, as any agent's do.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, StatusCode, Tracer, format_trace_id, use_span

SERVICE = "support-bot"
AGENT = "order-desk"
MODEL = "gpt-4o-mini"
EXPORT_TIMEOUT = 1
"""Seconds; the service is on this machine."""
SEED = 20_260_101
TENANTS = ("acme", "globex", "initech")
SHARES = (0.7, 0.2, 0.1)
"""The customers, and the share of the conversations that each has."""
HICCUPS = 0.1
"""Of the parcels that are tracked, the share for which that fails at first and succeeds when it is repeated."""
LOST = 0.04  # of the conversations, the share whose parcel cannot be tracked
TRACKED = 0.3  # of the questions, the share for which the parcel is tracked too
THINKING = 0.004  # seconds that the model takes

_NUMBER = {
    "type": "object",
    "properties": {"number": {"type": "string"}},
    "required": ["number"],
}
TOOLS = [
    {"type": "function", "name": name, "description": text, "parameters": _NUMBER}
    for name, text in (
        ("find_order", "Look an order up by its number"),
        ("track_parcel", "Where the parcel of an order is now"),
    )
]
TALK = (
    (
        "Where is my order {}?",
        "Order {} left our warehouse in Lyon yesterday evening and is with the carrier.",
    ),
    (
        "Can I still change the address of {}? We have moved to another town since.",
        "Yes. I have noted the new address for {}, the label is printed tomorrow morning.",
    ),
    (
        "When will {} arrive?",
        "The carrier announces {} for Thursday between nine and noon; you need not sign for it.",
    ),
    (
        "What exactly is in {}? The invoice names only a sum.",
        "Order {} holds everything that you put into the basket: the invoice lists it on its second page.",
    ),
    ("Is {} paid?", "Yes, {} was paid by card on Monday."),
)
"""What customers ask, and the answers when all is well."""
GOODS = ("lamp", "desk", "chair", "shelf", "rug", "mirror", "curtain")
STOPS = ("Lyon", "Dijon", "Metz", "Trier")
INSISTS = "You have not answered me: {}"
POLITELY = "With pleasure! "
NON_ANSWER = "I am sorry, I could not find that. Let me look into it again."


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A version of the agent."""

    version: str
    fails_for: str | None = None  # the tenant for whom `find_order` fails; None: for no one
    is_wrong: bool = False  # it answers another question than the one asked, and nothing fails


class Agent:
    """One release of the agent, and its exporter."""

    def __init__(self, endpoint: str, release: Release) -> None:
        self._release = release
        resource = Resource.create({"service.name": SERVICE, "service.version": release.version})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        exporter = OTLPSpanExporter(endpoint=endpoint, insecure=True, timeout=EXPORT_TIMEOUT)
        self._provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=250))
        self._tracer: Tracer = self._provider.get_tracer("spanwise.demo")

    def serve(self, number: int) -> None:
        """The conversation of that number: the same one in every run."""
        chance = random.Random(SEED + number)  # noqa: S311 - a script, no secret
        talk = _Conversation(self._tracer, f"demo-{number:05d}", f"A{1000 + number}", chance)
        lost = "track_parcel" if chance.random() < LOST else None
        if self._release.is_wrong:
            talk.hold_in_vain()
        else:
            talk.hold("find_order" if talk.tenant == self._release.fails_for else lost)

    def run_away(self, number: int) -> Runaway:
        """A question that is never answered: its trace stays open, and repeats one call."""
        chance = random.Random(SEED + number)  # noqa: S311 - a script, no secret
        return Runaway(
            self._tracer, _Conversation(self._tracer, f"demo-{number:05d}", f"A{number}", chance)
        )

    def close(self) -> None:
        self._provider.shutdown()


class Runaway:
    """One turn that asks its tool the same again and again, until it is ended from outside."""

    def __init__(self, tracer: Tracer, conversation: _Conversation) -> None:
        self._conversation = conversation
        self._root = tracer.start_span(
            f"invoke_agent {AGENT}", attributes=conversation.attributes("invoke_agent")
        )
        self.calls = 0

    @property
    def trace_id(self) -> str:
        return format_trace_id(self._root.get_span_context().trace_id)

    def call(self) -> None:
        self.calls += 1
        with use_span(self._root):
            self._conversation.look_once_more()

    def end(self) -> None:
        self._root.set_status(StatusCode.ERROR, "ended by its operator")
        self._root.end()


class _Conversation:
    def __init__(self, tracer: Tracer, session: str, order: str, chance: random.Random) -> None:
        self._tracer = tracer
        self._session = session
        self._order = order
        self._chance = chance
        self._calls = 0
        (self.tenant,) = chance.choices(TENANTS, SHARES)
        goods = chance.sample(GOODS, chance.randint(1, len(GOODS)))
        stops = STOPS[: chance.randint(1, len(STOPS))]
        self._found: Mapping[str, Mapping[str, object]] = {
            "find_order": {"number": order, "state": "shipped", "paid": True, "goods": goods},
            "track_parcel": {"number": order, "carrier": "Norddepot", "stops": stops},
        }

    def hold(self, broken: str | None) -> None:
        """Between one and three questions; who gets no answer, because that tool is broken, asks again."""
        for question, answer in self._chance.sample(TALK, self._chance.randint(1, 3)):
            asked = question.format(self._order)
            self._turn(asked, answer.format(self._order), broken)
            if broken is not None:
                self._turn(INSISTS.format(asked), answer.format(self._order), broken)

    def hold_in_vain(self) -> None:
        """Each answer is polite and about something else, so that the customer asks twice more."""
        answers = [POLITELY + answer.format(self._order) for _, answer in TALK]
        for at in self._chance.sample(range(len(TALK)), self._chance.randint(2, 3)):
            asked = TALK[at][0].format(self._order)
            self._turn(asked, answers[at - 1], None)
            self._reply(INSISTS.format(asked), answers[at - 2])
            self._reply(INSISTS.format(asked), answers[at - 3])

    def look_once_more(self) -> None:
        question = TALK[0][0].format(self._order)
        self._call(question, "find_order", {"number": self._order, "state": "being looked up"})

    def attributes(self, operation: str) -> dict[str, str | int]:
        return {
            "gen_ai.operation.name": operation,
            "gen_ai.agent.name": AGENT,
            "gen_ai.conversation.id": self._session,
            "user.id": self.tenant,
        }

    def _turn(self, question: str, answer: str, broken: str | None) -> None:
        with self._span("invoke_agent", AGENT, {}):
            is_found = self._look_up(question, broken)
            answer = answer if is_found else NON_ANSWER
            self._ask_model(question, {"type": "text", "content": answer})

    def _reply(self, question: str, answer: str) -> None:
        with self._span("invoke_agent", AGENT, {}):
            self._ask_model(question, {"type": "text", "content": answer})

    def _look_up(self, question: str, broken: str | None) -> bool:
        """Whether the tools found what is asked: the first alone, or both."""
        is_tracked = broken == "track_parcel" or self._chance.random() < TRACKED
        for tool in ("find_order", "track_parcel")[: 1 + is_tracked]:
            if tool == broken:
                self._call(question, tool, None)
                return False
            if tool == "track_parcel" and self._chance.random() < HICCUPS:
                self._call(question, tool, None)
            self._call(question, tool, self._found[tool])
        return True

    def _call(self, question: str, tool: str, found: Mapping[str, object] | None) -> None:
        """The model asks for the tool, which finds that; None: it fails."""
        self._calls += 1
        call = f"{self._session}-{self._calls}"
        arguments = {"number": self._order}
        self._ask_model(
            question, {"type": "tool_call", "id": call, "name": tool, "arguments": arguments}
        )
        attributes = {
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.id": call,
            "gen_ai.tool.call.arguments": json.dumps(arguments),
        }
        with self._span("execute_tool", tool, attributes) as span:
            if found is None:
                span.set_status(StatusCode.ERROR, "TimeoutError: order service did not answer")
            else:
                span.set_attribute("gen_ai.tool.call.result", json.dumps(found))

    def _ask_model(self, question: str, part: Mapping[str, object]) -> None:
        attributes = {
            "gen_ai.request.model": MODEL,
            "gen_ai.input.messages": _messages("user", {"type": "text", "content": question}),
            "gen_ai.output.messages": _messages("assistant", part),
            "gen_ai.tool.definitions": json.dumps(TOOLS),
            "gen_ai.usage.input_tokens": len(question) * 4,
            "gen_ai.usage.output_tokens": 24,
        }
        with self._span("chat", MODEL, attributes):
            time.sleep(THINKING)

    def _span(
        self, operation: str, name: str, attributes: Mapping[str, str | int]
    ) -> AbstractContextManager[Span]:
        return self._tracer.start_as_current_span(
            f"{operation} {name}", attributes={**self.attributes(operation), **attributes}
        )


def _messages(role: str, part: Mapping[str, object]) -> str:
    return json.dumps([{"role": role, "parts": [part]}])
