"""Text rules of ECMAScript, which Cogitator's deterministic metrics follow.

Patterns without the `u` flag run on Python's `re` after translation: by UTF-16 code unit, with ECMAScript's classes,
boundaries, line ends, letter case, escapes, and groups that match nothing until they took part. Not translated: a
look-behind's alternative of variable width is an error, and a group keeps what it caught in an earlier round of a loop.
"""

from __future__ import annotations

import re
from functools import lru_cache

from evaluators.matching import code_units
from evaluators.matching.code_units import CodeUnits

_TRIM = "".join(chr(unit) for low, high in code_units.BLANKS for unit in range(low, high + 1))
_CLASSES: dict[str, CodeUnits] = {
    "d": code_units.DIGITS,
    "w": code_units.WORDS,
    "s": code_units.BLANKS,
    **{
        letter: code_units.complement(known)
        for letter, known in (
            ("D", code_units.DIGITS),
            ("W", code_units.WORDS),
            ("S", code_units.BLANKS),
        )
    },
}
_NOT_A_LINE_END = code_units.bracket(code_units.complement(code_units.LINE_ENDS))
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

    Raises:
        re.error: The pattern is not valid, or Python cannot run it.
    """
    return _compiled(pattern, flags).search(code_units.units(text)) is not None


@lru_cache(maxsize=64)
def _compiled(pattern: str, flags: str) -> re.Pattern[str]:
    try:
        return re.compile(_Translation(code_units.units(pattern), flags).text())
    except (OverflowError, RecursionError) as error:
        raise re.error(str(error), pattern) from error


class _Translation:
    """One pass over a pattern."""

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
        """The pattern for `re`.

        Raises:
            re.error: It is not valid.
        """
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
        """The next term, and whether it can be repeated."""
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
            return code_units.bracket(self._class()), True
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
            same = code_units.caseless(((unit, unit),))
            if same != ((unit, unit),):
                return code_units.bracket(same)
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
            return code_units.bracket(_CLASSES[letter]), True
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
        members = code_units.union(ranges)
        if "i" in self._flags:
            members = code_units.caseless(members)
        return code_units.complement(members) if negated else members

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
