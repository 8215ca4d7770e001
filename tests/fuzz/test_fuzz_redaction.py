"""Secrets planted anywhere in any request are gone from it, and nothing else is: the spans, their ids, valid JSON."""

import json
from random import Random

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.config.load import load
from collector.otlp.redaction import RedactionSettings, redactor
from collector.otlp.repair import DecodedRequest
from tests.fuzz.conftest import RANDOM, SEEDS, Fuzz, seed
from tests.support.mutation import mutated
from tests.support.received_log import spans_of

pytestmark = pytest.mark.timeout(7200)

KINDS = "{mail: email, card: card, phone: phone, token: token}"
REDACT = redactor(RedactionSettings.of(load([], {}, [f"redaction.patterns={KINDS}"])))
SECRETS = {
    "jane.doe.7731@example.org": b"jane.doe.7731",
    "4111 1111 1111 1111": b"4111 1111",
    "sk-proj-Zx8Qw3Er5Ty7Ui9Op1As2Df4Gh6Jk8Lz0": b"Zx8Qw3Er5Ty7",
}
"""What is planted, and what of it must not be found."""


def planted(request: ExportTraceServiceRequest, secret: str, random: Random) -> None:
    """The secret in one text of the request, between spaces."""
    span = random.choice(spans_of(request))
    texts = [each for each in span.attributes if each.value.string_value]
    match random.randrange(7):
        case 0 if texts:
            value = random.choice(texts).value
            at = random.randrange(len(value.string_value) + 1)
            value.string_value = f"{value.string_value[:at]} {secret} {value.string_value[at:]}"
        case 1:
            span.attributes.add(key=f"a {secret} key").value.int_value = 1
        case 2:
            span.events.add(name=f"at {secret} now").attributes.add(key="x")
        case 3:
            span.status.message = f"no {secret} there"
        case 4:
            inner = span.attributes.add(key="list").value.array_value.values.add()
            inner.kvlist_value.values.add(key="k").value.string_value = f"an {secret} inside"
        case 5:
            text = json.dumps({"role": "user", "content": f'say "{secret}"\n{secret}'})
            text = random.choice((text, text.replace("@", r"\u0040").replace("1111", r"11\u00311")))
            span.attributes.add(key="gen_ai.input.messages").value.string_value = text
        case _:
            request.resource_spans[0].resource.attributes.add(
                key="host"
            ).value.string_value = f"of {secret} here"


def ids(spans: list[Span]) -> list[tuple[bytes, bytes, bytes]]:
    return [(each.trace_id, each.span_id, each.parent_span_id) for each in spans]


def test_planted_secrets_are_gone_and_the_spans_are_not(fuzz: Fuzz) -> None:
    assert REDACT is not None
    redact = REDACT

    def check(number: int, random: Random) -> None:
        request = ExportTraceServiceRequest.FromString(mutated(seed(number), random))
        secret = random.choice(list(SECRETS))
        if not spans_of(request):
            return
        planted(request, secret, random)
        sent = request.SerializeToString()
        done = redact(DecodedRequest(sent), ExportTraceServiceRequest)
        assert SECRETS[secret] not in done.request
        assert (done.invalid, done.marked > 0 or done.whole > 0) == (0, True)
        after = ExportTraceServiceRequest.FromString(done.request)
        assert ids(spans_of(after)) == ids(spans_of(request))
        assert (
            redact(DecodedRequest(done.request), ExportTraceServiceRequest).request == done.request
        )
        for old, new in zip(spans_of(request), spans_of(after), strict=True):
            for before, now in zip(old.attributes, new.attributes, strict=True):
                if done.whole == 0 and is_json(before.value.string_value):
                    assert is_json(now.value.string_value), now
                    read = repr(json.loads(now.value.string_value)).encode()
                    assert SECRETS[secret] not in read, now

    fuzz(check, SEEDS, RANDOM)


def is_json(text: str) -> bool:
    """Whether the text is a JSON object or list."""
    try:
        return isinstance(json.loads(text), (dict, list))
    except (ValueError, RecursionError):
        return False
