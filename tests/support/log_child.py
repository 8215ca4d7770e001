"""A process that writes to a disk log until it is killed, and says what was acknowledged.

Run as `python -m tests.support.log_child FOLDER SEED`; prints one line per acknowledged call: `writer number`.
"""

import asyncio
import random
import sys
from pathlib import Path

from collector.base.clock import wall
from collector.base.telemetry import Telemetry
from collector.log.disk.disk_log import DiskLog
from collector.log.port import SESSIONS, SPANS, TRACES, Commit, New

WRITERS = 4
GROUPS = {SPANS: frozenset({"assembly"}), TRACES: frozenset({"scoring"})}
MAX_SIZE = 1 << 30


def call(writer: int, number: int) -> tuple[list[New], list[Commit]]:
    """Call `number` of `writer`: two traces and a session's state that name it, and a commit in the same breath."""
    body = random.Random(writer * 100_003 + number).randbytes(40 + number % 7 * 3_000)
    name = b"%d %d " % (writer, number)
    records = [
        New(topic=TRACES, key=b"%d" % writer, value=name + b"a" + body),
        New(topic=SESSIONS, key=b"%d" % writer, value=name),
        New(topic=TRACES, key=b"%d" % writer, value=name + b"b" + body),
    ]
    return records, [Commit(group=f"writer {writer}", topic=TRACES, partition=0, offset=number + 1)]


async def write(log: DiskLog, writer: int, start: int) -> None:
    number = start
    while True:
        await log.write(*call(writer, number))
        sys.stdout.write(f"{writer} {number}\n")
        sys.stdout.flush()
        number += 1


async def main(folder: Path, starts: list[int]) -> None:
    log = await DiskLog.open(
        folder, max_size=MAX_SIZE, clock=wall, telemetry=Telemetry(), groups=GROUPS
    )
    async with asyncio.TaskGroup() as tasks:
        for writer, start in enumerate(starts):
            tasks.create_task(write(log, writer, start))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), [int(arg) for arg in sys.argv[2:]]))
