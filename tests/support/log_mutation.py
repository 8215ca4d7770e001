"""Recorded requests of log records, changed where it hurts: names of events, sessions, turns, calls; times; ids.

`SPANWISE_LOG_CAPTURES` names another folder of recordings.
"""

import os
from functools import cache
from pathlib import Path
from random import Random

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ScopeLogs

from tests.support.mutation import LARGEST, NUMBERS, TEXTS, TIMES, replace_value
from tests.support.recordings import requests

CAPTURES = Path(
    os.environ.get("SPANWISE_LOG_CAPTURES") or Path(__file__).parents[1] / "data" / "captures_logs"
)
PLACING = (
    "event.name",
    "session.id",
    "prompt.id",
    "prompt_id",
    "conversation.id",
    "call_id",
    "tool_use_id",
    "request_id",
    "duration_ms",
    "event.sequence",
)
"""Attributes that say where a record belongs."""


@cache
def log_seeds() -> tuple[bytes, ...]:
    """Requests of records of all recordings that are small enough, in order."""
    every = (each for path in sorted(CAPTURES.rglob("*.logs.otlp")) for each in requests(path))
    return tuple(each for each in every if len(each) <= LARGEST)


@cache
def beside(number: int) -> bytes:
    """A request of spans of a recording that has records too."""
    paths = [each for each in sorted(CAPTURES.rglob("*.otlp")) if each.suffixes == [".otlp"]]
    every = [each for path in paths for each in requests(path) if len(each) <= LARGEST]
    return every[number % len(every)]


def mutated_logs(seed: bytes, random: Random) -> bytes:
    """A request like the seed with a few changes; still a valid message."""
    request = ExportLogsServiceRequest.FromString(seed)
    scopes = [scope for group in request.resource_logs for scope in group.scope_logs]
    records = [record for scope in scopes for record in scope.log_records]
    if not records:
        return seed
    for _ in range(random.randint(1, 8)):
        _change(scopes, records, random)
    return request.SerializeToString()


def _change(scopes: list[ScopeLogs], records: list[LogRecord], random: Random) -> None:
    record, other = random.choice(records), random.choice(records)
    match random.randrange(8):
        case 0:
            record.time_unix_nano = random.choice(TIMES)
            record.observed_time_unix_nano = random.choice(TIMES)
        case 1:
            record.trace_id = random.choice((b"", b"\0" * 16, b"x", other.trace_id, b"t" * 16))
            record.span_id = random.choice((b"", b"\0" * 8, b"x", other.span_id, b"s" * 8))
        case 2:
            random.choice(scopes).log_records.add().CopyFrom(record)
        case 3:
            _place_elsewhere(record, random)
        case 4:
            record.event_name = random.choice(TEXTS)
        case 5:
            body = KeyValue(value=record.body)
            replace_value(body, random)
            record.body.CopyFrom(body.value)
        case 6:
            scope = random.choice(scopes).scope
            scope.name = random.choice((*TEXTS, random.choice(scopes).scope.name))
        case _:
            if record.attributes:
                replace_value(random.choice(record.attributes), random)


def _place_elsewhere(record: LogRecord, random: Random) -> None:
    """Another value under a key that places it, or the key twice."""
    key = random.choice(PLACING)
    held = [each for each in record.attributes if each.key == key]
    value = held[0] if held and random.random() < 0.7 else record.attributes.add(key=key)
    if random.random() < 0.5:
        value.value.int_value = random.choice(NUMBERS)
    else:
        value.value.string_value = random.choice((*TEXTS, *map(str, NUMBERS)))
