"""Sessions that get no score because too little of them is seen (`low_coverage`), and the judge that fails. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from collector.doctor.diagnosis import ExaminedTrace, says_unread
from evaluators.content import NO_CONTENT
from evaluators.coverage import is_low

SessionShown = Mapping[str, Any]  # a session as `/api/v1/sessions/{id}` gives it
SignalShown = Mapping[str, Any]  # a signal as published
HEADLINE = "agent_reliability"
CONNECT = "spanwise validate --connect"
"""Asks the judge one tiny question, with the configuration of the service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSeen:
    service: str
    session_id: str
    why: str | None  # None: it has one, or there is nothing to score


@dataclass(frozen=True, slots=True, kw_only=True)
class Unscored:
    service: str
    sessions: int
    of: int  # how many were looked at
    why: str  # of the first of them; a running service names its newest first
    example: str  # its id


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingJudge:
    """Verdicts that failed, and the newest one's error."""

    failed: int
    verdicts: int  # how many there are, scored or failed
    type: str
    message: str
    setting: str = CONNECT


def session_seen(shown: SessionShown) -> SessionSeen:
    """A session of the running service, by its newest `agent_reliability`."""
    lacking = (
        each["explanation"] or "low coverage"
        for each in shown.get("signals", ())
        if each["evaluator"] == HEADLINE and each["reason"] == "low_coverage"
    )
    return SessionSeen(
        service=shown["service"], session_id=shown["session_id"], why=next(lacking, None)
    )


def sessions_of(traces: Iterable[ExaminedTrace]) -> list[SessionSeen]:
    """The sessions of recorded traces: one without content in more than half of its turns gets no score."""
    turns: dict[tuple[str, str], list[bool]] = {}
    unread: dict[tuple[str, str], set[str]] = {}
    for each in traces:
        key = each.service, each.session_id
        if "not_read" in each.lacks:
            unread.setdefault(key, set()).update(each.unread)
        if each.is_turn or "not_read" in each.lacks:
            has_content = not each.lacks & {"not_read", "no_content", "content_in_logs"}
            turns.setdefault(key, []).append(has_content)
    return [
        SessionSeen(
            service=service,
            session_id=session_id,
            why=None
            if not is_low((len(seen), sum(seen)))
            else _why(unread.get((service, session_id))),
        )
        for (service, session_id), seen in turns.items()
    ]


def _why(unread: Iterable[str] | None) -> str:
    return NO_CONTENT if unread is None else says_unread(sorted(unread))


def unscored(sessions: Iterable[SessionSeen]) -> tuple[Unscored, ...]:
    """By service, the sessions without a score."""
    by_service: dict[str, list[SessionSeen]] = {}
    for each in sessions:
        by_service.setdefault(each.service, []).append(each)
    return tuple(
        Unscored(
            service=service,
            sessions=len(lacking),
            of=len(found),
            why=lacking[0].why or "",
            example=lacking[0].session_id,
        )
        for service, found in sorted(by_service.items())
        if (lacking := [each for each in found if each.why is not None])
    )


def failing_judge(signals: Sequence[SignalShown]) -> FailingJudge | None:
    """The verdicts among these signals that failed; None when not one of them did."""
    verdicts = [
        each
        for each in signals
        if each["method"] == "llm_judge" and each["outcome"] in {"scored", "failed"}
    ]
    failed = [each for each in verdicts if each["error"]]
    if not failed:
        return None
    error = max(failed, key=lambda each: str(each["time"]))["error"]
    return FailingJudge(
        failed=len(failed), verdicts=len(verdicts), type=error["type"], message=error["message"]
    )
