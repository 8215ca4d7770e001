"""MLflow as its users see it: traces go in, assessments are read back."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.support.server_program import ask
from tests.support.tools.scores import spans_of

EXPERIMENT = {"x-mlflow-experiment-id": "0"}
_API = "/api/3.0/mlflow/traces"


def send_traces(url: str, traces: Iterable[tuple[str, str]]) -> None:
    """A span of each (trace id, session id); MLflow answers when they are stored, each in a transaction of its own."""
    every = list(traces)
    for first in range(0, len(every), 50):
        spans = spans_of(every[first : first + 50])
        ask("POST", f"{url}/v1/traces", spans, headers=EXPERIMENT)


def assessments(url: str) -> list[dict[str, Any]]:
    """All, with the `trace_id` that they stand on, by the time of their signals."""
    place = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "0"}}
    asked: dict[str, Any] = {"locations": [place], "max_results": 500}
    found: list[dict[str, Any]] = []
    while True:
        page = ask("POST", f"{url}{_API}/search", asked)
        for trace in page.get("traces", []):
            found += [
                each | {"trace_id": trace["trace_id"].removeprefix("tr-")}
                for each in trace.get("assessments", [])
            ]
        if not page.get("next_page_token"):
            return sorted(found, key=lambda each: each["create_time"])
        asked["page_token"] = page["next_page_token"]


def delete_assessments(url: str) -> None:
    """All."""

    def delete(each: dict[str, Any]) -> None:
        path = f"{_API}/tr-{each['trace_id']}/assessments/{each['assessment_id']}"
        ask("DELETE", f"{url}{path}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(delete, assessments(url)))
