"""The feedback of a request as records of the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import cast

import msgspec
from google.protobuf.message import DecodeError

from collector.base.clock import Clock
from collector.base.errors import Undecodable
from collector.log.port import New
from collector.receiver.feedback.in_logs import in_logs
from collector.receiver.feedback.in_spans import in_spans
from collector.records.feedback import FeedbackRules, Given, given, items_in

MAX_ITEMS = 1_000
"""Objects of one posted request."""
MAX_CARRIED = 256 << 10
"""Bytes of the feedback that one export request carries: spans are never refused for what is said beside them."""
_IN_OTLP: Mapping[str, Callable[[bytes], Iterator[Given | Undecodable]]] = {
    "spans": in_spans,
    "log_records": in_logs,
}


@dataclass(slots=True)
class FoundFeedback:
    """What a request says, and what became of each item."""

    records: list[New] = field(default_factory=list[New])
    results: Counter[str] = field(default_factory=Counter[str])
    """How many were accepted, invalid, not wanted (`feedback.names`), or too many for one export request."""
    rejected: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """Place and reason of those that were not accepted."""


class FeedbackReader:
    """Reads requests by the rules of the configuration.

    Args:
        rules: The rules.
        clock: Unix seconds, for feedback that says no time.
    """

    def __init__(self, rules: FeedbackRules, clock: Clock) -> None:
        self._rules = rules
        self._clock = clock

    def in_otlp(self, request: bytes, items: str) -> FoundFeedback:
        """What an export request says; `items`: see `OtlpSignal`."""
        said = _IN_OTLP[items](request)
        try:
            found = self._found(islice(said, MAX_ITEMS))
            if more := sum(1 for _ in said):
                found.results["too_many"] += more
        except DecodeError:  # a part of it is damaged: the rest was taken, and must not come again
            return FoundFeedback(results=Counter(invalid=1))
        size = 0
        for at, record in enumerate(found.records):
            size += len(cast(bytes, record.value))
            if size > MAX_CARRIED:
                found.results["too_many"] += len(found.records) - at
                found.results["accepted"] = at
                del found.records[at:]
                break
        return found

    def posted(self, body: bytes) -> FoundFeedback:
        """What the body of `POST /v1/feedback` says.

        Raises:
            Undecodable: it is not of that form, or has too many items.
        """
        items = items_in(body)
        if len(items) > MAX_ITEMS:
            raise Undecodable(f"{len(items)} items; at most {MAX_ITEMS} in one request")
        return self._found(map(_given, items))

    def _found(self, items: Iterable[Given | Undecodable]) -> FoundFeedback:
        found = FoundFeedback()
        now = self._clock()
        for at, item in enumerate(items):
            try:
                if isinstance(item, Undecodable):
                    raise item
                if self._rules.wants(item.name):
                    record = self._rules.feedback(item, now=now).record
                    found.records.append(record)
                    found.results["accepted"] += 1
                    continue
                result, why = "not_wanted", f"feedback.names does not have `{item.name[:64]}`"
            except Undecodable as error:
                result, why = "invalid", str(error)
            found.results[result] += 1
            found.rejected.append((at, why))
        return found


def _given(item: bytes | msgspec.Raw) -> Given | Undecodable:
    try:
        return given(item)
    except Undecodable as error:
        return error
