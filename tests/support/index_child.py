"""Fills an index until it is killed: `python -m tests.support.index_child FOLDER`.

Prints how many traces are synced to the disk, after each batch: what would have been committed to the log.
"""

import sys
from pathlib import Path

from collector.api.families import ApiFamilies
from collector.api.index import Index
from collector.base.telemetry import Telemetry
from tests.support import api_records as make

BATCH = 8


def index_in(folder: Path) -> Index:
    return Index(
        folder,
        size=4 << 20,
        max_traces=1000,
        content=True,
        families=ApiFamilies(Telemetry()),
    )


def main() -> None:
    """Take batches without end."""
    index = index_in(Path(sys.argv[1]))
    count = 0
    while True:
        traces = [
            make.trace(number, session_id=f"s-{number}") for number in range(count, count + BATCH)
        ]
        index.take_traces(make.trace_records(*map(make.trace_value, traces), first=count))
        index.take_signals(
            make.signal_records(*[make.signal(each) for each in traces], first=count)
        )
        index.sync()
        count += BATCH
        print(count, flush=True)


if __name__ == "__main__":
    main()
