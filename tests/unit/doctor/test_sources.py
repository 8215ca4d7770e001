"""Where the doctor looks, what the command prints, and which sessions have no score."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from collector.base.frames import pack_frame
from collector.config.tree import Config
from collector.doctor.diagnosis import ExaminedTrace
from collector.doctor.sources import seen_by_service, traces_in_recordings
from collector.doctor.unscored import (
    SessionSeen,
    failing_judge,
    session_seen,
    sessions_of,
    unscored,
)
from collector.otlp import display
from collector.service import recordings
from evaluators.dialects.dialect import Lack
from evaluators.dialects.show import show
from tests.support.command import Run
from tests.support.dialect_spans import TRACE_ID, SpanSpec, request, trace_of
from tests.support.recordings import record_tools
from tests.support.table import for_each

CAPTURES = Path(__file__).parents[2] / "data" / "captures"
JSON = ("--format", "json")
CHAT = SpanSpec(id=1, attributes={"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"})


def recorded(folder: Path, made: SpanSpec) -> Path:
    file = folder / "made.otlp"
    file.write_bytes(pack_frame(request(made)))
    return file


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


def test_the_running_service_is_asked_page_by_page_and_for_no_trace_too_many() -> None:
    every, first = FakeApi(), FakeApi()

    seen = seen_by_service(every, Config(), limit=10).traces
    seen_by_service(first, Config(), limit=1)

    assert [each.trace_id for each in seen] == [TRACE_ID]
    assert "no_content" in seen[0].lacks
    assert every.asked.count(f"/api/v1/traces/{TRACE_ID}") == 1
    assert "/api/v1/sessions/a%2Fb?service=shop" in every.asked
    assert "/api/v1/sessions?limit=50&cursor=n%26xt" in every.asked
    assert [each for each in first.asked if "/traces/" in each] == [f"/api/v1/traces/{TRACE_ID}"]


def test_an_evaluator_that_the_service_switched_off_is_named(
    monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.setattr("collector.commands.doctor.AdminApi", lambda _: FakeApi())  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]

    said = run("doctor").out

    assert "mine/dies: switched off for ten minutes after three deaths or time-outs\n" in said
    assert "mine/works" not in said
    assert "tone of planner (shop): 2 scores\n      sent by strands_evals\n" in said
    assert "      values from 1 to 4.5\n      set evaluations.scales\n" in said
    assert json.loads(run("doctor", *JSON).out)["switched_off"] == ["mine/dies"]


@for_each(
    "stack,lack,setting",
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
    stack: str, lack: str, setting: str, run: Run
) -> None:
    found = json.loads(run("doctor", CAPTURES / stack, *JSON).out)

    findings = [each for one in found["stacks"] for each in one["findings"]]
    advice = [each for finding in findings if finding["lack"] == lack for each in finding["advice"]]
    assert any(setting in each["setting"] for each in advice), found["stacks"]


def test_a_recording_that_no_dialect_reads_says_whose_spans_are_not_read(
    tmp_path: Path, run: Run
) -> None:
    unread = SpanSpec(id=1, scope="apptrace", attributes={"its.kind": "agent"})

    said = run("doctor", recorded(tmp_path, unread)).out

    assert "not_read: spans of apptrace are not read: 1 of 1 trace" in said
    assert "no content" not in said


def test_each_switch_stands_with_its_price_and_what_no_switch_exports_says_so(run: Run) -> None:
    """Of an agent that speaks in logs and exports no text."""
    logs = CAPTURES.with_name("captures_logs") / "claude_code_http_plain" / "retry.logs.otlp"
    said = run("doctor", logs).out

    assert "      OTEL_LOG_USER_PROMPTS=1\n      (exports what people type" in said
    assert "      OTEL_LOG_TOOL_DETAILS=1\n      (exports commands" in said
    assert "OTEL_LOG_TOOL_CONTENT=1\n      (results are in the beta spans alone" in said
    assert "  no_tool_definitions: nothing can be set\n" in said
    assert "(no setting)" not in said


def test_without_a_service_and_without_a_path_it_says_so_in_one_line(run: Run) -> None:
    done = run("doctor", "--set", "admin.port=1")

    done.assert_one_line("http://127.0.0.1:1: no running Spanwise answers")
    assert (done.code, done.out) == (1, "")


def test_recordings_tell_versions_of_agents_of_scopes_and_of_sdks(tmp_path: Path) -> None:
    attributes = {**CHAT.attributes, "gen_ai.agent.version": "1.4"}
    file = recorded(tmp_path, SpanSpec(id=1, attributes=attributes))

    (trace,) = traces_in_recordings(Config(), recordings.find([file]))
    seen = traces_in_recordings(Config(), recordings.find([CAPTURES / "dspy"]))

    assert "no_version" not in trace.lacks
    assert {each.scopes for each in seen} == {("openinference.instrumentation.dspy 0.1.48",)}
    assert {each.sdks for each in seen} == {("python 1.45.2",)}


def test_for_recordings_of_before_and_after_it_says_what_changed(tmp_path: Path, run: Run) -> None:
    old = record_tools(tmp_path / "old.otlp", [{"find_order": False}] * 25)
    new = record_tools(tmp_path / "new.otlp", [{"find_order": True}] * 25, first=50)

    said = run("doctor", old, "--with", new).out
    assert "what changed:" in said
    assert "find_order fails: 25 of 25 sessions that used it, 0 of 25 before" in said
    assert "nothing clearly did" in run("doctor", old, "--with", old).out
    alone = run("doctor", "--with", new)
    alone.assert_one_line("OLD... --with NEW")
    assert alone.code == 2
    (tool,) = json.loads(run("doctor", old, "--with", new, *JSON).out)["changed"]["tools"]
    assert tool["tool"] == "find_order"


SEEN = ExaminedTrace(
    trace_id="t",
    service="shop",
    session_id="s",
    dialects=("genai",),
    scopes=(),
    sdks=(),
    is_turn=True,
    has_task=False,
    lacks=frozenset(),
)


def blind(lack: Lack = "no_content") -> ExaminedTrace:
    return replace(SEEN, lacks=frozenset({lack}))


NO_CONTENT = "the spans carry no content: what the agent said and did is not seen"


@for_each(
    ("traces", "why"),
    [
        ([SEEN], None),
        ([SEEN, blind()], None),
        ([SEEN, blind(), blind()], NO_CONTENT),
        ([blind("content_in_logs")], NO_CONTENT),
        ([blind("no_tool_arguments")], None),
        ([replace(blind("not_read"), is_turn=False, unread=("x",))], "spans of x are not read"),
    ],
)
def test_a_recorded_session_without_content_in_most_of_its_turns_gets_no_score(
    traces: list[ExaminedTrace], why: str | None
) -> None:
    (session,) = sessions_of([*traces, replace(SEEN, session_id="other", is_turn=False)])

    assert (session.service, session.session_id) == ("shop", "s")
    assert session.why == why


@for_each(("reason", "why"), [("low_coverage", "only 1 of 3"), (None, None)])
def test_a_running_service_says_itself_which_sessions_have_no_score(
    reason: str | None, why: str | None
) -> None:
    signal = {"evaluator": "agent_reliability", "reason": reason, "explanation": "only 1 of 3"}
    session = {"service": "shop", "session_id": "s"}

    assert session_seen({**session, "signals": [signal]}).why == why
    assert session_seen(session).why is None


def test_sessions_without_a_score_are_counted_by_service() -> None:
    def seen(service: str, session_id: str, why: str | None) -> SessionSeen:
        return SessionSeen(service=service, session_id=session_id, why=why)

    shop = [seen("shop", "new", "x"), seen("shop", "old", "y"), seen("shop", "good", None)]

    found = unscored([*shop, seen("desk", "fine", None)])

    assert [(each.service, each.sessions, each.of) for each in found] == [("shop", 2, 3)]
    assert (found[0].why, found[0].example) == ("x", "new")


def test_the_newest_error_of_the_judge_is_shown() -> None:
    def verdict(time: str, error: str | None, method: str = "llm_judge") -> Any:
        said = None if error is None else {"type": error, "message": "no"}
        outcome = "failed" if error else "scored"
        return {"method": method, "outcome": outcome, "error": said, "time": time}

    good = verdict("3", None)
    failed = [verdict("2", "provider_error"), verdict("1", "timeout")]
    found = failing_judge([*failed, good, verdict("4", "timeout", "custom")])

    assert found is not None
    assert (found.failed, found.verdicts, found.type) == (2, 3, "provider_error")
    assert failing_judge([good]) is None


def test_the_command_says_that_recordings_without_content_get_no_score_and_what_to_set(
    run: Run,
) -> None:
    folder = CAPTURES / "openai_v2"
    found = json.loads(run("doctor", folder, "--format", "json").out)
    said = run("doctor", folder).out

    assert [(each["sessions"], each["of"]) for each in found["unscored"]] == [(2, 2)]
    assert "low_coverage" in said
    assert "the spans carry no content" in said
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_and_event" in said
