"""The library: what a trace is, what a score is, how to score. No socket, no file, no clock, no environment."""

from evaluators.model import JSON, Outcome, Score, Session, Span, Status, ToolCall, Trace, Turn

__all__ = ["JSON", "Outcome", "Score", "Session", "Span", "Status", "ToolCall", "Trace", "Turn"]
