"""Who decides which traces are kept hears of feedback and alarms."""

import asyncio

from msgspec import structs

from collector.base.telemetry import Telemetry
from collector.forward.broadcasts import AlarmBroadcaster, FeedbackBroadcaster
from collector.log.memory import MemoryLog
from collector.log.port import TRACES, partition_of
from collector.records.feedback import Feedback
from collector.records.keeping import BroadcastRecord, agent_key
from collector.records.sent_trace import decode_sent
from collector.records.sessions import session_key
from collector.records.standing import AgentLabels, Fault, Standing

KEY = session_key("support-bot", "s-1")


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
