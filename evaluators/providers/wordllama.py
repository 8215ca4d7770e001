"""Local embeddings from the model inside the wordllama wheel: no network, no key, 60 us a short text.

A text's token ids are put together from its words': a word met before costs a look-up, not a run of the tokenizer.
"""

from __future__ import annotations

import importlib.util
import logging
import re
import warnings
from array import array
from collections import OrderedDict
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from evaluators.resources import Vector

BLANK = "\u2581"
"""How a SentencePiece vocabulary writes a blank: every word's first token begins with it."""
_WORDS = 16_384
_LONGEST = 32
"""Characters of a word that is remembered."""
_UNITS = re.compile(r" +[^ ]+| +\Z")


class WordTokens:
    """Token ids of texts, exactly as the tokenizer gives them for the whole text.

    In a vocabulary in which no token goes on past a blank, no merge joins two words either: a word's tokens do not
    depend on its neighbours. With any other vocabulary, and for texts that hold special tokens or the blank's own
    sign, the tokenizer is asked for the text as a whole.

    Args:
        encode: Text -> ids, with a blank put before the text, without special tokens.
        vocabulary: Token -> id.
        special: Texts that the tokenizer takes out before it looks at words.
    """

    def __init__(
        self,
        encode: Callable[[str], Sequence[int]],
        vocabulary: Mapping[str, int],
        special: Collection[str],
    ) -> None:
        self._encode = encode
        self._whole = (BLANK, *special)
        self._starts = frozenset(i for token, i in vocabulary.items() if token.startswith(BLANK))
        self.separable = BLANK in vocabulary and not any(
            BLANK in token.lstrip(BLANK) for token in vocabulary
        )
        self._blank = array("i", [vocabulary.get(BLANK, 0)]).tobytes()
        self._known: dict[str, bytes] = {"": self._blank}

    def ids(self, text: str) -> array[int]:
        """The ids, in order."""
        if not self.separable or not text or any(mark in text for mark in self._whole):
            return array("i", self._encode(text))
        words = text.split(" ")
        # Several blanks in a row belong to the word after them, the last one to none.
        if "" in words:
            words = [unit[1:] for unit in _UNITS.findall(" " + text)]
        known = self._known
        try:
            joined = b"".join([known[word] for word in words])
        except KeyError:
            self._learn(dict.fromkeys(word for word in words if word not in known))
            joined = b"".join([known[word] for word in words])
            self._forget(words)
        return array("i", joined)

    def _learn(self, words: Collection[str]) -> None:
        single = [word for word in words if " " not in word]
        for word, ids in zip(single, self._split(single), strict=True):
            self._known[word] = array("i", ids).tobytes()
        for word in words:
            if word not in self._known:
                self._known[word] = array("i", self._encode(word)).tobytes()

    def _split(self, words: Sequence[str]) -> Iterable[Sequence[int]]:
        """Each word's ids, from one run over all of them."""
        found: list[list[int]] = []
        for each in self._encode(" ".join(words)):
            if each in self._starts or not found:
                found.append([])
            found[-1].append(each)
        return found if len(found) == len(words) else map(self._encode, words)

    def _forget(self, words: Iterable[str]) -> None:
        """Keep memory bounded."""
        if len(self._known) > _WORDS:
            self._known = {"": self._blank}
            return
        for word in words:
            if len(word) > _LONGEST:
                self._known.pop(word, None)


if TYPE_CHECKING:
    from wordllama.inference import WordLlamaInference

MODEL = "wordllama/l2_supercat_256"
TEXT_LIMIT = 2048
"""Characters of a text that are embedded: averaging more words changes little and costs 50 us per 1,000."""


SHORT = 200
"""Tokens of a text up to which adding its rows up costs less than counting its tokens first."""


class WordLlamaEmbedder:
    """Average of the text's token vectors. Loads the library at the first text, not at import.

    A text's vector does not depend on what stands beside it; texts are remembered by content.
    """

    model = MODEL

    def __init__(self, *, remember: int = 2048) -> None:
        self._remember = remember
        self._known: OrderedDict[str, Vector] = OrderedDict()
        self._inference: WordLlamaInference | None = None
        self._tokens: WordTokens | None = None

    def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """One numpy array of 256 floats per text, read to its first 2,048 characters."""
        return [self._one(text[:TEXT_LIMIT]) for text in texts]

    def _one(self, text: str) -> Vector:
        vector = self._known.get(text)
        if vector is not None:
            self._known.move_to_end(text)
            return vector
        if self._inference is None or self._tokens is None:
            self._inference = _load()
            self._tokens = _tokens_of(self._inference)
        vector = self._known[text] = _average(self._inference, self._tokens, text)
        if len(self._known) > self._remember:
            self._known.popitem(last=False)
        return vector


def _tokens_of(inference: WordLlamaInference) -> WordTokens:
    tokenizer = inference.tokenizer
    return WordTokens(
        lambda text: tokenizer.encode(text, add_special_tokens=False).ids,
        tokenizer.get_vocab(),
        [token.content for token in tokenizer.get_added_tokens_decoder().values()],
    )


def _average(inference: WordLlamaInference, tokens: WordTokens, text: str) -> Vector:
    import numpy  # noqa: PLC0415 - only processes that embed pay for it

    # Not inference.embed(): it pads a batch to its longest text, so a short text pays for its neighbour.
    ids = tokens.ids(_utf8(text))
    if not ids:
        return numpy.zeros(inference.embedding.shape[1])
    # Every number of the model has 11 bits, so that sums of doubles are exact: both ways give the same vector.
    if len(ids) <= SHORT:
        rows = inference.embedding[numpy.frombuffer(ids, numpy.int32)]
        return rows.sum(axis=0, dtype=numpy.float64) / len(ids)
    # Words repeat: each token's row is fetched once. einsum, because a BLAS product would wake threads.
    rows, counts = numpy.unique(numpy.frombuffer(ids, numpy.int32), return_counts=True)
    vectors = inference.embedding[rows].astype(numpy.float64)
    return numpy.einsum("i,ij->j", counts.astype(numpy.float64), vectors) / len(ids)


def _utf8(text: str) -> str:
    # A lone surrogate is no UTF-8, and the tokenizer refuses it.
    return text.encode("utf-8", "replace").decode()


def _load() -> WordLlamaInference:
    spec = importlib.util.find_spec("wordllama")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("wordllama is not installed")
    with _untouched_logging(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from wordllama import WordLlama  # noqa: PLC0415 - 0.6 s and 100 MB to import

        # Plain load() would look for the model on the network; the wheel carries it.
        folder = Path(spec.origin).parent
        return WordLlama.load(cache_dir=folder, disable_download=True)


@contextmanager
def _untouched_logging() -> Generator[None, None, None]:
    """The library configures the root logger when imported; put that back."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.getLogger("wordllama").setLevel(logging.ERROR)
