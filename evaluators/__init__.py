"""The library: what a trace is, what a score is, how to score. No socket, no file, no clock, no environment."""

from evaluators.declare import evaluator
from evaluators.expectations import Expectation
from evaluators.model import JSON, Outcome, Score, Session, Span, Status, ToolCall, Trace, Turn
from evaluators.resources import (
    Block,
    Embedder,
    Extraction,
    History,
    Judge,
    Running,
    UnitInterval,
    Weight,
)

__all__ = [
    "JSON",
    "Block",
    "Embedder",
    "Expectation",
    "Extraction",
    "History",
    "Judge",
    "Outcome",
    "Running",
    "Score",
    "Session",
    "Span",
    "Status",
    "ToolCall",
    "Trace",
    "Turn",
    "UnitInterval",
    "Weight",
    "evaluator",
]
