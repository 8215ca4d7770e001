"""A trace as a conversation, in reading order. Pure.

Each model call is sent the history before it once more: of a call only what is new is a line.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from evaluators.dialects.content.message_model import Call, Message
from evaluators.dialects.decoding.decode import decode
from evaluators.dialects.decoding.room import Room
from evaluators.dialects.decoding.values import as_dict, text_of
from evaluators.dialects.enrichment.enrich import enrich
from evaluators.dialects.joining.model_calls import Exchange, find_exchanges
from evaluators.dialects.joining.system_prompt import system_of
from evaluators.dialects.joining.tree import Tree
from evaluators.dialects.registry import read_facts
from evaluators.model import AgentStep, ModelCall, ToolCall, Trace


class Exchanged(msgspec.Struct, frozen=True, kw_only=True):
    sent: tuple[Message, ...] = ()  # the whole history, the system prompt first
    answered: tuple[Message, ...] = ()


def read_exchanged(pieces: Sequence[bytes], *, trace_id: str) -> Mapping[str, Exchanged]:
    """The messages of every model call, by the span id that it has in `Trace.model_calls`."""
    decoded = decode(pieces, trace_id.lower())
    if not decoded.spans:
        return {}
    spans, _ = enrich(decoded.spans)
    with Room():
        exchanges = find_exchanges(Tree([read_facts(span) for span in spans]))
        return {each.layers[0].span.span_id: _exchanged(each) for each in exchanges}


def _exchanged(exchange: Exchange) -> Exchanged:
    sent = exchange.messages_in or _asked(exchange)
    system = system_of(exchange)
    if system and not any(each.role == "system" for each in sent):
        sent = (Message(role="system", text=system), *sent)
    answered = exchange.messages_out
    if exchange.text and not any(each.text for each in answered):
        answered = (Message(role="assistant", text=exchange.text), *answered)
    return Exchanged(sent=sent, answered=answered)


def _asked(exchange: Exchange) -> tuple[Message, ...]:
    for facts in exchange.layers:
        if facts.input is not None and (text := facts.input.text):
            return (Message(role="user", text=text),)
    return ()


Speaker = Literal["system", "user", "assistant", "tool", "agent"]
_Said = tuple[str, str]
"""Equal for two records of one utterance: who said it, and the words."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    speaker: Speaker
    text: str | None = None  # None: nothing was said, or it was not exported
    agent: str | None = None  # whose words they are, of a step of which no model call was recorded
    is_earlier: bool = False  # whether it was said in a former turn of the session and sent again
    model: ModelCall | None = None  # the model call that this line answers
    wanted: tuple[Call, ...] = ()
    """Calls that the model asked for and that are not tool calls of the trace: a hand-over, or a structured answer."""
    asks: bool = False  # whether the model asked for a tool call that has a line of its own
    call: ToolCall | None = None  # the tool call that this line is
    span_id: str | None = None


def reading_order(trace: Trace, exchanged: Mapping[str, Exchanged]) -> tuple[Line, ...]:
    """Everything that was said and done in the trace, each once, in the order in which a person would read it.

    `exchanged`: the messages of its model calls, by span id; without them its answers and tool calls are left.
    """
    return tuple(_OrderReader(trace, exchanged).lines())


class _OrderReader:
    def __init__(self, trace: Trace, exchanged: Mapping[str, Exchanged]) -> None:
        self._trace = trace
        self._exchanged = exchanged
        self._shown: Counter[_Said] = Counter()
        self._calls = frozenset(map(_wanted, trace.tool_calls))
        self._call_ids = frozenset(each.id for each in trace.tool_calls if each.id)
        found = (text_of(each.result) for each in trace.tool_calls)
        self._results = frozenset(text for text in found if text)
        self._is_first = True

    def lines(self) -> Iterator[Line]:
        if self._trace.input and not self._is_question_sent():
            span_id = self._trace.root_span_id
            yield Line(speaker="user", text=self._trace.input, span_id=span_id)
        for step in _in_order(self._trace):
            if isinstance(step, ModelCall):
                yield from self._of_model(step)
            elif isinstance(step, ToolCall):
                yield Line(speaker="tool", call=step, span_id=step.span_id)
            elif step.output and not self._shown[_said("assistant", step.output)]:
                yield Line(
                    speaker="agent", agent=step.agent, text=step.output, span_id=step.span_id
                )

    def _is_question_sent(self) -> bool:
        messages = (each for said in self._exchanged.values() for each in said.sent)
        return any(each.role == "user" and each.text for each in messages)

    def _of_model(self, call: ModelCall) -> Iterator[Line]:
        said = self._exchanged.get(call.span_id) or Exchanged()
        yield from self._sent(said.sent, call.span_id)
        answers = [each for each in said.answered if each.role == "assistant"]
        texts = [each.text for each in answers if each.text]
        if not texts and call.output:
            texts = [call.output]
        for text in texts:
            self._shown[_said("assistant", text)] += 1
        calls = [call for each in answers for call in each.calls]
        wanted = tuple(each for each in calls if not self._is_shown(each))
        yield Line(
            speaker="assistant",
            text="\n\n".join(texts) or None,
            model=call,
            wanted=wanted,
            asks=len(calls) > len(wanted),
            span_id=call.span_id,
        )

    def _sent(self, messages: Sequence[Message], span_id: str) -> Iterator[Line]:
        """What was not shown yet: of words that occur n times in a history, those beyond the n that were shown."""
        earlier = _former_turns(messages) if self._is_first else 0
        self._is_first = self._is_first and not messages
        here: Counter[_Said] = Counter()
        for place, message in enumerate(messages):
            for speaker, text in self._utterances(message):
                said = _said(speaker, text)
                here[said] += 1
                if here[said] <= self._shown[said]:
                    continue
                self._shown[said] += 1
                is_earlier = place < earlier and speaker != "system"
                yield Line(speaker=speaker, text=text, is_earlier=is_earlier, span_id=span_id)

    def _utterances(self, message: Message) -> Iterator[tuple[Speaker, str]]:
        if message.text and not message.results:
            yield message.role, message.text
        for result in message.results:
            text = text_of(result.content)
            if text and text not in self._results and result.id not in self._call_ids:
                yield "tool", text

    def _is_shown(self, call: Call) -> bool:
        return call.id in self._call_ids or _wanted(call) in self._calls


def _in_order(trace: Trace) -> list[ModelCall | ToolCall | AgentStep]:
    """By start; the step of an agent, of which only the answer is known, by its end."""
    steps: list[tuple[int, int, ModelCall | ToolCall | AgentStep]] = [
        *((each.start_time_unix_nano, 0, each) for each in trace.model_calls),
        *((each.start_time_unix_nano, 1, each) for each in trace.tool_calls),
        *((each.end_time_unix_nano, 2, each) for each in trace.steps),
    ]
    return [step for *_, step in sorted(steps, key=lambda each: each[:2])]


def _former_turns(messages: Sequence[Message]) -> int:
    """How many messages of a trace's first history are before the question: its last run of a user's words."""
    asked = {place for place, each in enumerate(messages) if each.role == "user" and each.text}
    if not asked:
        return 0
    first = max(asked)
    while first - 1 in asked:
        first -= 1
    return first


def _said(speaker: str, text: str) -> _Said:
    return speaker, text.strip()


def _wanted(call: Call | ToolCall) -> _Said:
    arguments = as_dict(call.arguments) or call.arguments
    if isinstance(arguments, dict):
        arguments = dict(sorted(as_dict(arguments).items()))
    return call.name, text_of(arguments or None) or ""
