"""All agents that speak in logs. A new one is one file beside this one, and one line here."""

from functools import lru_cache

from evaluators.dialects.decoding.decode import EVALUATION
from evaluators.dialects.turns.claude_code import CLAUDE_CODE_LOGS
from evaluators.dialects.turns.codex import CODEX_LOGS
from evaluators.dialects.turns.gemini_cli import GEMINI_CLI_LOGS
from evaluators.dialects.turns.place import AgentEvent, Dropped, LogAgent, Place
from evaluators.dialects.turns.qwen_code import QWEN_CODE_LOGS
from evaluators.dialects.turns.words import WORDS, carries_words

LOG_AGENTS: tuple[LogAgent, ...] = (
    CLAUDE_CODE_LOGS,
    CODEX_LOGS,
    GEMINI_CLI_LOGS,
    QWEN_CODE_LOGS,
    WORDS,  # records of SDKs that were sent without any tracer
)
OWN_SCOPE = "spanwise"
"""Scope of the signals that `sinks.otlp` sends."""
_BY_SPAN_SCOPE = {scope: agent for agent in LOG_AGENTS for scope in agent.span_scopes}
SPAN_SCOPES = tuple(_BY_SPAN_SCOPE)
"""Scopes of spans that belong to made turns."""
TURN_SPANS = frozenset(each.turn_span for each in LOG_AGENTS if each.turn_span)
"""Names of spans that are whole turns."""


@lru_cache(maxsize=256)
def agent_of_record(scope: str) -> LogAgent | None:
    """The agent that makes log records of this scope; None: they are of an SDK, or of no one known."""
    return next((each for each in LOG_AGENTS if scope.startswith(each.scopes)), None)


def place_record(event: AgentEvent) -> Place | Dropped | None:
    """Where a log record belongs: in a made turn; in the trace whose id it carries (None); or nowhere.

    A score, ours or another evaluator's, is never news of the trace that it is about: with the sink and the receiver
    at one Collector, each signal would be a late span of its own trace.
    """
    if event.scope == OWN_SCOPE:
        return "own"
    if event.name == EVALUATION:
        return "evaluation"
    agent = agent_of_record(event.scope)
    if agent is not None:
        return agent.place(event)
    if event.trace_id and event.span_id and carries_words(event):
        return None
    return WORDS.place(event)


def place_span(event: AgentEvent, agent: LogAgent) -> Place | None:
    """Where a span of a resource that `agent` made belongs; None: it stays in its own trace."""
    return None if agent.place_span is None else agent.place_span(event)


def agent_of_span(scope: str) -> LogAgent | None:
    """The agent that makes spans of this scope; None: its traces are as sent."""
    return _BY_SPAN_SCOPE.get(scope)
