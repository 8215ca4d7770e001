"""OpenTelemetry's probability sampling in the trace state of spans: `ot=th:c;rv:...`, and why a trace was kept. Pure.

A span is sampled where its randomness is at least its threshold, both of 56 bits; it then stands for 2**56 / (2**56 -
threshold) spans. Source: OpenTelemetry, "TraceState: Probability Sampling".
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.otlp.span_head import SpanHeads

BITS = 56
NEVER = 1 << BITS
KEPT_KEY = "spanwise.kept"
_DIGITS = BITS // 4
_RANDOM = re.compile(r"(?:^|;)rv:([0-9a-f]{14})(?=;|$)")
_LONGEST = 256
"""Characters that the specification leaves to the value of one vendor."""
_OTHERS = 31
"""Vendors that W3C's Trace Context leaves beside one; the last go first."""


def threshold_of(share: float) -> int:
    """The threshold that a share of the traces passes; NEVER: none does."""
    return round((1 - share) * NEVER)


def stated_randomness(pieces: Iterable[bytes]) -> int | None:
    """What the spans of a trace say of its randomness; pieces that cannot be read say nothing."""
    for raw in pieces:
        if b"rv:" not in raw:
            continue
        with suppress(DecodeError):
            for group in ExportTraceServiceRequest.FromString(raw).resource_spans:
                for span in (each for scope in group.scope_spans for each in scope.spans):
                    found = _RANDOM.search(_vendors(span.trace_state).get("ot", ""))
                    if found is not None:
                        return int(found[1], 16)
    return None


@lru_cache(maxsize=1024)
def with_threshold(trace_state: str, threshold: int) -> str:
    """The trace state with this threshold; one that is higher stays."""
    vendors = _vendors(trace_state)
    before = [each for each in vendors.pop("ot", "").split(";") if each]
    known = next((_threshold(each[3:]) for each in before if each.startswith("th:")), None)
    highest = threshold if known is None else max(threshold, known)
    rest = [each for each in before if not each.startswith("th:")]
    own = ";".join((f"th:{_written(highest)}", *rest))
    if len(own) > _LONGEST:
        own = ";".join((f"th:{_written(highest)}", *(each for each in rest if _RANDOM.match(each))))
    others = [f"{key}={value}" for key, value in vendors.items()]
    return ",".join((f"ot={own}", *others[:_OTHERS]))


def marked(request: bytes, *, threshold: int, reason: str, root: bytes | None) -> tuple[bytes, int]:
    """The request with this threshold in each span and the reason at the root; how many spans it has."""
    message: Any = SpanHeads.FromString(request)
    attribute, count = _kept(reason), 0
    for group in message.resource_spans:
        for scope in group.scope_spans:
            for span in scope.spans:
                count += 1
                span.trace_state = with_threshold(span.trace_state, threshold)
                if span.span_id == root or (root is None and not span.parent_span_id):
                    span.MergeFromString(attribute)
    return message.SerializeToString(), count


@lru_cache(maxsize=16)
def _kept(reason: str) -> bytes:
    attribute = KeyValue(key=KEPT_KEY, value=AnyValue(string_value=reason))
    return Span(attributes=[attribute]).SerializeToString()


def _vendors(trace_state: str) -> dict[str, str]:
    pairs = (each.strip().partition("=") for each in trace_state.split(","))
    return {key: value for key, _, value in pairs if key and value}


def _threshold(digits: str) -> int | None:
    """Trailing zeros are left out; None: it is not one."""
    if not re.fullmatch(r"[0-9a-f]{1,14}", digits):
        return None
    return int(digits.ljust(_DIGITS, "0"), 16)


def _written(threshold: int) -> str:
    return f"{min(threshold, NEVER - 1):0{_DIGITS}x}".rstrip("0") or "0"
