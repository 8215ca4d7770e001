"""Comparing a trace with those before it in its session by what was kept of each when it was read: its sketches. Pure.

trace, where it is read --sketches_of--> sketches ... its session is known --compare, with those before--> outcome
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from evaluators.content import NO_CONTENT, is_blind
from evaluators.model import Outcome, Trace
from evaluators.plan import Configured
from evaluators.resources import WINDOW, Embedder, Sketch
from evaluators.run import NOT_A_TURN, failed, failure_of, not_applicable, settle

_encode = msgspec.msgpack.Encoder().encode


class Before(NamedTuple):
    digest: str
    sketches: Mapping[str, bytes]  # by evaluator; empty: nothing is known of the trace


def sketches_of(
    due: Iterable[Configured], trace: Trace, embedder: Embedder | None
) -> tuple[dict[str, bytes], list[Outcome]]:
    sketches: dict[str, bytes] = {}
    outcomes: list[Outcome] = []
    for each in due:
        kind = each.spec.sketch
        if kind is None or embedder is None:
            continue
        if not trace.is_turn:
            outcomes.append(not_applicable(each, "not_a_turn", NOT_A_TURN))
        elif is_blind(each.spec, trace):
            outcomes.append(not_applicable(each, "no_content", NO_CONTENT))
        else:
            try:
                sketches[each.spec.name] = _encode(kind.of(trace, embedder))
            except Exception as error:  # noqa: BLE001 - one evaluator's fault is its own outcome
                outcomes.append(failed(each, failure_of(error)))
    return sketches, outcomes


def compare(configured: Configured, sketch: bytes, before: Sequence[Before]) -> Outcome:
    """The outcome of a trace beside those before it, oldest first; the newest three are looked at."""
    kind, name = configured.spec.sketch, configured.spec.name
    assert kind is not None  # noqa: S101 - else there is no sketch
    window = before[-WINDOW:]
    digests = tuple([each.digest for each in window])
    try:
        previous = [_decoded(each.sketches.get(name), kind) for each in window]
        score = msgspec.msgpack.decode(sketch, type=kind).compared(previous)
    except Exception as error:  # noqa: BLE001 - one evaluator's fault is its own outcome
        return failed(configured, failure_of(error), compared=digests)
    return settle(configured, score, compared=digests)


def _decoded(sketch: bytes | None, kind: type[Sketch]) -> Sketch | None:
    return None if sketch is None else msgspec.msgpack.decode(sketch, type=kind)
