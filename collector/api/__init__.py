"""What was scored, to read: an index, `/api/v1`, the page, and the admin listener."""

from collector.api.admin import AdminServer, build_app
from collector.api.api import Api

__all__ = ["AdminServer", "Api", "build_app"]
