"""The state of an agent: the numbers that the Prometheus exporter has of it and that the API and the page show too.

The exporter makes them from the state behind its gauges, so that every place shows the same number for the same thing.
Names are label values (`collector.base.telemetry.short`); an agent without label values of its own has no standing.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import msgspec

from collector.records.second_opinion import SecondOpinion
from evaluators.formulas.fault_watch import Cause, Counts, FaultKind
from evaluators.model import Scope

AgentLabels = tuple[str, str]  # (service, agent), as label values


class WindowMean(msgspec.Struct, frozen=True, kw_only=True):
    """A mean over newest sessions, its 95 % bounds, and how many sessions are behind it."""

    mean: float
    lower: float
    upper: float
    samples: int
    since: float | None = None
    """Log time from which sessions count, where something changed then; None: the whole window."""


class VersionStanding(msgspec.Struct, frozen=True, kw_only=True):
    """The gauges of one version that has not ended."""

    agent_version: str  # empty: the agent names no version
    reliability: float | None  # `spanwise_agent_reliability_ratio`; None: there is no such series
    consistency: float | None  # `spanwise_agent_consistency_ratio`; None: there is no such series
    sessions: int  # `spanwise_version_sessions`: sessions in the version's window
    last_session: float  # `spanwise_version_last_session_timestamp_seconds`: log time, Unix seconds


WORST = 3  # sessions that a fault or a drop names
LOOKED_AT = 20  # uses of everything that is watched, before a drop is said to have no cause


class LookedAt(msgspec.Struct, frozen=True, kw_only=True):
    """What of an agent has not been used often enough since its scores dropped."""

    tool: str  # empty: of the agent
    uses: int  # below LOOKED_AT

    @property
    def words(self) -> str:
        of = f"uses of {self.tool}" if self.tool else "sessions"
        return f"cause not known yet: {self.uses} of {LOOKED_AT} {of} looked at"


class Drop(msgspec.Struct, frozen=True, kw_only=True):
    """Scores that rank otherwise than in the agent's own past, from the alarm until it clears."""

    evaluator: str
    scope: Scope
    direction: Literal["worse", "better"]
    """`better`: the score is higher than before, which alone raises no alert."""
    since: float  # log time at which the change began, Unix seconds
    mean_rank: float  # mean rank since then, 0 to 1; .5 means no change, less is worse
    sessions: int  # scores since then
    worst: tuple[str, ...] = ()  # up to WORST sessions since then, those of the lowest scores first
    strong: bool = False  # `spanwise_drift_strong`: it wakes somebody
    cause: Cause | None = None
    """What explains it; None: nothing fails more than before, or see `looked_at`."""
    looked_at: LookedAt | None = None  # why the cause is not known yet


class WatchedScores(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of one evaluator's scores with the agent's own past, whether or not it has raised an alarm."""

    evaluator: str
    scope: Scope
    progress: float | None
    """`spanwise_drift_progress_ratio`: how near an alarm is, 0 to 1; None: the past is too short for a comparison."""
    samples: int  # `spanwise_drift_history_samples`: scores in that past
    trail: tuple[tuple[int, int], ...] = ()
    """(Log time in whole seconds, thousandths of progress), oldest first; each is the most since the one before."""


FAULTS_THAT_PAGE: frozenset[FaultKind] = frozenset(
    {"server_failed", "tool_failed", "tool_empty", "repeated_calls", "model_failed"}
)


FAULT_WORDS: Mapping[FaultKind, str] = {
    "server_failed": "the MCP server {tool} fails",
    "tool_failed": "{tool} fails",
    "tool_empty": "{tool} returns nothing",
    "repeated_calls": "{tool} is called again and again with the same result",
    "model_failed": "model calls fail",
    "tool_slow": "{tool} is slower than it was",
    "no_answer": "sessions end without an answer",
    "gave_up": "answers say that it could not be done",
    "answer_cut": "answers are cut off at the limit of length",
    "answer_blocked": "answers are withheld by a filter or refused by the model",
    "cancelled": "people stop runs before they end",
}
"""What each says, on the page and in alerts."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A fault that happens more often than it did, from when it is shown until it is over.

    A use is a session: of a tool, one that called it; of the agent, any in which the fault could be seen.
    """

    fault: FaultKind
    tool: str  # empty: of the agent
    since: float  # log time at which the first session with it was seen, Unix seconds
    uses: int  # since then
    failures: int
    uses_before: int  # in the past that is compared with; where it is long, older uses count less
    failures_before: int
    error: str | None = None
    """Commonest class of the newest failures' errors; never an error's text."""
    sessions: tuple[str, ...] = ()  # the newest sessions with it, newest first
    worst: tuple[str, ...] = ()
    """Up to WORST of these, those of the lowest `agent_reliability` first; of equals the newest."""
    tools: tuple[str, ...] = ()  # of a server, those that fail

    @property
    def words(self) -> str:
        return FAULT_WORDS[self.fault].format(tool=self.tool)

    @property
    def pages(self) -> bool:
        """Whether it wakes somebody; else it is a ticket."""
        return self.fault in FAULTS_THAT_PAGE


class FailingTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that fails in most sessions that use it, from the first one on: that is its past, so it is not a fault."""

    tool: str
    uses: int  # sessions that used it; where there are many, older ones count less
    failures: int


class VersionCount(NamedTuple):
    """What a fault watch counted of a version: the one source of such numbers in verdicts, gauges and pages."""

    version: str  # empty: the agent names none
    fault: FaultKind
    tool: str  # empty: of the agent
    counted: Counts  # its newest 200 sessions that used it


class OpenRunaway(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A trace that ran away when it was looked at last, and has not closed since."""

    trace_id: str
    service: str
    agent: str
    session_id: str
    reason: str  # `repeated_calls` or `model_calls`
    since: float  # log time of the newest span when it was found first
    until: float  # log time by which it has closed at the latest


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """One agent's numbers at one moment."""

    service: str
    agent: str
    versions: tuple[VersionStanding, ...] = ()  # those that have not ended, in order of name
    reliability: WindowMean | None = None
    """The headline: over sessions since an active change, else over the window, all versions that have not
    ended together; None: unknown."""
    consistency: WindowMean | None = None
    window_reliability: WindowMean | None = None
    """The gauges `spanwise_window_*` of the evaluator, where the headline is since a change; else None."""
    window_consistency: WindowMean | None = None
    drops: tuple[Drop, ...] = ()
    second_opinion: SecondOpinion | None = None  # of the judge, on the drops; None: it is not asked
    judged_by: str | None = None  # the evaluator that represents the judge; None: there is no judge
    faults: tuple[Fault, ...] = ()  # in order of fault and tool
    failing_always: tuple[FailingTool, ...] = ()  # in order of tool
    by_version: tuple[VersionCount, ...] = ()
    """Of faults that page, in order of fault, tool and version."""
    watched: tuple[WatchedScores, ...] = ()  # in order of evaluator
    runaways: tuple[OpenRunaway, ...] = ()
    """Its open traces that run away, the one that was found longest ago first."""


Standings = Mapping[AgentLabels, Standing]
"""Every agent with label values of its own; empty while the windows of before a restart are still being read."""
