"""The smallest trace of an agent: one model call, a question and an answer."""

import json

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.agents import ident, request
from tests.support.dialect_spans import key_values

START = 1_790_000_000_000_000_000


def trace_id(session: str, number: int = 0) -> str:
    """The id of the trace that `asked` makes."""
    return ident(16, "asked", session, number).hex()


def span(
    session: str,
    question: str,
    answer: str = "Yes, that order has left our warehouse.",
    *,
    number: int = 0,
    child: str | None = None,
) -> Span:
    """The root of a trace, or with `child` a span below it of that name."""
    trace = ident(16, "asked", session, number)
    root = ident(8, trace, "root")
    made = Span(
        trace_id=trace,
        span_id=ident(8, trace, child) if child else root,
        parent_span_id=root if child else b"",
        name=child or "chat gpt-4o-mini",
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=START + number * 1_000_000_000,
        end_time_unix_nano=START + number * 1_000_000_000 + 500_000_000,
    )
    attributes = {
        "gen_ai.operation.name": "execute_tool" if child else "chat",
        "gen_ai.conversation.id": session,
    }
    if child:
        attributes["gen_ai.tool.name"] = child
    else:
        attributes["gen_ai.agent.name"] = "desk"
        attributes["gen_ai.request.model"] = "gpt-4o-mini"
        attributes["gen_ai.input.messages"] = said("user", question)
        attributes["gen_ai.output.messages"] = said("assistant", answer)
    made.attributes.extend(key_values(attributes))
    return made


def asked(
    session: str,
    question: str,
    answer: str = "Yes, that order has left our warehouse.",
    *,
    number: int = 0,
    service: str = "desk-bot",
) -> bytes:
    """An export request that holds such a trace."""
    return request(service, [span(session, question, answer, number=number)])


def said(role: str, text: str) -> str:
    """A message as `gen_ai.input.messages` and `gen_ai.output.messages` hold it."""
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])
