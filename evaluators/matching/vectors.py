"""Vectors as bytes, and back, without a change of any number."""

from __future__ import annotations

from array import array
from typing import Any

from evaluators.resources import Vector


def packed_vector(vector: Vector) -> bytes:
    """Its bytes, after a letter for the kind of its numbers: an array's own kind, else float64."""
    numbers: Any = vector
    if not hasattr(numbers, "dtype"):  # no array of numpy
        return b"-" + array("d", vector).tobytes()
    return numbers.dtype.char.encode() + numbers.tobytes()


def unpacked_vector(packed: bytes) -> Vector:
    """The vector of these bytes."""
    kind = packed[:1].decode()
    if kind == "-":
        return array("d", packed[1:])
    # Only processes that compare vectors of the local embedder pay for numpy.
    from numpy import frombuffer  # noqa: PLC0415

    return frombuffer(packed, dtype=kind, offset=1)
