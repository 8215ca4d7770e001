"""The installed distributions: the running version, and others that install our packages."""

from collections.abc import Mapping, Sequence
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


def conflicting_distributions(
    installed: Mapping[str, Sequence[str]] | None = None,
) -> list[str]:
    """One line per other distribution that provides one of our packages too.

    `installed`: top-level package to distributions; default: what this environment holds.
    """
    if installed is None:
        installed = metadata.packages_distributions()
    return [
        f"the distribution `{name}` also installs the package `{package}`, and one hides the other; "
        f"uninstall it, or give Spanwise an environment of its own"
        for package in PACKAGES
        for name in sorted(set(installed.get(package, ())) - {DISTRIBUTION})
    ]
