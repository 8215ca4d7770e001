"""The generated files of the dashboard and of the mixin, by their path below helm/."""

import json
from typing import Any

from collector.slo.rules import PAGE, rules
from scripts.dashboard.board import dashboard


def files() -> dict[str, str]:
    """The chart's dashboard, and the mixin's copy of it and of the rules: a bundler takes the mixin's folder alone.

    The rules read the objectives that the service exports, as the chart's do.
    """
    return {
        "spanwise/files/dashboard.json": _text(dashboard()),
        "mixin/dashboard.json": _text(dashboard()),
        "mixin/rules.json": _text({"page": PAGE, "groups": rules(exported=True)}),
    }


def _text(made: Any) -> str:
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"
