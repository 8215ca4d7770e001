"""How many model calls the traces of one agent make: what is usual, so that a trace that makes far more is seen."""

from __future__ import annotations

import hashlib
import struct
from array import array
from statistics import median

from evaluators.matching.text import clip
from evaluators.model import Trace

LEAST_TRACES = 10  # other traces below which it is not known what is usual
MOST_TRACES = 200  # newest traces that are remembered
MODEL_NAME = 200  # bytes of a model's name that are kept
_MOST = (1 << 32) - 1  # greater counts count as this one


def first_model(trace: Trace) -> str:
    """The first model that was called, cut to MODEL_NAME bytes; empty: none was named."""
    return clip(trace.models[0], MODEL_NAME) if trace.models else ""


class TraceCallsHistory:
    """The model calls of an agent's newest closed traces, in the order in which they closed: 2.4 kB when full.

    Traces go by numbers of 64 bits.
    """

    def __init__(self, packed: bytes = b"") -> None:
        """`packed`: as `pack` gave it. Raises ValueError: it was not."""
        count, rest = divmod(len(packed), 12)
        if rest:
            raise ValueError("not a history of model calls")
        self._traces = array("Q", struct.unpack_from(f"<{count}Q", packed))
        self._calls = array("I", struct.unpack_from(f"<{count}I", packed, 8 * count))

    def __len__(self) -> int:
        return len(self._traces)

    def pack(self) -> bytes:
        count = len(self._traces)
        return struct.pack(f"<{count}Q{count}I", *self._traces, *self._calls)

    def put(self, trace: int, calls: int) -> None:
        """A trace has closed; one that closed before is replaced, and the oldest above MOST_TRACES is forgotten."""
        if (at := self._find(trace)) is not None:
            self._drop(at)
        elif len(self._traces) >= MOST_TRACES:
            self._drop(0)
        self._traces.append(trace)
        self._calls.append(min(_MOST, calls))

    def median(self, trace: int) -> float | None:
        others = [calls for each, calls in self._pairs() if each != trace]
        return median(others) if len(others) >= LEAST_TRACES else None

    def digest(self, trace: int) -> str:
        """Of the other traces and their model calls, whatever their order."""
        others = sorted(each for each in self._pairs() if each[0] != trace)
        content = b"".join(struct.pack("<QI", *each) for each in others)
        return hashlib.sha256(content).hexdigest()

    def _pairs(self) -> zip[tuple[int, int]]:
        return zip(self._traces, self._calls, strict=True)

    def _find(self, trace: int) -> int | None:
        try:
            return self._traces.index(trace)
        except ValueError:
            return None

    def _drop(self, at: int) -> None:
        del self._traces[at]
        del self._calls[at]
