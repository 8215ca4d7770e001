"""The command line within this process."""

from tests.support.command import run

__all__ = ["run"]
