"""Files that somebody named, and whether ours are private, written to disk, writable."""

import errno
import logging
import os
import stat
import tempfile
from pathlib import Path
from typing import IO

_log = logging.getLogger(__name__)
OWN = ("log", "index", "judge*", "signals.jsonl*", "signals-*")
"""What Spanwise writes into a data folder, as patterns; anything else in it keeps its modes."""


def keep_private(folder: Path) -> None:
    """From now on this process and its children make files 0600 and folders 0700; what `folder` has gets them too.

    Where the modes cannot be changed (a volume that belongs to another user) they stay, with a warning.
    """
    os.umask(0o077)
    if not folder.is_dir():
        return
    try:
        _restrict(folder)
        for pattern in OWN:
            for each in folder.glob(pattern):
                for path in (each, *each.rglob("*")):
                    _restrict(path)
    except OSError as error:
        _log.warning("The modes of %s cannot be changed: %s.", folder, error)


def _restrict(path: Path) -> None:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode) or mode & stat.S_ISVTX:  # a shared folder such as /tmp stays shared
        return
    if mode & 0o077:
        path.chmod(stat.S_IMODE(mode) & 0o700)


def unwritable(folder: Path) -> str | None:
    """Why no file can be made in the folder, or in the nearest one above it that exists; None: one can."""
    nearest = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    try:
        with tempfile.TemporaryFile(dir=nearest):
            return None
    except OSError as error:
        return f"nothing can be written in {folder} ({error.strerror or type(error).__name__})"


def sync_folder(folder: Path) -> None:
    """Return once the folder's entries (files made, renamed, removed) would survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_regular(path: Path) -> IO[bytes]:
    """The file, open for reading. Raises OSError: it cannot be opened, or is not a regular file."""
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
    """The whole file. Raises OSError: as `open_regular`, or the file has more than `most` bytes."""
    with open_regular(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"larger than {most >> 20} MiB", str(path))
    return content
