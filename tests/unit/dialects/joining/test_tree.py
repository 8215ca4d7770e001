"""The root of a trace, wherever parents are missing."""

import pytest

from tests.support.conventions import CHAT
from tests.support.dialect_spans import SpanSpec, span_id, trace_of

REMOTE = 0x300


def test_the_root_is_the_span_without_parent() -> None:
    trace = trace_of(SpanSpec(id=1, start=5), SpanSpec(id=2, parent=1, start=1))

    assert (trace.root, trace.root_span_id) == ("parentless", span_id(1))


def test_under_a_remote_parent_the_earliest_such_span_is_the_local_root() -> None:
    trace = trace_of(
        SpanSpec(id=2, parent=7, start=3, flags=REMOTE),
        SpanSpec(id=3, parent=7, start=1, flags=REMOTE),
    )

    assert (trace.root, trace.root_span_id) == ("local", span_id(3))


@pytest.mark.parametrize("flags", [0, 0x100, 0x200])
def test_a_missing_parent_that_is_not_marked_remote_is_no_root(flags: int) -> None:
    trace = trace_of(SpanSpec(id=2, parent=7, flags=flags))

    assert (trace.root, trace.root_span_id, "no_root" in trace.gaps) == ("missing", None, True)


def test_a_ring_of_parents_is_survived() -> None:
    trace = trace_of(
        SpanSpec(id=1, parent=2, attributes=CHAT),
        SpanSpec(id=2, parent=1, attributes=CHAT),
        SpanSpec(id=3, parent=3),
    )

    assert trace.spans == 3
