"""The choices at the top of the dashboard, as Grafana's template variables. Pure."""

from typing import Any

from scripts.dashboard.panels import SOURCE

ALL = {"selected": True, "text": ["All"], "value": ["$__all"]}


def source() -> dict[str, Any]:
    """Which Prometheus: the one that is Grafana's default until another one is chosen."""
    return {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "current": {"selected": True, "text": "default", "value": "default"},
        "hide": 0,
        "includeAll": False,
        "multi": False,
        "options": [],
        "refresh": 1,
        "regex": "",
        "skipUrlSync": False,
    }


def asked(name: str, query: str) -> dict[str, Any]:
    """The values of a label; all of them until some are chosen."""
    return {
        "name": name,
        "label": name.capitalize(),
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": f"{name}-values"},
        "allValue": ".+",
        "current": ALL,
        "hide": 0,
        "includeAll": True,
        "multi": True,
        "options": [],
        "refresh": 2,
        "regex": "",
        "skipUrlSync": False,
        "sort": 1,
    }


def page(address: str) -> dict[str, Any]:
    """Where the page stands, for links: written by the reader, without a slash at its end."""
    chosen = {"selected": True, "text": address, "value": address}
    return {
        "name": "page",
        "label": "Page",
        "type": "textbox",
        "query": address,
        "current": chosen,
        "hide": 0,
        "options": [chosen],
        "skipUrlSync": False,
    }
