"""How long one thing keeps the event loop, or the log's writer, from the next: in CPU time of their own threads.

    python -m tests.bench.turns run --set ...     the service; prints one JSON line when it ends

An acknowledgement waits for the turn of the loop and for the transaction that are under way. In wall time that is the
disk's doing and that of everybody else on the machine; in CPU time it is ours alone.
"""

import asyncio
import json
import sys
import time
from asyncio import events
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import uvloop

from collector.commands.cli import main as spanwise
from collector.log.disk.writer import DiskWriter
from tests.bench.measure import MEMORY_SHARE, load_file, send, settled
from tests.support.service import Service

MARK = "cpu of turns: "


def measured(data: Path, *settings: str) -> dict[str, float]:
    """Milliseconds of a service under a flood: the 99.9th percentile of the loop's turns, the 99th of transactions."""
    grace = "windows.trace.root_grace=0.2s"
    service = Service(data, MEMORY_SHARE, grace, *settings, module="tests.bench.turns")
    with service:
        send(service.grpc, load_file(64), passes=3)
        settled(service)
    said = service.output.read_text().rpartition(MARK)[2]
    return json.loads(said.splitlines()[0])


def main() -> None:
    """Run the command line with both clocks in place."""
    turns = _timed(events.Handle, "_run")
    transactions = _timed(DiskWriter, "_transact")
    uvloop.run = _run  # its handles are not Python's: nothing could be measured
    try:
        spanwise(sys.argv[1:])
    finally:
        print(MARK + json.dumps({"turn": _high(turns, 0.999), "txn": _high(transactions, 0.99)}))


def _timed(owner: type, name: str) -> list[float]:
    """Make a method note how much CPU each call took."""
    found: list[float] = []
    inner: Callable[..., Any] = getattr(owner, name)

    def timed(*arguments: Any) -> Any:
        began = time.thread_time()
        try:
            return inner(*arguments)
        finally:
            found.append(time.thread_time() - began)

    setattr(owner, name, timed)
    return found


def _run(main: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(main)


def _high(seconds: Sequence[float], share: float) -> float:
    ordered = sorted(seconds)
    return 1e3 * ordered[int(share * len(ordered))]


if __name__ == "__main__":
    main()
