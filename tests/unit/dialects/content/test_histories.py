"""Histories that repeat are read as any list of messages, and each of their messages is parsed once in a trace."""

import json
from collections import Counter

import msgspec
import pytest

from evaluators.dialects.content import histories
from evaluators.dialects.content.histories import read_history
from evaluators.dialects.content.messages import Side, read_messages
from evaluators.dialects.decoding.room import Room
from evaluators.dialects.decoding.values import as_dict
from evaluators.model import JSON
from tests.support.table import for_each


def said(role: str, *parts: JSON, **beside: JSON) -> JSON:
    return {"role": role, "parts": list(parts), **beside}


TEXT = {"type": "text", "content": "hi"}
CALL = {"type": "tool_call", "id": "c", "name": "find", "arguments": '{"a": 1}'}
RESPONSE = {"type": "tool_call_response", "id": "c", "response": "found"}
ASKED = said("user", {**TEXT, "content": "where is it?"})
CALLED = said("assistant", {**CALL, "arguments": {"id": 7}})
ANSWERED = said("tool", RESPONSE)
REPR: JSON = {"role": "user", "content": "{'a': 1}"}
RESULT: JSON = {"type": "tool_result", "tool_use_id": "c", "content": "x"}


@for_each(
    "value",
    [
        [ASKED, CALLED, ANSWERED],
        [{"role": "user", "content": [RESULT]}],
        [{"role": "user", "content": '[{"role": "user", "content": "hi"}]'}],
        [],
    ],
)
def test_a_history_has_the_messages_of_its_list(value: JSON) -> None:
    with Room():
        assert read_history(json.dumps(value), grows=True) == read_messages(value, "input")


@for_each(
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
    with Room():
        assert read_history(text, grows=False) is read_history(text, grows=True) is None


@for_each(
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
@for_each("side", ["input", "output"])
def test_a_message_of_the_conventions_reads_as_any_other(message: JSON, side: Side) -> None:
    with Room():
        read = read_history(json.dumps([said("user", TEXT), message]), grows=side == "input")

    assert read in (None, read_messages([said("user", TEXT), message], side))


def test_nothing_is_remembered_outside_a_trace() -> None:
    assert read_history(json.dumps([ASKED]), grows=True) is None


def test_each_message_of_a_trace_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: Counter[bytes] = Counter()
    read_convention = histories.read_convention

    def count(raw: bytes) -> object:
        parsed[raw] += 1
        return read_convention(raw)

    monkeypatch.setattr(histories, "read_convention", count)
    grown = [[ASKED], [ASKED, CALLED], [ASKED, CALLED, ANSWERED]]
    dropped = [[CALLED, ANSWERED], [ASKED, ANSWERED]]
    with Room():
        for history in (*grown, *dropped):
            assert read_history(json.dumps(history), grows=True) == read_messages(history, "input")

    assert set(parsed.values()) == {1}


def test_an_answer_that_became_history_is_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with Room():
        answer = read_history(json.dumps([CALLED]), grows=False)
        monkeypatch.setattr(histories, "read_convention", None)

        assert read_history(json.dumps([CALLED]), grows=True) == answer


HISTORY = [ASKED, CALLED, ANSWERED]
WHOLE = json.dumps(HISTORY)


@for_each(
    "text",
    [
        WHOLE,
        f"{WHOLE[:-1]} ]",
        f"{WHOLE[:-1]}\n , {WHOLE[1:]}",
        f"{WHOLE[:-1]},{WHOLE[1:]}",
        json.dumps([*HISTORY, CALLED]),
        json.dumps([*HISTORY, REPR]),
        json.dumps([*HISTORY, {"role": "user"}]),
        f"{WHOLE[:-1]},]",
        f"{WHOLE[:-1]}",
        f"{WHOLE[:-1]}{WHOLE[1:]}",
        f"{WHOLE[:-1]}}}]",
        f"{WHOLE[:-1]}\x0b]",
        f"{WHOLE}]",
        f"{WHOLE[:-1]}, 1]",
        f"{WHOLE[:-1]}, NaN]",
        json.dumps([*HISTORY[:-1], {**as_dict(ANSWERED), "more": 1}]),
        json.dumps([ASKED]),
    ],
)
@for_each("before", ["[]", json.dumps([REPR]), json.dumps([ASKED]), WHOLE])
def test_a_history_that_begins_with_another_is_read_as_if_it_came_alone(
    text: str, before: str
) -> None:
    with Room() as alone:
        whole = alone.left
        read = read_history(text, grows=True)
    with Room() as room:
        read_history(before, grows=True)
        left = room.left

        assert read_history(text, grows=True) == read
        assert left - room.left == whole - alone.left


@pytest.mark.parametrize("grown", [True, False])
def test_only_what_a_history_grew_by_is_looked_at(
    grown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[int] = []
    decode = histories._decode_items

    def count(text: str) -> list[msgspec.Raw]:
        items = decode(text)
        looked_at.append(len(items))
        return items

    monkeypatch.setattr(histories, "_decode_items", count)
    with Room():
        read_history(json.dumps([ASKED, CALLED]), grows=True)
        read_history(json.dumps([ASKED if grown else ANSWERED, CALLED, ANSWERED]), grows=True)

    assert looked_at == [2, 1 if grown else 3]


def test_a_message_that_takes_room_takes_it_in_every_history() -> None:
    """What a repeated repr costs must not depend on which history was read first."""
    with Room() as room:
        whole = room.left
        read_history(json.dumps([ASKED, REPR]), grows=True)
        first = whole - room.left
        read_history(json.dumps([ASKED, REPR]), grows=True)

        assert first == len("{'a': 1}")
        assert whole - room.left == 2 * first


def test_what_is_read_as_any_value_has_taken_no_room_yet() -> None:
    with Room() as room:
        whole = room.left

        assert read_history(json.dumps([REPR, "no message"]), grows=True) is None
        assert room.left == whole


@for_each("kind", [["text"], {"a": 1}, 7, None])
@for_each("more", [{}, {"source": "user"}, {"role": "assistant"}])
def test_a_type_that_is_no_text_loses_nothing_else(kind: JSON, more: dict[str, JSON]) -> None:
    """It took the whole trace along: `{"type":[` is what is left of a message that was cut."""
    part: JSON = {"type": kind, "id": "c", "content": "x"}
    odd: JSON = {"type": kind, "content": "x", "parts": [part], **more}

    with Room():
        read = read_messages([odd, ASKED], "output")

    assert "where is it?" in [each.text for each in read]
