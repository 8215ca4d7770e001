"""The Grafana dashboard: `dashboard()` makes it, a file in `rows` for each of its rows."""

from scripts.dashboard.board import UID, dashboard

__all__ = ["UID", "dashboard"]
