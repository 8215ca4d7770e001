"""Everyday sessions of `tests/data/everyday`, and as OTLP by the GenAI conventions and by OpenInference."""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, cast

import msgspec
import yaml
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from tests.support.dialect_spans import key_values
from tests.support.openinference import flat
from tests.support.recordings import write as write_recording

FOLDER = Path(__file__).parents[1] / "data" / "everyday"


class Call(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One tool call, made `times` times, with its result or error."""

    tool: str
    arguments: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any], name="with")
    gives: Any = None
    fails: str | None = None
    times: int = 1

    @property
    def response_text(self) -> str:
        """What the model reads of it."""
        return as_text(self.gives) if self.fails is None else f"Error: {self.fails}"


class Turn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One question, the calls that it took, and how it ended."""

    ask: str
    calls: tuple[Call, ...] = ()
    answer: str | None = None
    end: Literal["answered", "model_error", "killed"] = "answered"
    """`model_error`: the last call of the model failed. `killed`: the process died in the last tool call."""

    @property
    def every_call(self) -> tuple[Call, ...]:
        """The calls, each as often as it was made."""
        return tuple(call for call in self.calls for _ in range(call.times))


Session = tuple[Turn, ...]


def as_text(value: Any) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def sessions(name: str) -> dict[str, Session]:
    """The sessions of `tests/data/everyday/NAME.yaml`, by "kind: session"."""
    kinds: Mapping[str, Mapping[str, list[Any]]]
    kinds = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    return {
        f"{kind}: {session}": tuple(_turn(each) for each in turns)
        for kind, of_kind in kinds.items()
        for session, turns in of_kind.items()
    }


def _turn(written: Any) -> Turn:
    if isinstance(written, list):
        question, answer = cast("list[str]", written)
        return Turn(ask=question, answer=answer)
    return msgspec.convert(written, Turn)


def long_sessions() -> dict[str, Session]:
    """Thirty turns with the same tool and other arguments; three with the same long instructions."""

    def quoted(n: int, price: int) -> Turn:
        call = Call(tool="quote", arguments={"share": f"S{n}"}, gives={"price": price})
        return Turn(
            ask=f"What does share {n} cost?",
            calls=(call,),
            answer=f"That share costs {price} euros at the moment.",
        )

    rules = "Summarise the ticket in one line: be brief and polite, name the product. " * 20
    kind = "The customer kindly reports that the delivery arrived late."
    return {
        "long: other prices": tuple(quoted(n, 100 + n) for n in range(30)),
        "long: one price": tuple(quoted(n, 100) for n in range(30)),
        "long: instructions": tuple(
            Turn(ask=f"{rules} Ticket: the {item} arrived late.", answer=kind)
            for item in ("shoes", "hat", "shirt", "coat")
        ),
    }


START = 1_760_000_000_000_000_000
SECOND = 1_000_000_000
Attributes = dict[str, str]
Message = dict[str, Any]
UNAVAILABLE = "HTTP 500: the model is not available"


class Recorder:
    """A session's spans: a root per turn, beneath it calls of the model and of tools, one a second."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.past: list[Message] = []
        """Every message so far: a call of the model is sent all of them."""
        self.spans: list[Span] = []
        self._turn = 0

    def record(self, turn: Turn) -> bytes:
        """The turn's spans as one request."""
        self.spans = []
        self._turn += 1
        self.asked(turn.ask)
        calls = turn.every_call
        for place, call in enumerate(calls, 1):
            identifier = f"call-{len(self.past)}"
            self.model(call, identifier)
            if turn.end == "killed" and place == len(calls):
                return self._request()
            self.tool(call, identifier)
        error = UNAVAILABLE if turn.end == "model_error" else None
        if error is not None or turn.answer is not None:
            self.model(turn.answer, error=error)
        self.root(turn, error)
        return self._request()

    def asked(self, question: str) -> None:
        raise NotImplementedError

    def model(
        self, made: Call | str | None, identifier: str = "", error: str | None = None
    ) -> None:
        """A call of the model that asks for a tool call, answers or fails."""
        raise NotImplementedError

    def tool(self, call: Call, identifier: str) -> None:
        raise NotImplementedError

    def root(self, turn: Turn, error: str | None) -> None:
        raise NotImplementedError

    def put(
        self,
        name: str,
        attributes: Mapping[str, str],
        error: str | None = None,
        *,
        is_root: bool = False,
    ) -> None:
        """A span of this turn."""
        trace = sha256(f"{self.session} {self._turn}".encode()).digest()[:16]
        number = 0 if is_root else len(self.spans) + 1
        start = START + self._turn * 3600 * SECOND
        span = Span(
            trace_id=trace,
            span_id=sha256(trace + number.to_bytes(2)).digest()[:8],
            parent_span_id=b"" if is_root else sha256(trace + b"\0\0").digest()[:8],
            name=name,
            start_time_unix_nano=start + number * SECOND,
            end_time_unix_nano=start + (len(self.spans) + 2) * SECOND,
        )
        span.attributes.extend(key_values(attributes))
        if error is not None:
            span.status.CopyFrom(Status(code=Status.STATUS_CODE_ERROR, message=error))
        self.spans.append(span)

    def _request(self) -> bytes:
        message = ExportTraceServiceRequest()
        resource = message.resource_spans.add()
        resource.resource.attributes.add(key="service.name").value.string_value = "everyday"
        resource.scope_spans.add().spans.extend(self.spans)
        return message.SerializeToString()


class GenAI(Recorder):
    """By the GenAI semantic conventions: invoke_agent, chat, execute_tool."""

    def asked(self, question: str) -> None:
        self._say("user", {"type": "text", "content": question})

    def model(
        self, made: Call | str | None, identifier: str = "", error: str | None = None
    ) -> None:
        attributes = self._operation("chat", {"gen_ai.request.model": "gpt-4o-mini"})
        attributes["gen_ai.input.messages"] = json.dumps(self.past)
        part: Message = {"type": "text", "content": made}
        if isinstance(made, Call):
            part = {"type": "tool_call", "id": identifier, "name": made.tool}
            part["arguments"] = dict(made.arguments)
        if made is not None:
            self._say("assistant", part)
            attributes["gen_ai.output.messages"] = json.dumps(self.past[-1:])
        self.put("chat gpt-4o-mini", attributes, error)

    def tool(self, call: Call, identifier: str) -> None:
        more = {"gen_ai.tool.name": call.tool, "gen_ai.tool.call.id": identifier}
        more["gen_ai.tool.call.arguments"] = json.dumps(dict(call.arguments))
        if call.fails is None:
            more["gen_ai.tool.call.result"] = as_text(call.gives)
        else:
            more["error.type"] = "ToolError"
        self.put(f"execute_tool {call.tool}", self._operation("execute_tool", more), call.fails)
        self._say(
            "tool", {"type": "tool_call_response", "id": identifier, "response": call.response_text}
        )

    def root(self, turn: Turn, error: str | None) -> None:
        self.put("invoke_agent clerk", self._operation("invoke_agent", {}), error, is_root=True)

    def _say(self, role: str, part: Message) -> None:
        self.past.append({"role": role, "parts": [part]})

    def _operation(self, name: str, more: Attributes) -> Attributes:
        agent = {"gen_ai.conversation.id": self.session, "gen_ai.agent.name": "clerk"}
        return {**agent, "gen_ai.operation.name": name, **more}


class OpenInference(Recorder):
    """By OpenInference: an AGENT span with input and output, LLM and TOOL spans."""

    def asked(self, question: str) -> None:
        self.past.append({"role": "user", "content": question})

    def model(
        self, made: Call | str | None, identifier: str = "", error: str | None = None
    ) -> None:
        message: Message = {"role": "assistant"}
        if isinstance(made, Call):
            prefix = "tool_calls.0.tool_call."
            message[f"{prefix}id"] = identifier
            message[f"{prefix}function.name"] = made.tool
            message[f"{prefix}function.arguments"] = json.dumps(dict(made.arguments))
        elif made is not None:
            message["content"] = made
        attributes = {"llm.model_name": "gpt-4o-mini", **flat("input", *self.past)}
        if made is not None:
            self.past.append(message)
            attributes |= flat("output", message)
        self.put("ChatCompletion", self._kind("LLM", attributes), error)

    def tool(self, call: Call, identifier: str) -> None:
        more = {"tool.name": call.tool, "input.mime_type": "application/json"}
        more["input.value"] = json.dumps(dict(call.arguments))
        if call.fails is None:
            more["output.value"] = as_text(call.gives)
        self.put(call.tool, self._kind("TOOL", more), call.fails)
        self.past.append(
            {"role": "tool", "content": call.response_text, "tool_call_id": identifier}
        )

    def root(self, turn: Turn, error: str | None) -> None:
        more = {"input.value": turn.ask}
        if turn.answer is not None:
            more["output.value"] = turn.answer
        self.put("clerk.run", self._kind("AGENT", more), error, is_root=True)

    def _kind(self, kind: str, more: Attributes) -> Attributes:
        return {"openinference.span.kind": kind, "session.id": self.session, **more}


RECORDERS: Mapping[str, type[Recorder]] = {"genai": GenAI, "openinference": OpenInference}


def requests(sessions: Mapping[str, Session]) -> Iterator[bytes]:
    """Every session as every instrumentation sends it, a request per turn; ids are "NAME (INSTRUMENTATION)"."""
    for name, turns in sessions.items():
        for instrumentation, recorder in RECORDERS.items():
            recording = recorder(f"{name} ({instrumentation})")
            for turn in turns:
                yield recording.record(turn)


def write(path: Path, sessions: Mapping[str, Session]) -> None:
    """A recording of the sessions."""
    write_recording(path, requests(sessions))
