"""What is said of a folder that cannot hold the log: the setting to change, and what the file system lacks."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

LOCAL = "data_dir: give a folder on a local disk"
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL})
_NO_MAPS = frozenset({errno.ENODEV, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL})
_ERRORS = {os.strerror(number): number for number in (*_NO_MAPS, errno.ENOMEM, errno.EFBIG)}
"""By text: LMDB tells only that."""


def without_lock(folder: Path, error: OSError) -> str:
    """Of an error of the folder itself, or of its lock."""
    if error.errno in _NO_LOCKS:
        return f"{folder} cannot be used: its file system has no locks ({error.strerror}); {LOCAL}"
    return f"{folder} cannot be used: {error}; give another data_dir"


def without_map(folder: Path, error: Exception, map_size: int) -> str:
    """Of an error of LMDB, which maps its whole file."""
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
