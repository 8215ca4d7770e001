"""The mean of a text's token vectors, put together from its words' sums. Import it lazily: it brings numpy."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, Protocol

import numpy
from numpy.typing import NDArray

from evaluators.providers.word_tokens import LONGEST, WordTokens

ROWS = 4_096  # words whose sums are kept, 2 KiB each
SHORT = 200  # words or tokens of a text up to which adding their rows up costs less than counting them first

_Matrix = NDArray[numpy.float64]


class Model(Protocol):
    @property
    def embedding(self) -> NDArray[numpy.float32]: ...


class WordVectors:
    """Sums of the vectors of words' tokens.

    Every number of the model has 11 bits, so that sums of doubles are exact: in whatever order they are made, by
    words or by tokens, a text's mean is the same to the last bit.
    """

    def __init__(self, tokens: WordTokens, model: Model) -> None:
        self._tokens = tokens
        self._vectors = model.embedding
        self._width: int = self._vectors.shape[1]
        # Each row's last number is how many tokens it is the sum of. Rows take memory when they are first written.
        self._sums: _Matrix = numpy.empty((ROWS, self._width + 1))
        self._rows: dict[str, int] = {}
        self._next = 0

    def mean(self, text: str) -> NDArray[numpy.float64]:
        """The mean vector of the text's tokens; of a text without any, zeros."""
        words = self._tokens.words(text)
        if words is None:
            return self._mean_of(self._tokens.ids(text))
        try:
            rows = numpy.fromiter(map(self._rows.__getitem__, words), numpy.intp, len(words))
        except KeyError:
            if not self._learn(words):
                return self._mean_of(self._tokens.ids(text))
            rows = numpy.fromiter(map(self._rows.__getitem__, words), numpy.intp, len(words))
            self._forget(words)
        total = _sum(rows, self._sums)
        return total[:-1] / total[-1]

    def _learn(self, words: Sequence[str]) -> bool:
        """Know the sums of all these words; False when one of them has no token."""
        new = [word for word in dict.fromkeys(words) if word not in self._rows]
        if self._next + len(new) > ROWS:
            self._rows.clear()
            self._next = 0
            new = list(dict.fromkeys(words))
        ids = [numpy.frombuffer(each, numpy.int32) for each in self._tokens.ids_of(new)]
        lengths = [len(each) for each in ids]
        if not all(lengths) or len(new) > ROWS:
            return False
        vectors = self._vectors.take(numpy.concatenate(ids), axis=0).astype(numpy.float64)
        starts = numpy.cumsum([0, *lengths[:-1]])
        end = self._next + len(new)
        self._sums[self._next : end, : self._width] = numpy.add.reduceat(vectors, starts, axis=0)
        self._sums[self._next : end, self._width] = lengths
        self._rows |= zip(new, range(self._next, end), strict=True)
        self._next = end
        return True

    def _forget(self, words: Sequence[str]) -> None:
        for word in words:
            if len(word) > LONGEST:
                self._rows.pop(word, None)

    def _mean_of(self, ids: array[int]) -> NDArray[numpy.float64]:
        if not ids:
            return numpy.zeros(self._width, numpy.float64)
        total = _sum(numpy.frombuffer(ids, numpy.int32), self._vectors)
        return numpy.divide(total, len(ids))


def _sum(rows: NDArray[Any], matrix: NDArray[Any]) -> NDArray[numpy.float64]:
    if len(rows) <= SHORT:
        return matrix.take(rows, axis=0).sum(axis=0, dtype=numpy.float64)
    # Words repeat: each row is fetched once. einsum, because a BLAS product would wake threads.
    once, counts = numpy.unique(rows, return_counts=True)
    vectors = matrix.take(once, axis=0).astype(numpy.float64, copy=False)
    return numpy.einsum("i,ij->j", counts.astype(numpy.float64), vectors)
