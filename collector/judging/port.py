"""The port from the judging room to the judge process, and the frames between the two processes.

Frames are msgpack, each with a 4-byte big-endian length before it:

    main -> judge   Setup, then TraceJob | SessionJob | BudgetReply | VerdictWritten
    judge -> main   "ready", then ReserveBudget | CallFinished | CacheFailed | JobDone
"""

from typing import Literal, Protocol

import msgspec

from collector.base.errors import SpanwiseError
from collector.config.plan import PlanSettings
from evaluators.model import Outcome, Previous, SessionClosed, Turn

Result = Literal[
    "ok", "retry", "rate_limited", "timeout", "parse_error", "provider_error", "budget_denied"
]
"""How a request to a judge ended (the label of `judge_requests_total`)."""


CACHE = "judge-cache"
"""Folder of our process, and the beginning of those of third parties': two processes do not write one cache."""
RUNNING = "running"
"""A file in it, which says what runs: job, `time.monotonic` of its beginning, evaluator; empty where nothing does."""


class JudgeLateError(SpanwiseError):
    """No verdict within `judge.max_lag`: scoring has gone on without one."""


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """The first frame. Secrets are beside the configuration, which masks them."""

    config: str
    api_key: str | None
    embedder_api_key: str | None
    plan: PlanSettings
    judged: tuple[str, ...]  # evaluators that are due
    folder: str  # of its cache
    limits: dict[str, float]  # seconds that each may take where they are third parties'; else empty


class _Job(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    owner: str  # the subject and its digest: an answer is paid once for it
    service: str  # whose share of the budget its calls use
    more: bool = False  # it is judged beyond `judge.sample`
    without: tuple[str, ...] = ()  # evaluators that are not run


class TraceJob(_Job, frozen=True, kw_only=True, tag="trace"):
    trace: msgspec.Raw
    turn: int | None = None  # its position in the session, 1-based; None = unknown
    history: tuple[Previous, ...] = ()
    """The turns before it, oldest first, for evaluators that compare hosted embeddings."""


class SessionJob(_Job, frozen=True, kw_only=True, tag="session"):
    session_id: str
    closed: SessionClosed
    traces: tuple[msgspec.Raw, ...]
    """None where no judge is asked about it."""
    turns: tuple[Turn, ...] = ()
    agent: str


class BudgetReply(msgspec.Struct, frozen=True, kw_only=True, tag="budget_reply"):
    id: int
    granted: bool


class VerdictWritten(msgspec.Struct, frozen=True, kw_only=True, tag="verdict_written"):
    """The verdict of a job is in the log."""

    id: int


class ReserveBudget(msgspec.Struct, frozen=True, kw_only=True, tag="reserve_budget"):
    """Ask to make a call that costs at most `usd`."""

    id: int
    job: int  # the number of the job that the call is made for
    usd: float


class CallFinished(msgspec.Struct, frozen=True, kw_only=True, tag="call_finished"):
    """A call that budget was reserved for has ended."""

    id: int
    model: str
    result: Result
    seconds: float
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None  # None: the price is unknown
    keep_reservation: bool = False
    """Whether the provider bills the call is unknown: the reservation counts as spent."""


class CacheFailed(msgspec.Struct, frozen=True, kw_only=True, tag="cache_failed"):
    """The cache of answers cannot be read or written: answers are asked for and paid as if there were none."""

    reason: Literal["disk", "io", "bug"]
    message: str


class JobDone(msgspec.Struct, frozen=True, kw_only=True, tag="done"):
    id: int
    outcomes: tuple[Outcome, ...] = ()
    calls: int = 0
    cost_usd: float = 0.0
    late: tuple[str, ...] = ()  # third parties' evaluators that took too long


Job = TraceJob | SessionJob
ToJudge = TraceJob | SessionJob | BudgetReply | VerdictWritten
FromJudge = ReserveBudget | CallFinished | CacheFailed | JobDone

encode = msgspec.msgpack.Encoder().encode
decode_to_judge = msgspec.msgpack.Decoder(ToJudge).decode
decode_from_judge = msgspec.msgpack.Decoder(FromJudge).decode
decode_setup = msgspec.msgpack.Decoder(Setup).decode


class Judges(Protocol):
    """Port to the judge process (collector/judging/judge_process.py)."""

    async def judge(self, job: Job) -> JobDone:
        """The verdict of a job, whose id no other has.

        Where the process died on it too often, every outcome is `failed`. Raises JudgeLateError: there was no verdict
        within `judge.max_lag`.
        """
        ...

    def written(self, done: JobDone) -> None:
        """The verdict is in the log."""
        ...

    async def run(self) -> None:
        """Serve until cancelled."""
        ...
