"""Other distributions that install our import names: `collector` and `evaluators` are common words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import metadata

OURS = "spanwise"
PACKAGES = ("collector", "evaluators")


def neighbours(installed: Mapping[str, Sequence[str]] | None = None) -> list[str]:
    """One line per distribution that provides one of our packages too.

    Args:
        installed: Top-level package to distributions; default: what this environment holds.
    """
    if installed is None:
        installed = metadata.packages_distributions()
    return [
        f"the distribution `{name}` also installs the package `{package}`, and one hides the other; "
        f"uninstall it, or give Spanwise an environment of its own"
        for package in PACKAGES
        for name in sorted(set(installed.get(package, ())) - {OURS})
    ]
