"""Local embeddings from the model inside the wordllama wheel: no network, no key, 20 us a short text.

A text's vector is put together from its words': one met before costs a look-up, not a run of the tokenizer.
"""

from __future__ import annotations

import importlib.util
import logging
import warnings
from collections import OrderedDict
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from evaluators.resources import Vector

if TYPE_CHECKING:
    from wordllama.inference import WordLlamaInference

    from evaluators.providers.word_vectors import WordVectors

MODEL = "wordllama/l2_supercat_256"
TEXT_LIMIT = 2048
"""Characters of a text that are embedded: averaging more words changes little and costs 50 us per 1,000."""


class WordLlamaEmbedder:
    """Average of the text's token vectors. Loads the library at the first text, not at import.

    A text's vector does not depend on what is beside it; texts are remembered by content.
    """

    model = MODEL

    def __init__(self, *, remember: int = 2048) -> None:
        self._remember = remember
        self._known: OrderedDict[str, Vector] = OrderedDict()

    def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """One numpy array of 256 floats per text, read to its first 2,048 characters."""
        return [self._one(text[:TEXT_LIMIT]) for text in texts]

    def _one(self, text: str) -> Vector:
        vector = self._known.get(text)
        if vector is not None:
            self._known.move_to_end(text)
            return vector
        # A lone surrogate is not UTF-8, and the tokenizer refuses it.
        utf8 = text if text.isascii() else text.encode("utf-8", "replace").decode()
        vector = self._known[text] = _words().mean(utf8)
        if len(self._known) > self._remember:
            self._known.popitem(last=False)
        return vector


@cache
def _words() -> WordVectors:
    """Of the process: loading the model takes half a second of CPU."""
    # Only processes that embed pay for numpy. Not inference.embed(): it pads a batch to its longest text.
    from evaluators.providers.word_vectors import WordVectors  # noqa: PLC0415

    inference = _load()
    tokenizer = inference.tokenizer
    return WordVectors(
        lambda text: tokenizer.encode(text, add_special_tokens=False).ids,
        tokenizer.get_vocab(),
        [token.content for token in tokenizer.get_added_tokens_decoder().values()],
        inference.embedding,
    )


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
