"""What the chart is made of and another part of the repository knows: one source for each."""

import json

from collector.commands.slo import HEAD, written
from collector.slo.rules import rules
from scripts.chart.places import ROOT
from scripts.chart.schema import values_schema
from scripts.dashboard.files import files as dashboard_files


def files() -> dict[str, str]:
    """Every such file, by its path below helm/."""
    return {
        "spanwise/values.schema.json": json.dumps(values_schema(), indent=1) + "\n",
        "spanwise/files/rules.yaml": HEAD + written(rules(exported=True)),
        **dashboard_files(),
        "spanwise/files/spanwise.yaml": (ROOT / "spanwise.yaml").read_text(encoding="utf-8"),
    }
