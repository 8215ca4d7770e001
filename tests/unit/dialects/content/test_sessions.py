"""Which session, user and task a trace belongs to."""

import json
from typing import Any

import pytest

from evaluators.dialects.content.sessions import Keys
from evaluators.dialects.read import read_trace
from tests.support.dialect_spans import TRACE_ID, SpanSpec, request, trace_of


def test_the_session_is_the_roots_even_when_an_inner_span_says_another() -> None:
    trace = trace_of(
        SpanSpec(id=1, attributes={"gen_ai.conversation.id": "outer"}, start=2),
        SpanSpec(id=2, parent=1, attributes={"session.id": "inner"}, start=1),
    )

    assert (trace.session_id, trace.session_source) == ("outer", "gen_ai.conversation.id")


def test_without_the_roots_the_earliest_spans_session_counts_in_the_order_of_keys() -> None:
    attributes = {"gen_ai.conversation.id": "c", "session.id": "s"}
    trace = trace_of(
        SpanSpec(id=1),
        SpanSpec(id=3, parent=1, attributes={"session.id": "late"}, start=9),
        SpanSpec(id=2, parent=1, attributes=attributes, start=1),
    )

    assert (trace.session_id, trace.session_source) == ("s", "session.id")


@pytest.mark.parametrize("value", ["[Scrubbed due to 'session']", "", "  ", True, "x" * 2000])
def test_what_is_no_id_is_no_session(value: Any) -> None:
    trace = trace_of(SpanSpec(id=1, attributes={"session.id": value}))

    assert (trace.session_id, trace.session_source) == (TRACE_ID, "trace")
    assert "no_session" in trace.gaps


def test_the_users_own_keys_come_first() -> None:
    spans = SpanSpec(
        id=1, attributes={"my.chat": 7, "session.id": "s", "job": "refund", "who": "ada"}
    )
    trace = trace_of(spans, keys=Keys(session=("my.chat",), task=("job",), user=("who",)))

    assert (trace.session_id, trace.session_source) == ("7", "my.chat")
    assert (trace.task_id, trace.user_id) == ("refund", "ada")


def test_values_to_filter_by_are_the_roots_then_those_of_any_span() -> None:
    trace = trace_of(
        SpanSpec(id=2, parent=1, attributes={"plan": "inner", "region": "eu", "beta": 0.5}),
        SpanSpec(id=1, attributes={"plan": "pro", "trial": False, "seats": 3, "no": []}, start=5),
        keys=Keys(filter=("plan", "region", "trial", "seats", "beta", "no", "none", "host.name")),
    )

    assert trace.attributes == {
        "plan": "pro",
        "region": "eu",
        "trial": "false",
        "seats": "3",
        "beta": "0.5",
    }
    assert trace_of(SpanSpec(id=1, attributes={"plan": "pro"})).attributes == {}
    whole = request(SpanSpec(id=1), resource={"host.name": "h-1"})
    keys = Keys(filter=("host.name",))
    of_resource = read_trace([whole], trace_id=TRACE_ID, closed="root_ended", keys=keys)
    assert of_resource.attributes == {"host.name": "h-1"}


def test_a_thread_id_is_found_in_metadata() -> None:
    trace = trace_of(SpanSpec(id=1, attributes={"metadata": json.dumps({"thread_id": "t"})}))

    assert (trace.session_id, trace.session_source) == ("t", "metadata.thread_id")


@pytest.mark.parametrize(
    ("value", "expected"), [(True, True), ("false", False), ("maybe", None), (1, None)]
)
def test_a_task_says_whether_it_succeeded(value: Any, expected: bool | None) -> None:
    trace = trace_of(
        SpanSpec(id=1, attributes={"spanwise.task.id": "t", "spanwise.task.success": value})
    )

    assert (trace.task_id, trace.task_success) == ("t", expected)


@pytest.mark.parametrize(
    "key",
    [
        "traceloop.association.properties.sessionId",
        "ai.settings.context.sessionId",
        "mastra.metadata.sessionId",
        "genkit:metadata:sessionId",
        "langsmith.metadata.threadId",
        "langfuse.trace.metadata.chatId",
        "sessionId",
    ],
)
def test_a_session_id_is_read_as_javascript_spells_it(key: str) -> None:
    trace = trace_of(SpanSpec(id=1, attributes={"gen_ai.operation.name": "chat", key: "s-1"}))

    assert (trace.session_id, trace.session_source) == ("s-1", key)


def test_a_session_id_wins_over_a_thread_id_in_a_better_bag() -> None:
    attributes = {"ai.telemetry.metadata.threadId": "t-1", "mastra.metadata.sessionId": "s-1"}

    assert trace_of(SpanSpec(id=1, attributes=attributes)).session_id == "s-1"
