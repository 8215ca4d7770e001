"""Duration, cost and tokens of traces, and task runs: one more reader of topic `traces`.

Signals do not carry them: the session's latency, cost and token_usage are aggregates over traces, of which no
histogram can be made.
"""

from __future__ import annotations

import logging

import msgspec

from collector.errors import Undecodable
from collector.log.port import Record
from collector.records.topics import RunRecord
from evaluators.model import Tokens

logger = logging.getLogger(__name__)


class _Facts(msgspec.Struct, frozen=True):
    trace_id: str
    service: str
    agent: str
    start_time_unix_nano: int = 0
    end_time_unix_nano: int = 0
    cost_usd: float | None = None
    tokens: Tokens = Tokens()


class TraceFacts(msgspec.Struct, frozen=True, tag="trace"):
    """Of a `TraceRecord`, only what is counted; the raw spans are skipped undecoded."""

    trace: _Facts
    revision: int


class _Verdict(msgspec.Struct, frozen=True, tag="verdict"):
    pass


class _Session(msgspec.Struct, frozen=True, tag="session"):
    pass


_decoder = msgspec.msgpack.Decoder(TraceFacts | _Verdict | _Session | RunRecord)


def trace_facts(record: Record) -> TraceFacts | RunRecord | None:
    """A trace that closed for the first time, or a task run; None for every other record of `traces`.

    Raises:
        Undecodable: not a record of `traces`.
    """
    try:
        decoded = _decoder.decode(record.value)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise Undecodable(str(error)) from error
    if isinstance(decoded, RunRecord):
        return decoded
    if not isinstance(decoded, TraceFacts) or decoded.revision > 0:
        return None
    return decoded


def duration(facts: TraceFacts) -> float:
    """Seconds; 0 when clocks ran backwards."""
    trace = facts.trace
    return max(0, trace.end_time_unix_nano - trace.start_time_unix_nano) / 1e9


def tokens(facts: TraceFacts) -> dict[str, int | None]:
    """Counts by type."""
    found = facts.trace.tokens
    return {
        "input": found.input,
        "output": found.output,
        "cached": found.cached,
        "reasoning": found.reasoning,
    }
