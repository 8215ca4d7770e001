"""Decompression with a bound: a bomb costs at most `limit` bytes."""

from collections.abc import Callable
from typing import NamedTuple

import zstandard
from isal import isal_zlib

from collector.base.errors import TooLarge, Undecodable
from collector.otlp.repair import DecodedRequest

Inflate = Callable[[bytes, int], bytes]
"""Body and limit to plain body. Raises TooLarge, Undecodable."""

_GZIP_MAGIC = b"\x1f\x8b"
_CUT_OFF = "the compressed body ends too early"
_ZSTD_WINDOW = 8 << 20  # what RFC 9659 allows a content coding
_ZSTD_SLICE = 512  # zstd has no bound on output but its input: at most 128 KiB for every 4 bytes
_MAX_MEMBERS = 64  # each one copies what is left: many tiny ones would cost the square of the body
_GZIP, _ZLIB, _RAW = 31, 15, -15  # zlib's wbits


def identity(body: bytes, limit: int) -> bytes:
    if len(body) > limit:
        raise _too_large(limit)
    return body


def gunzip(body: bytes, limit: int) -> bytes:
    parts: list[bytes] = []
    rest = body
    while rest:
        if len(parts) == _MAX_MEMBERS:
            raise Undecodable(f"the body has more than {_MAX_MEMBERS} gzip members")
        part, rest = _member(rest, limit - sum(map(len, parts)), _GZIP)
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def inflate(body: bytes, limit: int) -> bytes:
    """Deflate: zlib's form as RFC 9110 says, else the bare form that some clients send."""
    if not body:
        return body
    form = _ZLIB if _is_zlib(body) else _RAW
    return _member(body, limit, form)[0]


def unzstd(body: bytes, limit: int) -> bytes:
    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    plain = bytearray()
    frame = None
    try:
        for start in range(0, len(body), _ZSTD_SLICE):
            rest = body[start : start + _ZSTD_SLICE]
            while rest:
                frame = frame or decompressor.decompressobj()
                plain += frame.decompress(rest)
                if len(plain) > limit:
                    raise _too_large(limit)
                rest, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
    except zstandard.ZstdError as error:
        raise Undecodable("the body is not valid zstd") from error
    if frame is not None:
        raise Undecodable(_CUT_OFF)
    return bytes(plain)


BY_NAME: dict[str, Inflate] = {
    "": identity,
    "identity": identity,
    "gzip": gunzip,
    "x-gzip": gunzip,
    "deflate": inflate,
    "zstd": unzstd,
}
"""By the value of Content-Encoding."""


class Decode(NamedTuple):
    """How the request is read out of a body."""

    inflate: Inflate
    to_protobuf: Callable[[bytes], DecodedRequest]  # raises TooLarge, Undecodable


def protobuf(inflate: Inflate) -> Decode:
    return Decode(inflate, DecodedRequest)


def sniff(body: bytes, limit: int) -> bytes:
    """A gRPC message as it came: gzip and deflate are known by their first bytes: grpc names them to no handler.

    No protobuf message begins like gzip. One that begins like zlib (a varint in field 15) is taken as it is when it
    does not inflate.
    """
    if body[:2] == _GZIP_MAGIC:
        return gunzip(body, limit)
    if _is_zlib(body):
        try:
            return inflate(body, limit)
        except Undecodable:
            return identity(body, limit)
    return identity(body, limit)


def _is_zlib(body: bytes) -> bool:
    return len(body) > 1 and body[0] == 0x78 and int.from_bytes(body[:2], "big") % 31 == 0


def _member(body: bytes, limit: int, form: int) -> tuple[bytes, bytes]:
    stream = isal_zlib.decompressobj(wbits=form)
    try:
        plain = stream.decompress(body, limit + 1)
    except isal_zlib.IsalError as error:
        raise Undecodable("the body is not validly compressed") from error
    if len(plain) > limit:
        raise _too_large(limit)
    if not stream.eof:
        raise Undecodable(_CUT_OFF)
    return plain, stream.unused_data


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"the request is larger than {limit} bytes")
