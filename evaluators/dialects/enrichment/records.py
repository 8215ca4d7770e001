"""What a log record looks like among the spans of a trace, and a span to which log records added something."""

from collections.abc import Mapping
from typing import Any

import msgspec

from evaluators.dialects.decoding.decode import Attributes, names_of
from evaluators.dialects.decoding.key_sets import shape_of
from evaluators.dialects.decoding.values import integer
from evaluators.model import JSON, Span

EVENT = "spanwise.log.event"  # the name of the event; its presence marks a span that a log record was made into
BODY = "spanwise.log.body"  # the record's body, of any type
_OWN = frozenset({EVENT, BODY})
_MOST_SOURCES = 64
"""Records that one span's attributes are joined from. Few calls have more than three."""


def is_record(span: Span) -> bool:
    return EVENT in names_of(span.attributes)


def event_of(record: Span) -> str:
    return str(record.attributes.get(EVENT) or "")


def body_of(record: Span) -> JSON:
    return record.attributes.get(BODY)


def text_of(record: Span, key: str) -> str:
    value: JSON = record.attributes.get(key)
    return value if isinstance(value, str) else ""


def lasting(record: Span) -> Span:
    """The record as a span from when what it tells began (`duration_ms`); its time is when that was over."""
    lasted = integer(record.attributes.get("duration_ms"))
    if lasted is None:
        return record
    start = max(0, record.start_time_unix_nano - lasted * 1_000_000)
    return msgspec.structs.replace(record, start_time_unix_nano=start)


class MergedAttributes(Attributes):
    """Attributes of several sources as one: the first that has a value wins."""

    __slots__ = ("_sources",)

    def __init__(self, *sources: Mapping[str, JSON]) -> None:
        self._sources: tuple[Mapping[str, JSON], ...] = tuple(
            inner
            for source in sources
            for inner in (source._sources if isinstance(source, MergedAttributes) else (source,))  # noqa: SLF001
        )
        names = frozenset[str]().union(*(names_of(source) for source in sources))
        self.shape = shape_of(names)
        self.names = names

    @property
    def is_full(self) -> bool:
        """Whether nothing more may be joined: each source is asked for what those before it lack."""
        return len(self._sources) >= _MOST_SOURCES

    def get(self, key: str, default: Any = None) -> JSON:
        for source in self._sources:
            value = source.get(key)
            if value is not None:
                return value
        return default


def says_all(attributes: Mapping[str, JSON], words: Mapping[str, JSON]) -> bool:
    if isinstance(attributes, MergedAttributes) and attributes.is_full:
        return True
    known, said = names_of(attributes), names_of(words)
    return said <= known and all(attributes.get(name) is not None for name in said)


class AddedAttributes(Attributes):
    """The attributes of a record without those that mark it as one."""

    __slots__ = ("_record",)

    def __init__(self, record: Mapping[str, JSON]) -> None:
        self._record = record
        names = frozenset(names_of(record)) - _OWN
        self.shape = shape_of(names)
        self.names = names

    def get(self, key: str, default: Any = None) -> JSON:
        return self._record.get(key, default) if key in self.names else default
