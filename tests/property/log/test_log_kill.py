"""kill -9 in mid-write: what was acknowledged is there, in order, whole, together with its commit.

Each of the child's writers has a call under way at any moment, so every kill meets unanswered ones: these must be there
whole or not at all.
"""

import random
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from collector.base.clock import wall
from collector.base.telemetry import Telemetry
from collector.log.disk.disk_log import DiskLog
from collector.log.port import SESSIONS, TRACES
from tests.support.log_child import GROUPS, MAX_SIZE, WRITERS, call
from tests.support.log_steps import assigned

pytestmark = pytest.mark.process


KILLS = 10


async def test_acknowledged_records_survive_kill_9(tmp_path: Path) -> None:
    rng = random.Random(11)
    next_numbers = [0] * WRITERS
    for _ in range(KILLS):
        acknowledged = _run_and_kill(tmp_path, next_numbers, after=rng.randrange(5, 120))
        written = await _check(tmp_path, next_numbers, acknowledged)
        next_numbers = [last + 1 for last in written]


def _run_and_kill(folder: Path, starts: list[int], *, after: int) -> list[int]:
    """Let the child write, kill it after that many acknowledgements; the last one of each writer."""
    command = [sys.executable, "-m", "tests.support.log_child", str(folder), *map(str, starts)]
    last = [start - 1 for start in starts]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for count, line in enumerate(child.stdout):
            if count == after:
                child.kill()
            if line.endswith("\n"):
                writer, number = map(int, line.split())
                last[writer] = number
    return last


async def _check(folder: Path, starts: list[int], acknowledged: list[int]) -> list[int]:
    """Compare the log with what it promised; the last call of each writer that it holds."""
    log = await DiskLog.open(
        folder, max_size=MAX_SIZE, clock=wall, telemetry=Telemetry(), groups=GROUPS
    )
    found: dict[int, list[bytes]] = defaultdict(list)
    times: list[float] = []
    async for record in log.replay(TRACES, 0):
        found[int(record.key)].append(record.value)
        times.append(record.time)
    sessions = {int(r.key): r.value async for r in log.replay(SESSIONS, 0)}
    written: list[int] = []
    for writer in range(WRITERS):
        calls = len(found[writer]) // 2
        assert calls - 1 >= acknowledged[writer]
        expected = [
            new.value for n in range(calls) for new in call(writer, n)[0] if new.topic == TRACES
        ]
        assert found[writer] == expected
        reader = log.read(f"writer {writer}", TRACES)
        offset = (await assigned(reader))[0].offset
        await reader.close()
        assert (offset or 0) == calls
        assert sessions.get(writer) == (b"%d %d " % (writer, calls - 1) if calls else None)
        written.append(calls - 1)
    await log.close()
    assert times == sorted(times)
    assert all(last >= start - 1 for last, start in zip(written, starts, strict=True))
    return written
