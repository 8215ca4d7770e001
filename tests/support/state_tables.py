"""Keys of topic `windows`, and records of it given to a table as a restart would."""

from collections.abc import Iterable
from typing import Any

import msgspec

from collector.log.consumer import PoisonReport
from collector.log.port import WINDOWS, New, Position, Record
from collector.log.state_table import StateTable


def state_key(kind: str, key: Any, part: int | None = None) -> bytes:
    return f"\0{kind}\0".encode() + msgspec.msgpack.encode((part, key))


class Refused(PoisonReport):
    """What could not be read."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def unprocessable(self, position: Position, reason: object) -> None:
        self.reasons.append(str(reason))


def give_back(table: StateTable[Any, Any], records: Iterable[New]) -> list[str]:
    """Give the table these records; returns why some could not be read."""
    refused = Refused()
    table.take_back(
        [
            Record(position=Position(WINDOWS, 0, at), key=each.key, value=each.value, time=0.0)
            for at, each in enumerate(records)
            if isinstance(each.value, bytes)
        ],
        refused,
    )
    return refused.reasons
