"""An API over an empty log, or as many of them as a test asks for."""

from tests.support.api_stand import filled_stand, new_stand, stand

__all__ = ["filled_stand", "new_stand", "stand"]
