"""What users write; pyright in strict mode is the test (`make check`)."""

from collections.abc import Mapping
from typing import Literal, assert_type

from evaluators import (
    Block,
    Embedder,
    Expectation,
    Extraction,
    History,
    Judge,
    Running,
    Score,
    Session,
    Trace,
    Turn,
    UnitInterval,
    evaluator,
)
from evaluators.model import JSON


@evaluator(version="1", threshold=0.9)
def tool_success(trace: Trace) -> Score:
    """Share of the trace's tool calls that did not end in error."""
    calls = trace.tool_calls
    if not calls:
        return Score.assume(1.0, "the trace called no tools")
    failed = tuple(call.span_id for call in calls if call.error and call.span_id)
    return Score(
        value=1 - len(failed) / len(calls),
        explanation=f"{len(failed)} of {len(calls)} tool calls failed",
        evidence=failed,
    )


class Tone(Block, frozen=True, kw_only=True):
    """Is the answer polite? 1 = throughout, 0 = not at all."""

    score: UnitInterval
    reason: str | None = None


@evaluator(version="1")
def tone(trace: Trace, *, tone: Tone, extraction: Extraction) -> Score:
    """Whether the answer is polite."""
    return Score(value=tone.score, explanation=tone.reason, metadata={"task": extraction.task})


@evaluator(version="1")
async def second_opinion(trace: Trace, *, judge: Judge) -> Score:
    """Calls of its own."""
    answer = await judge.ask("Answer yes or no.", trace.output or "")
    return Score(value=float(answer.strip() == "yes"))


@evaluator(version="2")
def everything(
    trace: Trace,
    *,
    history: History,
    embedder: Embedder,
    expectation: Expectation,
    mode: Literal["fast", "exact"] = "fast",
    share: UnitInterval = 0.5,
    weights: Mapping[str, float] = {},
) -> Score:
    """Everything a trace evaluator can ask for."""
    vectors = embedder.embed([previous.output or "" for previous in history.previous])
    value = share if mode == "fast" else float(len(vectors) == len(weights))
    return Score(value=value, explanation=expectation.output)


class Slowest(Running):
    """The longest turn."""

    def __init__(self, options: Mapping[str, JSON]) -> None:
        self.limit = float(options["limit"])
        self._durations: dict[str, float] = {}

    def put(self, turn: Turn) -> None:
        """Take in a turn."""
        self._durations[turn.trace_id] = turn.duration

    def drop(self, trace_id: str) -> None:
        """Forget a turn."""
        self._durations.pop(trace_id, None)

    @property
    def is_slow(self) -> bool:
        """Whether any turn took longer than the limit."""
        return max(self._durations.values(), default=0.0) > self.limit


@evaluator(version="1")
def patience(session: Session, *, slowest: Slowest, limit: float = 30.0) -> Score:
    """1 unless a turn took longer than `limit` seconds."""
    return Score(value=float(not slowest.is_slow), explanation=f"limit {limit:g} s")


def a_plain_call_is_typed(trace: Trace) -> None:
    """The decorator returns the function itself, with its own types."""
    assert_type(tool_success(trace), Score)
    assert_type(
        tone(trace, tone=Tone(score=1.0), extraction=Extraction(task="t", outcome="o")), Score
    )
    tone(trace, tone="polite")  # pyright: ignore[reportArgumentType, reportCallIssue]
