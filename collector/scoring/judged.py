"""What is due to a judge, and what needs none. The desk decides, so a dead judge still ends in outcomes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from evaluators.model import Failure, Outcome, Trace
from evaluators.outcome import failed, not_applicable
from evaluators.plan import Configured


def _everybody(_key: bytes) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRules:
    """The judged evaluators of the plan and the judge's own rules; the default has no judge."""

    trace: Sequence[Configured] = ()
    session: Sequence[Configured] = ()
    max_lag: float = float("inf")
    """Seconds of log time that a verdict may take."""
    samples: Callable[[bytes], bool] = _everybody
    """Whether the session of this key is judged."""
    probability: float = 1.0
    """Of a session being judged."""

    def judges(self, outcome: Outcome) -> bool:
        """Whether the outcome came of a verdict, or of the want of one: not a stand-in's of the same name."""
        return outcome.method == "llm_judge" or any(
            (each.spec.name, each.spec.method) == (outcome.evaluator, outcome.method)
            for each in self.trace
        )

    def settled(self, trace: Trace, key: bytes) -> tuple[Outcome, ...]:
        """Outcomes of a trace that no judge has to be asked for; empty = all of them are due."""
        if trace.unread is not None:
            message = f"the trace could not be read: {trace.unread}"
            error = Failure(type=trace.unread, message=message)
            return tuple(failed(each, error) for each in self.trace)
        if not trace.is_turn:
            why = "neither a model nor a tool was called"
            return tuple(not_applicable(each, "not_a_turn", why) for each in self.trace)
        return () if self.samples(key) else self.skipped("trace", "sampled_out")

    def settled_session(self, key: bytes, *, has_turns: bool) -> tuple[Outcome, ...]:
        """Outcomes of a closed session that no judge has to be asked for; empty = all of them are due."""
        if not has_turns:
            why = "no trace of the session called a model or a tool"
            return tuple(not_applicable(each, "not_a_turn", why) for each in self.session)
        return () if self.samples(key) else self.skipped("session", "sampled_out")

    def skipped(
        self, scope: str, reason: str, only: Collection[str] | None = None
    ) -> tuple[Outcome, ...]:
        """Final outcomes of what was due and not made."""
        due = self.trace if scope == "trace" else self.session
        return tuple(
            replace(
                not_applicable(each, "nothing_to_judge", ""),
                state="skipped",
                reason=reason,
                explanation=None,
            )
            for each in due
            if only is None or each.spec.name in only
        )
