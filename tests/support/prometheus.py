"""A real Prometheus over a running service: its rules, alerts and exemplars by its API; and a real Alertmanager."""

import json
import math
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import yaml

from collector.base.clock import wall
from tests.support.processes import free_ports, missing
from tests.support.server_program import ServerProgram, ask

CONFIGURATION = Path(__file__).parents[2] / "compose" / "prometheus" / "prometheus.yml"
Labels = Mapping[str, str]


def need_prometheus() -> None:
    """Skip, or fail where SPANWISE_REQUIRE_PROMTOOL=1 says that it is here: `promtool` comes with the server."""
    absent = [each for each in ("prometheus", "promtool") if shutil.which(each) is None]
    if absent:
        what = " NO ".join(absent).upper()
        missing("PROMTOOL", f"NO {what}, NOT TESTED: install the Debian package `prometheus`")


class Prometheus(ServerProgram):
    """Scrapes `admin` and `others` every second as OpenMetrics, and evaluates `rules` (YAML) every second."""

    def __init__(
        self, folder: Path, admin: str, rules: str | None = None, *, others: Sequence[str] = ()
    ) -> None:
        self._folder = folder
        self._targets = [each.removeprefix("http://") for each in (admin, *others)]
        self._rules = rules
        (port,) = free_ports(1)
        super().__init__(f"http://127.0.0.1:{port}", "/-/ready", folder / "prometheus.log")

    def __enter__(self) -> Self:
        """Started and ready."""
        need_prometheus()
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / "prometheus.yml").write_text(json.dumps(self._configuration()))
        if self._rules is not None:
            (self._folder / "rules.yml").write_text(self._rules)
        return self.begin(
            "prometheus",
            f"--config.file={self._folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={self._folder / 'tsdb'}",
            f"--web.listen-address={self.url.removeprefix('http://')}",
            "--enable-feature=exemplar-storage",
            "--log.level=warn",
        )

    def __exit__(self, *_: object) -> None:
        """Ended."""
        self.stop()

    # --- what a user asks it -----------------------------------------------------------------------------------------

    def query(self, expression: str) -> list[tuple[Labels, float]]:
        """The labels and values of an instant query."""
        found = self._get("query", query=expression)["result"]
        return [(each["metric"], float(each["value"][1])) for each in found]

    def over_time(
        self, expression: str, seconds: float, step: float = 2.0
    ) -> list[tuple[Labels, list[tuple[float, float]]]]:
        """The labels, times and values (numbers only) of a range query that ends now."""
        now = wall()
        asked = {"query": expression, "start": now - seconds, "end": now, "step": step}
        made = [
            (each["metric"], [(at, float(value)) for at, value in each["values"]])
            for each in self._get("query_range", **asked)["result"]
        ]
        numbers = [(labels, [p for p in points if math.isfinite(p[1])]) for labels, points in made]
        return [(labels, points) for labels, points in numbers if points]

    def label_values(self, label: str, selector: str) -> set[str]:
        """Values that a label has had in the series of a selector."""
        return set(self._get(f"label/{label}/values", **{"match[]": selector}))

    def alerts(self, name: str) -> list[dict[str, Any]]:
        """Those of that name that are pending or firing: `labels`, `annotations`, `state`, `activeAt`, `value`."""
        return [
            each for each in self._get("alerts")["alerts"] if each["labels"]["alertname"] == name
        ]

    def exemplars(self, expression: str) -> list[tuple[Labels, Labels]]:
        """The labels of the series and of the exemplar, over the last hour."""
        now = wall()
        found = self._get("query_exemplars", query=expression, start=now - 3600, end=now + 60)
        return [
            (each["seriesLabels"], exemplar["labels"])
            for each in found
            for exemplar in each["exemplars"]
        ]

    # --- inside ------------------------------------------------------------------------------------------------------

    def _configuration(self) -> dict[str, Any]:
        """Compose's own, but every second, and of known addresses."""
        shipped = yaml.safe_load(CONFIGURATION.read_text())
        (job,) = shipped["scrape_configs"]
        del job["dns_sd_configs"]
        job["static_configs"] = [{"targets": self._targets}]
        shipped["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        shipped["rule_files"] = [] if self._rules is None else [str(self._folder / "rules.yml")]
        return shipped

    def _get(self, what: str, **parameters: Any) -> Any:
        return ask("GET", f"{self.url}/api/v1/{what}", params=parameters)["data"]


PROGRAM = "prometheus-alertmanager"


class AlertmanagerServer(ServerProgram):
    """Tells `receiver` at once; a resolved alert too."""

    def __init__(self, folder: Path, receiver: str) -> None:
        self._folder = folder
        self._receiver = receiver
        (port,) = free_ports(1)
        super().__init__(f"http://127.0.0.1:{port}", "/-/ready", folder / "log")

    def __enter__(self) -> Self:
        """Started and ready."""
        if shutil.which(PROGRAM) is None:
            missing("ALERTMANAGER", f"NO ALERTMANAGER, NOT TESTED: install Debian's `{PROGRAM}`")
        self._folder.mkdir(parents=True, exist_ok=True)
        hook = {"url": self._receiver, "send_resolved": True}
        configuration = {
            "route": {
                "receiver": "test",
                "group_by": ["..."],
                "group_wait": "10ms",
                "group_interval": "1s",
            },
            "receivers": [{"name": "test", "webhook_configs": [hook]}],
        }
        (self._folder / "alertmanager.yml").write_text(json.dumps(configuration))
        return self.begin(
            PROGRAM,
            f"--config.file={self._folder / 'alertmanager.yml'}",
            f"--storage.path={self._folder / 'data'}",
            f"--web.listen-address={self.url.removeprefix('http://')}",
            "--cluster.listen-address=",
        )

    def __exit__(self, *_: object) -> None:
        """Ended."""
        self.stop()

    def alerts(self) -> list[dict[str, Any]]:
        """What fires there."""
        return ask("GET", f"{self.url}/api/v2/alerts")
