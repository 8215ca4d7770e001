"""Where the chart stands."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
HELM = ROOT / "helm"
CHART = HELM / "spanwise"
EXAMPLES = CHART / "examples"
