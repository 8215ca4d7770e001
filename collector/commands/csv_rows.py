"""Final signals as CSV (RFC 4180), one row each."""

from __future__ import annotations

import csv
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from collector.base.csv_cell import cell
from collector.base.errors import ConfigError
from collector.commands.signal_table import reason

COLUMNS = (
    *("service", "agent", "agent_version", "session_id", "trace_id", "evaluator", "method"),
    *("outcome", "score", "threshold", "success"),
)
"""Fields of the signal; `why` stands behind them."""


class CsvRows:
    """Writes rows to a stream."""

    def __init__(self, stream: TextIO) -> None:
        self._writer = csv.writer(stream)
        self._writer.writerow((*COLUMNS, "why"))

    def add(self, signals: Iterable[Mapping[str, Any]]) -> None:
        """One row for each."""
        for each in signals:
            self._writer.writerow([*(cell(each[name]) for name in COLUMNS), cell(reason(each))])


@contextmanager
def csv_rows(path: Path | None) -> Generator[CsvRows | None]:
    """The file's rows; None: no file is wanted.

    Raises:
        ConfigError: the file cannot be written.
    """
    if path is None:
        yield None
        return
    try:
        stream = path.open("w", encoding="utf-8", newline="")
    except OSError as error:
        raise ConfigError(f"--csv: {path}: {error.strerror}") from error
    with stream:
        yield CsvRows(stream)
