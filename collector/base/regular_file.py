"""Reading files that somebody named: a FIFO, a device or a socket is refused, never waited for."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO


def open_regular(path: Path) -> IO[bytes]:
    """The file, open for reading.

    Raises:
        OSError: it cannot be opened, or is not a regular file.
    """
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "a path holds no NUL character", str(path))
    # O_NONBLOCK: else opening a FIFO waits for its writer. A regular file does not heed it.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def read_regular(path: Path, *, most: int) -> bytes:
    """The whole file.

    Raises:
        OSError: as `open_regular`, or the file has more than `most` bytes.
    """
    with open_regular(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"larger than {most >> 20} MiB", str(path))
    return content
