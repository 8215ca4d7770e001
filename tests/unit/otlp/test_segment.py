"""A trace state names a segment only where it is one: senders may write what they like there."""

from typing import Any

import pytest

from collector.otlp.segment import Segment, segment_in, trace_state

GIVEN: dict[str, Any] = {"owner": b"o" * 16, "session": b"s" * 8, "start": 1}


@pytest.mark.parametrize("more", [{}, {"turn": b"t" * 16}, {"traces": (b"a" * 16, b"b" * 16)}])
def test_a_segment_is_read_back(more: dict[str, Any]) -> None:
    segment = Segment(**GIVEN, **more)

    assert segment_in(trace_state(segment)) == segment


@pytest.mark.parametrize(
    "wrong",
    [
        {"owner": b"o"},
        {"session": b""},
        {"start": -1},
        {"turn": b"t"},
        {"turn": bytes(16)},
        {"traces": (b"a" * 16, b"b")},
        {"traces": (bytes(16),)},
        {"helper_session": b"h"},
    ],
)
def test_ids_of_other_lengths_and_times_before_all_make_none(wrong: dict[str, Any]) -> None:
    """A turn that is not a trace id would end the room that reads it."""
    segment = Segment(**{**GIVEN, **wrong})

    assert segment_in(trace_state(segment)) is None


@pytest.mark.parametrize(
    "state", ["", "a=b", "spanwise=", "spanwise=é", "spanwise=AAAA", "spanwise"]
)
def test_other_trace_states_are_anybodys(state: str) -> None:
    assert segment_in(state) is None
