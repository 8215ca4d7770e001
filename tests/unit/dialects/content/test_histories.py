"""Histories that repeat are read as any list of messages, and each of their messages is parsed once in a trace."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from evaluators.dialects.content import histories
from evaluators.dialects.content.histories import read_history
from evaluators.dialects.content.messages import Side, read_messages
from evaluators.dialects.decoding.room import one_trace
from evaluators.model import JSON

ASKED: JSON = {"role": "user", "parts": [{"type": "text", "content": "where is it?"}]}
CALLED: JSON = {
    "role": "assistant",
    "parts": [{"type": "tool_call", "id": "c1", "name": "track", "arguments": {"id": 7}}],
}
ANSWERED: JSON = {
    "role": "tool",
    "parts": [{"type": "tool_call_response", "id": "c1", "response": "in Bonn"}],
}
REPR: JSON = {"role": "user", "content": "{'a': 1}"}


@pytest.mark.parametrize(
    "value",
    [
        [ASKED, CALLED, ANSWERED],
        [
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "c", "content": "x"}],
            }
        ],
        [{"role": "user", "content": '[{"role": "user", "content": "hi"}]'}],
        [],
    ],
)
def test_a_history_has_the_messages_of_its_list(value: JSON) -> None:
    with one_trace():
        assert read_history(json.dumps(value)) == read_messages(value, "input")


@pytest.mark.parametrize(
    "text",
    [
        '{"role": "user", "content": "hi"}',  # one message, no list
        '[{"role": "user", "content": "hi"}',  # cut
        '[{"role": "user", "content": NaN}]',
        '[{"role": "user", "content": "\\ud83d"}]',
        '[{"type": "text", "text": "hi"}]',  # a message's blocks
        '[{"role": "user", "content": "hi"}, {"message": {"role": "assistant", "content": "x"}}]',
        '["hi"]',
        "[1",
    ],
)
def test_what_is_no_list_of_plain_messages_is_read_as_any_value(text: str) -> None:
    with one_trace():
        assert read_history(text) is None


def said(role: str, *parts: JSON, **beside: JSON) -> JSON:
    return {"role": role, "parts": list(parts), **beside}


TEXT = {"type": "text", "content": "hi"}
CALL = {"type": "tool_call", "id": "c", "name": "find", "arguments": '{"a": 1}'}
RESPONSE = {"type": "tool_call_response", "id": "c", "response": "found"}


@pytest.mark.parametrize(
    "message",
    [
        said("assistant", TEXT, CALL, finish_reason="stop"),
        said("assistant", {**TEXT, "content": ""}, {**TEXT, "content": "__REDACTED__"}),
        said("assistant", {**CALL, "id": None, "arguments": ""}),
        said("assistant", {**CALL, "name": ""}),
        said("assistant", {**CALL, "name": "[Scrubbed due to 'x']", "id": 7}),
        said("assistant", {"type": "text", "content": 'Action: find\nAction Input: {"a": 1}'}),
        said("assistant", TEXT, name="planner"),
        said("assistant", TEXT, data={"content": "x"}),
        said("user", RESPONSE),
        said("user", TEXT, RESPONSE),
        said("user", {"type": "text", "content": '[{"role": "user", "content": "inner"}]'}),
        said("tool", RESPONSE),
        said("tool", TEXT, RESPONSE),
        said("tool", TEXT),
        said("tool", CALL),
        said("tool", {**RESPONSE, "is_error": True}),
        said("tool", {**RESPONSE, "response": {"type": "error-text", "value": "x"}}),
        said("tool", {**RESPONSE, "response": None}),
        said("system"),
        said("assistant", {"type": "reasoning", "content": "hm"}),
        said("assistant", TEXT, tool_calls=[{"name": "find", "arguments": {}}]),
    ],
)
@pytest.mark.parametrize("side", ["input", "output"])
def test_a_message_of_the_conventions_reads_as_any_other(message: JSON, side: Side) -> None:
    with one_trace():
        read = read_history(json.dumps([said("user", TEXT), message]))

    assert read in (None, read_messages([said("user", TEXT), message], side))


def test_nothing_is_remembered_outside_a_trace() -> None:
    assert read_history(json.dumps([ASKED])) is None


def test_each_message_of_a_trace_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: Counter[bytes] = Counter()
    read_convention = histories.read_convention

    def count(raw: bytes) -> object:
        parsed[raw] += 1
        return read_convention(raw)

    monkeypatch.setattr(histories, "read_convention", count)
    grown = [[ASKED], [ASKED, CALLED], [ASKED, CALLED, ANSWERED]]
    dropped = [[CALLED, ANSWERED], [ASKED, ANSWERED]]
    with one_trace():
        for history in (*grown, *dropped):
            assert read_history(json.dumps(history)) == read_messages(history, "input")

    assert set(parsed.values()) == {1}


def test_a_message_that_takes_room_takes_it_in_every_history() -> None:
    """What a repeated repr costs must not depend on which history was read first."""
    with one_trace() as room:
        whole = room.left
        read_history(json.dumps([ASKED, REPR]))
        first = whole - room.left
        read_history(json.dumps([ASKED, REPR]))

        assert first == len("{'a': 1}")
        assert whole - room.left == 2 * first


def test_what_is_read_as_any_value_has_taken_no_room_yet() -> None:
    with one_trace() as room:
        whole = room.left

        assert read_history(json.dumps([REPR, "no message"])) is None
        assert room.left == whole
