"""The mean of a text's token vectors, put together from its words' sums. Import it lazily: it brings numpy.

In a vocabulary in which no token goes on past a blank, no merge joins two words either: a word's tokens do not depend
on its neighbours. With any other vocabulary, and for texts that hold special tokens or the blank's own sign, the
tokenizer is asked for the text as a whole.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

BLANK = "\u2581"  # how a SentencePiece vocabulary writes a blank: every word's first token begins with it
ROWS = 4_096  # words whose sums are kept, 2 KiB each
LONGEST = 32  # characters of a word that is kept
SHORT = 200  # words or tokens of a text up to which adding their rows up costs less than counting them first
_UNITS = re.compile(r" +[^ ]+| +\Z")

_Matrix = NDArray[numpy.float64]


class WordVectors:
    """Sums of the vectors of words' tokens.

    Every number of the model has 11 bits, so that sums of doubles are exact: in whatever order they are made, by
    words or by tokens, a text's mean is the same to the last bit. `encode`: text -> ids, with a blank put before the
    text, without special tokens. `special`: texts that the tokenizer takes out before it looks at words.
    """

    def __init__(
        self,
        encode: Callable[[str], Sequence[int]],
        vocabulary: Mapping[str, int],
        special: Collection[str],
        embedding: NDArray[numpy.float32],
    ) -> None:
        self._encode = encode
        self._whole = (BLANK, *special)
        self._starts = frozenset(i for token, i in vocabulary.items() if token.startswith(BLANK))
        self.separable = BLANK in vocabulary and not any(
            BLANK in token.lstrip(BLANK) for token in vocabulary
        )
        self._blank = vocabulary.get(BLANK, 0)
        self._vectors = embedding
        self._width: int = self._vectors.shape[1]
        # Each row's last number is how many tokens it is the sum of. Rows take memory when they are first written.
        self._sums: _Matrix = numpy.empty((ROWS, self._width + 1))
        self._rows: dict[str, int] = {}
        self._next = 0

    def mean(self, text: str) -> NDArray[numpy.float64]:
        """The mean vector of the text's tokens; of a text without any, zeros."""
        words = self._words(text)
        if words is None:
            return self._mean_of(self._encode(text))
        try:
            rows = numpy.fromiter(map(self._rows.__getitem__, words), numpy.intp, len(words))
        except KeyError:
            if not self._learn(words):
                return self._mean_of(self._encode(text))
            rows = numpy.fromiter(map(self._rows.__getitem__, words), numpy.intp, len(words))
            for word in words:
                if len(word) > LONGEST:
                    self._rows.pop(word, None)
        total = _sum(rows, self._sums)
        return total[:-1] / total[-1]

    def _words(self, text: str) -> Sequence[str] | None:
        """Its words, with the blanks that belong to them; None when its tokens are not those of its words."""
        if not self.separable or not text or any(mark in text for mark in self._whole):
            return None
        words = text.split(" ")
        # Several blanks in a row belong to the word after them, the last one to none.
        if "" in words:
            return [unit[1:] for unit in _UNITS.findall(" " + text)]
        return words

    def _learn(self, words: Sequence[str]) -> bool:
        """Know the sums of all these words; False when one of them has no token."""
        new = [word for word in dict.fromkeys(words) if word not in self._rows]
        if self._next + len(new) > ROWS:
            self._rows.clear()
            self._next = 0
            new = list(dict.fromkeys(words))
        ids = [numpy.asarray(each, numpy.intp) for each in self._ids_of(new)]
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

    def _ids_of(self, words: Sequence[str]) -> list[Sequence[int]]:
        """Of each word; those without a blank are encoded together."""
        single = [word for word in words if word and " " not in word]
        known: dict[str, Sequence[int]] = {"": [self._blank]}
        known |= zip(single, self._split(single), strict=True)
        return [known[word] if word in known else self._encode(word) for word in words]

    def _split(self, words: Sequence[str]) -> Iterable[Sequence[int]]:
        found: list[list[int]] = []
        for each in self._encode(" ".join(words)):
            if each in self._starts or not found:
                found.append([])
            found[-1].append(each)
        return found if len(found) == len(words) else map(self._encode, words)

    def _mean_of(self, ids: Sequence[int]) -> NDArray[numpy.float64]:
        if not ids:
            return numpy.zeros(self._width, numpy.float64)
        total = _sum(numpy.asarray(ids, numpy.intp), self._vectors)
        return numpy.divide(total, len(ids))


def _sum(rows: NDArray[Any], matrix: NDArray[Any]) -> NDArray[numpy.float64]:
    if len(rows) <= SHORT:
        return matrix.take(rows, axis=0).sum(axis=0, dtype=numpy.float64)
    # Words repeat: each row is fetched once. einsum, because a BLAS product would wake threads.
    once, counts = numpy.unique(rows, return_counts=True)
    vectors = matrix.take(once, axis=0).astype(numpy.float64, copy=False)
    return numpy.einsum("i,ij->j", counts.astype(numpy.float64), vectors)
