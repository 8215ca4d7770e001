"""OpenAI Codex's log events: each request to the model, the end of its answer, decisions and results of tools.

No record names the request that it belongs to. In one conversation they follow each other: a request, its answer's
end with the counts, and after the last one the answer's text. A helper has a conversation of its own.
"""

from collections.abc import Sequence

import msgspec

from evaluators.dialects.decoding.values import integer
from evaluators.dialects.enrichment.ledger import CallRecords, Ledger
from evaluators.dialects.enrichment.records import (
    AddedAttributes,
    MergedAttributes,
    event_of,
    lasting,
    text_of,
)
from evaluators.dialects.turns.codex import NOT_TYPED
from evaluators.model import Span

_REQUESTS = frozenset({"codex.api_request", "codex.websocket_request", "codex.websocket_connect"})
"""A request over HTTP, or over a connection that stays; of the last, only that there is none."""
_FAILED = 400  # HTTP statuses of this and above are failures


def enrich(ledger: Ledger, records: Sequence[Span]) -> None:
    turn = _CodexTurn(ledger)
    for record in records:
        event = event_of(record)
        if event in ("codex.tool_decision", "codex.tool_result"):
            turn.tools.add(record, text_of(record, "call_id"), ends=event == "codex.tool_result")
        elif event in _REQUESTS:
            turn.take_request(record)
        elif event == "codex.sse_event":
            turn.take_end(record)
        elif event == "codex.agent_response":
            turn.take_response(record)
        elif event == "codex.user_prompt":
            turn.take_prompt(record)
        elif event == "codex.agent_communication":
            ledger.stand(record)
    turn.finish(records)


class _CodexTurn:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.tools = CallRecords(ledger, ())
        self._prompt: Span | None = None
        self._asked: dict[str, Span] = {}
        """Of each conversation, the request whose answer has not ended."""
        self._ended: dict[str, str] = {}  # of each conversation, the model call that ended last
        self._answer: dict[str, Span] = {}  # of each conversation, what was said last

    def take_request(self, record: Span) -> None:
        conversation, status = (
            _conversation(record),
            record.attributes.get("http.response.status_code"),
        )
        message = text_of(record, "error.message")
        failed = record.attributes.get("success") in ("false", False)
        if message or failed or (integer(status) or 0) >= _FAILED:
            status_text = f"http {status}" if status else "error"
            self._stand_failed(record, message or status_text)
            return
        self._stand_unended(conversation)
        self._asked[conversation] = record

    def take_end(self, record: Span) -> None:
        conversation = _conversation(record)
        if message := text_of(record, "error.message"):
            self._asked.pop(conversation, None)
            self._stand_failed(record, message)
            return
        asked = self._asked.pop(conversation, None)
        call = record
        if asked is not None:
            start = lasting(asked).start_time_unix_nano
            call = msgspec.structs.replace(record, start_time_unix_nano=start)
            call = self._ledger.enrich(asked, call, AddedAttributes(asked.attributes))
        self._ledger.stand(call)
        self._ended[conversation] = call.span_id

    def take_response(self, record: Span) -> None:
        conversation = _conversation(record)
        self._answer[conversation] = record
        call = self._ledger.get(self._ended.get(conversation, ""))
        if call is None:
            self._ledger.stand(record)
        else:
            self._ledger.enrich(record, call, _words(record))

    def take_prompt(self, record: Span) -> None:
        """A person's; no one typed that a title is wanted."""
        if text_of(record, "prompt").startswith(NOT_TYPED):
            return
        self._ledger.stand(record)
        self._prompt = self._prompt or record

    def finish(self, records: Sequence[Span]) -> None:
        for conversation in tuple(self._asked):
            self._stand_unended(conversation)
        if self._prompt is None:
            return
        main = _conversation(self._prompt)
        answer = self._answer.get(main)
        if answer is not None:
            self._ledger.enrich(answer, self._prompt, _words(answer))
        self._name_helpers(records, main)

    def _name_helpers(self, records: Sequence[Span], main: str) -> None:
        """A helper's name is in the results of its tools: `/root/count_lines`."""
        names = {
            _conversation(record): name
            for record in records
            if (name := text_of(record, "agent_name")) and _conversation(record) != main
        }
        for span in self._ledger.spans if names else ():
            name = names.get(text_of(span, "receiver_thread_id") or _conversation(span))
            if name is not None:
                named = MergedAttributes(span.attributes, {"agent_name": name})
                self._ledger.put(msgspec.structs.replace(span, attributes=named))

    def _stand_unended(self, conversation: str) -> None:
        asked = self._asked.pop(conversation, None)
        if asked is not None:
            self._ledger.stand(lasting(asked))

    def _stand_failed(self, record: Span, message: str) -> None:
        failed = msgspec.structs.replace(record, status="error", status_message=message)
        self._ledger.stand(lasting(failed))


def _words(response: Span) -> AddedAttributes:
    return AddedAttributes(response.attributes)


def _conversation(record: Span) -> str:
    return text_of(record, "conversation.id")
