"""What /metrics says of the demo's agent."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from typing import TypeAlias

from prometheus_client.parser import text_string_to_metric_families

from collector.records.standing import FAULTS_THAT_PAGE

TIMEOUT = 2.0
PREFIX = "spanwise_drift_"
FAULTS = "spanwise_fault_"
RUNAWAYS = "spanwise_runaway_traces"


Fault: TypeAlias = tuple[str, str]
"""(fault, tool)."""


class Watch:
    """The newest look at the service's faults and drops, of sessions alone."""

    def __init__(self, admin: str) -> None:
        self._admin = admin
        self.drops: Mapping[str, float] = {}
        """By evaluator whose `spanwise_drift_detected` is 1, the mean rank since its drop began."""
        self.faults: Mapping[Fault, str] = {}
        """What fails, and in how many sessions."""
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
        self.faults = _faults(text)
        self.history = int(max(values.get("history_samples", {}).values(), default=0))
        return True

    def _metrics(self) -> str:
        with closing(HTTPConnection(self._admin, timeout=TIMEOUT)) as connection:
            connection.request("GET", "/metrics")
            return connection.getresponse().read().decode()


def _faults(text: str) -> dict[Fault, str]:
    """Those that page, each with its numbers: "9 of 9, 12 of 200 before"."""
    lines = [each for each in text.splitlines() if FAULTS in each]
    numbers: dict[tuple[str, str, str, str], int] = {}
    shown: list[Fault] = []
    for family in text_string_to_metric_families("\n".join(lines)):
        for sample in family.samples:
            labels = sample.labels
            if labels.get("fault") not in FAULTS_THAT_PAGE:
                continue
            name, fault = sample.name.removeprefix(FAULTS), (labels["fault"], labels["tool"])
            if name == "detected" and sample.value:
                shown.append(fault)
            elif "period" in labels:
                numbers[(name, labels["period"], *fault)] = int(sample.value)
    return {
        fault: "{} of {}, {} of {} before".format(
            *(
                numbers.get((name, period, *fault), 0)
                for period in ("since", "before")
                for name in ("failures", "uses")
            )
        )
        for fault in shown
    }
