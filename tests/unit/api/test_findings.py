"""What the doctor finds for the page of health: few traces in a request, the next one goes on."""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from collector.api.about import About
from collector.api.families import ApiFamilies
from collector.api.findings import Findings
from collector.api.off_loop import OffLoop
from collector.api.query import Query
from collector.api.traces import Traces
from collector.base.telemetry import Telemetry
from tests.support import api_records as make
from tests.support.api_stand import NewStand, filled

NOTHING: Mapping[str, Any] = {"stacks": (), "unscored": (), "judge": None}


class Looks:
    """An examiner that remembers what it has looked at."""

    def __init__(self) -> None:
        self.at: list[str] = []
        self.about = About(examine=self._examine, diagnose=self._diagnose)

    def _examine(self, trace: Mapping[str, Any], _: object) -> object:
        self.at.append(trace["trace_id"])
        return trace["agent"]

    def _diagnose(self, notes: Sequence[object], sessions: Sequence[Mapping[str, Any]]) -> Any:
        assert {each["agent"] for each in sessions} >= set(notes)
        return NOTHING


NEWEST = [make.trace(3).trace_id, make.trace(2).trace_id]
"""Of each agent of `filled`."""


async def test_the_newest_trace_of_every_agent_is_looked_at_once(new_stand: NewStand) -> None:
    looks = Looks()
    stand = filled(new_stand(about=looks.about))

    first = await stand.get("/health")
    stand.time += 61
    await stand.get("/health")

    assert first.status_code == 200
    assert sorted(looks.at) == sorted(NEWEST)


async def test_what_a_request_has_no_time_for_the_next_one_looks_at(new_stand: NewStand) -> None:
    looks = Looks()
    stand = filled(new_stand(about=looks.about))
    off_loop = OffLoop(ApiFamilies(Telemetry()))
    traces = Traces(log=stand.log, query=Query(stand.api._index), off_loop=off_loop, content=True)
    findings = Findings(
        about=looks.about,
        query=Query(stand.api._index),
        traces=traces,
        off_loop=off_loop,
        clock=lambda: stand.time,
        monotonic=count(0.0, 10.0).__next__,
    )

    answers = [await findings.now() for _ in range(3)]

    assert [(each["looked_at"], each["of"]) for each in answers] == [(1, 2), (2, 2), (2, 2)]
    assert sorted(looks.at) == sorted(NEWEST)
