"""The installed distributions: the running version, and others that install our packages."""

import re
from importlib import metadata

UNKNOWN = "0+unknown"
DISTRIBUTION = "spanwise"
PACKAGES = ("collector", "evaluators")
"""The import names of Spanwise. They are common words."""


def version() -> str:
    """Of the installed distribution; `0+unknown` when Spanwise runs from a folder that was never installed."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return UNKNOWN


def conflicting_distributions() -> list[str]:
    """One line per other distribution of this environment that provides one of our packages too.

    `metadata.packages_distributions` parses the name of every file of every distribution, which takes half a second.
    """
    found: list[str] = []
    for each in metadata.distributions():
        files = each.read_text("top_level.txt") or each.read_text("RECORD") or ""
        found += [
            f"the distribution `{each.metadata['Name']}` also installs the package `{package}`, and one hides the "
            f"other; uninstall it, or give Spanwise an environment of its own"
            for package in PACKAGES
            if re.search(rf"^{package}(?:/|\.py,|$)", files, re.MULTILINE)
            and each.metadata["Name"] != DISTRIBUTION
        ]
    return sorted({*found})
