"""`spanwise inspect`: what was understood of recorded traces, before any score."""

from __future__ import annotations

import json
from contextlib import ExitStack

from collector.base.printable import escape_json
from collector.commands.options import Files, Overrides, Paths, TableOrLines, loaded
from collector.commands.output import (
    ProgressBar,
    find_recordings,
    note_rejected,
    opened,
)
from collector.commands.trace_list import trace_list
from collector.service.recorded_traces import read_recordings
from evaluators.dialects.show import show


def command(
    paths: Paths, config: Files = None, overrides: Overrides = None, shape: TableOrLines = "table"
) -> None:
    """What Spanwise understood of recorded traces, before any score."""
    settings = loaded(config, overrides)
    found = find_recordings(paths)
    with ExitStack() as stack:
        with ProgressBar(found.files) as bar:
            recorded = stack.enter_context(read_recordings(settings, found.files, bar.read))
        note_rejected(recorded.rejected, recorded.reasons)
        stream = stack.enter_context(opened(None))
        traces = recorded.closed.traces()
        if shape == "jsonl":
            for trace in traces:
                stream.write(escape_json(json.dumps(show(trace), ensure_ascii=False)) + "\n")
        else:
            trace_list(stream, traces)
