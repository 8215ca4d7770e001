"""How far scoring is behind, as the receiver sees it."""

from pathlib import Path

import pytest

from collector.base.errors import LogUnavailable
from collector.config.tree import Config, ReceiverConfig
from collector.log.memory import MemoryLog
from collector.log.port import TRACES, Lag, New
from collector.service.rooms import SCORING, ScoreLag, score_lag
from tests.support.clocks import SetClock


class Stand:
    """A log with what scoring reads, and the lag that is reported of it."""

    def __init__(self) -> None:
        self.clock = SetClock(1000.0)
        self.log = MemoryLog(clock=self.clock, groups={TRACES: frozenset({SCORING})})
        self.reader = self.log.read(SCORING, TRACES)
        self.lag = ScoreLag(self.log, self.clock)

    async def close(self) -> None:
        await self.log.write([New(topic=TRACES, key=b"", value=b"x")])


async def test_a_trace_waits_until_scoring_has_read_it() -> None:
    stand = Stand()
    await stand.reader.poll(timeout=0)
    await stand.close()
    stand.clock.now += 7
    await stand.lag.measure()
    assert stand.lag() == 7

    await stand.reader.poll(timeout=0)  # it is not committed: a slow trace holds up no other
    await stand.lag.measure()
    assert stand.lag() == 0


@pytest.mark.parametrize(("since", "lag"), [(1_040.0, 20), (10.0, 60)])
async def test_what_has_closed_and_is_not_written_waits_too_since_the_start_at_most(
    since: float, lag: float
) -> None:
    stand = Stand()
    stand.clock.now += 60
    stand.lag.unwritten = lambda: Lag(3, since)

    assert stand.lag() == lag


async def test_while_the_log_does_not_answer_what_waited_goes_on_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def away(*_: object, **__: object) -> Lag:
        raise LogUnavailable("away")

    stand = Stand()
    await stand.close()
    await stand.lag.measure()
    monkeypatch.setattr(stand.log, "lag", away)
    stand.clock.now += 9
    await stand.lag.measure()

    assert stand.lag() == 9


def test_it_is_known_where_one_process_does_everything(tmp_path: Path) -> None:
    clock = SetClock(1000.0)
    log = MemoryLog(clock=clock)
    whole = Config(data_dir=tmp_path)

    assert score_lag(whole, log, clock) is not None
    assert score_lag(whole.model_copy(update={"roles": ("receive",)}), log, clock) is None
    off = whole.model_copy(update={"receiver": ReceiverConfig(max_score_lag=None)})
    assert score_lag(off, log, clock) is None
