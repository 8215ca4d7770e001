"""The running version."""

from __future__ import annotations

from importlib import metadata

UNKNOWN = "0+unknown"


def version() -> str:
    """Of the installed distribution; `0+unknown` when Spanwise runs from a folder that was never installed."""
    try:
        return metadata.version("spanwise")
    except metadata.PackageNotFoundError:
        return UNKNOWN
