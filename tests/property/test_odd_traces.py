"""Traces as real traffic has them: whatever is odd about one, a reading says nothing that the agent did not do.

Kinds of docs/decisions/042: parents that never come, a tool host's clock, ids on one side only, envelopes, masks, parts
without text, several turns in one trace. Each value is written once and is unlike all others, so that where it turns up
says where it was read.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.model import Trace
from tests.support.dialect_spans import SpanSpec, trace_of

PICTURE = "iVBORw0KGgo"
"""How the bytes of a picture begin, in base64."""
MASK = "<REDACTED>"
STEP = 1_000
"""Milliseconds of a model call or of a tool."""
Ids = Literal["both", "span", "message", "neither"]


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of a tool."""

    ids: Ids
    envelope: Literal["plain", "content", "text"]
    fails: bool


@dataclass(frozen=True, kw_only=True)
class Turn:
    """A question, calls, an answer."""

    calls: tuple[Call, ...]
    picture: bool
    """Whether the question has one beside its words."""


@dataclass(frozen=True, kw_only=True)
class Odd:
    """What is odd about the trace."""

    turns: tuple[Turn, ...]
    parent: Literal["none", "never", "remote"]
    skew: int
    """Milliseconds that the tools' clock is ahead of the agent's."""
    masked: bool
    history: bool
    """Whether each model call is sent all that was said before."""
    sums: bool
    """Whether a turn's span repeats the tokens of its model calls."""


CALLS = st.builds(
    Call,
    ids=st.sampled_from(["both", "span", "message", "neither"]),
    envelope=st.sampled_from(["plain", "content", "text"]),
    fails=st.booleans(),
)
TURNS = st.builds(Turn, calls=st.lists(CALLS, max_size=3).map(tuple), picture=st.booleans())
ODD = st.builds(
    Odd,
    turns=st.lists(TURNS, min_size=1, max_size=3).map(tuple),
    parent=st.sampled_from(["none", "never", "remote"]),
    skew=st.sampled_from([0, -4_000, 4_000, 60_000]),
    masked=st.booleans(),
    history=st.booleans(),
    sums=st.booleans(),
)


class Written:
    """The spans of a plan: a root, a span for each turn where there are several, calls of the model and of tools."""

    def __init__(self, plan: Odd) -> None:
        self._plan = plan
        self._said: list[dict[str, Any]] = []
        self._time = 0
        self.spans: list[SpanSpec] = []
        self.calls = 0
        self.tokens = 0
        several = len(plan.turns) > 1
        root = self._span(0, {"gen_ai.operation.name": "invoke_agent"}) if several else 0
        for number, turn in enumerate(plan.turns):
            self._turn(root, number, turn)
        if several:
            self._end(root)

    def _text(self, text: str) -> str:
        return MASK if self._plan.masked else text

    def _span(self, parent: int, attributes: dict[str, Any], *, ahead: int = 0, **more: Any) -> int:
        flags = 0
        if not parent and self._plan.parent != "none":
            parent, flags = 999, 0x300 if self._plan.parent == "remote" else 0x100
        self._time += STEP
        at = 100_000 + self._time + ahead
        number = len(self.spans) + 1
        self.spans.append(
            SpanSpec(
                id=number,
                parent=parent,
                flags=flags,
                start=at,
                end=at + STEP // 2,
                attributes=attributes,
                **more,
            )
        )
        return number

    def _end(self, number: int) -> None:
        """It ends with the last span that it holds."""
        old = self.spans[number - 1]
        self._time += STEP
        self.spans[number - 1] = replace(old, end=100_000 + self._time)

    def _turn(self, root: int, number: int, turn: Turn) -> None:
        agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "clerk"}
        of = self._span(root, agent)
        parts: list[dict[str, Any]] = [{"type": "text", "content": self._text(f"Q{number}?")}]
        if turn.picture:
            parts.append({"type": "blob", "mime_type": "image/png", "content": PICTURE * 9})
        said = [*(self._said if self._plan.history else ()), {"role": "user", "parts": parts}]
        tokens = 0
        for call in turn.calls:
            tokens += self._call(of, said, call)
        answer = {
            "role": "assistant",
            "parts": [{"type": "text", "content": self._text(f"A{number}.")}],
        }
        tokens += self._model(of, said, answer)
        self._said = [*said, answer]
        attributes = self.spans[of - 1].attributes
        assert isinstance(attributes, dict)
        if self._plan.sums:
            attributes["gen_ai.usage.input_tokens"] = tokens
        self._end(of)

    def _call(self, of: int, said: list[dict[str, Any]], call: Call) -> int:
        self.calls += 1
        named = f"c{self.calls}"
        arguments = {"number": f"N{self.calls}"}
        part: dict[str, Any] = {"type": "tool_call", "name": "find", "arguments": arguments}
        result: dict[str, Any] = {"type": "tool_call_response", "response": f"R{self.calls}"}
        span: dict[str, Any] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "find",
            "gen_ai.tool.call.arguments": json.dumps(arguments),
        }
        if call.ids in {"both", "message"}:
            part["id"] = result["id"] = named
        if call.ids in {"both", "span"}:
            span["gen_ai.tool.call.id"] = named
        if not call.fails:
            span["gen_ai.tool.call.result"] = _wrapped(f"R{self.calls}", call.envelope)
        asked = {"role": "assistant", "parts": [part]}
        tokens = self._model(of, said, asked)
        failed = {"status": 2, "message": "TimeoutError"} if call.fails else {}
        self._span(of, span, ahead=self._plan.skew, **failed)
        said += [asked, {"role": "tool", "parts": [result]}]
        return tokens

    def _model(self, of: int, said: Sequence[dict[str, Any]], answer: dict[str, Any]) -> int:
        tokens = 10 + len(said)
        self.tokens += tokens
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "m",
            "gen_ai.input.messages": json.dumps(said),
            "gen_ai.output.messages": json.dumps([answer]),
            "gen_ai.usage.input_tokens": tokens,
        }
        self._span(of, attributes)
        return tokens


def _wrapped(text: str, envelope: str) -> str:
    if envelope == "content":
        return json.dumps({"content": [{"type": "text", "text": text}], "isError": False})
    return json.dumps([{"type": "text", "text": text}]) if envelope == "text" else text


def texts(trace: Trace) -> list[str]:
    """Everything that is shown and scored as words."""
    found = [trace.input, trace.output, *(each.output for each in trace.model_calls)]
    return [each for each in found if each is not None]


@settings(max_examples=300, deadline=None)
@given(plan=ODD)
def test_a_reading_says_nothing_that_the_agent_did_not_do(plan: Odd) -> None:
    written = Written(plan)

    trace = trace_of(*written.spans)

    ids = [call.id for call in trace.tool_calls if call.id is not None]
    assert len(ids) == len(set(ids)), "no call twice for one id"
    assert len(trace.tool_calls) == written.calls, (
        "each call once, whatever ids it has on which side"
    )
    assert (trace.tokens.input or 0) <= written.tokens, "never above the sum of the model calls"
    assert not [text for text in texts(trace) if PICTURE in text], "no bytes among the words"
    failed = sum(call.fails for turn in plan.turns for call in turn.calls)
    assert sum(call.failed for call in trace.tool_calls) == failed


@settings(max_examples=300, deadline=None)
@given(plan=ODD.filter(lambda plan: not plan.masked))
def test_question_and_answer_are_of_one_turn_and_nothing_is_lost_without_a_gap(plan: Odd) -> None:
    trace = trace_of(*Written(plan).spans)

    last = len(plan.turns) - 1
    assert trace.input is not None
    assert trace.output is not None
    assert f"Q{last}?" in trace.input
    assert trace.output == f"A{last}."
    assert "no_content" not in trace.gaps
    assert ("no_root" in trace.gaps) is (plan.parent == "never")


@settings(max_examples=100, deadline=None)
@given(plan=ODD.filter(lambda plan: plan.masked))
def test_a_mask_is_no_words(plan: Odd) -> None:
    trace = trace_of(*Written(plan).spans)

    assert not [text for text in texts(trace) if text == MASK]
    assert "no_content" in trace.gaps
