"""Feedback as it is sent and as it is kept: what it says, whose it is, and what is wrong with it."""

import json
from typing import Any

import pytest

from collector.base.errors import TooLarge, Undecodable, UnknownKind
from collector.config.load import load
from collector.records.feedback import MAX_COMMENT, Feedback, FeedbackRules, decode_feedback
from collector.records.sent_feedback import MAX_BYTES, given, items_in
from tests.support.table import for_each

TRACE = "0af7651916cd43dd8448eb211c80319c"
NOW = 1_700_000_000.0
RULES = FeedbackRules()


def kept(rules: FeedbackRules = RULES, **fields: Any) -> Feedback:
    """What is kept of a thumb for a trace with these fields."""
    item = {"trace_id": TRACE, "name": "thumb", "value": True, **fields}
    whole = {name: value for name, value in item.items() if value is not None}
    return rules.feedback(given(json.dumps(whole).encode()), now=NOW)


@for_each(
    ("fields", "opinion"),
    [
        ({"value": True}, "positive"),
        ({"value": False}, "negative"),
        ({"value": 0.51}, "positive"),
        ({"value": 0.5}, "neutral"),
        ({"value": 0}, "negative"),
        ({"value": 2, "scale": {"min": 1, "max": 5}}, "negative"),
        ({"value": 3, "scale": {"min": 1, "max": 5}}, "neutral"),
        ({"value": 4, "scale": {"min": 1, "max": 5}}, "positive"),
        ({"value": 4}, "neutral"),
        ({"value": -1}, "neutral"),
        ({"value": 1.2e308, "scale": {"min": 1e308, "max": 1.7e308}}, "negative"),
        ({"value": None, "label": "thumbs_down"}, "negative"),
        ({"value": None, "label": "Thumbs up"}, "positive"),
        ({"value": None, "label": "meh"}, "neutral"),
        ({"value": 1, "label": "fail"}, "negative"),
        ({"value": 1, "label": "who knows"}, "positive"),
    ],
)
def test_a_known_label_decides_else_the_middle_of_the_scale(
    fields: dict[str, Any], opinion: str
) -> None:
    assert kept(**fields).opinion == opinion


def test_ids_in_capitals_are_the_same_ids() -> None:
    assert kept(trace_id=TRACE.upper(), span_id=TRACE[:16].upper()) == kept(span_id=TRACE[:16])


def test_labels_of_ones_own_are_set_in_the_configuration() -> None:
    config = load([], {}, ["feedback.labels={Needs work: negative}"])

    assert kept(FeedbackRules.of(config), value=None, label="needs-work").opinion == "negative"


@for_each(
    ("fields", "message"),
    [
        ({"trace_id": None}, "expected one of trace_id, session_id and task_id, got none of them"),
        ({"task_id": "t"}, "got trace_id and task_id"),
        ({"trace_id": "ABC"}, "trace_id: expected 32 hexadecimal digits"),
        ({"span_id": "1"}, "span_id: expected 16 hexadecimal digits"),
        ({"trace_id": None, "session_id": "s"}, "`service` must be there too"),
        ({"value": None}, "expected a value"),
        ({"scale": {"min": 2, "max": 2}}, "scale: `min` must be below `max`"),
        ({"name": ""}, "name: expected 1 to 512 characters"),
        ({"id": "x" * 513}, "id: expected 1 to 512 characters"),
        ({"time": "yesterday"}, "time: expected RFC 3339"),
        ({"time": "0001-01-01T00:00:00+23:59"}, "time: expected RFC 3339"),
        ({"time": "9999-12-31T23:59:59-23:59"}, "time: expected RFC 3339"),
        ({"value": "yes"}, "$.value"),
        ({"kind": "dog"}, "$.kind"),
        ({"colour": "red"}, "unknown field `colour`"),
    ],
)
def test_what_is_wrong_is_named(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(Undecodable, match=message.replace("$", r"\$")):
        kept(**fields)


def test_the_second_thumb_of_one_person_replaces_the_first() -> None:
    first, second = kept(source="jane@example.org"), kept(source="jane@example.org", value=False)
    other = kept(source="joe@example.org")

    assert first.id == second.id != other.id
    assert kept().id == kept(value=False).id
    assert kept(name="stars").id != kept().id


def test_an_id_of_the_senders_own_names_it_whatever_else_it_says() -> None:
    assert kept(id="vote-7").id == kept(id="vote-7", name="other", value=False).id != kept().id


def test_no_name_of_a_person_is_kept() -> None:
    plain = kept(source="jane@example.org")
    keyed = kept(
        FeedbackRules.of(load([], {}, ["redaction.key=0123456789abcdef0123456789abcdef"])),
        source="jane@example.org",
    )

    assert "jane" not in json.dumps([plain.source, keyed.source])
    assert plain.source != keyed.source


def test_the_default_configuration_keeps_the_digest_of_a_source() -> None:
    assert (
        kept(FeedbackRules.of(load([], {}, [])), source="jane").source == kept(source="jane").source
    )


@pytest.mark.parametrize(
    "time", ["0001-01-01T00:00:00Z", "1969-07-20T20:17:40Z", "9999-12-31T23:59:59.999999Z"]
)
def test_a_time_is_kept_to_the_ends_of_the_calendar(time: str) -> None:
    assert kept(time=time).time.startswith(time.rstrip("Z"))


def test_secrets_are_marked_and_ids_stay_apart() -> None:
    rules = FeedbackRules.of(load([], {}, ["redaction.patterns={mail: email}"]))
    said = kept(rules, comment="ask jane@example.org")
    sessions = [
        kept(rules, trace_id=None, session_id=f"{who}@example.org", service="shop")
        for who in ("jane", "joe")
    ]

    assert said.comment == "ask [mail]"
    assert sessions[0].session_id != sessions[1].session_id
    assert all("example" not in (each.session_id or "") for each in sessions)


def test_no_comment_is_kept_where_no_content_is() -> None:
    rules = FeedbackRules.of(load([], {}, ["redaction.content=drop"]))

    assert kept(rules, comment="wrong city").comment is None


def test_a_comment_is_cut_and_an_object_is_refused_where_they_are_too_long() -> None:
    assert len(kept(comment="x" * (MAX_COMMENT + 9)).comment or "") == MAX_COMMENT
    with pytest.raises(Undecodable, match="larger than"):
        given(b'{"name": "' + b"x" * MAX_BYTES + b'"}')


def test_half_an_emoji_or_a_bare_nan_is_the_matter_of_its_item() -> None:
    one = '{"trace_id": "%s", "name": "thumb", "value": %s, "comment": "%s"}'
    body = ", ".join(
        one % (TRACE, value, comment)
        for value, comment in [
            ("1", r"cut \ud83d"),
            ("NaN", "x"),
            ("-Infinity", r"\udc00"),
            ("1", r"NaN \ud83d\ude00 \\ud83d"),
        ]
    )
    first, nan, infinite, last = items_in(b'{"feedback": [%s]}' % body.encode())

    assert given(first).comment == "cut \ufffd"
    assert given(last).comment == "NaN \U0001f600 \\ud83d"
    for each in (nan, infinite):
        with pytest.raises(Undecodable, match=r"\$.value"):
            given(each)


def test_bytes_that_are_not_unicode_are_replaced_in_their_text() -> None:
    assert given(b'{"name": "a\xff"}').name == "a\ufffd"


def test_a_request_of_too_many_elements_is_refused_before_they_are_made() -> None:
    with pytest.raises(TooLarge, match="more than 1000000 elements"):
        items_in(b'{"feedback": [' + b"0," * 1_000_001 + b"0]}")


def test_a_record_comes_back_as_it_was() -> None:
    said = kept(comment="wrong city", time="2026-11-28T12:00:00+02:00")

    assert said.time == "2026-11-28T10:00:00.000000Z"
    value = said.record.value
    assert isinstance(value, bytes)
    assert decode_feedback(value) == said
    assert json.loads(value)["type"] == "spanwise.feedback.v1"
    with pytest.raises(UnknownKind):
        decode_feedback(value.replace(b"feedback.v1", b"feedback.v2"))


def test_what_is_said_of_one_subject_has_one_key() -> None:
    session = kept(trace_id=None, session_id="s", service="shop")

    assert kept().key == TRACE.encode()
    assert session.key == b"shop\0s"
    assert kept(trace_id=None, task_id="refund").key == b"refund"


def test_a_request_is_one_object_or_a_list_of_them() -> None:
    assert [bytes(each) for each in items_in(b'{"name": 1}')] == [b'{"name": 1}']
    assert [bytes(each) for each in items_in(b'{"feedback": [{"a": 1}, 7]}')] == [b'{"a": 1}', b"7"]
    for wrong in (b"[]", b"nonsense", b'{"feedback": 7}', b"\xff"):
        with pytest.raises(Undecodable, match="neither a JSON object nor"):
            items_in(wrong)
