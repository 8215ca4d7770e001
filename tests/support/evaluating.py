"""Traces, turns and the registry, for tests of evaluators."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

from evaluators.declare import declared
from evaluators.errors import Unjudgeable
from evaluators.matching.tool_calls import check_arguments
from evaluators.model import (
    JSON,
    ModelCall,
    Outcome,
    Session,
    SessionClosed,
    ToolCall,
    ToolDefinition,
    Trace,
    Turn,
)
from evaluators.plan import Plan, Settings, make_plan
from evaluators.registry import Registry
from evaluators.run import SessionScorer

OURS = Registry.discover(())


def a_trace(**fields: Any) -> Trace:
    """A trace with one model call, an input and an output; `fields` replace any of it."""
    defaults: dict[str, Any] = {
        "trace_id": "t" * 32,
        "service": "bot",
        "agent": "planner",
        "session_id": "s-1",
        "session_source": "session.id",
        "input": "What is the weather in Paris?",
        "output": "It is sunny in Paris.",
        "model_calls": (ModelCall(span_id="m1"),),
        "root_span_id": "r1",
        "root": "parentless",
    }
    return Trace(**{**defaults, **fields})


def a_call(
    name: str = "search",
    arguments: JSON = None,
    *,
    span_id: str | None = None,
    error: str | None = None,
) -> ToolCall:
    """A tool call."""
    return ToolCall(name=name, arguments=arguments, span_id=span_id, error=error)


def a_tool(name: str = "search", parameters: JSON = None) -> ToolDefinition:
    """A tool that was offered."""
    return ToolDefinition(name=name, parameters=parameters)


def a_turn(trace_id: str, start: int, scores: Mapping[str, float], **fields: Any) -> Turn:
    """A turn of one second."""
    defaults: dict[str, Any] = {"duration": 1.0, "digest": ""}
    return Turn(
        trace_id=trace_id, start_time_unix_nano=start, scores=scores, **{**defaults, **fields}
    )


def plan_of(
    function: object,
    settings: Settings | None = None,
    *,
    embedder: str | None = None,
    hosted: bool = False,
    judge: bool = False,
) -> Plan:
    """The plan of one function that `@evaluator` declares."""
    spec = declared(function)
    assert spec is not None
    chosen = {} if settings is None else {spec.name: settings}
    return make_plan(Registry([spec]), chosen, embedder=embedder, hosted=hosted, judge=judge)


def session_outcomes(plan: Plan, *turns: Turn, closed: bool = True) -> dict[str, Outcome]:
    """What the plan says of a session of these turns, by evaluator."""
    scorer = SessionScorer(plan)
    for turn in turns:
        scorer.put(turn)
    ended: SessionClosed | None = "idle" if closed else None
    session = Session(service="bot", session_id="s", agent="bot", turns=turns, closed=ended)
    return {each.evaluator: each for each in scorer.outcomes(session, closed=closed)}


def error_type(outcome: Outcome) -> str:
    """Of an outcome that failed."""
    assert (outcome.state, outcome.score) == ("failed", None)
    assert outcome.error is not None
    return outcome.error.type


def argument_error(schema: JSON, arguments: JSON) -> str | None:
    """Raises Unjudgeable: the call cannot be judged."""
    tool = ToolDefinition(name="t", parameters=schema)
    checked = check_arguments(
        a_trace(tools_offered=(tool,), tool_calls=(a_call("t", arguments=arguments),))
    )
    if not checked.judged:
        raise Unjudgeable(checked.unchecked or "not judged")
    return checked.judged[0][1]


class HashEmbedder:
    """A bag of hashed words: equal texts are equal, texts without a common word nearly orthogonal. No model."""

    model = "hash"

    def __init__(self, *, dimensions: int = 64) -> None:
        self._dimensions = dimensions

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector of length 1 per text, or of length 0 for a text without words."""
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> Sequence[float]:
        vector = [0.0] * self._dimensions
        for word in text.lower().split():
            digest = hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest()
            vector[int.from_bytes(digest) % self._dimensions] += 1.0
        norm = math.hypot(*vector) or 1.0
        return [value / norm for value in vector]
