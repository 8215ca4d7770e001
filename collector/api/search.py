"""What a search looks at: the beginning of each trace's question and answer, as words, and what it used. Pure.

Words are kept and asked for in one form: small letters without accents, and each sign of a script that is written
without spaces as a word of its own. A tool, a model, a user, a task or an attribute is
one word more, made of a digest of its name.
"""

import hashlib
import re
import unicodedata
from functools import lru_cache
from typing import Literal

from collector.records.trace_views import TraceHeader

Used = Literal["tool", "model", "user", "task", "attribute"]

BEGINNING = 300  # characters of a question, and of an answer, that a search looks at
ASKED = 200  # characters of what is searched for, and the words of it that count
WORDS = 12
NAME = 64
"""Characters of a name that count."""
PREFIX = 3  # a word from so many characters on also finds the words that begin with it
FOUND = 10_000  # of a search that more traces fit, the newest so many are looked at
_ACCENTS = re.compile("[\u0300-\u036f]")
_SIGN = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
_BETWEEN = re.compile(r"[\W_]+")


def words(text: str) -> str:
    """The words of a text, parted by what FTS5 takes for no letter: of ASCII it knows itself what is one."""
    if text.isascii():
        return text
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    apart = _SIGN.sub(r" \g<0> ", unicodedata.normalize("NFC", plain))
    return _BETWEEN.sub(" ", apart.casefold())


def text_of(header: TraceHeader) -> str:
    """The words by which a trace is found; empty: by none."""
    said = (each[:BEGINNING] for each in (header.input, header.output) if each)
    used = {word_of("tool", each.name) for each in header.tool_calls}
    used |= {word_of("model", each) for each in header.models}
    if header.user_id is not None:
        used.add(word_of("user", header.user_id))
    used |= {word_of("attribute", *each) for each in header.attributes.items()}
    if header.task_id is not None:
        used.add(word_of("task", header.task_id))
    return " ".join((words(" ".join(said)), *sorted(used))).strip()


@lru_cache(maxsize=4096)
def word_of(kind: Used, *names: str) -> str:
    """The word by which traces are found that used this: letters and digits, as FTS5 takes for one word.

    No word that people type begins like it: a search for "tool" finds all words that begin so.
    """
    named = "\0".join(each[:NAME] for each in names).encode(errors="replace")
    digest = hashlib.blake2b(named, digest_size=8).hexdigest()
    return f"qz{kind[:2]}{digest}"


def query(asked: str) -> str | None:
    found = _BETWEEN.sub(" ", words(asked[:ASKED])).split()[:WORDS]
    return " ".join(f'"{word}"{"*" * (len(word) >= PREFIX)}' for word in found) or None
