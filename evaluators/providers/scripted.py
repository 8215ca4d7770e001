"""Public fakes: embedders whose vectors a test decides."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence


class ScriptedEmbedder:
    """Returns the vectors it was given by text, and remembers what it was asked.

    Raises:
        KeyError: It was asked for a text that nobody scripted.
    """

    def __init__(self, vectors: Mapping[str, Sequence[float]], *, model: str = "scripted") -> None:
        self.model = model
        self.asked: list[tuple[str, ...]] = []
        self._vectors = vectors

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """The scripted vectors, in order."""
        self.asked.append(tuple(texts))
        return [self._vectors[text] for text in texts]


class HashEmbedder:
    """A bag of hashed words: equal texts are equal, texts without a common word nearly orthogonal. No model."""

    model = "hash"

    def __init__(self, *, dimensions: int = 64) -> None:
        self._dimensions = dimensions

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector of length 1 per text, or of length 0 for a text without words."""
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> Sequence[float]:
        vector = [0.0] * self._dimensions
        for word in text.lower().split():
            digest = hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest()
            vector[int.from_bytes(digest) % self._dimensions] += 1.0
        norm = math.hypot(*vector) or 1.0
        return [value / norm for value in vector]
