"""Walking protobuf's wire format."""

from __future__ import annotations

import pytest

from collector.errors import Undecodable
from collector.otlp.wire import fields, header


def walk(data: bytes) -> list[tuple[int, bytes]]:
    return [(tag, data[value:end]) for tag, _, value, end in fields(data, 0, len(data))]


def test_every_kind_of_field_is_walked() -> None:
    data = (
        b"\x08\x96\x01" + b"\x11" + bytes(8) + b"\x1a\x02ab" + b"\x25" + bytes(4) + b"\xba\x3e\x01x"
    )

    assert walk(data) == [
        (8, b"\x96\x01"),
        (0x11, bytes(8)),
        (0x1A, b"ab"),
        (0x25, bytes(4)),
        (999 << 3 | 2, b"x"),
    ]


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384, 3_000_000])
def test_a_header_says_how_long_its_value_is(size: int) -> None:
    data = header(0x12, size) + bytes(size)

    assert walk(data) == [(0x12, bytes(size))]


@pytest.mark.parametrize(
    "broken",
    [
        b"\x0a",
        b"\x0a\x02a",
        b"\x08",
        b"\x08\xff",
        b"\x11abc",
        b"\x0b",
        b"\x0e",
        b"\x02\x00",
        b"\x80",
    ],
)
def test_what_ends_within_a_field_or_is_no_field_is_undecodable(broken: bytes) -> None:
    with pytest.raises(Undecodable):
        walk(broken)


def test_a_number_has_at_most_ten_bytes() -> None:
    with pytest.raises(Undecodable):
        walk(b"\x08" + b"\xff" * 11)
