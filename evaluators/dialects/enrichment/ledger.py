"""The spans of one trace while log records add to them what they say."""

from collections import deque
from collections.abc import Iterable, Mapping

import msgspec

from evaluators.dialects.enrichment.records import (
    AddedAttributes,
    MergedAttributes,
    is_record,
    lasting,
    says_all,
)
from evaluators.model import JSON, Event, Span


class Ledger:
    """Spans by id, and the records that were merged into them. A record that is not is as a span, or says nothing."""

    __slots__ = ("_children", "_events", "_found", "_free", "_merged", "_spans", "records")

    def __init__(self, spans: Iterable[Span]) -> None:
        self._spans: dict[str, Span] = {}
        self._events: dict[str, list[Event]] = {}
        """AddedAttributes to spans, and not joined with them yet: a span is made once for all of them."""
        self._merged: list[str] = []
        self._children: dict[str, list[str]] = {}
        self._free: dict[tuple[str, str, str], dict[str, deque[str]]] = {}
        self._found: dict[tuple[str, str], dict[JSON, str]] = {}
        self.records: list[Span] = []  # in order of time
        for span in spans:
            if is_record(span):
                self.records.append(span)
            else:
                self._spans[span.span_id] = span
                self._children.setdefault(span.parent_span_id, []).append(span.span_id)

    @property
    def spans(self) -> list[Span]:
        """The spans as they now are, in order of (start, span id)."""
        for span_id, events in self._events.items():
            span = self._spans[span_id]
            self._spans[span_id] = msgspec.structs.replace(span, events=(*span.events, *events))
        self._events.clear()
        return sorted(self._spans.values(), key=lambda s: (s.start_time_unix_nano, s.span_id))

    @property
    def merged(self) -> tuple[str, ...]:
        return tuple(self._merged)

    def get(self, span_id: str) -> Span | None:
        """The span of this id; None where it has not come."""
        return self._spans.get(span_id)

    def claim(self, parent_id: str, name: str, key: str, value: JSON) -> Span | None:
        """The first child of this name, in order of start, that was sent with `value` under a key; each only once."""
        free = self._free.get((parent_id, name, key))
        if free is None:
            free = self._free[parent_id, name, key] = {}
            for child in self._children.get(parent_id, ()):
                span = self._spans[child]
                if span.name == name and isinstance(sent := span.attributes.get(key), str):
                    free.setdefault(sent, deque()).append(child)
        children = free.get(value) if isinstance(value, str) else None
        return self._spans[children.popleft()] if children else None

    def find(self, name: str, key: str, value: str) -> Span | None:
        found = self._found.get((name, key))
        if found is None:
            named = (span for span in self._spans.values() if span.name == name)
            values = ((span.attributes.get(key), span.span_id) for span in named)
            found = {v: span_id for v, span_id in values if isinstance(v, str)}
            self._found[name, key] = found
        span_id = found.get(value)
        return None if span_id is None else self._spans[span_id]

    def stand(self, record: Span) -> None:
        self._spans[record.span_id] = record

    def enrich(self, record: Span, span: Span, words: Mapping[str, JSON]) -> Span:
        """The span with `words` where it says nothing itself; returns it."""
        if not says_all(span.attributes, words):
            span = msgspec.structs.replace(
                span, attributes=MergedAttributes(span.attributes, words)
            )
        self._merged.append(record.span_id)
        self._spans[span.span_id] = span
        return span

    def add_events(self, record: Span, span_id: str, events: Iterable[Event]) -> None:
        self._merged.append(record.span_id)
        self._events.setdefault(span_id, []).extend(events)

    def put(self, span: Span) -> None:
        self._spans[span.span_id] = span


class CallRecords:
    """The calls of one kind of a trace. Some servers give several calls one id: the end of one tells it from the next.

    `ledger`: the spans and records of the trace. `spans`: the calls that left spans, with their ids, in order of start.
    """

    def __init__(self, ledger: Ledger, spans: Iterable[tuple[str, Span]]) -> None:
        self._ledger = ledger
        self._homes: dict[str, list[str]] = {}  # the spans of the calls of each id
        self._ended: dict[str, int] = {}  # how many of them have their end
        self.is_empty = True  # whether nothing tells of any
        for call_id, span in spans:
            self._homes.setdefault(call_id, []).append(span.span_id)
            self.is_empty = False

    def home(self, call_id: str) -> Span | None:
        """The span, as it now is, of the call of that id that ended last, else of the first; None: there is none."""
        homes = self._homes.get(call_id)
        return self._ledger.get(homes[max(0, self._ended.get(call_id, 0) - 1)]) if homes else None

    def add(self, record: Span, call_id: str, *, ends: bool) -> Span:
        """Add the record to its call, or let it stand for it; returns the call's span.

        `call_id`: "" where it has none: it then stands for a call of its own. `ends`: whether no later record is about
        the call, but for what it said.
        """
        self.is_empty = False
        kept = lasting(record)
        if not call_id:
            self._ledger.stand(kept)
            return kept
        homes, ended = self._homes.setdefault(call_id, []), self._ended.get(call_id, 0)
        self._ended[call_id] = ended + ends
        home = self._ledger.get(homes[ended]) if ended < len(homes) else None
        if home is None:
            self._ledger.stand(kept)
            homes.append(kept.span_id)
            return kept
        home = self._ledger.enrich(record, home, AddedAttributes(record.attributes))
        return home if not is_record(home) else self._stretched(home, kept)

    def _stretched(self, home: Span, kept: Span) -> Span:
        home = msgspec.structs.replace(
            home,
            start_time_unix_nano=min(home.start_time_unix_nano, kept.start_time_unix_nano),
            end_time_unix_nano=max(home.end_time_unix_nano, kept.end_time_unix_nano),
            status=kept.status if home.status == "unset" else home.status,
            status_message=home.status_message or kept.status_message,
        )
        self._ledger.put(home)
        return home
