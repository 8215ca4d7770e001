"""Kept traces arrive whole, others never; over restarts, outages and spans that have expired; who decides is told."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import pytest
from msgspec import structs
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from collector.base.errors import Permanent, Retryable
from collector.base.telemetry import Telemetry
from collector.config.forward import Keep
from collector.forward.broadcasts import AlarmBroadcaster, FeedbackBroadcaster
from collector.forward.keeper import GROUP, Keeper
from collector.log.memory import MemoryLog
from collector.log.port import TRACES, New, partition_of
from collector.records.codec import encode
from collector.records.feedback import Feedback
from collector.records.keeping import BroadcastRecord, KeepingRecord, agent_key, session_of
from collector.records.sent_trace import decode_sent
from collector.records.sessions import session_key
from collector.records.standing import AgentLabels, Fault, Standing
from collector.records.traces import TraceRecord, VerdictRecord, WorkRecord
from evaluators.dialects.read import read_trace
from evaluators.model import Outcome
from tests.support.api_records import pieces, trace
from tests.support.clocks import eventually
from tests.support.forwarding import FakeTransport, ForwardStand
from tests.support.otlp import request, span

KEY = session_key("support-bot", "s-1")


class Stand(ForwardStand):
    """Nothing is kept without a reason, but for `settings`."""

    def __init__(self, transport: FakeTransport | None = None, **settings: Any) -> None:
        usual: dict[str, Any] = {"share": 0.0, "new_versions": 0, "slow": None, "wait": 30.0}
        self.settings = Keep(**{**usual, **settings})
        self.now = 1000.0
        log = MemoryLog(clock=lambda: self.now, groups={})
        super().__init__(log, transport or FakeTransport())

    def running(self, **how: bool) -> AbstractAsyncContextManager[None]:
        return self.reading(partial(Keeper, settings=self.settings, late=600.0), **how)

    async def decided(self) -> Counter[int]:
        """By trace, how often a decision of it was written."""
        read = [decode_sent(each.value) async for each in self.log.replay(TRACES, 0)]
        return Counter(
            int.from_bytes(each.trace.trace_id)
            for record in read
            if isinstance(record, KeepingRecord)
            for each in record.decisions
        )

    async def write(
        self, record: TraceRecord | WorkRecord | VerdictRecord | BroadcastRecord
    ) -> None:
        await self.log.write([New(topic=TRACES, key=KEY, value=encode(record))])

    async def close(self, number: int, revision: int = 0, more: int = 0, **fields: Any) -> None:
        of = trace(number, **fields)
        late = tuple(
            request(span(bytes.fromhex(of.trace_id), 100 * number + n)).SerializeToString()
            for n in range(more)
        )
        spans = (*pieces(of), *late)
        await self.write(TraceRecord(trace=of, spans=spans, revision=revision, seen=0.0))

    async def session(self, *, fails: bool) -> None:
        record = WorkRecord(
            service="support-bot",
            session_id="s-1",
            session_source="session.id",
            agent="planner",
            seen=0.0,
            revision=0,
            digest="",
            failed=fails,
        )
        await self.write(record)

    async def past(self, seconds: float = 31.0, until: Callable[[], bool] | None = None) -> None:
        """Time goes on, and everything up to then is decided and committed, or what `until` says."""
        self.now += seconds
        await self.write(verdict("none", ""))
        end = await self.log.end(TRACES, 0)
        committed = self.log.committed
        await eventually(until or (lambda: (committed(GROUP, TRACES, 0).offset or 0) >= end))

    def arrived(self) -> Counter[int]:
        """By trace, how many of its spans."""
        return Counter(int.from_bytes(each.trace_id) for each in self.spans.spans())


def verdict(scope: str, subject: str, *outcomes: Outcome) -> VerdictRecord:
    return VerdictRecord(
        scope=scope,
        service="support-bot",
        session_id="s-1",
        subject=subject,
        digest="",
        outcomes=outcomes,
    )


def fails(number: int) -> VerdictRecord:
    outcome = Outcome(
        evaluator="helpfulness",
        version="1",
        method="llm_judge",
        state="scored",
        score=0.1,
        success=False,
    )
    return verdict("trace", f"{number:032x}", outcome)


async def test_a_trace_that_ended_in_an_error_arrives_whole_and_another_never() -> None:
    it = Stand()
    async with it.running():
        await it.close(1, status="error")
        await it.close(2)
        await it.past()

    assert it.arrived() == {1: 2}
    assert {each.trace_state for each in it.spans.spans()} == {"ot=th:0"}
    attributes = [each for found in it.spans.spans() for each in found.attributes]
    reasons = [each.value.string_value for each in attributes if each.key == "spanwise.kept"]
    assert reasons == ["failed"]
    assert (it.count("kept", "failed"), it.count("dropped", "share")) == (1, 1)


async def test_a_verdict_within_the_wait_decides_and_one_behind_it_sends_the_whole_trace() -> None:
    it = Stand()
    async with it.running():
        await it.close(1)
        await it.close(2)
        await it.write(fails(1))
        await it.past()
        assert it.arrived() == {1: 2}
        await it.write(fails(2))
        await it.past(1)

    assert it.arrived() == {1: 2, 2: 2}
    assert (it.count("kept", "failed"), it.count("kept", "failed_late")) == (1, 1)


async def test_late_spans_follow_a_kept_trace_alone() -> None:
    it = Stand()
    async with it.running():
        await it.close(1, status="error")
        await it.close(2)
        await it.past()
        await it.close(1, revision=1, more=3, status="error")
        await it.close(2, revision=1, more=3)
        await it.past(1)
        assert it.arrived() == {1: 5}
        await it.close(2, revision=2, more=4, status="error")
        await it.past(1)

    assert it.arrived() == {1: 5, 2: 6}, "a late span that fails brings the whole trace"


@pytest.mark.parametrize(("of_root", "ends"), [(False, []), (True, ["failed_late"])])
async def test_a_late_span_in_error_brings_the_trace_only_where_the_trace_ended_in_it(
    *, of_root: bool, ends: list[str]
) -> None:
    """A tool that failed under a root that ended well is what an agent recovers from."""
    it = Stand(others=0.0)
    root, child = span(1, 1), span(1, 2)
    child.parent_span_id = root.span_id
    pieces: list[bytes] = []
    async with it.running():
        for revision, each in enumerate((child, root) if of_root else (root, child)):
            if revision:
                each.status.code = Status.STATUS_CODE_ERROR
            pieces.append(request(each).SerializeToString())
            of = read_trace(pieces, trace_id=root.trace_id.hex(), closed="root_ended")
            record = TraceRecord(trace=of, spans=tuple(pieces), revision=revision, seen=0.0)
            await it.write(record)
            await it.past()

    assert [reason for reason in ("failed", "failed_late") if it.count("kept", reason)] == ends
    assert bool(it.arrived()) is of_root


async def test_a_session_that_failed_before_a_decision_and_is_read_again_sends_nothing() -> None:
    it = Stand()
    async with it.running():
        await it.close(1)
        it.now += 10
        await it.close(2)  # the commit stays here while it waits
        await it.session(fails=True)
        await it.session(fails=False)
        await it.past(25, until=lambda: it.count("dropped", "share") == 1)
    async with it.running():
        await it.past(10)

    assert it.arrived() == {}
    assert it.count("dropped", "share") == 2


async def test_a_state_above_its_limit_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collector.forward.keeper.MOST_STATE", 4_000)
    it = Stand()
    async with it.running():
        for number in range(1, 101):
            await it.close(number)
        await it.past()
    async with it.running():
        await it.session(fails=True)
        await it.past(1)

    assert {*it.arrived()} == set(range(max(it.arrived()) - len(it.arrived()) + 1, 101))
    assert 10 < len(it.arrived()) < 50


@pytest.mark.parametrize("is_killed", [True, False])
async def test_an_hour_without_the_backend_and_ten_ends_lose_nothing_and_decide_once(
    *, is_killed: bool
) -> None:
    it = Stand(FakeTransport(answers=[Retryable("away")] * 1_000_000))
    for life in range(10):
        tries = it.spans.tries
        async with it.running(is_killed=is_killed):
            for minute in range(6):
                number = 6 * life + minute
                await it.close(number, status="ok" if number % 3 else "error")
                it.now += 60
            await eventually(lambda tries=tries: it.spans.tries > tries + 3)
    it.spans.answers.clear()
    async with it.running(is_killed=is_killed):
        await it.past()

    assert it.arrived() == dict.fromkeys(range(0, 60, 3), 2)
    assert await it.decided() == dict.fromkeys(range(60), 1)


async def test_a_trace_that_is_refused_is_lost_alone() -> None:
    it = Stand(FakeTransport(refuses=(bytes.fromhex(f"{2:032x}"), Permanent("HTTP 400"))))
    async with it.running():
        for number in (1, 2, 3):
            await it.close(number, status="error")
        await it.past()

    assert it.arrived() == {1: 2, 3: 2}
    assert it.count("lost", "refused") == 1


async def test_history_from_before_is_not_sent_and_a_log_that_ends_is_decided_at_a_stop() -> None:
    it = Stand()
    await it.close(1, status="error")
    async with it.running(drains=True):
        await it.close(2, status="error")
        await it.close(3)

    assert it.arrived() == {2: 2}


async def test_many_restarts_read_back_what_was_decided() -> None:
    """More records than lie between two that hold everything."""
    it = Stand(wait=0.1)
    for number in range(1, 140):
        async with it.running():
            await it.close(number)
            await it.past(0.5)
    async with it.running():
        await it.session(fails=True)
        await it.past(0.5)

    assert it.arrived() == dict.fromkeys(range(1, 140), 2)


async def test_what_owners_are_told_is_known_after_a_restart() -> None:
    it = Stand()
    async with it.running():
        await it.write(BroadcastRecord(alarms=(agent_key("support-bot", "planner"),)))
        await it.write(BroadcastRecord(said=session_of(session_key("support-bot", "s-2"))))
        await it.past(1)
    async with it.running():
        await it.close(1)
        await it.past()
        await it.write(BroadcastRecord(alarms=()))
        await it.close(2)
        await it.past()
    async with it.running():
        await it.close(3)
        await it.past()
        await it.write(BroadcastRecord(said=(3).to_bytes(16)))
        await it.past(1)

    assert it.arrived() == {1: 2, 3: 2}
    assert (it.count("kept", "alarm"), it.count("kept", "feedback")) == (1, 1)


async def test_feedback_is_told_to_the_owner_of_its_session_or_to_all() -> None:
    log = MemoryLog(clock=lambda: 1000.0, partitions=3, groups={})
    begun = Feedback(id="1" * 32, time="", name="n", kind="human", opinion="negative")
    of_session = structs.replace(begun, session_id="s-1", service="support-bot")
    of_trace = structs.replace(begun, trace_id=f"{1:032x}")
    stopping = asyncio.Event()
    run = asyncio.create_task(FeedbackBroadcaster(log=log, telemetry=Telemetry()).run(stopping))
    await log.write([of_session.record, of_trace.record])
    owner = partition_of(KEY, 3)
    ends = [2 if at == owner else 1 for at in range(3)]

    async def written() -> list[int]:
        return [await log.end(TRACES, at) for at in range(3)]

    async with asyncio.timeout(10):
        while await written() != ends:  # noqa: ASYNC110 - another task writes them
            await asyncio.sleep(0.002)
    stopping.set()
    await run


async def test_alarms_are_told_when_they_change() -> None:
    log = MemoryLog(clock=lambda: 1000.0, partitions=2, groups={})
    fault = Fault(
        fault="tool_failed",
        tool="t",
        since=0.0,
        uses=1,
        failures=1,
        uses_before=1,
        failures_before=0,
    )
    standing = Standing(service="support-bot", agent="planner", faults=(fault,))
    standings: dict[AgentLabels, Standing] = {("support-bot", "planner"): standing}
    teller = AlarmBroadcaster(log=log, standings=lambda: standings, caught_up=lambda: True)
    for _ in range(3):
        await teller.look()
    standings.clear()
    await teller.look()

    told = [decode_sent(record.value) async for record in log.replay(TRACES, 1)]
    assert told == [
        BroadcastRecord(alarms=(agent_key("support-bot", "planner"),)),
        BroadcastRecord(alarms=()),
    ]
