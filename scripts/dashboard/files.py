"""The generated files of the dashboard and of the mixin, by their path below helm/."""

from __future__ import annotations

import json
from typing import Any

from collector.slo.rules import PAGE, Group, recordings, rules
from scripts.dashboard.board import dashboard


def files() -> dict[str, str]:
    """The chart's dashboard, and the mixin's copy of it and of the rules: a bundler takes the mixin's folder alone."""
    return {
        "spanwise/files/dashboard.json": _text(dashboard()),
        "mixin/dashboard.json": _text(dashboard()),
        "mixin/rules.json": _text({"page": PAGE, "groups": groups()}),
    }


def groups() -> list[Group]:
    """The rules of `spanwise slo`, all alerts, with the objectives that the service exports and no other."""
    of_objectives, always = rules(objective=0.5)
    burns = [each for each in of_objectives["rules"] if "alert" in each]
    return [{"name": of_objectives["name"], "rules": [*recordings(None, {}), *burns]}, always]


def _text(made: Any) -> str:
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"
