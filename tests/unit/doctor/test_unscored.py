"""Which sessions have no score because too little of them is seen, and why."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from collector.doctor.diagnosis import ExaminedTrace
from collector.doctor.unscored import (
    SessionSeen,
    failing_judge,
    session_seen,
    sessions_of,
    unscored,
)
from evaluators.dialects.dialect import Lack
from tests.support.command import Run

CAPTURES = Path(__file__).parents[2] / "data" / "captures"
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


@pytest.mark.parametrize(
    ("traces", "is_scored"),
    [
        ([SEEN], True),
        ([SEEN, blind()], True),
        ([SEEN, blind(), blind()], False),
        ([blind("content_in_logs")], False),
        ([blind("no_tool_arguments")], True),
    ],
)
def test_a_recorded_session_without_content_in_most_of_its_turns_gets_no_score(
    traces: list[ExaminedTrace], is_scored: bool
) -> None:
    (session,) = sessions_of([*traces, replace(SEEN, session_id="other", is_turn=False)])

    assert (session.service, session.session_id) == ("shop", "s")
    assert (session.why is None) is is_scored


def test_a_session_of_spans_that_no_dialect_reads_says_whose_they_are() -> None:
    unread = replace(SEEN, is_turn=False, lacks=frozenset({"not_read"}), unread=("its.scope",))

    (session,) = sessions_of([unread])

    assert session.why == "spans of its.scope are not read"


def shown(reason: str | None) -> dict[str, Any]:
    signal = {"evaluator": "agent_reliability", "reason": reason, "explanation": "only 1 of 3"}
    return {"service": "shop", "session_id": "s", "signals": [signal]}


def test_a_running_service_says_itself_which_sessions_have_no_score() -> None:
    assert session_seen(shown("low_coverage")).why == "only 1 of 3"
    assert session_seen(shown(None)).why is None
    assert session_seen({"service": "shop", "session_id": "s"}).why is None


def test_sessions_without_a_score_are_counted_by_service() -> None:
    def seen(service: str, session_id: str, why: str | None) -> SessionSeen:
        return SessionSeen(service=service, session_id=session_id, why=why)

    shop = [seen("shop", "new", "x"), seen("shop", "old", "y"), seen("shop", "good", None)]

    found = unscored([*shop, seen("desk", "fine", None)])

    assert [(each.service, each.sessions, each.of) for each in found] == [("shop", 2, 3)]
    assert (found[0].why, found[0].example) == ("x", "new")


def test_the_newest_error_of_the_judge_is_shown() -> None:
    def verdict(time: str, error: dict[str, str] | None, method: str = "llm_judge") -> Any:
        outcome = "failed" if error else "scored"
        return {"method": method, "outcome": outcome, "error": error, "time": time}

    old, new = ({"type": kind, "message": "no"} for kind in ("timeout", "provider_error"))
    said = [verdict("2", new), verdict("1", old), verdict("3", None), verdict("4", old, "custom")]
    found = failing_judge(said)

    assert found is not None
    assert (found.failed, found.verdicts, found.type) == (2, 3, "provider_error")
    assert failing_judge([verdict("1", None)]) is None


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
