"""The data folder is its user's alone: it holds what users said to agents."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

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
