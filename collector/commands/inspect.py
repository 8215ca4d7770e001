"""`spanwise inspect`: what was understood of recorded traces, before any score."""

from __future__ import annotations

import asyncio
import json

from collector.commands.options import Files, Overrides, Paths, TableOrLines, loaded
from collector.commands.output import (
    find_recordings,
    note_rejected,
    opened,
    progress_over,
    trace_table,
)
from collector.offline.recordings import read_recordings
from collector.printable import escape_json
from evaluators.dialects.show import show


def command(
    paths: Paths, config: Files = None, overrides: Overrides = None, shape: TableOrLines = "table"
) -> None:
    """What Spanwise understood of recorded traces, before any score."""
    settings = loaded(config, overrides)
    found = find_recordings(paths)
    with progress_over(found.files) as progress:
        read = asyncio.run(read_recordings(settings, found.files, progress))
    note_rejected(read)
    with opened(None) as stream:
        if shape == "jsonl":
            for trace in read.traces:
                stream.write(escape_json(json.dumps(show(trace), ensure_ascii=False)) + "\n")
        else:
            trace_table(stream, read.traces)
