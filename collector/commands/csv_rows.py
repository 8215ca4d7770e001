"""Final signals as CSV (RFC 4180), one row each. A text that a spreadsheet would run as a formula begins with `'`."""

from __future__ import annotations

import csv
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from collector.base.errors import ConfigError
from collector.commands.signal_table import reason

COLUMNS = (
    *("service", "agent", "agent_version", "session_id", "trace_id", "evaluator", "method"),
    *("outcome", "score", "threshold", "success"),
)
"""Fields of the signal; `why` stands behind them."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class CsvRows:
    """Writes rows to a stream."""

    def __init__(self, stream: TextIO) -> None:
        self._writer = csv.writer(stream)
        self._writer.writerow((*COLUMNS, "why"))

    def add(self, signals: Iterable[Mapping[str, Any]]) -> None:
        """One row for each."""
        for each in signals:
            self._writer.writerow([*(_shown(each[name]) for name in COLUMNS), _shown(reason(each))])


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


def _shown(value: Any) -> str:
    """What was not measured is an empty cell, never a 0."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA) else text
