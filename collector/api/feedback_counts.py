"""What is counted of feedback once it is joined with its session. Label values are bounded: names come from anybody."""

from collections.abc import Callable, Hashable
from typing import TypeAlias

from collector.api.families import ApiFamilies
from collector.api.held_feedback import Matching
from collector.base.telemetry import OTHER, Telemetry

MOST_AGENTS = 32  # of a service; the feedback of others counts under `_other`
MOST_NAMES = 64  # of a service; the same


Joined: TypeAlias = Callable[[str, str, str], None]
"""(service, session id, name of the feedback): it was joined with this session."""


class FeedbackCounts:
    """`spanwise_feedback_total` and `spanwise_feedback_unmatched_total`."""

    def __init__(self, telemetry: Telemetry, families: ApiFamilies, joined: Joined) -> None:
        self._joined = joined
        self._telemetry = telemetry
        self._total = families.feedback
        self._unmatched = families.feedback_unmatched
        self._agents: dict[Hashable, set[str]] = {}
        self._names: dict[Hashable, set[str]] = {}

    def matched(self, found: Matching) -> None:
        for each in found.matched:
            service = self._telemetry.service(each.service)
            labels = (
                service,
                _bounded(self._agents.setdefault(service, set()), each.agent, MOST_AGENTS),
                _bounded(self._names.setdefault(service, set()), each.name, MOST_NAMES),
                each.kind,
                each.opinion,
            )
            self._total.labels(*labels).inc()
            self._joined(each.service, each.session_id, each.name)
        if found.given_up:
            self._unmatched.inc(found.given_up)


def _bounded(known: set[str], value: str, most: int) -> str:
    if value not in known and len(known) >= most:
        return OTHER
    known.add(value)
    return value
