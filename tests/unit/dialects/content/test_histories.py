"""Histories that repeat are read as any list of messages, and each of their messages is parsed once in a trace."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from evaluators.dialects.content import histories
from evaluators.dialects.content.histories import read_history
from evaluators.dialects.content.messages import read_messages
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


def test_nothing_is_remembered_outside_a_trace() -> None:
    assert read_history(json.dumps([ASKED])) is None


def test_each_message_of_a_trace_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: Counter[str] = Counter()
    read_plain = histories.read_plain

    def count(item: JSON) -> object:
        parsed[json.dumps(item)] += 1
        return read_plain(item)

    monkeypatch.setattr(histories, "read_plain", count)
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
