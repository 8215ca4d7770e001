"""The real process goes on scoring when the machine's clock is set, with restarts between, and says so."""

import itertools
import time
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.dialect_spans import SpanSpec, request
from tests.support.sender import send
from tests.support.service import Service
from tests.support.set_clock import clock_file

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

NUMBERS = itertools.count(1)


def scored(service: Service) -> bool:
    """A new trace is closed and scored."""
    trace_id = f"{next(NUMBERS):032x}"
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"}
    send(service.grpc, request(SpanSpec(id=1, attributes=attributes), trace_id=trace_id))
    service.wait_for(
        f"signals of {trace_id}",
        lambda: any(each["trace_id"] == trace_id for each in service.signals()),
        timeout=20,
    )
    return True


@contextmanager
def shifted(tmp_path: Path, ahead: int, *settings: str) -> Generator[tuple[Service, Path]]:
    """A service whose machine's clock is off by the seconds in the file."""
    off = tmp_path / "off"
    environment = clock_file(off, ahead)
    chosen = ("windows.trace.root_grace=200ms", *settings)
    with Service(tmp_path / "data", *chosen, environment=environment) as service:
        yield service, off


def shown(service: Service) -> float:
    """How far log time is ahead of the machine's clock."""
    return service.metrics()["spanwise_log_time_ahead_seconds"]


@pytest.mark.parametrize("ahead", [600, -7_200, 259_200])
def test_scoring_goes_on_whatever_is_done_to_the_clock(tmp_path: Path, ahead: int) -> None:
    with shifted(tmp_path, ahead) as (service, off):
        assert scored(service)
        off.write_text("0")
        assert scored(service)
        service.wait_for(
            "the warning", lambda: service.output.read_text().count("the clock was set") == 1
        )
        assert shown(service) == pytest.approx(ahead, abs=2)
        assert "the machine&#39;s clock, which was set" in service.text("/health")

        service.kill()
        service.start()
        assert scored(service)
        assert shown(service) == pytest.approx(max(0, ahead), abs=30)
        off.write_text("-3600")
        assert scored(service)


def on(kafka: str) -> tuple[str, ...]:
    """The settings of a log of its own on these brokers."""
    name = uuid.uuid4().hex[:8]
    return (
        "log.kind=kafka",
        f"log.kafka.bootstrap_servers={kafka}",
        f"log.kafka.topic_prefix={name}.",
        f"log.kafka.group={name}",
        "log.kafka.partitions=1",
    )


@pytest.mark.kafka
@pytest.mark.parametrize("ahead", [-7_200, 259_200])
def test_on_kafka_log_time_is_the_brokers(tmp_path: Path, kafka: str, ahead: int) -> None:
    """It was the process's: with a clock that was behind nothing was closed until it had caught up."""
    with shifted(tmp_path, ahead, *on(kafka)) as (service, off):
        for step in (ahead, 0, -ahead, 3_600):
            off.write_text(str(step))
            assert scored(service)
            assert shown(service) == pytest.approx(-step, abs=5)
        service.kill()
        service.start()
        assert scored(service)
        assert shown(service) == pytest.approx(-3_600, abs=5)


@pytest.mark.kafka
def test_on_kafka_a_clock_that_is_ahead_closes_no_trace_early(tmp_path: Path, kafka: str) -> None:
    """Its spans that came a second later were late, for as long as the process ran."""
    with shifted(tmp_path, 600, *on(kafka), "windows.trace.root_grace=5s") as (service, _):
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"}
        root = SpanSpec(id=1, attributes=attributes)
        call = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find"}
        send(service.grpc, request(root, trace_id="7" * 32))
        time.sleep(2)
        assert not service.signals()
        send(service.grpc, request(SpanSpec(id=2, parent=1, attributes=call), trace_id="7" * 32))
        service.wait_for("signals", lambda: bool(service.signals()), timeout=30)

        assert {each["revision"] for each in service.signals()} == {0}
        assert service.total("spanwise_late_spans_total") == 0
