"""The dashboard's queries, asked of a real Prometheus the way Grafana does."""

import re
from dataclasses import dataclass, field

from scripts.dashboard import dashboard
from tests.support.dashboard_panels import Target, misfits, replaced, targets
from tests.support.prometheus import Labels, Prometheus

SHOWN = 600.0
"""Seconds up to now that are looked at: all of a test's run. A query of a table is asked at each of their moments."""
WINDOW = "15s"
"""For what counts within a window; the scrapes are a second apart."""
Found = list[tuple[Labels, list[tuple[float, float]]]]
_VALUES = re.compile(r"label_values\((.+), (\w+)\)")


@dataclass(slots=True)
class Board:
    """What its queries have answered; one that has answered is not asked again."""

    prometheus: Prometheus
    answers: dict[Target, Found] = field(default_factory=dict[Target, Found])

    def unanswered(self) -> list[str]:
        """Ask what has no data yet; the panels of what still has none."""
        for target in targets():
            if target not in self.answers and (found := self._ask(target.asked(WINDOW))):
                self.answers[target] = found
        return [f"{each.panel}: {each.expr}" for each in targets() if each not in self.answers]

    def misfits(self) -> list[str]:
        """Values of all answers that their units cannot mean."""
        return [text for target, found in self.answers.items() for text in misfits(target, found)]

    def shown(self, panel: str, **chosen: str) -> Found:
        """What one panel, or one column of a table, shows for a choice."""
        (target,) = (each for each in targets() if each.panel == panel)
        return self._ask(target.asked(WINDOW, **chosen))

    def offered(self, variable: str) -> set[str]:
        """The values of one of the variables at the top."""
        made = {each["name"]: each for each in dashboard()["templating"]["list"]}
        found = _VALUES.fullmatch(made[variable]["query"]["query"])
        assert found is not None
        selector, label = found.groups()
        return self.prometheus.label_values(label, replaced(selector))

    def _ask(self, expression: str) -> Found:
        return self.prometheus.over_time(expression, SHOWN)
