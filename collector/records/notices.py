"""What topic `windows` holds of alerts: which fire, and what each target was sent (`collector/notices/alarms.py`)."""

import hashlib
from typing import Literal

import msgspec

from collector.records.codec import decode

NOTICES = b"\0notices\0"  # prefix of the keys
State = Literal["firing", "resolved"]
Sent = Literal["firing", "resolved", "dropped"]
"""`dropped`: the notice that it fires could not be sent, and its end will not be."""
Labels = tuple[tuple[str, str], ...]
"""In order of name, with `alertname` and `severity`: an alert's identity, as in Alertmanager."""


class AlarmRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An alert that fires, or whose end not every target knows."""

    labels: Labels
    start: float  # log time from which it fires
    end: float | None = None
    summary: str
    description: str
    page: str  # behind the page's address
    sent: dict[str, Sent] = {}  # by target, the newest notice


_alarm = msgspec.msgpack.Decoder(AlarmRecord)


def alarm_key(labels: Labels) -> bytes:
    return NOTICES + identity_of(labels).encode()


def identity_of(labels: Labels) -> str:
    """A digest of the labels, 32 hexadecimal digits."""
    return hashlib.sha256(msgspec.json.encode(labels)).hexdigest()[:32]


def decode_alarm(value: bytes) -> AlarmRecord:
    """A record with a key of `NOTICES`. Raises Undecodable: it is not one."""
    return decode(_alarm, value)
