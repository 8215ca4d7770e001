"""A new kind of record on `traces` is a struct in collector/records/traces.py: older readers pass over it.

While versions are mixed, a process meets kinds that it does not know. No reader may call them broken, or stop.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from collector.base.clock import wall
from collector.base.errors import UnknownKind
from collector.base.telemetry import Telemetry
from collector.config.plan import plan_from
from collector.config.tree import AgentWindow, Config, JudgeConfig
from collector.export.exporter import PrometheusExporter
from collector.judging.budget import Budget
from collector.judging.judging_room import JudgingRoom
from collector.log.disk.disk_log import DiskLog
from collector.log.memory import MemoryLog
from collector.log.port import SIGNALS, TRACES, Log, New, Position, Record
from collector.records import trace_views
from collector.records.codec import encode
from collector.records.sessions import session_key
from collector.records.trace_summary import Summariser
from collector.records.traces import decode_traces
from collector.scoring.scorer import Scorer
from collector.service.logs import groups
from collector.service.replay import rescore
from tests.support import api_records as make
from tests.support.api_stand import Stand
from tests.support.clocks import eventually
from tests.support.judging_stand import FakeJudges
from tests.support.scoring_fakes import rules, windows
from tests.support.table import for_each

TRACE = make.trace()
KEY = session_key(TRACE.service, TRACE.session_id)


class KindOfThisTest(msgspec.Struct, kw_only=True, tag="kind_of_this_test"):
    """The new kind, with a field that has another type in the kinds that are known."""

    service: str = "support-bot"
    trace: int = 1


async def mixed(log: Log) -> None:
    """A record of the new kind, then a trace."""
    values = (encode(KindOfThisTest()), make.trace_value(TRACE))
    await log.write([New(topic=TRACES, key=KEY, value=value) for value in values])


def value(telemetry: Telemetry, name: str) -> float:
    found = telemetry.registry.get_sample_value(f"spanwise_{name}_total", {"topic": TRACES})
    return found or 0.0


async def score(log: Log, telemetry: Telemetry) -> None:
    scorer = Scorer(log=log, rules=rules(), windows=windows(), telemetry=telemetry)
    await scorer.drain()
    assert [record async for record in log.replay(SIGNALS, 0)]


async def judge(log: Log, telemetry: Telemetry) -> None:
    room = JudgingRoom(
        log=log,
        judges=FakeJudges(),
        judged=(),
        config=JudgeConfig(),
        budget=Budget(usd_per_day=1.0, calls_per_minute=1),
        telemetry=telemetry,
        clock=wall,
    )
    async with room.standing():
        await room.drain()


async def export(log: Log, telemetry: Telemetry) -> None:
    exporter = PrometheusExporter(
        log=log,
        telemetry=telemetry,
        windows=AgentWindow(),
        objectives=lambda _: None,
        clock=wall,
    )
    labels = {"service": TRACE.service, "agent": TRACE.agent}
    name = "spanwise_trace_duration_seconds_count"
    stopping = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(exporter.run(stopping))
        await eventually(lambda: telemetry.registry.get_sample_value(name, labels) == 1)
        await eventually(lambda: value(telemetry, "unknown_records") == 2)
        stopping.set()


@pytest.mark.parametrize(("read", "readers"), [(score, 1), (judge, 1), (export, 2)])
async def test_a_reader_passes_over_a_new_kind_and_counts_it(
    read: Callable[[Log, Telemetry], Awaitable[None]], readers: int
) -> None:
    telemetry = Telemetry(CollectorRegistry())
    log = MemoryLog(clock=lambda: 1.0, groups=groups(Config(judge=JudgeConfig(model="m"))))
    await mixed(log)

    await read(log, telemetry)

    assert value(telemetry, "unknown_records") == readers
    assert value(telemetry, "poison_records") == 0


async def test_the_index_passes_over_a_new_kind_and_counts_it(stand: Stand) -> None:
    stopping = asyncio.Event()
    await mixed(stand.log)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(stand.api.run(stopping))
        await eventually(lambda: value(stand.telemetry, "unknown_records") == 1)
        stopping.set()
    found = await stand.get(f"/api/v1/traces/{TRACE.trace_id}")

    assert found.status_code == 200
    assert value(stand.telemetry, "poison_records") == 0


async def test_replay_passes_over_a_new_kind_and_names_it_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = Config(data_dir=tmp_path, workers=0)
    log = await DiskLog.open(
        tmp_path / "log",
        max_size=config.log.disk.max_size,
        clock=wall,
        telemetry=Telemetry(),
        groups=groups(config),
    )
    await mixed(log)
    await mixed(log)
    await log.close()

    with caplog.at_level(logging.WARNING):
        plan = plan_from(config, only=["step_efficiency"])
        result = await rescore(config, plan, lambda _session: None, since=0)

    assert [trace.trace_id for trace in result.traces] == [TRACE.trace_id]
    lines = [each for each in caplog.messages if "kind_of_this_test" in each]
    assert len(lines) == 1


def in_a_record(decode: Callable[[Record], object]) -> Callable[[bytes], object]:
    position = Position(TRACES, 0, 0)
    return lambda value: decode(Record(position=position, key=b"", value=value, time=0.0))


@for_each(
    "decode",
    [
        decode_traces,
        in_a_record(partial(trace_views.decode_summarised, summariser=Summariser())),
        in_a_record(trace_views.counted),
        in_a_record(trace_views.work_in),
        trace_views.decode_raw_trace,
        trace_views.decode_listed_trace,
        trace_views.decode_counted_trace,
    ],
)
def test_every_decoder_tells_a_new_kind_from_broken_bytes(
    decode: Callable[[bytes], object],
) -> None:
    with pytest.raises(UnknownKind, match="`kind_of_this_test`"):
        decode(encode(KindOfThisTest()))
