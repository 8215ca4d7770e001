from evaluators.matching.tool_uses import error_class, is_nothing, tool_uses
from evaluators.model import JSON, ToolCall
from evaluators.uses import MOST_TOOLS
from tests.support.table import for_each

SECOND = 1_000_000_000


def call(name: str = "find", **facts: JSON) -> ToolCall:
    return ToolCall(name=name, **facts)


@for_each(
    "calls,failed,returned,empty",
    [
        ([call(result="a"), call(error="TimeoutError: after 5 s")], True, True, False),
        ([call(unanswered=True)], False, False, False),  # it waits
        ([call()], False, False, False),  # its result was not exported
        ([call(result="", error="boom")], True, False, False),
    ],
)
def test_one_failed_call_makes_a_failed_use_and_nothing_is_what_was_returned(
    calls: list[ToolCall], failed: bool, returned: bool, empty: bool
) -> None:
    (use,) = tool_uses(calls)
    assert (use.calls, use.failed, use.returned, use.empty) == (len(calls), failed, returned, empty)


def test_a_refused_call_is_no_use() -> None:
    assert tool_uses([call(error="User rejected it", rejected="user")]) == ()


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


def deep() -> JSON:
    made: JSON = []
    for _ in range(10_000):
        made = [made]
    return made


PART: JSON = {"type": "text"}


NOTHING: list[JSON] = [
    *("", " \n", "[]", "{}", "null", [], {}, [[]], [PART | {"text": ""}], {"content": []}),
]
SOMETHING: list[JSON] = [
    *(0, False, "0", "no", [0], {"found": []}, [PART | {"text": "a"}], {"content": "a"}, deep()),
]


@for_each(
    "result,nothing",
    [*((each, True) for each in NOTHING), *((each, False) for each in SOMETHING)],
)
def test_a_number_or_a_truth_value_is_something_and_any_depth_ends(
    result: JSON, nothing: bool
) -> None:
    assert is_nothing(result) is nothing


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
