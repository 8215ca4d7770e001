"""Recordings, changed where it hurts: ids, parents, times, keys, kinds of values, texts that readers look for.

`SPANWISE_CAPTURES` names another folder of recordings.
"""

import base64
import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, cast

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.otlp import spans_of
from tests.support.recordings import recordings, requests

_DATA = Path(__file__).parents[1] / "data"
CAPTURES = Path(os.environ.get("SPANWISE_CAPTURES") or _DATA / "captures")
LARGEST = 200_000
"""Bytes of a request that is worth changing a hundred times."""
TEXTS: tuple[str, ...] = tuple(json.loads((_DATA / "hurting_texts.json").read_text()))
NAMES = (
    "session.id",
    "gen_ai.conversation.id",
    "spanwise.task.id",
    "spanwise.task.success",
    "user.id",
    "gen_ai.agent.name",
    "gen_ai.tool.name",
    "gen_ai.request.model",
)
"""Attributes that name something."""
_VALUES: tuple[Any, ...] = (None, True, [], {}, [[]], {"type": "tool_call"})
NUMBERS = (0, 1, -1, 255, 1 << 31, (1 << 63) - 1, -(1 << 63))
_IDS = ("traceId", "spanId", "parentSpanId")
TIMES = (0, 1, (1 << 63) - 1, (1 << 64) - 1, 1_760_000_000_000_000_000)


@cache
def seeds() -> tuple[bytes, ...]:
    """Requests of all recordings that are small enough, in order."""
    every = (each for path in recordings(CAPTURES) for each in requests(path))
    return tuple(each for each in every if len(each) <= LARGEST)


@cache
def keys() -> tuple[str, ...]:
    """The attributes of all dialects in the recordings, so that one dialect's stand in spans of another."""
    found = {
        key
        for seed in seeds()
        for key, _ in _attributes(ExportTraceServiceRequest.FromString(seed))
    }
    return tuple(sorted(found))


def _attributes(request: ExportTraceServiceRequest) -> Iterator[tuple[str, AnyValue]]:
    for span in spans_of(request):
        yield from ((each.key, each.value) for each in span.attributes)
        yield from ((each.key, each.value) for event in span.events for each in event.attributes)


def mutated(seed: bytes, random: Random) -> bytes:
    """A request like the seed with a few changes; still a valid message."""
    request = ExportTraceServiceRequest.FromString(seed)
    spans = spans_of(request)
    if not spans:
        return seed
    for _ in range(random.randint(1, 8)):
        _change(request, spans, random)
    return request.SerializeToString()


def not_unicode(request: bytes, random: Random) -> bytes:
    """The request with one of its texts not UTF-8, if it has one that is long enough."""
    message = ExportTraceServiceRequest.FromString(request)
    texts = [value.string_value.encode() for _, value in _attributes(message)]
    texts = [each for each in texts if len(each) > 3]
    if not texts:
        return request
    text = random.choice(texts)
    broken = random.choice((b"\xed\xa0\xbd", b"\xff\xfe\xfd", b"\xc0\xaf\xf0"))
    return request.replace(text, broken + text[3:], 1)


def otlp_json(request: bytes) -> bytes:
    """The request as OTLP/JSON: protobuf's own, with ids in hex."""
    document = MessageToDict(
        ExportTraceServiceRequest.FromString(request), use_integers_for_enums=True
    )
    return json.dumps(_in_hex(document)).encode()


def _in_hex(value: Any) -> Any:
    if isinstance(value, list):
        return [_in_hex(each) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {
            key: base64.b64decode(each).hex() if key in _IDS else _in_hex(each)
            for key, each in fields.items()
        }
    return value


def torn(seed: bytes, random: Random) -> bytes:
    """The seed with bytes changed, cut out or repeated: seldom a valid message."""
    data = bytearray(seed)
    for _ in range(random.randint(1, 6)):
        if not data:
            break
        at = random.randrange(len(data))
        match random.randrange(4):
            case 0:
                data[at] = random.randrange(256)
            case 1:
                del data[at : at + random.randint(1, 40)]
            case 2:
                data[at:at] = data[at : at + random.randint(1, 400)]
            case _:
                data[at:at] = random.randbytes(random.randint(1, 12))
    return bytes(data)


def _change(request: ExportTraceServiceRequest, spans: list[Span], random: Random) -> None:
    span, other = random.choice(spans), random.choice(spans)
    match random.randrange(9):
        case 0:
            span.parent_span_id = random.choice((other.span_id, b"", b"\0" * 8, b"x", span.span_id))
        case 1:
            span.span_id, span.trace_id = random.choice(
                ((other.span_id, other.trace_id), (b"", b""), (random.randbytes(8), span.trace_id))
            )
        case 2:
            span.start_time_unix_nano = random.choice(TIMES)
            span.end_time_unix_nano = random.choice(TIMES)
        case 3:
            span.name = random.choice(TEXTS)
        case 4:
            span.status.message, span.flags = random.choice(TEXTS), random.randrange(1 << 32)
        case 5:
            copy = random.choice(random.choice(request.resource_spans).scope_spans).spans.add()
            copy.CopyFrom(span)
        case 6 if span.attributes:
            moved = random.choice(span.attributes)
            other.attributes.add(key=moved.key).value.CopyFrom(moved.value)
        case 7:
            _replace_key(random.choice(spans), random)
        case _:
            attributes = [*span.attributes, *(a for e in span.events for a in e.attributes)]
            if attributes:
                replace_value(random.choice(attributes), random)


def _replace_key(span: Span, random: Random) -> None:
    if random.random() < 0.5:
        span.attributes.add(key=random.choice(NAMES)).value.string_value = random.choice(TEXTS)
    elif span.attributes:
        chosen = random.choice(span.attributes)
        other = random.choice((*TEXTS, *keys()))
        chosen.key = random.choice((other, chosen.key + ".0.x", chosen.key[:-1]))


def replace_value(attribute: KeyValue, random: Random) -> None:
    """Give the attribute another value: another kind, another text, or another leaf of the JSON in its text."""
    value = attribute.value
    text = value.string_value
    match random.randrange(5):
        case 0:
            value.string_value = random.choice(TEXTS)
        case 1:
            value.CopyFrom(_other_kind(random))
        case 2 if text:
            at = random.randrange(len(text))
            value.string_value = text[:at] + random.choice(TEXTS) + text[at:]
        case 3 if text:
            value.string_value = text[: random.randrange(len(text))]
        case _:
            value.string_value = _in_json(text, random)


def _other_kind(random: Random) -> AnyValue:
    made = AnyValue()
    match random.randrange(5):
        case 0:
            made.int_value = random.choice(NUMBERS)
        case 1:
            made.double_value = random.choice((0.0, float("nan"), float("inf"), -1e308))
        case 2:
            made.bytes_value = random.randbytes(5)
        case 3:
            inner = made.array_value.values.add()
            for _ in range(random.choice((0, 0, 1, 40))):
                inner = inner.array_value.values.add()
            inner.string_value = random.choice(TEXTS)
        case _:
            made.kvlist_value.values.add(key=random.choice(TEXTS)).value.bool_value = True
    return made


def _in_json(text: str, random: Random) -> str:
    """A leaf of the JSON in a text replaced by something else."""
    try:
        value: Any = json.loads(text)
    except ValueError:
        return text + random.choice(TEXTS)
    holder, key = _leaf({"": value}, "", random)
    holder[key] = random.choice((*TEXTS, *NUMBERS, *_VALUES))
    return json.dumps(value if key != "" else holder[key])


def _leaf(holder: Any, key: Any, random: Random) -> tuple[Any, Any]:
    inner = holder[key]
    if isinstance(inner, dict) and inner and random.random() < 0.9:
        return _leaf(inner, random.choice(list(cast("dict[str, Any]", inner))), random)
    if isinstance(inner, list) and inner and random.random() < 0.9:
        return _leaf(inner, random.randrange(len(cast("list[Any]", inner))), random)
    return holder, key
