"""What evaluators say of a trace where it is read: a header of its record, from the worker to scoring."""

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from collector.log.port import Headers
from collector.records.codec import NOT_A_RECORD, encode
from evaluators.model import Outcome

OUTCOMES = "spanwise_outcomes"  # the header


class TraceOutcomes(msgspec.Struct, frozen=True, array_like=True):
    """Everything that the trace alone decides, and what it is compared by."""

    outcomes: tuple[Outcome, ...] = ()
    sketches: Mapping[str, bytes] = {}
    """By evaluator, what the trace is compared by with others of its session (`evaluators.sketches`)."""
    by_turn: Mapping[int, tuple[Outcome, ...]] = {}
    """By its place in the session, outcomes in place of others: expectations may name the place."""


_decoder = msgspec.msgpack.Decoder(TraceOutcomes)


def packed_outcomes(outcomes: TraceOutcomes, room: int) -> bytes:
    """The msgpack: above `room` bytes without texts and sketches, and empty where that takes more, too."""
    packed = encode(outcomes)
    if len(packed) <= room:
        return packed
    by_turn = {place: _brief(each) for place, each in outcomes.by_turn.items()}
    packed = encode(TraceOutcomes(_brief(outcomes.outcomes), {}, by_turn))
    return packed if len(packed) <= room else b""


def fitted(packed: bytes, room: int) -> bytes:
    return packed if len(packed) <= room else packed_outcomes(_decoder.decode(packed), room)


def outcomes_of(headers: Headers) -> TraceOutcomes | None:
    """The outcomes among the headers of a record; None: there are none, or they cannot be read."""
    packed = next((value for name, value in headers if name == OUTCOMES), None)
    try:
        return None if packed is None else _decoder.decode(packed)
    except NOT_A_RECORD:
        return None


def _brief(outcomes: tuple[Outcome, ...]) -> tuple[Outcome, ...]:
    return tuple(replace(each, explanation=None, metadata={}, evidence=()) for each in outcomes)
