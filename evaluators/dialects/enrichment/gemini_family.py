"""Gemini CLI and what was made of it: a record for each request, answer and tool call, and mostly a span beside them.

A model call is one request, its answer or error, and the span around both, of which any may be missing; a tool call is
one record and one span. What is joined is once: under the span where it came, else under the record that ends it.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from evaluators.dialects.decoding.values import string
from evaluators.dialects.enrichment.ledger import Ledger
from evaluators.dialects.enrichment.records import AddedAttributes, event_of, lasting
from evaluators.model import JSON, Span

_Key = tuple[JSON, JSON, JSON]


class _Family(msgspec.Struct, frozen=True, kw_only=True):
    """How one of these agents calls its events and spans."""

    prefix: str  # of its events
    prompt_span: str  # name of the span around all that follows a prompt
    model_span: str
    agent_span: str
    tool_span: Callable[[Ledger, Span], Span | None]  # the span of a tool call's record

    def enrich(self, ledger: Ledger, records: Sequence[Span]) -> None:
        _JoiningTurn(self, ledger).enrich(records)


class _JoiningTurn:
    def __init__(self, family: _Family, ledger: Ledger) -> None:
        self._family, self._ledger = family, ledger
        self._unanswered: dict[_Key, list[Span]] = {}

    def enrich(self, records: Sequence[Span]) -> None:
        """Every record to where it belongs, in order of time; what says nothing of the turn's work is passed over."""
        handlers: Mapping[str, Callable[[Span], None]] = {
            "user_prompt": self._prompt,
            "api_request": self._request,
            "api_response": self._answer,
            "api_error": self._answer,
            "tool_call": self._tool_call,
            "agent.start": self._agent,
            "agent.finish": self._agent,
            "subagent_execution": self._agent,
        }
        for record in records:
            handle = handlers.get(event_of(record).removeprefix(self._family.prefix))
            if handle is not None:
                handle(record)
        for requests in self._unanswered.values():
            for request in requests:
                self._join_call(request, None)

    def _prompt(self, record: Span) -> None:
        span = self._ledger.get(record.parent_span_id)
        if span is not None and span.name == self._family.prompt_span:
            self._ledger.enrich(record, span, record.attributes)  # still known as a person's prompt
        else:
            self._ledger.stand(record)

    def _request(self, record: Span) -> None:
        self._unanswered.setdefault(_key(record), []).append(record)

    def _answer(self, record: Span) -> None:
        requests = self._unanswered.get(_key(record))
        self._join_call(requests.pop() if requests else None, record)

    def _join_call(self, request: Span | None, answer: Span | None) -> None:
        parts = [part for part in (answer, request) if part is not None]
        span = next((span for part in parts if (span := self._model_span(part))), None)
        if span is not None:
            for part in parts:
                span = self._ledger.enrich(part, span, AddedAttributes(part.attributes))
        else:
            first, *others = parts
            span = lasting(first)
            if others:
                began = others[0].start_time_unix_nano
                span = msgspec.structs.replace(first, start_time_unix_nano=began)
            self._ledger.stand(span)
            for part in others:
                span = self._ledger.enrich(part, span, AddedAttributes(part.attributes))
        if answer is not None and event_of(answer).endswith("api_error"):
            self._ledger.put(_failed(span, answer))

    def _model_span(self, record: Span) -> Span | None:
        span = self._ledger.get(record.parent_span_id)
        return span if span is not None and span.name == self._family.model_span else None

    def _tool_call(self, record: Span) -> None:
        span = self._family.tool_span(self._ledger, record)
        if span is None:
            span = lasting(record)
            self._ledger.stand(span)
        else:
            span = self._ledger.enrich(record, span, AddedAttributes(record.attributes))
        if record.attributes.get("success") is False:
            self._ledger.put(_failed(span, record))

    def _agent(self, record: Span) -> None:
        span = self._ledger.get(record.parent_span_id)
        if span is not None and span.name == self._family.agent_span:
            self._ledger.enrich(record, span, AddedAttributes(record.attributes))


def _key(record: Span) -> _Key:
    get = record.attributes.get
    return get("prompt_id"), get("role"), get("subagent_name")


def _failed(span: Span, record: Span) -> Span:
    """The span as failed, with the words of the record: its own status says only that something did."""
    get = record.attributes.get
    text = string(get("error.message")) or string(get("error")) or string(get("error_message"))
    message = text or string(get("error_type")) or span.status_message
    return msgspec.structs.replace(span, status="error", status_message=message)


def _gemini_tool_span(ledger: Ledger, record: Span) -> Span | None:
    """A record has the id of the batch around its span."""
    name = record.attributes.get("function_name")
    return ledger.claim(record.parent_span_id, "tool_call", "gen_ai.tool.name", name)


def _qwen_tool_span(ledger: Ledger, record: Span) -> Span | None:
    """A record has the id of its span, but for a call that was refused, which names the call."""
    span = ledger.get(record.parent_span_id)
    if span is not None and span.name == _QWEN_TOOL:
        return span
    call = record.attributes.get("call_id")
    return ledger.find(_QWEN_TOOL, "call_id", call) if isinstance(call, str) else None


_QWEN_TOOL = "qwen-code.tool"
GEMINI_CLI = _Family(
    prefix="gemini_cli.",
    prompt_span="user_prompt",
    model_span="llm_call",
    agent_span="agent_call",
    tool_span=_gemini_tool_span,
)
QWEN_CODE = _Family(
    prefix="qwen-code.",
    prompt_span="qwen-code.interaction",
    model_span="qwen-code.llm_request",
    agent_span="qwen-code.subagent",
    tool_span=_qwen_tool_span,
)
