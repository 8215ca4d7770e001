"""Records that tell of calls of one kind, joined by the id of the call."""

from collections.abc import Iterable

import msgspec

from evaluators.dialects.lending.ledger import Ledger
from evaluators.dialects.lending.records import Lent, is_record, lasting
from evaluators.model import Span


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
        """Lend the record to its call, or let it stand for it; returns the call's span.

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
        home = self._ledger.lend(record, home, Lent(record.attributes))
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
