"""Whether files can be made in a folder, found out without leaving any."""

from __future__ import annotations

import tempfile
from pathlib import Path


def unwritable(folder: Path) -> str | None:
    """Why no file can be made in the folder, or in the nearest one above it that exists; None: one can."""
    nearest = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    try:
        with tempfile.TemporaryFile(dir=nearest):
            return None
    except OSError as error:
        return f"nothing can be written in {folder} ({error.strerror or type(error).__name__})"
