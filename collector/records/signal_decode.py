"""Reading a record of topic `signals`."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

import msgspec

from collector.errors import Undecodable
from collector.records.signal import Signal

_decoder = msgspec.json.Decoder(Signal)


def decode_signal(value: bytes) -> Signal:
    """The signal in a record's value; unknown fields (of a newer version) are ignored.

    Raises:
        Undecodable: not a signal.
    """
    try:
        return _decoder.decode(value)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise Undecodable(str(error)) from error


@lru_cache(maxsize=256)
def unix_seconds(time: str) -> float:
    """A signal's `time` as unix seconds.

    Raises:
        Undecodable: not RFC 3339.
    """
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError as error:
        raise Undecodable(f"time is not RFC 3339: {time}") from error
