"""Claude Code's log events: a prompt, a call of a model and a call of a tool, each described by several records.

Records of one call are joined by its id. They are added to the call's beta span; where it did not come, the first of
them stands for the call. The answer of a turn is what the main agent said without calling a tool, last: not what the
program had the model say for itself, as a title of the session or a prompt to suggest.
"""

from collections.abc import Iterable, Sequence

import msgspec

from evaluators.dialects.decoding.values import integer, string
from evaluators.dialects.enrichment.ledger import CallRecords, Ledger
from evaluators.dialects.enrichment.records import (
    AddedAttributes,
    MergedAttributes,
    event_of,
    lasting,
    text_of,
)
from evaluators.dialects.turns.claude_code import NOTIFICATION, is_main
from evaluators.model import Span

_ERRORS = frozenset({"api_error", "api_retries_exhausted"})
_TOOLS = frozenset({"tool_decision", "tool_result"})
TEXT = 65_536
"""Characters of an answer beyond which no more messages are added to it."""
_BODIES = frozenset({"api_request_body", "api_response_body"})


def enrich(ledger: Ledger, records: Sequence[Span]) -> None:
    turn = _ClaudeCodeTurn(ledger)
    for record in sorted(records, key=_order):
        event = event_of(record).removeprefix("claude_code.")
        if event in _TOOLS:
            turn.take_tool(record)
        elif event == "api_request":
            turn.models.add(record, text_of(record, "request_id"), ends=True)
        elif event == "assistant_response":
            turn.take_response(record)
        elif event in _ERRORS:
            turn.take_error(record)
        elif event == "api_refusal":
            turn.refusals.append(record)
        elif event in _BODIES:
            turn.bodies.append(record)
        elif event == "user_prompt":
            turn.take_prompt(record)
        elif event == "subagent_completed":
            ledger.stand(lasting(record))
    turn.finish(records)


class _ClaudeCodeTurn:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.models = CallRecords(ledger, _spans(ledger, "llm_request", "request_id"))
        self.tools = CallRecords(ledger, _spans(ledger, "tool", "tool_use_id"))
        self.bodies: list[Span] = []
        self.refusals: list[Span] = []
        """Answers in which the model refused: they are reported beside the call that they end."""
        self._prompt: Span | None = None
        self._said: list[Span] = []  # what the main agent said
        self._asking: set[str] = set()  # requests in whose answers tools were called
        self._decided: dict[str, list[str]] = {}
        """By tool, the decisions without an id whose results have not come."""
        self._failed: dict[str, str] = {}  # of each agent, the call that failed last

    def take_tool(self, record: Span) -> None:
        """By the call's id; older versions have none, and a result is of the first decision that lacks one."""
        call_id, name = text_of(record, "tool_use_id"), text_of(record, "tool_name")
        if not call_id:
            decided = self._decided.setdefault(name, [])
            if event_of(record).endswith("tool_decision"):
                call_id = f"decision {record.span_id}"
                decided.append(call_id)
            elif decided:
                call_id = decided.pop(0)
        self.tools.add(record, call_id, ends=event_of(record).endswith("tool_result"))
        self._asking.add(text_of(record, "request_id"))

    def take_response(self, record: Span) -> None:
        if not text_of(record, "agent_id") and is_main(text_of(record, "query_source")):
            self._said.append(record)
        call_id = text_of(record, "request_id")
        home = self.models.home(call_id)
        if home is None:
            self.models.add(record, call_id, ends=False)
            return
        before = string(home.attributes.get("response"))
        home = self._ledger.enrich(record, home, AddedAttributes(record.attributes))
        if before is not None and len(before) < TEXT:
            # One request gave several messages with text.
            whole = {"response": f"{before}\n\n{text_of(record, 'response')}"}
            joined = MergedAttributes(whole, home.attributes)
            self._ledger.put(msgspec.structs.replace(home, attributes=joined))

    def take_error(self, record: Span) -> None:
        """A call that failed; a second record without its id says that its retries are exhausted."""
        agent, call_id = text_of(record, "agent_id"), text_of(record, "request_id")
        known = self._ledger.get(self._failed.get(agent, "")) if not call_id else None
        if known is not None:
            self._ledger.enrich(record, known, AddedAttributes(record.attributes))
            return
        message = text_of(record, "error") or text_of(record, "status_code") or "error"
        failed = msgspec.structs.replace(record, status="error", status_message=message)
        self._failed[agent] = self.models.add(failed, call_id, ends=True).span_id

    def take_prompt(self, record: Span) -> None:
        """A person's; what a helper reports and what the program itself answers is not a question."""
        if text_of(record, "prompt").lstrip().startswith(NOTIFICATION):
            return
        around = self._ledger.get(record.parent_span_id)
        if around is not None and around.attributes.get("span.type") == "interaction":
            record = self._ledger.enrich(record, around, record.attributes)
        else:
            self._ledger.stand(record)
        self._prompt = self._prompt or record

    def finish(self, records: Sequence[Span]) -> None:
        self._add_bodies()
        self._fail_refused()
        self._name_helpers(records)
        if self._prompt is not None:
            self._finish_prompt(self._prompt)

    def _finish_prompt(self, prompt: Span) -> None:
        final = [each for each in self._said if text_of(each, "request_id") not in self._asking]
        if final:
            words = {"response": final[-1].attributes.get("response")}
            self._ledger.enrich(final[-1], prompt, words)
        elif text_of(prompt, "command_source") == "builtin" and self.models.is_empty:
            kept = {key: prompt.attributes.get(key) for key in _OF_COMMANDS}
            self._ledger.put(msgspec.structs.replace(prompt, attributes=kept))

    def _fail_refused(self) -> None:
        """A call whose answer was a refusal has failed, unless another model was asked instead."""
        for record in self.refusals:
            if record.attributes.get("server_fallback_hop") in (True, "true"):
                continue
            home = self.models.home(text_of(record, "request_id"))
            failed = {"status": "error", "status_message": _refusal(record)}
            if home is None:
                self._ledger.stand(msgspec.structs.replace(record, **failed))
            else:
                home = self._ledger.enrich(record, home, AddedAttributes(record.attributes))
                self._ledger.put(msgspec.structs.replace(home, **failed))

    def _add_bodies(self) -> None:
        asked = {
            text_of(each, "request_body_id"): text_of(each, "request_id")
            for each in self.bodies
            if text_of(each, "request_id")
        }
        for record in self.bodies:
            call_id = text_of(record, "request_id") or asked.get(text_of(record, "request_body_id"))
            home = self.models.home(call_id or "")
            if home is not None:
                get = record.attributes.get
                key = "response_body" if text_of(record, "request_id") else "request_body"
                cut = {f"{key}_truncated": get("body_truncated")}
                self._ledger.enrich(record, home, {key: get("body"), **cut})

    def _name_helpers(self, records: Iterable[Span]) -> None:
        """Calls of helpers carry the helper's id; some of its records name it."""
        names = {
            text_of(record, "agent_id"): name
            for record in records
            if text_of(record, "agent_id") and (name := _helper_name(record))
        }
        for span in self._ledger.spans if names else ():
            name = names.get(text_of(span, "agent_id"))
            if name is not None:
                named = MergedAttributes(span.attributes, {"agent.name": name})
                self._ledger.put(msgspec.structs.replace(span, attributes=named))


_OF_COMMANDS = ("spanwise.log.event", "session.id", "user.id", "prompt.id")
"""What is kept of a prompt that the program itself answered, as `/exit`."""


def _refusal(record: Span) -> str:
    category = text_of(record, "category")
    return f"refusal: {category}" if category else "refusal"


def _helper_name(record: Span) -> str:
    """`general-purpose`, from its own key or from `agent:builtin:general-purpose`."""
    source = text_of(record, "query_source")
    return (
        text_of(record, "agent.name")
        or text_of(record, "agent_type")
        or (source.rpartition(":")[2] if source.startswith("agent:") else "")
    )


def _spans(ledger: Ledger, kind: str, key: str) -> list[tuple[str, Span]]:
    return [
        (text_of(span, key), span)
        for span in ledger.spans
        if span.attributes.get("span.type") == kind and text_of(span, key)
    ]


def _order(record: Span) -> tuple[int, int]:
    return record.start_time_unix_nano, integer(record.attributes.get("event.sequence")) or 0
