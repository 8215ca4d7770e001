import pytest

from evaluators.matching.tool_uses import error_class, is_nothing, tool_uses
from evaluators.model import JSON, ToolCall
from evaluators.uses import MOST_TOOLS
from tests.support.table import for_each

SECOND = 1_000_000_000


def call(name: str = "find", **facts: JSON) -> ToolCall:
    return ToolCall(name=name, **facts)


def test_one_failed_call_makes_a_failed_use() -> None:
    (use,) = tool_uses([call(result="a"), call(error="TimeoutError: after 5 s")])
    assert (use.calls, use.failed, use.error) == (2, True, "TimeoutError")
    assert (use.returned, use.empty) == (True, False)


def test_a_refused_call_is_no_use() -> None:
    assert tool_uses([call(error="User rejected it", rejected="user")]) == ()


def test_a_call_that_waits_for_its_result_has_neither_failed_nor_returned_nothing() -> None:
    (use,) = tool_uses([call(unanswered=True)])
    assert (use.failed, use.returned, use.empty) == (False, False, False)


def test_a_result_that_was_not_exported_is_not_nothing() -> None:
    (use,) = tool_uses([call()])
    assert not use.returned
    assert not use.empty


def test_a_failed_call_did_not_return_nothing() -> None:
    (use,) = tool_uses([call(result="", error="boom")])
    assert (use.failed, use.returned, use.empty) == (True, False, False)


def test_the_longest_call_counts_and_one_without_a_span_has_no_duration() -> None:
    slow = call(span_id="a", start_time_unix_nano=SECOND, end_time_unix_nano=3 * SECOND)
    fast = call(span_id="b", start_time_unix_nano=SECOND, end_time_unix_nano=2 * SECOND)
    assert tool_uses([fast, slow, call()])[0].slowest == 2.0
    assert tool_uses([call()])[0].slowest < 0


def test_the_tools_that_were_called_most_are_kept() -> None:
    calls = [call(f"t{number:04}") for number in range(1000)] + [call("t0999")]
    uses = tool_uses(calls)
    assert len(uses) == MOST_TOOLS
    assert [use.tool for use in uses if use.calls > 1] == ["t0999"]


@for_each(
    "result",
    ["", " \n", "[]", "{}", "null", [], {}, [[]], [{"type": "text", "text": ""}], {"content": []}],
)
def test_nothing(result: JSON) -> None:
    assert is_nothing(result)


@pytest.mark.parametrize(
    "result",
    [0, False, "0", "no", [0], {"found": []}, [{"type": "text", "text": "a"}], {"content": "a"}],
)
def test_something(result: JSON) -> None:
    assert not is_nothing(result)


def test_a_result_of_any_depth_ends() -> None:
    deep: JSON = []
    for _ in range(10_000):
        deep = [deep]
    assert not is_nothing(deep)


@for_each(
    ("text", "expected"),
    [
        ("TimeoutError: no answer after 5 s", "TimeoutError"),
        ("requests.exceptions.ConnectionError: HTTPSConnectionPool", "ConnectionError"),
        ("java.lang.IllegalStateException: closed", "IllegalStateException"),
        ("the request timed out", "timeout"),
        ("HTTP 429 Too Many Requests", "rate_limited"),
        ("403: permission denied for tenant 4711", "denied"),
        ("order 12 does not exist", "not_found"),
        ("ECONNREFUSED", "unreachable"),
        ("502 Bad Gateway", "server_error"),
        ("missing field `id`", "invalid_arguments"),
        ("<script>alert(1)</script>", "error"),
        ("", "error"),
    ],
)
def test_classes_of_errors(text: str, expected: str) -> None:
    assert error_class(text) == expected
