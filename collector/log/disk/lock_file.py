"""One process per data folder: an advisory lock that the kernel lets go of when its holder dies."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from collector.errors import DataFolderInUse

_NAME = "spanwise.lock"


class LockFile:
    """Held from construction to `close`.

    Raises:
        DataFolderInUse: another process (or another log in this one) holds the folder.
    """

    def __init__(self, folder: Path) -> None:
        self._descriptor = os.open(folder / _NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip()
            os.close(self._descriptor)
            raise DataFolderInUse(
                f"{folder} is in use by process {holder or 'unknown'}; "
                "stop it, or give this one another data_dir"
            ) from error
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def close(self) -> None:
        """Let go. The file stays: removing it would let two processes hold two files of one name."""
        os.close(self._descriptor)
