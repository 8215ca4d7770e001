"""What the main process and the judge process say to each other (msgpack, one frame each).

main -> judge   Setup, then TraceJob | SessionJob | Grant | Written
judge -> main   "ready", then Want | Settled | Done
"""

from __future__ import annotations

from typing import Literal

import msgspec

from evaluators.model import Outcome, Previous

Result = Literal[
    "ok", "retry", "rate_limited", "timeout", "parse_error", "provider_error", "budget_denied"
]
"""How a request to a judge ended (the label of `judge_requests_total`)."""


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """The first frame. Secrets come beside the configuration, which masks them."""

    config: str
    api_key: str | None
    embedder_api_key: str | None
    only: tuple[str, ...] | None = None
    """Evaluators that are emitted; None = all that are due."""


class TraceJob(msgspec.Struct, frozen=True, kw_only=True, tag="trace"):
    """Judge a trace."""

    id: int
    owner: str
    """The subject and what it is made of: whose answers are paid once."""
    trace: msgspec.Raw
    turn: int | None = None
    """Its place in the session, 1-based; None = not known."""
    history: tuple[Previous, ...] = ()
    """The turns before it, oldest first, as far as an evaluator of hosted embeddings wants them."""


class SessionJob(msgspec.Struct, frozen=True, kw_only=True, tag="session"):
    """Judge a closed session."""

    id: int
    owner: str
    service: str
    session_id: str
    closed: str
    traces: tuple[msgspec.Raw, ...]


class Grant(msgspec.Struct, frozen=True, kw_only=True, tag="grant"):
    """The answer to a `Want`."""

    id: int
    ok: bool


class Written(msgspec.Struct, frozen=True, kw_only=True, tag="written"):
    """The verdict of a job is in the log."""

    id: int


class Want(msgspec.Struct, frozen=True, kw_only=True, tag="want"):
    """May I make a call that costs at most `usd`?"""

    id: int
    usd: float


class Settled(msgspec.Struct, frozen=True, kw_only=True, tag="settled"):
    """A call is over."""

    id: int
    model: str
    result: Result
    seconds: float
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None
    """None: the price is not known."""
    kept: bool = False
    """Nobody knows whether it is billed: the reservation counts as spent."""


class Done(msgspec.Struct, frozen=True, kw_only=True, tag="done"):
    """The verdict of a job."""

    id: int
    outcomes: tuple[Outcome, ...]
    calls: int
    cost_usd: float


Job = TraceJob | SessionJob
ToJudge = TraceJob | SessionJob | Grant | Written
FromJudge = Want | Settled | Done

encode = msgspec.msgpack.Encoder().encode
decode_to_judge = msgspec.msgpack.Decoder(ToJudge).decode
decode_from_judge = msgspec.msgpack.Decoder(FromJudge).decode
decode_setup = msgspec.msgpack.Decoder(Setup).decode
