"""The running version, from the installed distribution."""

from __future__ import annotations

from importlib import metadata

try:
    VERSION = metadata.version("spanwise")
except metadata.PackageNotFoundError:
    VERSION = "0+unknown"
