"""The page: rendered on the server, nothing loaded from elsewhere."""

from collector.api.page.pages import Pages

__all__ = ["Pages"]
