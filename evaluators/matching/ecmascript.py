"""Text rules of ECMAScript, which Cogitator's deterministic metrics follow.

Patterns without the `u` flag run on Python's `re` after translation: by UTF-16 code unit, with ECMAScript's classes,
boundaries, line ends, letter case, escapes, and groups that match nothing until they took part. Not translated: a
look-behind's alternative of variable width is an error, and a group keeps what it caught in an earlier round of a loop.
"""

import re
import struct
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache

CodeUnits = tuple[tuple[int, int], ...]  # inclusive ranges, ascending and apart

TOP = 0xFFFF  # ECMAScript without the flag `u` matches units of 16 bits

DIGITS: CodeUnits = ((0x30, 0x39),)
WORDS: CodeUnits = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
LINE_ENDS: CodeUnits = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))
r"""What `\d`, `\w` and `.` mean in ECMAScript, which is ASCII for the first two (ECMA-262, 22.2.2)."""
BLANKS: CodeUnits = (
    *((0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A)),
    *((0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)),
)


def units(text: str) -> str:
    if not text or max(text) <= chr(TOP):
        return text
    raw = text.encode("utf-16-le", "surrogatepass")
    return "".join(map(chr, struct.unpack(f"<{len(raw) // 2}H", raw)))


def union(ranges: Iterable[tuple[int, int]]) -> CodeUnits:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return tuple(merged)


def complement(known: CodeUnits) -> CodeUnits:
    edges = [-1, *(edge for pair in known for edge in pair), TOP + 1]
    gaps = zip(edges[::2], edges[1::2], strict=True)
    return tuple((low + 1, high - 1) for low, high in gaps if high - low > 1)


def caseless(known: CodeUnits) -> CodeUnits:
    """With every code unit that differs from a member in case only, as the `i` flag sees it."""
    peers = _peers()
    if sum(high - low for low, high in known) < len(peers):
        cased = [
            peers[unit] for pair in known for unit in range(pair[0], pair[1] + 1) if unit in peers
        ]
    else:
        cased = [group for unit, group in peers.items() if any(a <= unit <= b for a, b in known)]
    return union([*known, *((unit, unit) for group in cased for unit in group)])


def bracket(known: CodeUnits) -> str:
    """The set as a class of Python's `re`."""
    if not known:
        return r"[^\s\S]"
    return "[" + "".join(f"\\u{low:04x}-\\u{high:04x}" for low, high in known) + "]"


@cache
def _peers() -> Mapping[int, tuple[int, ...]]:
    groups: dict[int, list[int]] = {}
    for unit in range(TOP + 1):
        groups.setdefault(_canonical(unit), []).append(unit)
    return {unit: tuple(group) for group in groups.values() if len(group) > 1 for unit in group}


def _canonical(unit: int) -> int:
    """ECMAScript's Canonicalize: the capital, if it is one code unit and does not turn into ASCII."""
    upper = chr(unit).upper()
    if len(upper) != 1 or ord(upper) > TOP or (unit > 0x7F >= ord(upper)):
        return unit
    return ord(upper)


_TRIM = "".join(chr(unit) for low, high in BLANKS for unit in range(low, high + 1))
_KNOWN: dict[str, CodeUnits] = {"d": DIGITS, "w": WORDS, "s": BLANKS}
_CLASSES = _KNOWN | {letter.upper(): complement(known) for letter, known in _KNOWN.items()}
_NOT_A_LINE_END = bracket(complement(LINE_ENDS))
_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}

_OPENING = re.compile(r"\(\?(?:[:=!]|<[=!])")
_NAMED = re.compile(r"\(\?<([^\W\d][\w$]*|\$[\w$]*)>")
_QUANTIFIER = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})\??", re.ASCII)
_GROUP = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|(\((?!\?)|\(\?<(?![=!]))", re.DOTALL)
_NUMBER = re.compile(r"[1-9][0-9]*")
_NAME = re.compile(r"k<([^>]*)>")
_TO = re.compile(r"-[^\]]", re.DOTALL)
_OCTAL = re.compile(r"[0-3][0-7]{0,2}|[4-7][0-7]?")
_HEX = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})")
_CONTROL = re.compile(r"c([A-Za-z])")
_CONTROL_IN_CLASS = re.compile(r"c([A-Za-z0-9_])")


def trim(text: str) -> str:
    """Without ECMAScript's white space and line ends at both sides."""
    return text.strip(_TRIM)


def found(pattern: str, text: str, flags: str = "") -> bool:
    """Whether an ECMAScript pattern matches anywhere in the text; flags i, m, s, others are ignored.

    Raises re.error: the pattern is not valid, or Python cannot run it.
    """
    return _compiled(pattern, flags).search(units(text)) is not None


@lru_cache(maxsize=64)
def _compiled(pattern: str, flags: str) -> re.Pattern[str]:
    try:
        return re.compile(_Translation(units(pattern), flags).text())
    except (OverflowError, RecursionError) as error:
        raise re.error(str(error), pattern) from error


class _Translation:
    def __init__(self, pattern: str, flags: str) -> None:
        self._pattern = pattern
        self._flags = flags
        self._at = 0
        self._open: list[tuple[str, int | None]] = []
        self._closed: set[int] = set()
        self._names: dict[str, int] = {}
        self._count = 0
        openings = [each.group(1) for each in _GROUP.finditer(pattern)]
        self._groups = sum(each is not None for each in openings)
        self._has_names = "(?<" in openings

    def text(self) -> str:
        """The pattern for `re`. Raises re.error: it is not valid."""
        parts: list[str] = []
        while self._at < len(self._pattern):
            part, can_repeat = self._term()
            parts.append(part)
            quantifier = _QUANTIFIER.match(self._pattern, self._at) if can_repeat else None
            if quantifier:
                self._at = quantifier.end()
                parts.append(quantifier.group())
        if self._open:
            raise self._fault("a group is not closed")
        return "".join(parts)

    def _fault(self, why: str) -> re.error:
        return re.error(why, self._pattern, self._at)

    def _term(self) -> tuple[str, bool]:
        if _QUANTIFIER.match(self._pattern, self._at):
            raise self._fault("nothing to repeat")
        char = self._pattern[self._at]
        if char == "(":
            return self._opening(), False
        self._at += 1
        if char in "|^$":
            return self._or() if char == "|" else self._edge(char), False
        if char == ")":
            return self._closing()
        if char == "[":
            return bracket(self._class()), True
        if char == ".":
            return r"[\s\S]" if "s" in self._flags else _NOT_A_LINE_END, True
        return self._escape() if char == "\\" else (self._literal(ord(char)), True)

    def _or(self) -> str:
        # Python wants one width of a whole look-behind: each alternative gets its own.
        kind = self._open[-1][0] if self._open else ""
        return {"(?<=": ")|(?<=", "(?<!": ")(?<!"}.get(kind, "|")

    def _edge(self, char: str) -> str:
        if "m" in self._flags:
            return f"(?{'<' if char == '^' else ''}!{_NOT_A_LINE_END})"
        return r"\A" if char == "^" else r"\Z"

    def _literal(self, unit: int) -> str:
        if "i" in self._flags:
            same = caseless(((unit, unit),))
            if same != ((unit, unit),):
                return bracket(same)
        return re.escape(chr(unit))

    def _opening(self) -> str:
        known = _OPENING.match(self._pattern, self._at)
        if known:
            self._at = known.end()
            self._open.append((known.group(), None))
            return "(?:(?<=" if known.group() == "(?<=" else known.group()
        named = _NAMED.match(self._pattern, self._at)
        if named is None and self._pattern.startswith("(?", self._at):
            raise self._fault("unknown kind of group")
        self._count += 1
        if named is not None:
            if named.group(1) in self._names:
                raise self._fault("a group's name is taken")
            self._names[named.group(1)] = self._count
        self._at = named.end() if named else self._at + 1
        self._open.append(("(", self._count))
        return "("

    def _closing(self) -> tuple[str, bool]:
        if not self._open:
            raise self._fault("no group to close")
        kind, number = self._open.pop()
        if number is not None:
            self._closed.add(number)
        return "))" if kind == "(?<=" else ")", not kind.startswith("(?<")

    def _escape(self) -> tuple[str, bool]:
        letter = self._pattern[self._at : self._at + 1]
        if letter in {"b", "B"}:
            self._at += 1
            # Python's \B does not match in an empty text.
            return r"(?a:\b)" if letter == "b" else r"(?!(?a:\b))", False
        if letter in _CLASSES:
            self._at += 1
            return bracket(_CLASSES[letter]), True
        number = _NUMBER.match(self._pattern, self._at)
        if number and int(number.group()) <= self._groups:
            self._at = number.end()
            return self._reference(int(number.group())), True
        if letter == "k" and self._has_names:
            return self._named_reference(), True
        return self._literal(self._unit(_CONTROL)), True

    def _named_reference(self) -> str:
        name = _NAME.match(self._pattern, self._at)
        names = [each.group(1) for each in _NAMED.finditer(self._pattern)]
        if name is None or name.group(1) not in names:
            raise self._fault("unknown name of a group")
        self._at = name.end()
        return self._reference(self._names.get(name.group(1), 0))

    def _reference(self, number: int) -> str:
        """What the group caught; nothing while it has caught nothing, so also before and within it."""
        if number not in self._closed:
            return "(?:)"
        caught = rf"(?i:\{number})" if "i" in self._flags else rf"\{number}"
        return f"(?:(?({number}){caught}|))"

    def _unit(self, control: re.Pattern[str]) -> int:
        """The code unit that an escape stands for; the letter itself if it stands for nothing."""
        if self._at == len(self._pattern):
            raise self._fault("nothing after a backslash")
        code = _HEX.match(self._pattern, self._at)
        if code:
            self._at = code.end()
            return int(code.group(1) or code.group(2), 16)
        octal = _OCTAL.match(self._pattern, self._at)
        if octal:
            self._at = octal.end()
            return int(octal.group(), 8)
        known = control.match(self._pattern, self._at)
        if known:
            self._at = known.end()
            return ord(known.group(1)) % 32
        letter = self._pattern[self._at]
        if letter == "c":
            return ord("\\")
        self._at += 1
        return _CONTROLS.get(letter, ord(letter))

    def _class(self) -> CodeUnits:
        negated = self._pattern.startswith("^", self._at)
        self._at += negated
        ranges: list[tuple[int, int]] = []
        while not self._pattern.startswith("]", self._at):
            ranges += self._range()
        self._at += 1
        members = union(ranges)
        if "i" in self._flags:
            members = caseless(members)
        return complement(members) if negated else members

    def _range(self) -> CodeUnits:
        low = self._member()
        if not _TO.match(self._pattern, self._at):
            return low
        self._at += 1
        high = self._member()
        if not (_is_one(low) and _is_one(high)):
            return (*low, (0x2D, 0x2D), *high)
        if low[0][0] > high[0][0]:
            raise self._fault("a range ends before it begins")
        return ((low[0][0], high[0][0]),)

    def _member(self) -> CodeUnits:
        if self._at == len(self._pattern):
            raise self._fault("a class is not closed")
        char = self._pattern[self._at]
        self._at += 1
        unit = ord(char)
        if char == "\\":
            letter = self._pattern[self._at : self._at + 1]
            if letter in _CLASSES:
                self._at += 1
                return _CLASSES[letter]
            if letter == "b":
                self._at += 1
                unit = 8
            else:
                unit = self._unit(_CONTROL_IN_CLASS)
        return ((unit, unit),)


def _is_one(known: CodeUnits) -> bool:
    return len(known) == 1 and known[0][0] == known[0][1]
