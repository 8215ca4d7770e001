"""The rows of sessions and traces as the index writes them."""

from __future__ import annotations

from collector.api.store import SessionEntry, whole
from collector.records.trace_views import TraceHeader

NEW_TRACE = """
INSERT INTO traces (session, start, revision, log_partition, log_offset, seconds, cost, input_tokens, output_tokens,
                    error, header, trace_id, id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
CHANGED_TRACE = """
UPDATE traces SET session = ?, start = ?, revision = ?, log_partition = ?, log_offset = ?, seconds = ?, cost = ?,
                  input_tokens = ?, output_tokens = ?, error = ?, header = ?
WHERE trace_id = ? AND id = ?"""
SUMS = """
SELECT sum(seconds), sum(cost), sum(input_tokens), sum(output_tokens), ifnull(sum(error), 0)
FROM traces INDEXED BY traces_of_session WHERE session = ?"""
NEW_SESSION = """
INSERT INTO sessions (agent, last, started, traces, newest, session_source, reliability, consistency, coverage,
                      unscored, closed, work, seconds, cost, input_tokens, output_tokens, errors, gaps, question,
                      failed, session_id, service, id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
CHANGED_SESSION = """
UPDATE sessions SET agent = ?, last = ?, started = ?, traces = ?, newest = ?, session_source = ?, reliability = ?,
                    consistency = ?, coverage = ?, unscored = ?, closed = ?, work = ?, seconds = ?, cost = ?,
                    input_tokens = ?, output_tokens = ?, errors = ?, gaps = ?, question = ?, failed = ?
WHERE session_id = ? AND service = ? AND id = ?"""
_MOST_TOKENS = 1 << 40
"""Of one trace: those of as many traces as a session may have add up to less than SQLite's largest whole number."""


def taken(header: TraceHeader) -> tuple[object, ...]:
    tokens = (header.tokens.input, header.tokens.output)
    counts = (None if each is None else min(_MOST_TOKENS, whole(each)) for each in tokens)
    return (header.seconds or None, header.cost_usd, *counts, int(header.status == "error"))


def columns(entry: SessionEntry, agent: int, row: int) -> tuple[object, ...]:
    """Of `NEW_SESSION` and `CHANGED_SESSION`; `row` is the session's, `agent` its agent's."""
    covered = entry.coverage
    coverage = None if covered is None else f"{covered['expected']} {covered['present']}"
    return (
        agent,
        entry.last,
        entry.started,
        entry.traces,
        entry.newest,
        entry.session_source,
        entry.reliability,
        entry.consistency,
        coverage,
        entry.unscored,
        entry.closed,
        entry.work,
        entry.seconds,
        entry.cost,
        entry.input_tokens,
        entry.output_tokens,
        entry.errors,
        entry.gaps,
        entry.question,
        entry.failed,
        entry.session_id,
        entry.service,
        row,
    )
