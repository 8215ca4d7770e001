"""The admin API over a log and an index of a test's own."""

from tests.support.api_stand import filled_stand, new_stand, stand

__all__ = ["filled_stand", "new_stand", "stand"]
