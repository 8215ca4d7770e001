"""Damaged records, each named and counted once; and what is said of a folder that cannot hold the log."""

import errno
import logging
import os
import re
from pathlib import Path

from collector.base.families import RuntimeFamilies
from collector.base.telemetry import Telemetry
from collector.log.port import Position

LOCAL = "data_dir: give a folder on a local disk"
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL})
_NO_MAPS = frozenset({errno.ENODEV, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL})
_ERRORS = {os.strerror(number): number for number in (*_NO_MAPS, errno.ENOMEM, errno.EFBIG)}
"""By text: LMDB tells only that."""


def without_lock(folder: Path, error: OSError) -> str:
    if error.errno in _NO_LOCKS:
        return f"{folder} cannot be used: its file system has no locks ({error.strerror}); {LOCAL}"
    return f"{folder} cannot be used: {error}; give another data_dir"


def without_map(folder: Path, error: Exception, map_size: int) -> str:
    found = re.search(r":\s*([^:]+)$", str(error))
    number = _ERRORS.get(found[1].strip()) if found else getattr(error, "errno", None)
    if number == errno.ENOMEM:
        return (
            f"{folder} cannot be used: no address space for a map of {map_size >> 20} MiB; "
            "lower log.disk.max_size, or raise the limit (`ulimit -v`)"
        )
    if number == errno.EFBIG:
        return (
            f"{folder} cannot be used: its file system or `ulimit -f` allows no file of {map_size >> 20} MiB; "
            "lower log.disk.max_size"
        )
    if number in _NO_MAPS:
        why = os.strerror(number)
        return f"{folder} cannot be used: its file system cannot map files ({why}); {LOCAL}"
    return f"{folder} cannot be used: {error}; give another data_dir"


_MOST = 10_000  # damaged records that are remembered as named; then they may be named and counted once more
_log = logging.getLogger(__name__)


class DamagedRecords:
    """The damaged records that were met, up to 10,000; then they may be named again."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._counter = RuntimeFamilies(telemetry).poison_records
        self._named: set[Position] = set()

    def pass_over(self, position: Position, reason: object) -> None:
        """Count and name the record at `position`, unless it was before."""
        if position in self._named:
            return
        if len(self._named) >= _MOST:
            self._named.clear()
        self._named.add(position)
        self._counter.labels(position.topic).inc()
        _log.error(
            "A record of `%s`, partition %d, offset %d, is passed over: %s", *position, reason
        )
