"""Which session, user and task a trace belongs to."""

import json
from typing import Any

from evaluators.dialects.content.sessions import Keys
from evaluators.dialects.read import read_trace
from tests.support.dialect_spans import TRACE_ID, SpanSpec, request, trace_of
from tests.support.table import for_each


def source(*spans: SpanSpec, keys: Keys | None = None) -> tuple[str, str]:
    trace = trace_of(*spans, keys=keys)
    return trace.session_id, trace.session_source


def root(attributes: dict[str, Any], start: int = 0) -> SpanSpec:
    return SpanSpec(id=1, start=start, attributes=attributes)


def inner(id_: int, start: int, attributes: dict[str, str]) -> SpanSpec:
    return SpanSpec(id=id_, parent=1, start=start, attributes=attributes)


METADATA = {"metadata": json.dumps({"thread_id": "t"})}
BAGS = {"ai.telemetry.metadata.threadId": "t-1", "mastra.metadata.sessionId": "s-1"}
CHAT_ID, SESSION_ID = "gen_ai.conversation.id", "session.id"


@for_each(
    "spans,expected",
    [
        # the root's, even when an inner span says another
        ([root({CHAT_ID: "o"}, 2), inner(2, 1, {SESSION_ID: "i"})], ("o", CHAT_ID)),
        # without the root's, the earliest span's in the order of keys
        (
            [
                root({}),
                inner(3, 9, {SESSION_ID: "late"}),
                inner(2, 1, {CHAT_ID: "c", SESSION_ID: "s"}),
            ],
            ("s", SESSION_ID),
        ),
        ([root(METADATA)], ("t", "metadata.thread_id")),
        # a session's id goes before a thread's in a better bag
        ([root(BAGS)], ("s-1", "mastra.metadata.sessionId")),
        *(
            ([root({key: "s-1", "gen_ai.operation.name": "chat"})], ("s-1", key))
            for key in (
                *("traceloop.association.properties.sessionId", "ai.settings.context.sessionId"),
                *("mastra.metadata.sessionId", "genkit:metadata:sessionId", "sessionId"),
                *("langsmith.metadata.threadId", "langfuse.trace.metadata.chatId"),
            )
        ),
    ],
)
def test_which_session_it_is(spans: list[SpanSpec], expected: tuple[str, str]) -> None:
    assert source(*spans) == expected


@for_each("value", ["[Scrubbed due to 'session']", "", "  ", True, "x" * 2000])
def test_what_is_no_id_is_no_session(value: Any) -> None:
    span = root({SESSION_ID: value})

    assert source(span) == (TRACE_ID, "trace")
    assert "no_session" in trace_of(span).gaps


def test_the_users_own_keys_come_first() -> None:
    own = {"my.chat": 7, "session.id": "s", "job": "refund", "who": "ada"}
    keys = Keys(session=("my.chat",), task=("job",), user=("who",))
    trace = trace_of(root(own), keys=keys)

    assert (trace.session_id, trace.session_source) == ("7", "my.chat")
    assert (trace.task_id, trace.user_id) == ("refund", "ada")


def test_values_to_filter_by_are_the_roots_then_those_of_any_span() -> None:
    trace = trace_of(
        SpanSpec(id=2, parent=1, attributes={"plan": "inner", "region": "eu", "beta": 0.5}),
        SpanSpec(id=1, attributes={"plan": "pro", "trial": False, "seats": 3, "no": []}, start=5),
        keys=Keys(filter=("plan", "region", "trial", "seats", "beta", "no", "none", "host.name")),
    )

    own = {"plan": "pro", "trial": "false", "seats": "3"}
    assert trace.attributes == own | {"region": "eu", "beta": "0.5"}
    assert trace_of(SpanSpec(id=1, attributes={"plan": "pro"})).attributes == {}
    whole = request(SpanSpec(id=1), resource={"host.name": "h-1"})
    keys = Keys(filter=("host.name",))
    of_resource = read_trace([whole], trace_id=TRACE_ID, closed="root_ended", keys=keys)
    assert of_resource.attributes == {"host.name": "h-1"}


@for_each("value,expected", [(True, True), ("false", False), ("maybe", None), (1, None)])
def test_a_task_says_whether_it_succeeded(value: Any, expected: bool | None) -> None:
    trace = trace_of(root({"spanwise.task.id": "t", "spanwise.task.success": value}))

    assert (trace.task_id, trace.task_success) == ("t", expected)
