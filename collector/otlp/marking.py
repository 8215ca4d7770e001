r"""Puts markers in the place of secrets in one text: `jane@example.org` becomes `[email]`. Pure.

Texts are UTF-8. Where a text holds JSON, its escapes are read first, so that `jane\u0040example.org` is found and the
`n` of `\n` (read as two line breaks, which keeps places) is not part of a name; what comes out is JSON again. Text that
is a marker already stays as it is, so that marking a second time changes nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import re2

from collector.config.linear_patterns import KINDS, linear, unbound
from collector.otlp.secret_kinds import BUILT_IN, End, is_card, latin

STEPS = 1_000_000  # what one request may cost at most, in steps of about a microsecond
_FIRST_STEPS = 20_000
_STEPS_PER_BYTE = 2
_PER_MATCH = 4
_SCANNED = 1 << 10
"""Bytes that one step of a user's own pattern may look at: what follows a match may be looked at again."""
_QUOTED = 1 << 5  # bytes before a number that one step looks at for the quotes in use
_LETTERS = {rb"\b": b"\b\b", rb"\f": b"\f\f", rb"\n": b"\n\n", rb"\r": b"\r\r", rb"\t": b"\t\t"}
_ESCAPE = re.compile(rb"(?<!\\)\\++(?:u([0-9a-fA-F]{4})|/)")
"""Every run of backslashes is looked at once: senders choose how long it is."""
_ESCAPED = rb"\\u00[2-7]|\\/"
_ANY_ESCAPED = rb"\\u|\\/"
_LEVELS = 4
"""How deep JSON may be nested in strings of JSON."""
_WITHIN = re.compile(rb'(?:[^"]*+"(?:[^"\\]|\\.)*+")*+[^"]*+"', re.DOTALL)
"""Whole strings, and the beginning of one more."""
_ESCAPED_ONCE = re.compile(rb"\\(.)", re.DOTALL)
_DIGEST = 8
"""Hex digits that stand for a secret: enough to tell two of them apart, too few to be guessed back."""


class Exhausted(Exception):
    """The steps are used up."""


class Steps:
    """What the marking of one request may still cost."""

    __slots__ = ("_left", "marked", "whole")

    def __init__(self, size: int = STEPS) -> None:
        self._left = min(STEPS, _FIRST_STEPS + _STEPS_PER_BYTE * size)
        self.marked = 0  # texts in which secrets were marked
        self.whole = 0  # texts that are one marker now, because the steps were used up

    def spend(self, steps: int = 1) -> None:
        """Take some. Raises Exhausted: there are none left, and never will be."""
        self._left -= steps
        if self._left < 0:
            raise Exhausted

    @property
    def are_used_up(self) -> bool:
        return self._left < 0


@dataclass(frozen=True, slots=True)
class _Pattern:
    name: bytes
    regex: re2.Pattern
    end: End | None  # None: whatever is found is a secret
    cost: int = _PER_MATCH
    reads_backslashes: bool = False  # whether it is looked for in the text as it is written, too


@dataclass(frozen=True, slots=True)
class _Readable:
    """A text without its escapes, and where each of its parts is in the text as it is written."""

    text: bytes
    starts: list[int]  # of the parts, in `text`
    written: list[int]  # of the parts, in the text as it is written; one more, for its end
    escapes: list[bool]

    def span(self, start: int, end: int) -> tuple[int, int]:
        first = bisect_right(self.starts, start) - 1
        last = bisect_left(self.starts, end) - 1
        low = self.written[first] + (0 if self.escapes[first] else start - self.starts[first])
        high = (
            self.written[last + 1]
            if self.escapes[last]
            else self.written[last] + end - self.starts[last]
        )
        return low, high


class Marking:
    """Marks secrets.

    `patterns`: name to built-in kind or own pattern, as `redaction.patterns` has them, which were checked there. `key`:
    makes the digests of identifiers unguessable (`redaction.key`).
    """

    def __init__(self, patterns: Mapping[str, str], key: str | None = None) -> None:
        self._key = None if key is None else key.encode()
        own = [name for name in patterns if patterns[name] not in KINDS]
        built_in = sorted(
            (name for name in patterns if patterns[name] in KINDS),
            key=lambda name: KINDS.index(patterns[name]),
        )
        self._patterns = (
            *(
                _Pattern(
                    name.encode(),
                    linear(patterns[name]),
                    None,
                    reads_backslashes="\\\\" in patterns[name],
                )
                for name in own
            ),
            *(
                _Pattern(
                    name.encode(),
                    BUILT_IN[patterns[name]].pattern,
                    BUILT_IN[patterns[name]].end,
                    BUILT_IN[patterns[name]].cost,
                )
                for name in built_in
            ),
        )
        self._cards = next((n.encode() for n in built_in if patterns[n] == "card"), None)
        names = b"|".join(re.escape(each.name) for each in self._patterns)
        self._markers = re.compile(rb"\[(?:%b)\](?:#[0-9a-f]{8})?" % names)
        hints = [BUILT_IN[patterns[name]].hint for name in built_in]
        hints.append(_ANY_ESCAPED if own else _ESCAPED)
        loose = [unbound(patterns[name]) for name in own]
        self._hints = (latin(b"|".join(hints)), *(each for each in loose if each is not None))
        self._everywhere = None in loose

    def may_match(self, data: bytes, start: int, end: int) -> bool:
        """Whether a secret may be in any text within `data[start:end]`, in whatever form those are encoded."""
        return self._everywhere or any(
            hint.search(data, start, end) is not None for hint in self._hints
        )

    def number(self, value: int, *, identifies: bool = False) -> bytes | None:
        if self._cards is None or not is_card(str(value)):
            return None
        return self._marker(self._cards, str(value).encode(), identifies=identifies)

    def text(self, text: bytes, steps: Steps, *, identifies: bool = False) -> bytes | None:
        """The text with markers; None: it has no secrets.

        The marker in a text that identifies something (a session) is followed by a digest of the secret, so that two
        of them stay two. When the steps are used up, the whole text becomes one marker.
        """
        try:
            marked = text if steps.are_used_up else self._marked(text, steps, identifies=identifies)
        except Exhausted:
            marked = text
        if steps.are_used_up:
            if not self.may_match(text, 0, len(text)):
                return None
            steps.whole += 1
            return self._marker(self._patterns[0].name, text, identifies=identifies)
        if marked is text:
            return None
        steps.marked += 1
        return marked

    def _marked(self, text: bytes, steps: Steps, *, identifies: bool) -> bytes:
        readable = _readable(text, steps)
        for pattern in self._patterns:
            spans = [readable.span(*each) for each in _found(pattern, readable.text, steps)]
            if pattern.reads_backslashes and b"\\" in text:
                spans = _merged([*spans, *_found(pattern, text, steps)])
            kept = (
                [(each.start(), each.end()) for each in self._markers.finditer(text)]
                if spans
                else []
            )
            spans = [each for each in spans if not _overlaps(each, kept)]
            if spans:
                text = self._replaced(text, spans, pattern.name, steps, identifies=identifies)
                readable = _readable(text, steps)
        return text

    def _replaced(
        self,
        text: bytes,
        spans: list[tuple[int, int]],
        name: bytes,
        steps: Steps,
        *,
        identifies: bool,
    ) -> bytes:
        parts: list[bytes] = []
        copied = 0
        is_json = text.lstrip()[:1] in (b"{", b"[", b'"')
        for start, end in spans:
            marker = self._marker(name, text[start:end], identifies=identifies)
            if is_json and text[start - 1 : start] == b"-" and _is_number(text, start - 1, end):
                start -= 1  # noqa: PLW2901 - the sign is a part of the number
            if is_json and _is_number(text, start, end):
                steps.spend(start // _QUOTED)
                quote = _quote(text, start)
                marker = quote + marker + quote
            parts += (text[copied:start], marker)
            copied = end
        return b"".join((*parts, text[copied:]))

    def _marker(self, name: bytes, secret: bytes, *, identifies: bool) -> bytes:
        marker = b"[%b]" % name
        return marker + b"#" + self._digest(secret) if identifies else marker

    def _digest(self, secret: bytes) -> bytes:
        if self._key is None:
            return hashlib.sha256(secret).hexdigest()[:_DIGEST].encode()
        return hmac.digest(self._key, secret, "sha256").hex()[:_DIGEST].encode()


def _found(pattern: _Pattern, text: bytes, steps: Steps) -> Iterator[tuple[int, int]]:
    position = before = 0
    while (match := pattern.regex.search(text, position)) is not None:
        start, stop = match.span()
        if pattern.end is None:
            steps.spend(_PER_MATCH + (len(text) - start) // _SCANNED)
            end = stop
        else:
            steps.spend(pattern.cost)
            end = pattern.end(text, start, stop, before)
        if end is not None:
            yield start, end
            before = end
        position = _next(text, start) if end is None else end


def _next(text: bytes, start: int) -> int:
    """Where to look on after what was not a secret: behind its first digits or its first byte."""
    end = start + 1
    while end < len(text) and 0x30 <= text[end] <= 0x39 and end - start < 19:
        end += 1
    return end


def _readable(text: bytes, steps: Steps) -> _Readable:
    parts: list[bytes] = []
    starts, written, escapes = [0], [0], [False]
    size = copied = 0
    if b"\\" in text:
        for letter, plain in _LETTERS.items():
            text = text.replace(letter, plain)
        for match in _ESCAPE.finditer(text):
            steps.spend()
            plain = b"/" if match[1] is None else _character(int(match[1], 16))
            size += match.start() - copied
            parts += (text[copied : match.start()], plain)
            starts += (size, size + len(plain))
            written += (match.start(), match.end())
            escapes += (True, False)
            size += len(plain)
            copied = match.end()
    if not parts:
        return _Readable(text, starts, [0, len(text)], escapes)
    parts.append(text[copied:])
    return _Readable(b"".join(parts), starts, [*written, len(text)], escapes)


def _character(code: int) -> bytes:
    return b"?" if 0xD800 <= code < 0xE000 else chr(code).encode()


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _overlaps(span: tuple[int, int], kept: list[tuple[int, int]]) -> bool:
    after = bisect_left(kept, span[1], key=lambda each: each[0])
    return after > 0 and kept[after - 1][1] > span[0]


def _is_number(text: bytes, start: int, end: int) -> bool:
    before = text[max(0, start - 16) : start].rstrip()[-1:]
    after = text[end : end + 16].lstrip()[:1]
    return before in (b":", b"[", b",") and after in (b",", b"]", b"}")


def _quote(text: bytes, at: int) -> bytes:
    before, quote = text[:at], b'"'
    if b'"' not in before and b"'" in before:
        return b"'"
    for _ in range(_LEVELS):
        opened = _WITHIN.match(before)
        if opened is None:
            break
        quote = quote.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
        before = _ESCAPED_ONCE.sub(rb"\1", before[opened.end() :])
    return quote
