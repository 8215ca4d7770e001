"""Log time goes on by elapsed seconds, and it is said once when the machine's clock parts from it."""

import logging
import re
from pathlib import Path
from typing import Literal

import pytest

from collector.base.clock import wall
from collector.base.families import RuntimeFamilies
from collector.base.steady_clock import APART, ClockWatch, SteadyClock
from collector.base.telemetry import Telemetry
from collector.config.sinks import KafkaSecurity
from collector.config.tree import Config, KafkaLogConfig, LogConfig
from collector.log.families import LogFamilies
from collector.log.kafka.client import client_settings
from collector.log.kafka.cluster import Cluster
from collector.log.port import SPANS, New, Reader
from collector.service.logs import open_log
from tests.support.clocks import Machine

MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0
STEPS = [sign * step for step in (10 * MINUTE, 2 * HOUR, 3 * DAY) for sign in (1, -1)]
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("step", STEPS)
def test_a_step_of_the_machines_clock_moves_nothing(step: float) -> None:
    machine = Machine()
    clock = machine.clock()
    began = clock()

    machine.set_clock(step)
    machine.go_on(7)

    assert clock() == began + 7
    assert clock.ahead == -step
    assert abs(SteadyClock()() - wall()) < 1, "without steps"


@pytest.mark.parametrize("step", STEPS)
def test_a_restart_goes_on_from_the_later_one_of_newest_and_now(step: float) -> None:
    machine = Machine()
    newest = machine.clock()()
    machine.set_clock(step)

    again = machine.clock()
    again.go_on_from(newest)
    machine.go_on(7)

    assert again() == max(newest, machine.wall() - 7) + 7


@pytest.mark.parametrize("step", STEPS)
def test_a_step_is_said_once_with_both_times(step: float, caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    telemetry = Telemetry()
    watch = ClockWatch(machine.clock(), RuntimeFamilies(telemetry))
    caplog.set_level(logging.INFO)
    for _ in range(3):
        watch.look()
        machine.go_on(2)
    machine.set_clock(APART)
    watch.look()
    assert not caplog.records, "a clock that is corrected slowly is not worth a line"
    machine.set_clock(-APART)

    machine.set_clock(step)
    for _ in range(5):
        watch.look()
        machine.go_on(2)
    ahead = telemetry.registry.get_sample_value("spanwise_log_time_ahead_seconds")
    machine.set_clock(-step)
    for _ in range(5):
        watch.look()

    assert ahead == -step
    assert [each.levelname for each in caplog.records] == ["WARNING", "INFO"]
    times = re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", caplog.messages[0])
    assert len(set(times)) == 2


def test_nothing_that_decides_asks_the_machines_clock() -> None:
    """All that compares with log times takes the log's clock. These show times, or run without a service."""
    asks = {
        str(each.relative_to(ROOT / "collector"))
        for each in (ROOT / "collector").rglob("*.py")
        if re.search(r"import .*\bwall\b", each.read_text())
    }

    assert asks == {
        "base/steady_clock.py",
        "base/telemetry.py",
        "commands/notify.py",
        "commands/replay.py",
        "service/offline_service.py",
        "service/replay.py",
    }


def cluster(clock: SteadyClock) -> Cluster:
    return Cluster(
        settings=KafkaLogConfig(bootstrap_servers="broker:9092"),
        client=client_settings("broker:9092", KafkaSecurity(), section="log.kafka"),
        clock=clock,
        families=LogFamilies(Telemetry()),
        deadline=1.0,
        owner=b"",
    )


@pytest.mark.parametrize("apart", STEPS)
def test_on_kafka_log_time_becomes_the_brokers(apart: float) -> None:
    """An answer that came late moves nothing."""
    machine, late = Machine(), Machine()
    clock, other = machine.clock(), late.clock()
    brokers, sent = clock() - apart, other()
    late.go_on(60)

    cluster(clock).heard(brokers, sent=clock())
    cluster(other).heard(sent + 0.01, sent=sent)

    assert clock() == pytest.approx(brokers)
    machine.go_on(7)
    assert clock() == pytest.approx(brokers + 7)
    assert other() == sent + 60


def test_on_kafka_only_the_first_answer_sets_log_time_back() -> None:
    """Another broker's clock, or a step of one, may not: what was closed stays closed."""
    clock = Machine().clock()
    kafka = cluster(clock)
    kafka.heard(clock(), sent=clock())
    before = clock()

    kafka.heard(before - HOUR, sent=before)
    kafka.heard(before - HOUR)
    assert clock() == before
    kafka.heard(before + HOUR)
    assert clock() == pytest.approx(before + HOUR)


# --- traces close at their time on disk and in memory ---


async def times(reader: Reader) -> tuple[list[float], float]:
    """Of the records that wait, and that of the end after them."""
    found: list[float] = []
    while True:
        batch = await reader.poll(timeout=0)
        found += [each.time for each in batch.records]
        if batch.ends and not batch.records:
            return found, batch.ends[0]


@pytest.mark.parametrize(("kind", "restarts"), [("disk", False), ("memory", False), ("disk", True)])
@pytest.mark.parametrize("step", STEPS)
async def test_the_end_of_a_partition_goes_on_by_elapsed_seconds(
    tmp_path: Path, step: float, kind: Literal["disk", "memory"], *, restarts: bool
) -> None:
    machine, config = Machine(), Config(log=LogConfig(kind=kind), data_dir=tmp_path)
    record = New(topic=SPANS, key=b"k", value=b"v")
    log = await open_log(config, machine.clock(), Telemetry())
    await log.write([record])
    if restarts:
        await log.close()
    machine.set_clock(step)
    if restarts:
        log = await open_log(config, machine.clock(), Telemetry())
    reader = log.read("assembly", SPANS)
    machine.go_on(7)
    await log.write([record])
    machine.go_on(7)

    (first, second), end = await times(reader)

    assert second - first == pytest.approx(7 + (max(0.0, step) if restarts else 0.0))
    assert end - second == pytest.approx(7)
    await log.close()
