"""Task runs end to end: the SDK's spans, the real process, kill -9, and the same offline."""

import json
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from tests.support import agents
from tests.support.command import spanwise
from tests.support.recordings import write
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

OUTCOMES = [True, False, True, True]
SETTINGS = ("windows.trace.root_grace=200ms", "windows.session.idle=1s")
FAMILIES = ("spanwise_task_pass_", "spanwise_tasks_left_out")


def run_task(provider: TracerProvider, task: str, number: int, *, success: bool) -> None:
    """One session of one trace: the task's id on the root, its success on a span of another kind."""
    tracer = provider.get_tracer("shop")
    session = {"session.id": f"{task}-{number}"}
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "clerk"}
    with tracer.start_as_current_span(
        "invoke_agent clerk", attributes={**session, **agent}
    ) as root:
        root.set_attribute("spanwise.task.id", task)
        with tracer.start_as_current_span("chat m", attributes={"gen_ai.operation.name": "chat"}):
            pass
        with tracer.start_as_current_span("check") as check:
            check.set_attribute("spanwise.task.success", success)


def gauges(service: Service) -> dict[str, float]:
    return {name: v for name, v in service.metrics().items() if name.startswith(FAMILIES)}


def test_runs_become_gauges_that_survive_kill_9(tmp_path: Path) -> None:
    series = '{agent="clerk",k="%d",service="shop"}'
    expected = {
        **{f"spanwise_task_pass_at_k_ratio{series % k}": v for k, v in ((1, 0.75), (3, 1.0))},
        **{f"spanwise_task_pass_pow_k_ratio{series % k}": v for k, v in ((1, 0.75), (3, 0.25))},
        **{f"spanwise_tasks_left_out{series % k}": v for k, v in ((1, 0.0), (3, 0.0), (5, 1.0))},
    }
    with Service(tmp_path / "data", *SETTINGS) as service:
        provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
        exporter = OTLPSpanExporter(endpoint=f"http://{service.grpc}", insecure=True, timeout=30)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        for number, success in enumerate(OUTCOMES):
            run_task(provider, "refund", number, success=success)
        provider.shutdown()
        service.wait_for("the runs", lambda: gauges(service) == expected)

        service.kill()
        service.start()

        assert service.come_to(expected, lambda: gauges(service)) == expected


def test_recordings_with_task_ids_have_task_passing_in_their_summary(tmp_path: Path) -> None:
    recording, summary = tmp_path / "runs.otlp", tmp_path / "summary.json"
    requests: list[bytes] = []
    for number, success in enumerate(OUTCOMES):
        made = agents.spans(agents.Turn(service="shop", session=f"s-{number}", number=number))
        made[-1].attributes.add(key="spanwise.task.id").value.string_value = "refund"
        made[0].attributes.add(key="spanwise.task.success").value.bool_value = success
        requests.append(agents.request("shop", made))
    write(recording, requests)

    ended = spanwise(
        *("evaluate", str(recording), "--summary", str(summary), "--set", "tasks.window=3")
    )

    assert ended.code == 0, ended.err
    tasks = json.loads(summary.read_text())["tasks"]
    assert (tasks["runs"], tasks["without_success"]) == (4, 0)
    newest = {each["k"]: each for each in tasks["passing"]}
    assert newest[1]["pass_at_k"] == pytest.approx(2 / 3)
    assert (newest[3]["pass_at_k"], newest[3]["pass_pow_k"]) == (1.0, 0.0)
    assert (newest[5]["tasks"], newest[5]["left_out"], newest[5]["pass_at_k"]) == (0, 1, None)
    assert "4 task runs, 0 without a success" in ended.out
