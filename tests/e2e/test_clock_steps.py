"""The real process goes on scoring when the machine's clock is set, with restarts between, and says so."""

import itertools
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.asking import asked, trace_id
from tests.support.clocks import clock_file
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

NUMBERS = itertools.count(1)


def scored(service: Service) -> bool:
    """A new trace is closed and scored."""
    name = f"s{next(NUMBERS)}"
    send(service.grpc, asked(name, "hello"))
    service.wait_for(name, lambda: trace_id(name) in service.scored_traces(), timeout=20)
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


@pytest.mark.parametrize("ahead", [-7_200, 259_200])
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


@pytest.mark.kafka
@pytest.mark.parametrize("ahead", [-7_200, 259_200])
def test_on_kafka_log_time_is_the_brokers(tmp_path: Path, kafka: str, ahead: int) -> None:
    """It was the process's: with a clock that was behind nothing was closed until it had caught up."""
    name = uuid.uuid4().hex[:8]
    own = (
        *("log.kind=kafka", "log.kafka.partitions=1", f"log.kafka.bootstrap_servers={kafka}"),
        *(f"log.kafka.topic_prefix={name}.", f"log.kafka.group={name}"),
    )
    with shifted(tmp_path, ahead, *own) as (service, off):
        for step in (ahead, 0, -ahead, 3_600):
            off.write_text(str(step))
            assert scored(service)
            assert shown(service) == pytest.approx(-step, abs=5)
        service.kill()
        service.start()
        assert scored(service)
        assert shown(service) == pytest.approx(-3_600, abs=5)
