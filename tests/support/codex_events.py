"""Log records as Codex sends them, and which turn each of them is of, by the rule itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.otlp.carried_logs import carry_logs
from evaluators.dialects.turns.codex import NOT_TYPED
from evaluators.dialects.turns.place import turn_trace_id
from tests.support.dialect_spans import key_values

SERVICE = "codex_exec"
Kind = Literal["prompt", "work", "end", "link", "title"]
SECOND = 1_000_000_000
ASIDE = 3
"""The session in which a title is asked for."""


@dataclass(frozen=True, slots=True)
class Happened:
    """One event. `session`: 0 is the person's, 1 its helper's, 2 another person's, 3 a title's."""

    at: int
    """Seconds."""
    kind: Kind
    session: int = 0
    text: str = ""

    def attributes(self) -> dict[str, str]:
        """As Codex writes them."""
        names = {
            "prompt": {"event.name": "codex.user_prompt", "prompt": self.text},
            "title": {"event.name": "codex.user_prompt", "prompt": NOT_TYPED[0] + self.text},
            "work": {"event.name": "codex.tool_result", "call_id": self.text},
            "end": {"event.name": "codex.agent_response", "agent.type": "main"},
            "link": {
                "event.name": "codex.agent_communication",
                "kind": "spawn",
                "sender_thread_id": "s0",
                "receiver_thread_id": "s1",
            },
        }
        own = {} if self.kind == "link" else {"conversation.id": f"s{self.session}"}
        return names[self.kind] | own


def sent(*events: Happened) -> bytes:
    """One ExportLogsServiceRequest."""
    request = ExportLogsServiceRequest()
    group = request.resource_logs.add()
    group.resource.attributes.extend(key_values({"service.name": SERVICE, "host.name": "one"}))
    scope = group.scope_logs.add()
    scope.scope.name = "codex_otel.log_only"
    for event in events:
        record = scope.log_records.add(observed_time_unix_nano=event.at * SECOND)
        record.attributes.extend(key_values(event.attributes()))
    return request.SerializeToString()


def span_id(event: Happened) -> bytes:
    """That of its made span."""
    made = ExportTraceServiceRequest.FromString(carry_logs(sent(event)).request)
    return made.resource_spans[0].scope_spans[0].spans[0].span_id


def turns(events: Sequence[Happened]) -> dict[bytes, set[bytes]]:
    """Span ids by made trace: the last prompt of the outermost session that was no later; a title's, of any session."""
    helped = any(event.kind == "link" for event in events)
    found: dict[bytes, set[bytes]] = {}
    for event in events:
        session = 0 if event.kind == "link" or (event.session == 1 and helped) else event.session
        prompts = [
            (each.at, turn_of(each))
            for each in events
            if each.kind == "prompt" and session in (each.session, ASIDE) and each.at <= event.at
        ]
        if not prompts:
            raise ValueError("every event needs a prompt before it")
        found.setdefault(max(prompts)[1], set()).add(span_id(event))
    return found


def turn_of(prompt: Happened) -> bytes:
    """The made trace that a prompt begins."""
    return turn_trace_id(SERVICE, f"s{prompt.session}", span_id(prompt).hex())
