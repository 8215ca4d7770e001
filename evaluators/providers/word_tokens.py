"""Token ids of texts, put together from their words': a word met before costs a look-up, not a run of the tokenizer."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

BLANK = "\u2581"  # how a SentencePiece vocabulary writes a blank: every word's first token begins with it
_WORDS = 16_384
LONGEST = 32
"""Characters of a word that is remembered."""
_UNITS = re.compile(r" +[^ ]+| +\Z")


class WordTokens:
    """Token ids of texts, exactly as the tokenizer gives them for the whole text.

    In a vocabulary in which no token goes on past a blank, no merge joins two words either: a word's tokens do not
    depend on its neighbours. With any other vocabulary, and for texts that hold special tokens or the blank's own sign,
    the tokenizer is asked for the text as a whole. `encode`: text -> ids, with a blank put before the text, without
    special tokens. `special`: texts that the tokenizer takes out before it looks at words.
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
        words = self.words(text)
        if words is None:
            return array("i", self._encode(text))
        return array("i", b"".join(self.ids_of(words)))

    def words(self, text: str) -> Sequence[str] | None:
        """Its words, with the blanks that belong to them; None when its tokens are not those of its words."""
        if not self.separable or not text:
            return None
        for mark in self._whole:
            if mark in text:
                return None
        words = text.split(" ")
        # Several blanks in a row belong to the word after them, the last one to none.
        if "" in words:
            return [unit[1:] for unit in _UNITS.findall(" " + text)]
        return words

    def ids_of(self, words: Sequence[str]) -> list[bytes]:
        known = self._known
        try:
            return [known[word] for word in words]
        except KeyError:
            self._learn(dict.fromkeys(word for word in words if word not in known))
            found = [known[word] for word in words]
            self._forget(words)
            return found

    def _learn(self, words: Collection[str]) -> None:
        single = [word for word in words if " " not in word]
        for word, ids in zip(single, self._split(single), strict=True):
            self._known[word] = array("i", ids).tobytes()
        for word in words:
            if word not in self._known:
                self._known[word] = array("i", self._encode(word)).tobytes()

    def _split(self, words: Sequence[str]) -> Iterable[Sequence[int]]:
        found: list[list[int]] = []
        for each in self._encode(" ".join(words)):
            if each in self._starts or not found:
                found.append([])
            found[-1].append(each)
        return found if len(found) == len(words) else map(self._encode, words)

    def _forget(self, words: Iterable[str]) -> None:
        if len(self._known) > _WORDS:
            self._known = {"": self._blank}
            return
        for word in words:
            if len(word) > LONGEST:
                self._known.pop(word, None)
