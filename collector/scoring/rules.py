"""What scoring needs of the evaluators' plan and of the judge's settings, read once at the start."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from collector.records.signal import Sampling
from collector.records.trace_summary import Summariser, TraceSummary
from evaluators.content import NO_CONTENT
from evaluators.model import Failure, Outcome, Turn
from evaluators.plan import Configured, Plan
from evaluators.run import (
    CANCELLED,
    NO_TURN,
    NOT_A_TURN,
    SessionScorer,
    failed,
    not_applicable,
    skipped,
)

COMPLETED = "repeated_calls"
"""The session evaluator whose outcome the agent's earlier sessions complete."""
RUNAWAY = "runaway"  # the trace evaluator whose outcome the model calls of the agent's other traces complete
NewScorer = Callable[[], SessionScorer]
"""Makes the running state of one session's window, without any turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRules:
    """The evaluators whose outcomes come as verdicts, and the judge's own settings; the default has none.

    Scoring decides which subjects a judge is asked about, so that a dead judge still ends in outcomes.
    """

    trace: Sequence[Configured] = ()
    session: Sequence[Configured] = ()
    plugins: Sequence[Configured] = ()  # third parties' evaluators of traces
    session_plugins: Sequence[
        Configured
    ] = ()  # those of sessions, which run when the session closes
    max_lag: float = float("inf")  # seconds of log time that a verdict may take
    samples: Callable[[bytes], bool] = lambda _key: True
    """Whether the session of this key is judged."""
    probability: float = 1.0  # of a session being judged

    def sampling(self, key: bytes, *, more: bool) -> Sampling:
        """By what the session of this key was chosen to be judged; `more`: see `SessionHead.more`."""
        if not more:
            return Sampling("base", self.probability)
        return Sampling("base" if self.samples(key) else "more", 1.0)

    def judgement(
        self, trace: TraceSummary, key: bytes, *, inside: bool, more: bool = False
    ) -> tuple[tuple[Outcome, ...], tuple[str, ...]]:
        """Outcomes of a trace that need no verdict, and the names of the evaluators whose verdict is due.

        `inside`: the trace is in its session's window. Scoring waits for no verdict about another one. `more`: its
        session is judged whatever the sample.
        """
        every = (*self.trace, *self.plugins)
        if not every:
            return (), ()
        if trace.unread is not None:
            message = f"the trace could not be read: {trace.unread}"
            error = Failure(type=trace.unread, message=message)
            return tuple(failed(each, error) for each in every), ()
        if not trace.is_turn:
            return tuple(not_applicable(each, "not_a_turn", NOT_A_TURN) for each in every), ()
        unasked: tuple[Outcome, ...] = ()
        if not trace.turn.has_text:
            unasked = tuple(not_applicable(each, "no_content", NO_CONTENT) for each in self.trace)
        elif trace.turn.cancelled:
            unasked = tuple(
                not_applicable(each, "nothing_to_judge", CANCELLED) for each in self.trace
            )
        elif not (more or self.samples(key)):
            unasked = tuple(skipped(each, "sampled_out") for each in self.trace)
        known = {each.evaluator for each in unasked}
        due = tuple(each for each in every if each.spec.name not in known)
        if inside:
            return unasked, tuple(each.spec.name for each in due)
        return (*unasked, *(skipped(each, "overload") for each in due)), ()

    def unasked_session(
        self, key: bytes, turns: Collection[Turn], *, more: bool = False
    ) -> tuple[Outcome, ...]:
        """Outcomes of a closed session that no judge has to be asked for; empty: all of them are due.

        `more`: it is judged whatever the sample.
        """
        if not turns:
            return tuple(not_applicable(each, "not_a_turn", NO_TURN) for each in self.session)
        if not any(turn.has_text for turn in turns):
            return tuple(not_applicable(each, "no_content", NO_CONTENT) for each in self.session)
        return () if more or self.samples(key) else self.skipped("session", "sampled_out")

    def skipped(
        self, scope: str, reason: str, only: Collection[str] | None = None
    ) -> tuple[Outcome, ...]:
        """Final outcomes of evaluators that were due and did not run."""
        ours, theirs = self.trace, self.plugins
        if scope != "trace":
            ours, theirs = self.session, self.session_plugins
        due = (*ours, *theirs)
        return tuple(
            skipped(each, reason) for each in due if only is None or each.spec.name in only
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    new_scorer: NewScorer
    trace: tuple[Configured, ...] = ()
    """Trace evaluators whose outcomes the record of a trace holds, but for those that are sketched."""
    sketched: tuple[Configured, ...] = ()
    """Those of them that compare a trace with the turns before it: again when these change."""
    emitted: frozenset[str]
    """Evaluators whose outcomes are published; the others are computed for those that read them."""
    used: Mapping[str, tuple[str, ...]]
    """By session evaluator: the trace evaluators it reads, sorted."""
    outcomes: int = 0  # of one trace: by how many evaluators it is scored, the judged ones included
    judged: JudgedRules = field(default_factory=JudgedRules)
    judged_methods: frozenset[tuple[str, str]] = frozenset()
    """(name, method) of the judged trace evaluators, which tells their outcomes from those of their stand-ins."""
    reads_judged: frozenset[str] = frozenset()
    """Session evaluators that read a judged one."""
    assumed: frozenset[str] = frozenset()
    """Trace evaluators whose assumed score counts in session formulas."""
    task_evaluator: str = "agentic"
    """The session evaluator that decides whether a task run succeeded, where its spans do not (`tasks.evaluator`)."""
    summariser: Summariser = field(default_factory=Summariser)  # makes what scoring sees of a trace
    ranks: bool = False
    """Whether sessions are ranked among earlier ones: then their work is published."""
    completes: bool = False
    """Whether the outcome of `repeated_calls` goes with that work, to be published where earlier sessions are known."""
    counts_calls: bool = False
    """Whether the model calls of each trace go with that work: `runaway` compares them."""

    @classmethod
    def of(
        cls,
        plan: Plan,
        new_scorer: NewScorer,
        judged: JudgedRules | None = None,
        *,
        task_evaluator: str = "agentic",
        read_only: Collection[str] = (),
    ) -> Rules:
        judged = judged or JudgedRules()
        scorer = new_scorer()
        awaited = (*judged.trace, *judged.session, *judged.plugins, *judged.session_plugins)
        every = (*plan.trace, *plan.session, *awaited)
        emitted = frozenset(each.spec.name for each in every if each.emit)
        used = {
            each.spec.name: tuple(sorted(scorer.signals_used(each.spec.name)))
            for each in plan.session
        }
        names = {each.spec.name for each in judged.trace}
        return cls(
            new_scorer=new_scorer,
            trace=plan.trace,
            sketched=tuple(each for each in plan.trace if each.spec.sketch is not None),
            emitted=emitted - {COMPLETED},
            used=used,
            outcomes=len(plan.trace) + len(judged.trace) + len(judged.plugins),
            judged=judged,
            judged_methods=frozenset((each.spec.name, each.spec.method) for each in judged.trace),
            reads_judged=frozenset(name for name in used if not names.isdisjoint(used[name])),
            assumed=frozenset(each.spec.name for each in every if each.spec.assumed_counts),
            task_evaluator=task_evaluator,
            summariser=Summariser(read_only),
            ranks=bool(plan.ranked) or bool(emitted & {COMPLETED, RUNAWAY}),
            completes=COMPLETED in emitted,
            counts_calls=RUNAWAY in emitted,
        )


def not_read(configured: Configured) -> Outcome:
    message = "the trace was read by a version or a configuration without this evaluator"
    return failed(configured, Failure(type="not_read", message=message))
