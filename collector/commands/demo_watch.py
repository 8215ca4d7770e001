"""What /metrics says of the demo's agent."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from http.client import HTTPConnection, HTTPException

from prometheus_client.parser import text_string_to_metric_families

TIMEOUT = 2.0
PREFIX = "spanwise_drift_"
RUNAWAYS = "spanwise_runaway_traces"


class Watch:
    """The newest look at the service's drops, session scores alone: they are what pages."""

    def __init__(self, admin: str) -> None:
        self._admin = admin
        self.drops: Mapping[str, float] = {}
        """By evaluator whose `spanwise_drift_detected` is 1, the mean rank since its drop began."""
        self.history = 0
        """Sessions in the largest history of a score; 0: there is none yet. An alarm stops one of them, not all."""

        self.runaways = 0
        """Traces that run away now."""

    def look(self) -> bool:
        """Read /metrics; False: it cannot be read now."""
        try:
            text = self._metrics()
        except (OSError, HTTPException):
            return False
        families = [each for each in text.splitlines() if PREFIX in each]
        self.runaways = sum(
            int(float(each.rpartition(" ")[2]))
            for each in text.splitlines()
            if each.startswith(f"{RUNAWAYS}{{")
        )
        values: dict[str, dict[str, float]] = {}
        for family in text_string_to_metric_families("\n".join(families)):
            for sample in family.samples:
                if sample.labels.get("scope") == "session":
                    name = sample.name.removeprefix(PREFIX)
                    values.setdefault(name, {})[sample.labels["evaluator"]] = sample.value
        ranks = values.get("mean_rank_ratio", {})
        self.drops = {
            evaluator: ranks.get(evaluator, 0.0)
            for evaluator, detected in values.get("detected", {}).items()
            if detected
        }
        self.history = int(max(values.get("history_samples", {}).values(), default=0))
        return True

    def _metrics(self) -> str:
        with closing(HTTPConnection(self._admin, timeout=TIMEOUT)) as connection:
            connection.request("GET", "/metrics")
            return connection.getresponse().read().decode()
