"""The bytes of an entry on disk: msgpack, compressed by zstd with a dictionary of what signals have in common.

An index keeps the dictionary that its entries were written with, so that a later version reads them.
"""

from pathlib import Path
from typing import TypeVar

import msgspec
import zstandard

from collector.api.store import DamagedError
from collector.records.trace_views import TraceHeader

LEVEL = -1
LARGEST = 256 << 20
"""Bytes of an entry; a frame that claims more is damaged."""
T = TypeVar("T")
_encode = msgspec.msgpack.Encoder().encode


class Packing:
    """Writes and reads entries; used by one thread at a time. `dictionary`: of the file whose entries these are."""

    def __init__(self, dictionary: bytes) -> None:
        known = zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
        known.precompute_compress(level=LEVEL)  # pyright: ignore[reportUnknownMemberType]
        compressor = zstandard.ZstdCompressor(level=LEVEL, dict_data=known, write_checksum=True)
        self._compress = compressor.compress
        self._decompress = zstandard.ZstdDecompressor(dict_data=known).decompress

    def pack(self, entry: object) -> bytes:
        return self._compress(_encode(entry))

    def unpack(self, value: bytes, decoder: msgspec.msgpack.Decoder[T]) -> T:
        """The entry in these bytes. Raises DamagedError: they were damaged."""
        try:
            if zstandard.frame_content_size(value) > LARGEST:
                raise DamagedError("an entry is damaged: it claims to be too large")
            return decoder.decode(self._decompress(value))
        except (zstandard.ZstdError, msgspec.DecodeError, TypeError) as error:
            raise DamagedError(f"an entry is damaged: {error}") from error


def common_text() -> bytes:
    """Signals of a session and of a trace as they mostly are, `common_signals.json`; the most frequent come last."""
    lines = (Path(__file__).parent / "common_signals.json").read_text(encoding="utf-8")
    signals = [line.rstrip(",") for line in lines.splitlines()[1:-1]]
    own = [each[each.index('"evaluator"') :] for each in signals]
    header = TraceHeader(trace_id="", service="", agent="", session_id="", session_source="trace")
    return _encode(header) + "\n".join([signals[0], *own, signals[-1]]).encode()
