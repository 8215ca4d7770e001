"""Bodies of AWS's distribution: words without the keys under which the span had them.

One record per span: `{"input": {"messages": [{"role", "content"}]}, "output": {...}}`. A content is the attributes of a
span event (Strands), or the text of an attribute. What is left on the span tells which: its messages keep their roles.
"""

from collections.abc import Iterable, Mapping

import msgspec

from evaluators.dialects.decoding.decode import names_of
from evaluators.dialects.decoding.values import as_dict, as_list
from evaluators.dialects.enrichment.ledger import Ledger
from evaluators.dialects.enrichment.records import body_of
from evaluators.model import JSON, Event, Span

_Messages = list[dict[str, JSON]]
_DIGITS = 9
"""Of the index of a message; more make it no index."""


def enrich(ledger: Ledger, record: Span, span: Span) -> None:
    body = as_dict(body_of(record))
    sent, received = (_messages(body.get(side)) for side in ("input", "output"))
    if any(isinstance(message["content"], dict) for message in (*sent, *received)):
        events = _events(sent, received, record.start_time_unix_nano)
        ledger.add_events(record, span.span_id, events)
        return
    layout = next((each for each in _LAYOUTS if each.mark in span.attributes), None)
    put = _put_as_conventions if layout is None else layout.put
    ledger.enrich(record, span, {**put(span, sent, 0), **put(span, received, 1)})


def _messages(side: JSON) -> _Messages:
    messages = map(as_dict, as_list(as_dict(side).get("messages")))
    return [message for message in messages if "content" in message]


def _events(sent: _Messages, received: _Messages, time: int) -> list[Event]:
    """The events in the order they had: the assistant's former messages, which are among the answers, between."""
    answers = [as_dict(m["content"]) for m in received if isinstance(m["content"], dict)]
    former = [content for content in answers if "message" not in content]
    names: list[tuple[str, dict[str, JSON]]] = []
    for message in sent:
        if not isinstance(message["content"], dict):
            continue
        role = str(message.get("role"))
        names.append((f"gen_ai.{role}.message", as_dict(message["content"])))
        if role != "system" and former:
            names.append(("gen_ai.assistant.message", former.pop(0)))
    names += [("gen_ai.assistant.message", content) for content in former]
    names += [("gen_ai.choice", content) for content in answers if "message" in content]
    return [Event(name=n, time_unix_nano=time, attributes=content) for n, content in names]


class _Layout(msgspec.Struct, frozen=True):
    """Where an instrumentation has its words, for what is sent and for what is received."""

    mark: str  # an attribute that spans of this instrumentation keep
    whole: tuple[str, str]  # the whole of a side, as one text
    messages: tuple[str, str]  # how the keys of flattened messages begin, before the index
    inner: str = ""  # what is between the index and the message's own keys

    def put(self, span: Span, messages: _Messages, side: int) -> dict[str, JSON]:
        """The attributes of one side (0 or 1). A text that cannot be placed is left out."""
        texts = [message["content"] for message in messages]
        if not texts:
            return {}
        slots = self._slots(names_of(span.attributes), self.messages[side])
        words: dict[str, JSON] = {}
        if (
            len(texts) > len(slots)
            or f"{self.whole[side].split('.')[0]}.mime_type" in span.attributes
        ):
            at = next((i for i, text in enumerate(texts) if _is_container(text)), 0)
            words[self.whole[side]] = texts.pop(at)
        for chosen in (slots, {slot: calls for slot, calls in slots.items() if not calls}):
            if len(chosen) == len(texts):
                stem = self.messages[side]
                pairs = zip(chosen, texts, strict=True)
                words |= {f"{stem}{slot}.{self.inner}content": text for slot, text in pairs}
                break
        return words

    def _slots(self, names: Iterable[str], stem: str) -> Mapping[int, bool]:
        """The indices of the messages that kept their roles, and whether each has calls instead of a text."""
        indices: set[int] = set()
        calling: set[int] = set()
        for name in names:
            index, _, key = name.removeprefix(stem).partition(".")
            if not name.startswith(stem) or len(index) > _DIGITS or not index.isdecimal():
                continue
            key = key.removeprefix(self.inner)
            if key == "role":
                indices.add(int(index))
            elif key.startswith("tool_calls"):
                calling.add(int(index))
        return {index: index in calling for index in sorted(indices)}


def _is_container(text: JSON) -> bool:
    return isinstance(text, str) and text.lstrip()[:1] in ("{", "[")


_OF_TOOL = ("gen_ai.tool.call.arguments", "gen_ai.tool.call.result")
_OF_MODEL = ("gen_ai.input.messages", "gen_ai.output.messages")


def _put_as_conventions(span: Span, messages: _Messages, side: int) -> dict[str, JSON]:
    """Of an instrumentation that is not known: the messages as the conventions have them."""
    if not messages:
        return {}
    if span.attributes.get("gen_ai.operation.name") == "execute_tool":
        return {_OF_TOOL[side]: messages[-1]["content"]}
    return {_OF_MODEL[side]: messages}


_OPENINFERENCE = _Layout(
    mark="openinference.span.kind",
    whole=("input.value", "output.value"),
    messages=("llm.input_messages.", "llm.output_messages."),
    inner="message.",
)
_TRACELOOP = _Layout(
    mark="traceloop.span.kind",
    whole=("traceloop.entity.input", "traceloop.entity.output"),
    messages=("gen_ai.prompt.", "gen_ai.completion."),
)
_FLAT = msgspec.structs.replace(_TRACELOOP, mark="gen_ai.prompt.0.role")
_LAYOUTS = (_OPENINFERENCE, _TRACELOOP, _FLAT)
