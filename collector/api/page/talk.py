"""A trace as a conversation: each line with its texts, what it took, and where the trace went wrong first. Pure."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from collector.api.page.sheet import OPENING, Sheet, plain
from evaluators.dialects.reading_order import Line
from evaluators.matching.first_failure import first_failure
from evaluators.model import ModelCall, ToolCall, Trace

_OPENINGS = {"system": 200}
"""Characters of what somebody said that are seen at once: the same instructions begin every trace of an agent."""
LINES = 400  # lines that the page shows; the API has the rest


def talk(trace: Trace, lines: Sequence[Line], sheet: Sheet) -> list[dict[str, Any]]:
    """The lines in groups: what was said in former turns is together, to be folded."""
    maker = _Maker(trace, sheet)
    rows = sheet.rows(lines, maker.row, cost=700, most=LINES)
    return [
        {"is_earlier": is_earlier, "rows": list(group)}
        for is_earlier, group in groupby(rows, key=lambda row: row["is_earlier"])
    ]


class _Maker:
    def __init__(self, trace: Trace, sheet: Sheet) -> None:
        self._sheet = sheet
        self._began = trace.start_time_unix_nano
        self._has_agents = len(trace.agents) > 1
        failure = first_failure(trace)
        self._failed = None if failure is None else failure.call
        self._led_to = None if failure is None else failure.span_id
        self._made: Counter[str] = Counter()
        self._number = 0

    def row(self, line: Line) -> dict[str, Any]:
        self._number += 1
        timed = line.call or line.model
        return {
            "id": f"line-{self._number}",
            "speaker": line.speaker,
            "agent": line.agent and self._sheet.name(line.agent),
            "is_earlier": line.is_earlier,
            "span_id": line.span_id,
            "text": self._sheet.long(
                (line.text or "").strip(), opening=_OPENINGS.get(line.speaker, OPENING)
            ),
            "wanted": [
                {"name": self._sheet.name(each.name), "arguments": self._sheet.text(each.arguments)}
                for each in line.wanted
            ],
            "asks": line.asks,
            "at": None if timed is None else _seconds(self._began, timed.start_time_unix_nano),
            "seconds": None if timed is None else _took(timed),
            **self._of_model(line.model),
            **self._of_call(line.call),
        }

    def _of_model(self, call: ModelCall | None) -> dict[str, Any]:
        if call is None:
            return {"model": None, "led_to_failure": False}
        name = self._sheet.name
        return {
            "model": {
                "name": call.model and name(call.model),
                "agent": self._agent(call),
                "error": self._sheet.text(call.error),
                "input": call.tokens.input,
                "output": call.tokens.output,
            },
            "led_to_failure": self._led_to is not None and call.span_id == self._led_to,
        }

    def _agent(self, call: ModelCall | ToolCall) -> str | None:
        return self._sheet.name(call.agent) if call.agent and self._has_agents else None

    def _of_call(self, call: ToolCall | None) -> dict[str, Any]:
        if call is None:
            return {"call": None, "is_first_failure": False}
        same = f"{call.name} {plain(call.arguments)}"
        self._made[same] += 1
        return {
            "call": {
                "name": self._sheet.name(call.name),
                "agent": self._agent(call),
                "arguments": self._sheet.long(call.arguments),
                "result": self._sheet.long(None if call.error else call.result),
                "error": self._sheet.long(call.error),
                "rejected": call.rejected,
                "times": self._made[same],
            },
            "is_first_failure": call is self._failed,
        }


def _took(call: ModelCall | ToolCall) -> float:
    return _seconds(call.start_time_unix_nano, call.end_time_unix_nano)


def _seconds(since: int, until: int) -> float:
    return max(0, until - since) / 1e9
