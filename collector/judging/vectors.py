"""Vectors as the answer cache keeps them: one text, one entry, floats of 32 bits in base64."""

from __future__ import annotations

import base64
import hashlib
from array import array
from collections.abc import Iterator, Sequence

from collector.judging.cache import Entry
from evaluators.judging.embedding import Embedded


def text_digest(text: str) -> str:
    """The cache's name of a text to be embedded: no prompt's digest is one."""
    return "embedding/" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def entries_of(answer: Embedded, model: str, owner: str) -> Iterator[Entry]:
    """One per text, each with its share of the cost: shares add up to what was paid."""
    count = len(answer.vectors)
    each, rest = divmod(answer.input_tokens, count)
    for at, vector in enumerate(answer.vectors):
        yield Entry(
            text=base64.b64encode(array("f", vector).tobytes()).decode(),
            model=model,
            input_tokens=each + (at < rest),
            output_tokens=0,
            cost_usd=None if answer.cost_usd is None else answer.cost_usd / count,
            owner=owner,
        )


def known_vector(entry: Entry) -> Sequence[float]:
    """The vector of an entry."""
    return array("f", base64.b64decode(entry.text))
