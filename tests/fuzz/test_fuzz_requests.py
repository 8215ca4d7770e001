"""Whatever arrives as a request: only declared errors, nothing lost or counted twice, every trace can be read."""

import gzip
import json
import zlib
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.base.errors import TooLarge, Undecodable
from collector.otlp.json import to_protobuf
from collector.otlp.split import SplitRequest, split_by_trace
from collector.receiver.inflate import BY_NAME, sniff
from evaluators.dialects.read import read_trace
from evaluators.dialects.show import show
from evaluators.run import score_trace
from tests.fuzz.conftest import RANDOM, SEEDS, Fuzz, corpus, seed
from tests.fuzz.pipeline import PLAN
from tests.support.mutation import mutated, not_unicode, otlp_json, torn
from tests.support.otlp import spans_of

pytestmark = pytest.mark.timeout(7200)

MAX_SPAN = 1 << 20
JSON_TEXT = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


def check_split(request: bytes) -> SplitRequest | None:
    """Every accepted span is in one piece, and each piece is a valid request."""
    try:
        split = split_by_trace(request, max_item=MAX_SPAN)
    except Undecodable:
        return None
    held = 0
    for piece in split.pieces:
        held += len(spans_of(ExportTraceServiceRequest.FromString(piece.value)))
    assert held == split.accepted
    return split


def check_whole(request: bytes) -> None:
    """A valid request is split without a loss, and each piece has spans of its trace alone."""
    split = check_split(request)
    assert split is not None
    for piece in split.pieces:
        inside = spans_of(ExportTraceServiceRequest.FromString(piece.value))
        assert {each.trace_id for each in inside} == {piece.key}
    spans = spans_of(ExportTraceServiceRequest.FromString(request))
    assert split.accepted + split.rejected == len(spans)
    assert split.repaired == 0


def check_read(request: bytes) -> None:
    """Every trace in it can be read, shown and scored, and a score is a number from 0 to 1 or an error."""
    split = check_split(request)
    pieces: dict[bytes, list[bytes]] = {}
    for piece in () if split is None else split.pieces:
        pieces.setdefault(piece.key, []).append(piece.value)
    for trace_id, parts in pieces.items():
        trace = read_trace(parts, trace_id=trace_id.hex(), closed="idle")
        assert trace.trace_id == trace_id.hex()
        json.dumps(show(trace)).encode()
        for outcome in score_trace(PLAN, trace):
            assert (outcome.score is not None) == (outcome.state == "scored")
            assert outcome.score is None or 0 <= outcome.score <= 1
            assert outcome.error is None or outcome.error.type != "exception", outcome


def test_changed_requests_are_split_exactly_read_and_scored_and_torn_ones_undecodable(
    fuzz: Fuzz,
) -> None:
    def check(number: int, random: Random) -> None:
        check_split(torn(seed(number), random))
        changed = mutated(seed(number), random)
        check_whole(changed)
        check_read(changed)

    fuzz(check, SEEDS, RANDOM)


def test_a_text_that_is_not_unicode_loses_no_span(fuzz: Fuzz) -> None:
    def check(number: int, random: Random) -> None:
        request = mutated(seed(number), random)
        sent = len(spans_of(ExportTraceServiceRequest.FromString(request)))
        split = check_split(not_unicode(request, random))
        assert split is not None
        assert split.accepted + split.rejected == sent

    fuzz(check, SEEDS, RANDOM)


def check_json(body: bytes) -> None:
    try:
        decoded = to_protobuf(body, ExportTraceServiceRequest)
    except (TooLarge, Undecodable):
        return
    ExportTraceServiceRequest.FromString(decoded.request)
    check_split(decoded.request)


def test_changed_requests_say_the_same_in_json(fuzz: Fuzz) -> None:
    def check(number: int, random: Random) -> None:
        request = ExportTraceServiceRequest.FromString(mutated(seed(number), random))
        for each in spans_of(
            request
        ):  # ids of another length are not ids: only in JSON is that known
            if len(each.parent_span_id) not in (0, 8):
                each.parent_span_id = b""
        decoded = to_protobuf(otlp_json(request.SerializeToString()), ExportTraceServiceRequest)
        assert (decoded.repaired, decoded.invalid) == (0, 0)
        again = ExportTraceServiceRequest.FromString(decoded.request)
        assert again.SerializeToString(deterministic=True) == request.SerializeToString(
            deterministic=True
        )

    fuzz(check, SEEDS, RANDOM)


def test_torn_json_is_read_or_undecodable(fuzz: Fuzz) -> None:
    def check(number: int, random: Random) -> None:
        check_json(torn(otlp_json(mutated(seed(number), random)), random))

    fuzz(check, SEEDS, RANDOM)


def test_any_document_is_read_or_undecodable(fuzz: Fuzz) -> None:
    def check(document: object) -> None:
        check_json(json.dumps({"resourceSpans": document}).encode())

    fuzz(check, JSON_TEXT)


def check_inflated(body: bytes) -> None:
    for inflate in (*BY_NAME.values(), sniff):
        try:
            assert len(inflate(body, MAX_SPAN)) <= MAX_SPAN
        except (TooLarge, Undecodable):
            continue


def test_torn_compression_is_inflated_within_its_limit_or_refused(fuzz: Fuzz) -> None:
    def check(number: int, random: Random) -> None:
        pack = random.choice((gzip.compress, zlib.compress))
        check_inflated(torn(pack(seed(number)), random))

    fuzz(check, SEEDS, RANDOM)


@pytest.mark.parametrize(("kind", "check"), [("requests", check_read), ("json", check_json)])
def test_what_once_broke_something_does_not(kind: str, check: Callable[[bytes], None]) -> None:
    for file in corpus(kind):
        check(file.read_bytes())
