"""Sessions that a judge is asked about beyond `judge.sample`: how many publishing wants, and which scoring has chosen.

    publishing, which knows an agent's drops and versions -> More, into every partition of `traces`
    scoring: the next sessions that begin in the partition are chosen -> Ask for each of their traces
    judging: asks about the trace

The agent's state and the time alone decide, never what a session shows: so shares and means stay unbiased.
"""

import msgspec


class MoreRecord(msgspec.Struct, frozen=True, kw_only=True, tag="more", omit_defaults=True):
    """How many sessions are still chosen. Topic `traces`: as wanted; topic `sessions`: what is left of it."""

    # As label values (`collector.base.telemetry.short`), as the agent and its version are.
    service: str
    agent: str
    version: str | None = None  # the agent's version whose sessions are meant; None: all of them
    # Of the request: a later one replaces the earlier ones of the same agent and version.
    number: int
    sessions: int  # of one partition


class AskRecord(msgspec.Struct, frozen=True, kw_only=True, tag="ask"):
    """A trace of a chosen session, which the judge is to be asked about."""

    service: str
    session_id: str
    offset: int  # of the trace's record, in the same partition
