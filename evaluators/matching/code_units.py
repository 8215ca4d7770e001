"""Sets of UTF-16 code units, which ECMAScript's patterns without the `u` flag are made of."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from functools import cache

CodeUnits = tuple[tuple[int, int], ...]
"""Inclusive ranges, ascending and apart."""

TOP = 0xFFFF

DIGITS: CodeUnits = ((0x30, 0x39),)
WORDS: CodeUnits = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
LINE_ENDS: CodeUnits = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))
BLANKS: CodeUnits = (
    *((0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A)),
    *((0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)),
)


def units(text: str) -> str:
    """The text with two halves of a pair for each character outside the basic plane."""
    if not text or max(text) <= chr(TOP):
        return text
    raw = text.encode("utf-16-le", "surrogatepass")
    return "".join(map(chr, struct.unpack(f"<{len(raw) // 2}H", raw)))


def union(ranges: Iterable[tuple[int, int]]) -> CodeUnits:
    """All of them as one set."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return tuple(merged)


def complement(known: CodeUnits) -> CodeUnits:
    """Every other code unit."""
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
