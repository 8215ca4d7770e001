"""A new log adapter is one file and one line: its row in `collector/service/logs.py`."""

from typing import Any, get_args

import pytest

from collector.base.clock import Clock, wall
from collector.base.telemetry import Telemetry
from collector.config.tree import Config, LogConfig
from collector.log.memory import MemoryLog
from collector.log.port import SPANS, Log, New
from collector.service.logs import LOGS, open_log


class NewLog(MemoryLog):
    """The file that a newcomer adds."""


async def open_new_log(config: Config, clock: Clock, telemetry: Telemetry) -> Log:
    del config
    return NewLog(clock=clock, telemetry=telemetry)


KIND: Any = "log_of_this_test"
CONFIGURED = Config(log=LogConfig.model_construct(kind=KIND))
"""With a kind that the published schema does not list yet."""


async def test_a_row_is_all_that_a_new_log_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LOGS, KIND, open_new_log)

    log = await open_log(CONFIGURED, wall, Telemetry())

    assert isinstance(log, NewLog)
    assert await log.write([New(topic=SPANS, key=b"k", value=b"span")])
    await log.close()


async def test_a_forgotten_row_ends_the_start_and_no_row_is_forgotten() -> None:
    with pytest.raises(KeyError, match=KIND):
        await open_log(CONFIGURED, wall, Telemetry())

    assert set(LOGS) == set(get_args(LogConfig.model_fields["kind"].annotation))
