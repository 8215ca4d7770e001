"""How far scoring is behind, as the receiver sees it."""

from pathlib import Path

from collector.base.errors import LogUnavailable
from collector.config.tree import Config, ReceiverConfig
from collector.log.memory import MemoryLog
from collector.log.port import TRACES, Lag, New
from collector.service.rooms import SCORING, ScoreLag, score_lag
from tests.support.ticking import SetClock


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


async def test_what_has_closed_and_is_not_written_waits_too() -> None:
    stand = Stand()
    stand.clock.now += 60
    stand.lag.unwritten = lambda: Lag(3, stand.clock.now - 20)

    assert stand.lag() == 20


async def test_what_closed_before_the_start_waits_since_then() -> None:
    stand = Stand()
    stand.lag.unwritten = lambda: Lag(1, 10.0)
    stand.clock.now += 5

    assert stand.lag() == 5


async def test_while_the_log_does_not_answer_what_waited_goes_on_waiting() -> None:
    class Away(MemoryLog):
        away = False

        async def lag(self, group: str, topic: str, *, unread: bool = False) -> Lag:
            if self.away:
                raise LogUnavailable("away")
            return await super().lag(group, topic, unread=unread)

    clock = SetClock(1000.0)
    log = Away(clock=clock, groups={TRACES: frozenset({SCORING})})
    lag = ScoreLag(log, clock)
    await log.write([New(topic=TRACES, key=b"", value=b"x")])
    await lag.measure()
    log.away = True
    clock.now += 9
    await lag.measure()

    assert lag() == 9


def test_it_is_known_where_one_process_does_everything(tmp_path: Path) -> None:
    clock = SetClock(1000.0)
    log = MemoryLog(clock=clock)
    whole = Config(data_dir=tmp_path)

    assert score_lag(whole, log, clock) is not None
    assert score_lag(whole.model_copy(update={"roles": ("receive",)}), log, clock) is None
    off = whole.model_copy(update={"receiver": ReceiverConfig(max_score_lag=None)})
    assert score_lag(off, log, clock) is None
