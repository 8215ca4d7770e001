"""What becomes of an export request before it is written, whichever way it came."""

import zlib
from dataclasses import dataclass

from collector.log.port import New
from collector.otlp.items import only
from collector.otlp.redaction import Redact
from collector.otlp.repair import DecodedRequest
from collector.otlp.sent_form import unread_record
from collector.otlp.signal import OtlpSignal
from collector.otlp.split import SplitRequest
from collector.receiver.feedback.found import FeedbackReader, FoundFeedback


@dataclass(frozen=True, slots=True, kw_only=True)
class Splitter:
    """Redacts requests, splits them, and reads what they say of traces and sessions."""

    max_item: int  # the largest single item (span) in bytes; larger ones are rejected and counted
    joined: int = 0  # bytes up to which the pieces of a request are one record of the log; 0: each is one of its own
    redact: Redact | None = None
    """Takes secrets out of requests before anything else sees them; None: they are taken as they are."""
    keeps_unread: bool = False
    """Whether log records that nothing here reads are written too, for the backend under `forward`."""
    feedback: FeedbackReader | None = None  # None: no one listens

    def split(
        self, decoded: DecodedRequest, signal: OtlpSignal
    ) -> tuple[SplitRequest, FoundFeedback]:
        """The request in pieces, and its other records: feedback, and what nothing reads.

        Raises Undecodable: it is not valid OTLP. Raises TooLarge: it has more parts than one request may have.
        """
        if self.redact is not None:
            decoded = self.redact(decoded, signal.request)
        split = signal.split(decoded.request, max_item=self.max_item, joined=self.joined)
        split.add(decoded)
        said = FoundFeedback()
        if self.feedback is not None:
            said = self.feedback.in_otlp(split.request or decoded.request, signal.items)
        if self.keeps_unread and split.unread:
            said.records.append(_unread(decoded.request, split, signal))
        return split, said


def _unread(request: bytes, split: SplitRequest, signal: OtlpSignal) -> New:
    """Its key spreads such records over partitions: no one looks for them by what they hold."""
    taken = request if split.request is None else split.request
    rest = only(taken, signal.request, lambda at: at in split.unread)
    return New(topic=signal.topic, key=zlib.crc32(rest).to_bytes(4), value=unread_record(rest))
