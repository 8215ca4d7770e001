"""What is scored and what a score is: the vocabulary shared by dialects, evaluators and the service.

Names follow OTLP and the OTel GenAI conventions. Everything is frozen; times are unix nanoseconds only where the
name says so, seconds (float) elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from evaluators.judge_use import JudgeUse
from evaluators.uses import CallCount, ToolUse, Work

JSON = Any
"""A JSON value: None, bool, int, float, str, list or dict of the same."""

Scope = Literal["trace", "session"]
Method = Literal["deterministic", "embedding", "llm_judge", "formula", "custom", "external"]
Status = Literal["unset", "ok", "error", "cancelled"]
"""How a trace ended. `cancelled`: somebody stopped it, so it did not fail."""
Ending = Literal["whole", "cut", "blocked", "cancelled"]
"""Why a model stopped: it was done, its answer reached a limit of length or was withheld, or somebody stopped it."""
Root = Literal["parentless", "local", "missing"]
Gap = Literal["no_root", "no_session", "no_content", "no_tool_definitions", "truncated"]
Content = Literal["text", "tool_calls", "tool_definitions", "root", "session", "tokens"]
"""What an evaluator can read of a recording: texts of messages, calls of tools with their arguments, ..."""
Closed = Literal["root_ended", "idle", "max_age", "max_spans", "max_bytes", "memory", "shutdown"]
"""Why a trace closed."""
SessionClosed = Literal["idle", "max_age", "memory", "shutdown"]
"""Why a session closed."""
Rejection = Literal["user", "policy"]
"""Who refused a tool call before it ran: a person who was asked, or a rule."""
State = Literal["scored", "measured", "not_applicable", "failed", "skipped"]
Reason = Literal[
    "sampled_out",
    "budget",
    "judge_lag",
    "overload",
    "no_content",
    "no_session",
    "no_tool_definitions",
    "no_expectations",
    "too_large",
    "low_coverage",
    "warming_up",
    "not_a_turn",
    "nothing_to_judge",
]
"""Why a subject was not scored (not_applicable or skipped): the closed list of the signal's schema."""


# --- what arrives ----------------------------------------------------------------------------------------------------


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """A span event (OTLP `Span.Event`)."""

    name: str
    time_unix_nano: int
    attributes: Mapping[str, JSON]


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """One decoded OTLP span. Ids are lower-case hex; `parent_span_id` is "" for a span without parent."""

    trace_id: str
    span_id: str
    parent_span_id: str
    name: str
    kind: int
    flags: int
    start_time_unix_nano: int
    end_time_unix_nano: int
    attributes: Mapping[str, JSON]
    events: tuple[Event, ...]
    status: Literal["unset", "ok", "error"]
    status_message: str
    scope: str
    resource: Mapping[str, JSON]
    dropped_attributes_count: int = 0


# --- the normalised trace --------------------------------------------------------------------------------------------


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """Token sums over the trace's own model calls; None = not exported."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    reasoning: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """A tool that the model was offered. `parameters` is its JSON schema, None when not exported."""

    name: str
    description: str | None = None
    parameters: JSON = None


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a tool: from its span, or, with `span_id` None, only seen in messages."""

    name: str
    id: str | None = None
    arguments: JSON = None
    result: JSON = None
    error: str | None = None
    """Why it failed, or was refused; None: it did neither."""
    agent: str | None = None
    span_id: str | None = None
    start_time_unix_nano: int = 0
    end_time_unix_nano: int = 0
    rejected: Rejection | None = None
    """Who refused it; `error` then has the text. The tool never ran: neither it nor the agent is at fault."""
    unanswered: bool = False
    """Whether it was allowed to run and never ended: what ran it broke off, or has not finished."""
    server: str | None = None
    """The MCP server that its spans name; None: they name none."""

    @property
    def failed(self) -> bool:
        """Whether it ended in error; a refused call did not."""
        return self.error is not None and self.rejected is None


class ModelCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a model, duplicates of instrumentation layers merged."""

    span_id: str
    model: str | None = None
    agent: str | None = None
    output: str | None = None
    """Text of the answer; None when it had none or was not exported."""
    error: str | None = None
    tokens: Tokens = Tokens()
    start_time_unix_nano: int = 0
    end_time_unix_nano: int = 0
    ending: Ending | None = None
    """Of the last call of a trace; None: the recording does not tell."""


class AgentStep(msgspec.Struct, frozen=True, kw_only=True):
    """One step of an agent whose model calls left no span: its agent span with output messages."""

    span_id: str
    agent: str | None = None
    output: str | None = None
    start_time_unix_nano: int = 0
    end_time_unix_nano: int = 0


class InnerTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of a conversation that is one trace, as a voice agent's; texts are cut to what evaluators compare."""

    span_id: str
    input: str | None = None
    output: str | None = None
    start_time_unix_nano: int = 0
    end_time_unix_nano: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A completed trace as every evaluator sees it.

    Content that the recording lacks is None or empty, and named in `gaps`; no value is guessed.
    """

    trace_id: str
    service: str
    agent: str
    agent_version: str | None = None
    agents: tuple[str, ...] = ()
    session_id: str
    """The trace id when the trace names no session (`session_source` "trace")."""
    session_source: str
    user_id: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])
    """Values of the attributes that `attributes.filter` of the configuration names."""
    task_id: str | None = None
    task_success: bool | None = None
    system: str | None = None
    """The first system prompt."""
    input: str | None = None
    output: str | None = None
    tokens: Tokens = Tokens()  # noqa: RUF009 - immutable
    cost_usd: float | None = None
    models: tuple[str, ...] = ()
    tools_offered: tuple[ToolDefinition, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()  # in order of start time
    model_calls: tuple[ModelCall, ...] = ()
    """In order of start time."""
    steps: tuple[AgentStep, ...] = ()
    """Agents' steps without a model call beneath them, in order of start time."""
    turns: tuple[InnerTurn, ...] = ()
    """Where it holds several turns, the newest of them in order of start time; empty where it is one turn."""
    status: Status = "unset"
    error: str | None = None
    root: Root = "missing"
    root_span_id: str | None = None
    closed: Closed = "root_ended"
    dialects: tuple[str, ...] = ()
    spans: int = 0
    truncated: bool = False
    is_part: bool = False
    """Whether it is only a piece of a turn that is another trace: a step of its agent, or what a server did for it."""
    gaps: tuple[Gap, ...] = ()
    start_time_unix_nano: int = 0
    end_time_unix_nano: int = 0
    digest: str = ""
    """SHA-256 (hex) over the sorted span ids; part of the ids of its signals."""
    unread: str | None = None
    """Why there is nothing to score (undecodable, worker_died, too_large): every due evaluator fails with this type."""

    @property
    def duration(self) -> float:
        """Seconds from the first start to the last end; 0 when clocks ran backwards."""
        return max(0, self.end_time_unix_nano - self.start_time_unix_nano) / 1e9

    @property
    def is_turn(self) -> bool:
        """Whether an agent acted: a trace without model call, tool call and agent's step is not a turn of its session.

        Nor is a step of a turn that is another trace.
        """
        return not self.is_part and bool(self.model_calls or self.tool_calls or self.steps)


# --- the session -----------------------------------------------------------------------------------------------------


PENDING = "pending"
"""Why an evaluator that is due has no score yet: its judge has not answered."""


class Turn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One trace as its session stores it."""

    trace_id: str
    start_time_unix_nano: int
    duration: float
    digest: str
    tokens: Tokens = Tokens()
    cost_usd: float | None = None
    model_calls: int = 0
    """Agents' steps without a model call beneath them included."""
    tool_calls: int = 0
    call_counts: tuple[CallCount, ...] = ()
    """How often each tool call was made with each result."""
    scores: Mapping[str, float] = {}
    """Final scores by evaluator, and the assumed ones of evaluators that declare `assumed_counts`."""
    risks: Mapping[str, float] = {}
    """By evaluator, the calibrated risk (`Score.risk`), where it differs from 1 - score."""
    unscored: tuple[str, ...] = ()
    """Evaluators that were due and failed, were skipped or had no content to read: what coverage counts as missing."""
    unscored_why: Mapping[str, str] = {}
    """By unscored evaluator, the type of its error, the reason of its outcome, or PENDING."""
    assumed: tuple[str, ...] = ()
    """Evaluators in `scores` whose score is only assumed: coverage counts them as neither expected nor present."""
    has_text: bool = True
    """Whether its spans carried the text of the answer, or of the question where no answer was given."""
    work: Work = Work()
    writes: tuple[int, ...] = ()
    """Digests of the calls that changed something (`formulas.agreement`), sorted."""
    model: str = ""
    """The first model that was called."""
    is_part: bool = False
    """Whether it is only a piece of a turn that is another trace: it has no signals."""
    tools: tuple[ToolUse, ...] = ()
    model_failed: bool = False
    """Whether a model call failed."""
    lacks_answer: bool | None = None
    """Whether it stopped without an answer; None: the spans do not tell."""
    gave_up: bool | None = None
    """Whether the answer says that the agent could not; None: there is no answer."""
    cancelled: bool = False
    """Whether somebody stopped it."""
    ending: Ending | None = None
    """Of its last model call; None: the spans do not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Previous:
    """An earlier trace of the same session, as evaluators that take `History` see it."""

    trace_id: str
    digest: str
    output: str | None
    input: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The sliding window of one session, turns in the order of (start, trace id)."""

    service: str
    session_id: str
    agent: str
    turns: Sequence[Turn] = ()
    closed: SessionClosed | None = None
    """Why it closed; None while it is open."""


# --- the score -------------------------------------------------------------------------------------------------------


class Score(msgspec.Struct, frozen=True):
    """The result of an evaluator: a value in [0, 1], or the reason for its absence (use the constructors below)."""

    value: float | None = None
    explanation: str | None = None
    metadata: Mapping[str, JSON] = {}
    """Exactly the fields that the seed document lists, threshold and success apart (the runner adds those two)."""
    evidence: tuple[str, ...] = ()
    """Span ids."""
    assumed: float | None = None
    success: bool | None = None
    """None: score >= threshold. Set where a document defines success otherwise."""
    state: Literal["scored", "measured", "not_applicable"] = "scored"
    truncated: str | None = None
    """Parts of the metadata left out for size; None = the metadata is whole."""
    threshold: float | None = None
    """Set where an option of the document's own decides; None: the configured one."""
    coverage: tuple[int, int] | None = None
    """Sessions: (expected, present) traces that could have been judged."""
    risk: float | None = None
    """In [0, 1]: how much session formulas count it against the session with `inputs: calibrated`; None: 1 - value."""
    reason: Reason | None = None
    """Why it is not applicable; None: there was nothing to judge."""

    @classmethod
    def assume(
        cls, value: float, explanation: str, metadata: Mapping[str, JSON] | None = None
    ) -> Score:
        """There was nothing to judge and the document defines the score for that: not_applicable, `assumed` = value."""
        return cls(
            state="not_applicable", assumed=value, explanation=explanation, metadata=metadata or {}
        )

    @classmethod
    def not_applicable(cls, explanation: str, reason: Reason | None = None) -> Score:
        """There was nothing to judge (or another `reason`), and no document defines a score for that."""
        return cls(state="not_applicable", explanation=explanation, reason=reason)

    @classmethod
    def measured(cls, metadata: Mapping[str, JSON]) -> Score:
        """A measurement (latency, cost, tokens): the aggregate is in `metadata`, there is no score."""
        return cls(state="measured", metadata=metadata)


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why an evaluator that was due gave no score."""

    type: str
    """timeout, invalid_score, exception, worker_died, ..."""
    message: str


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of one evaluator on one subject: a value or an error, never both."""

    evaluator: str
    version: str
    method: Method
    state: State
    score: float | None = None
    threshold: float | None = None
    success: bool | None = None
    assumed: float | None = None
    final: bool = True
    explanation: str | None = None
    metadata: Mapping[str, JSON] = {}
    evidence: tuple[str, ...] = ()
    reason: str | None = None
    """Why it was skipped or not applicable: one word of a closed list, else None."""
    error: Failure | None = None
    truncated: str | None = None
    contradiction: bool = False
    compared: tuple[str, ...] = ()
    """Digests of the traces this one was compared with (part of the signal's id)."""
    options_digest: str = ""
    expectation: str | None = None
    """Digest of the expectation used (part of the signal's id)."""
    coverage: tuple[int, int] | None = None
    """Sessions: (expected, present) scores that the formula could have read."""
    risk: float | None = None
    """Calibrated risk of a score (`Score.risk`)."""
    measured: float | None = None
    """The value of a measured one without a calibrated scale: session formulas that name its evaluator read it."""
    judge: JudgeUse | None = None
    """None: no judge was asked."""
