"""The words of traces, by which sessions are searched: written and taken out with the traces themselves.

FTS5 keeps no text of its own here, so a text that is removed is given to it again, from the trace as the index has it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from collector.api.search import text_of
from collector.records.trace_views import TraceHeader

_INSERT = "INSERT INTO texts (rowid, words) VALUES (?, ?)"
_DELETE = "INSERT INTO texts (texts, rowid, words) VALUES ('delete', ?, ?)"


class HeldTexts:
    """Belongs to one change."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def put(self, traces: Iterable[tuple[int, TraceHeader]]) -> None:
        self._connection.executemany(_INSERT, _rows(traces))

    def forget(self, traces: Iterable[tuple[int, TraceHeader]]) -> None:
        """Traces as the index has them until now: (row, header)."""
        self._connection.executemany(_DELETE, _rows(traces))


def _rows(traces: Iterable[tuple[int, TraceHeader]]) -> list[tuple[int, str]]:
    texts = ((row, text_of(header)) for row, header in traces)
    return [(row, text) for row, text in texts if text]
