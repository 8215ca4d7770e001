"""Distance between embeddings (PandaProbe). Works on plain sequences and on numpy arrays without importing numpy."""

from __future__ import annotations

import math
from operator import mul

from evaluators.resources import Vector


def cosine_distance(left: Vector, right: Vector) -> float:
    """1 - cosine, clamped to [0, 1]: a negative similarity counts as none; 1 when a vector has no length."""
    norms = math.sqrt(_dot(left, left)) * math.sqrt(_dot(right, right))
    if norms == 0:
        return 1.0
    return min(1.0, max(0.0, 1.0 - _dot(left, right) / norms))


def _dot(left: Vector, right: Vector) -> float:
    # An array knows a dot product a hundred times faster than a loop in Python.
    product = getattr(left, "dot", None)
    return float(product(right)) if product else math.fsum(map(mul, left, right))
