"""Where the doctor looks: recordings, or the running service's API; and what the command prints."""

import json
from pathlib import Path
from typing import Any

import pytest

from collector.commands import cli
from collector.config.tree import Config
from collector.doctor.sources import seen_by_service, traces_in_recordings
from collector.otlp import display
from collector.service import recordings
from evaluators.dialects.show import show
from tests.support.dialect_spans import TRACE_ID, SpanSpec, request, trace_of

CAPTURES = Path(__file__).parents[2] / "data" / "captures"
CHAT = SpanSpec(id=1, attributes={"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"})


class FakeApi:
    """The admin API of a service that knows one trace, in two sessions' pages."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, path: str) -> Any:
        self.asked.append(path)
        if path.startswith("/api/v1/sessions?"):
            item = {"session_id": "a/b", "service": "shop"}
            return {"items": [item], "next": None if "cursor" in path else "n&xt"}
        if path.startswith("/api/v1/sessions/"):
            return {"traces": [{"trace_id": "gone"}, {"trace_id": TRACE_ID}]}
        if path == "/api/v1/evaluators":
            names = {"mine/dies": True, "mine/works": False}
            items = [{"name": name, "switched_off": off} for name, off in names.items()]
            tone: dict[str, Any] = {"evaluator": "tone", "agent": "planner", "service": "shop"}
            tone |= {"count": 2, "source": "strands_evals", "version": None, "low": 1, "high": 4.5}
            return {"items": items, "external": [{**tone, "missing": ["set evaluations.scales"]}]}
        if path.endswith("gone"):
            return None
        shown = display.decode([request(CHAT)], content=True)
        return {"trace": show(trace_of(CHAT)), "spans": shown, "signals": []}


def test_the_running_service_is_asked_page_by_page_and_each_trace_once() -> None:
    api = FakeApi()

    seen = seen_by_service(api, Config(), limit=10).traces

    assert [each.trace_id for each in seen] == [TRACE_ID]
    assert "no_content" in seen[0].lacks
    assert api.asked.count(f"/api/v1/traces/{TRACE_ID}") == 1
    assert "/api/v1/sessions/a%2Fb?service=shop" in api.asked
    assert "/api/v1/sessions?limit=50&cursor=n%26xt" in api.asked


def test_no_more_traces_are_asked_for_than_wanted() -> None:
    api = FakeApi()

    seen_by_service(api, Config(), limit=1)

    assert [path for path in api.asked if "/traces/" in path] == [f"/api/v1/traces/{TRACE_ID}"]


def test_an_evaluator_that_the_service_switched_off_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fake(_: object) -> FakeApi:
        return FakeApi()

    monkeypatch.setattr("collector.commands.doctor.AdminApi", fake)

    assert cli.main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "mine/dies: switched off for ten minutes after three deaths or time-outs\n" in said
    assert "mine/works" not in said
    assert "tone of planner (shop): 2 scores\n      sent by strands_evals\n" in said
    assert "      values from 1 to 4.5\n      set evaluations.scales\n" in said

    assert cli.main(["doctor", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["switched_off"] == ["mine/dies"]


@pytest.mark.parametrize(
    ("stack", "lack", "setting"),
    [
        ("google_adk", "no_content", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="),
        ("logfire_openai", "scrubbed", "logfire.configure(scrubbing=False)"),
        ("oai_agents_tl", "no_session", "Traceloop.set_association_properties("),
        ("agent_framework", "no_session", 'span.set_attribute("session.id"'),
        ("mlflow_openai", "no_session", 'span.set_attribute("session.id"'),
        ("langgraph_oi", "truncated", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"),
    ],
)
def test_real_stacks_get_the_setting_of_their_own(
    stack: str, lack: str, setting: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = cli.main(["doctor", str(CAPTURES / stack), "--format", "json"])

    found = json.loads(capsys.readouterr().out)
    advice = [
        each["setting"]
        for one in found["stacks"]
        for finding in one["findings"]
        if finding["lack"] == lack
        for each in finding["advice"]
    ]
    assert code == 0
    assert any(setting in each for each in advice), found["stacks"]


def test_a_recording_that_no_dialect_reads_says_whose_spans_are_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kind = {"key": "its.kind", "value": {"stringValue": "agent"}}
    span = {"traceId": TRACE_ID, "spanId": "01" * 8, "name": "run", "attributes": [kind]}
    span |= {"startTimeUnixNano": "1790000000100000000", "endTimeUnixNano": "1790000000200000000"}
    scoped = {"scope": {"name": "apptrace"}, "spans": [span]}
    recording = tmp_path / "unread.jsonl"
    recording.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [scoped]}]}))

    cli.main(["doctor", str(recording)])

    said = capsys.readouterr().out
    assert "not_read: spans of apptrace are not read: 1 of 1 trace" in said
    assert "no content" not in said


def test_recordings_tell_scopes_with_versions_and_sdks() -> None:
    seen = traces_in_recordings(Config(), recordings.find([CAPTURES / "dspy"]))

    assert {scope for each in seen for scope in each.scopes} == {
        "openinference.instrumentation.dspy 0.1.48"
    }
    assert {sdk for each in seen for sdk in each.sdks} == {"python 1.45.2"}


def test_the_table_never_folds_a_setting(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["doctor", str(CAPTURES / "google_adk")])

    assert (
        "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental"
        " OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_AND_EVENT\n"
        in capsys.readouterr().out
    )


def test_each_switch_stands_with_its_price_and_what_no_switch_exports_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of an agent that speaks in logs and exports no text."""
    logs = CAPTURES.with_name("captures_logs") / "claude_code_http_plain" / "retry.logs.otlp"
    cli.main(["doctor", str(logs)])

    said = capsys.readouterr().out
    assert "      OTEL_LOG_USER_PROMPTS=1\n      (exports what people type" in said
    assert "      OTEL_LOG_TOOL_DETAILS=1\n      (exports commands" in said
    assert "OTEL_LOG_TOOL_CONTENT=1\n      (results stand in the beta spans alone" in said
    assert "  no_tool_definitions: nothing can be set\n" in said
    assert "(no setting)" not in said


def test_without_a_service_and_without_a_path_it_says_so_in_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = cli.main(["doctor", "--set", "admin.port=1"])

    said = capsys.readouterr()
    assert (code, said.out) == (1, "")
    assert said.err.startswith("http://127.0.0.1:1: no running Spanwise answers")
    assert len(said.err.splitlines()) == 1


def test_a_version_on_the_agents_spans_is_a_version(tmp_path: Path) -> None:
    """It was taken away with the attributes that nobody looked at."""
    path = tmp_path / "versioned.otlp"
    attributes = {**CHAT.attributes, "gen_ai.agent.version": "1.4"}
    sent = request(SpanSpec(id=1, attributes=attributes))
    path.write_bytes(len(sent).to_bytes(4, "big") + sent)

    (trace,) = traces_in_recordings(Config(), recordings.find([path]))

    assert "no_version" not in trace.lacks


def test_for_recordings_of_before_and_after_it_says_what_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def recorded(name: str, first: int, *, fails: bool) -> str:
        tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find_order"}
        if not fails:
            tool["gen_ai.tool.call.result"] = "found"
        path = tmp_path / name
        with path.open("wb") as file:
            for number in range(first, first + 25):
                root = {"gen_ai.operation.name": "invoke_agent", "session.id": f"s-{number}"}
                sent = request(
                    SpanSpec(id=1, attributes=root),
                    SpanSpec(id=2, parent=1, attributes=tool, status=2 if fails else 0),
                    trace_id=f"{number + 1:032x}",
                )
                file.write(len(sent).to_bytes(4, "big") + sent)
        return str(path)

    old, new = (recorded("old.otlp", 0, fails=False), recorded("new.otlp", 50, fails=True))

    assert cli.main(["doctor", old, "--with", new]) == 0
    said = capsys.readouterr().out
    assert "what changed:" in said
    assert "find_order fails: 25 of 25 sessions that used it, 0 of 25 before" in said
    assert cli.main(["doctor", old, "--with", old]) == 0
    assert "nothing clearly did" in capsys.readouterr().out
    assert cli.main(["doctor", "--with", new]) == 2
    assert "OLD... --with NEW" in capsys.readouterr().err
    assert cli.main(["doctor", old, "--with", new, "--format", "json"]) == 0
    (tool,) = json.loads(capsys.readouterr().out)["changed"]["tools"]
    assert tool["tool"] == "find_order"
