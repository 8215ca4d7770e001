"""Where a trace went wrong first: the step before its first tool error.

Over 159 labelled runs the step is the decisive one in .42, its agent in .62 of those in which a tool failed; no
model that was asked did better (docs/evidence.md). Without a tool error nothing is pointed at.
"""

from dataclasses import dataclass

from evaluators.model import ToolCall, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstFailure:
    """The step before the first tool error of a trace."""

    call: ToolCall  # the first call that failed
    span_id: str | None  # of the step that made it; None when no step came before it
    agent: str | None

    @property
    def explanation(self) -> str:
        by = f", by `{self.agent}`" if self.agent else ""
        span = f", span {self.span_id}" if self.span_id else ""
        return f"first failure: the step before `{self.call.name}`{by}{span}"


def first_failure(trace: Trace) -> FirstFailure | None:
    """The trace's first failure; None when no tool failed."""
    failed = [call for call in trace.tool_calls if call.failed]
    if not failed:
        return None
    call = min(failed, key=lambda each: each.start_time_unix_nano)
    before = [
        step
        for step in (*trace.model_calls, *trace.steps)
        if step.start_time_unix_nano <= call.start_time_unix_nano
    ]
    if not before:
        return FirstFailure(call=call, span_id=None, agent=call.agent)
    # Of agents that work side by side, another one's step may lie in between.
    own = [step for step in before if call.agent is not None and step.agent == call.agent]
    step = max(own or before, key=lambda each: each.start_time_unix_nano)
    return FirstFailure(call=call, span_id=step.span_id, agent=step.agent or call.agent)
