"""What was scored, to read: an index, `/api/v1`, the page, and the admin listener."""

from collector.api.api import Api
from collector.api.app import build_app
from collector.api.server import AdminServer

__all__ = ["AdminServer", "Api", "build_app"]
