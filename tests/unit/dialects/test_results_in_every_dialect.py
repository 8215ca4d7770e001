"""The same results in every dialect: what an envelope adds changes nothing, and what a tool wrote stays.

In the table, `$ID` is the id of the call and `$N` its number: what differs from call to call.
"""

import json
from typing import Any

from evaluators.dialects.decoding.values import as_dict, is_json
from evaluators.model import ToolCall
from tests.support.dialect_spans import trace_of
from tests.support.recorded_calls import ARGUMENTS, NAME, WRITERS
from tests.support.service import ROOT
from tests.support.table import for_each

TABLE = [
    json.loads(line) for line in (ROOT / "tests/data/tool_results.jsonl").read_text().splitlines()
]
"""Kind `envelope`: of the result 12. `failed`: because bay 4 is locked. `own`: what tools return of themselves."""


def _templates(kind: str, writer: str) -> list[str]:
    found = [row["result"] for row in TABLE if row["kind"] == kind]
    if writer == "adk's messages":  # Gemini's results are objects
        found = [each for each in found if isinstance(each, dict)]
    return [each if isinstance(each, str) else json.dumps(each) for each in found]


def _calls(writer: str, template: str) -> tuple[ToolCall, ...]:
    results = [template.replace("$ID", f"call_{n}abc").replace("$N", str(n)) for n in (1, 2)]
    recorded = [(f"call_{n}abc", result) for n, result in enumerate(results, 1)]
    return trace_of(*WRITERS[writer](recorded)).tool_calls


def _value(result: Any) -> Any:
    """As JSON, without the one key that ADK and Gemini put around a text."""
    value = json.loads(result) if isinstance(result, str) and is_json(result) else result
    inner = as_dict(value)
    return _value(inner["result"]) if inner.keys() == {"result"} else value


@for_each("writer", WRITERS)
def test_what_an_envelope_adds_to_a_result_makes_no_two_results_of_one(writer: str) -> None:
    for template in _templates("envelope", writer):
        calls = _calls(writer, template)
        read = [(call.name, call.arguments, call.error) for call in calls]
        assert read == [(NAME, ARGUMENTS, None)] * 2, template
        assert all(_value(call.result) in (12, {"output": "12"}) for call in calls), template


@for_each("writer", WRITERS)
def test_a_failed_call_is_one_and_says_why(writer: str) -> None:
    for template in _templates("failed", writer):
        calls = _calls(writer, template)
        assert [call.failed for call in calls] == [True, True], template
        assert "bay 4 is locked" in f"{calls[0].error} {calls[0].result}", template


@for_each("writer", WRITERS)
def test_what_a_tool_wrote_itself_stays_and_is_no_failure(writer: str) -> None:
    for template in _templates("own", writer):
        calls = _calls(writer, template)
        assert [(c.error, _value(c.result)) for c in calls] == [(None, _value(template))] * 2
