"""Redaction of whole requests: every text, never an id, nothing decoded that cannot hold a secret."""

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.base.errors import TooLarge, Undecodable
from collector.config.tree import AttributesConfig, Config, Redaction
from collector.otlp import redaction, wire
from collector.otlp.redaction import RedactionSettings, redactor
from collector.otlp.repair import DecodedRequest
from tests.support.hostile import field_of
from tests.support.otlp import body, request, span, spans_of
from tests.support.planted import planted, texts_of

SECRETS = "jane@example.org 4539 1488 0343 6467 +49 170 5551234 ghp_abcdefghij0123456789ABCD"
MARKERS = "[email] [card] [phone] [token]"
ALL = {kind: kind for kind in ("email", "card", "phone", "token")}


def redact(sent: bytes, **settings: object) -> DecodedRequest:
    made = redactor(
        RedactionSettings.of(Config.model_validate({"redaction": {"patterns": ALL, **settings}}))
    )
    assert made is not None
    return made(DecodedRequest(sent), ExportTraceServiceRequest)


def redacted(sent: ExportTraceServiceRequest) -> ExportTraceServiceRequest:
    return ExportTraceServiceRequest.FromString(redact(sent.SerializeToString()).request)


def only(sent: Span) -> Span:
    return spans_of(redacted(request(sent)))[0]


def test_every_text_of_a_request_is_redacted() -> None:
    sent = planted(SECRETS)

    texts = texts_of(redacted(sent))

    assert len(texts) == len(texts_of(sent)) > 25
    # The name of a service goes on to tell it from others.
    named = {text for text in texts if text.startswith("[email]#") and text.count("#") == 4}
    keys = {"nested.0", "nested.1", "nested.2", "service.name"}
    assert set(texts) - {MARKERS} <= {*keys, *named}


def test_what_cannot_hold_a_secret_is_copied() -> None:
    sent = body(span(1, 1, text="a harmless text"), span(1, 2, text="of 1790000000 words"))

    assert redact(sent).request is sent


@pytest.mark.parametrize(
    "key", ["session.id", "gen_ai.conversation.id", "own.session", "spanwise.task.id", "metadata"]
)
def test_two_users_never_share_a_session(key: str) -> None:
    found: set[str] = set()
    for who in ("jane@example.org", "joe@example.org"):
        made = span(1, 1)
        made.attributes.add(key=key).value.string_value = f'{{"session_id": "{who}"}}'
        config = Config(
            redaction=Redaction(patterns={"email": "email"}),
            attributes=AttributesConfig(session=("own.session",)),
        )
        tool = redactor(RedactionSettings.of(config))
        assert tool is not None
        sent = ExportTraceServiceRequest.FromString(tool.piece(body(made)))
        found.add(spans_of(sent)[0].attributes[0].value.string_value)

    assert len(found) == 2
    assert all("[email]#" in each and "example" not in each for each in found)


def test_a_user_id_is_a_marker_alone() -> None:
    made = span(1, 1)
    made.attributes.add(key="user.id").value.string_value = "jane@example.org"

    assert only(made).attributes[0].value.string_value == "[email]"


def test_without_patterns_there_is_no_redactor() -> None:
    assert redactor(RedactionSettings.of(Config())) is None


def test_a_span_that_cannot_be_walked_is_left_out_and_counted() -> None:
    sound, damaged = span(1, 1, text=SECRETS), b"\x2a\x10jane@example.org"[:-3]
    group = request(sound).resource_spans[0]
    scope = group.scope_spans[0].SerializeToString() + field_of(2, damaged)
    resource = group.resource.SerializeToString()

    result = redact(field_of(1, field_of(1, resource) + field_of(2, scope)))

    assert (result.invalid, result.reasons) == (1, ("a span is not a valid message",))
    assert [each.span_id for each in spans_of(parsed(result))] == [sound.span_id]
    assert b"jane" not in result.request


def parsed(result: DecodedRequest) -> ExportTraceServiceRequest:
    return ExportTraceServiceRequest.FromString(result.request)


def test_a_field_that_is_not_known_is_left_out_where_it_may_hold_a_secret() -> None:
    made = span(1, 1).SerializeToString()
    unknown = b"\x8a\x01\x10jane@example.org" + b"\x92\x01\x04fine"
    sent = ExportTraceServiceRequest()
    sent.resource_spans.add().scope_spans.add().spans.append(Span.FromString(made + unknown))

    result = redact(sent.SerializeToString()).request

    assert b"jane" not in result
    assert b"fine" in result


def test_texts_that_are_not_utf8_are_redacted_too() -> None:
    text = b"\xff jane@example.org \xc3"
    made = span(1, 1)
    made.ClearField("name")
    whole = made.SerializeToString() + field_of(5, text)

    sent = field_of(1, field_of(2, field_of(2, whole)))
    assert b"\xff [email] \xc3" in redact(sent).request


def test_what_is_no_message_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Undecodable):
        redact(b"\x0a\x20jane@example.org")
    monkeypatch.setattr(redaction, "MAX_FIELDS", 100)
    made = span(1, 1, text="jane@example.org")
    for number in range(100):
        made.attributes.add(key=f"k{number}")
    with pytest.raises(TooLarge):
        redact(body(made))
    assert wire.MAX_FIELDS > 100
