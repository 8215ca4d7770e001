"""The command line within this process, and an API over a log, empty or filled."""

from tests.support.api_stand import filled_stand, new_stand, stand
from tests.support.command import run

__all__ = ["filled_stand", "new_stand", "run", "stand"]
