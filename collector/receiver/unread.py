"""Log records that nothing here reads, written for the backend under `forward` alone."""

import zlib

from collector.log.port import New
from collector.otlp.items import only
from collector.otlp.sent_form import unread_record
from collector.otlp.signal import OtlpSignal
from collector.otlp.split import SplitRequest


def unread_records(request: bytes, split: SplitRequest, signal: OtlpSignal) -> list[New]:
    """One record of the log, if any of the request's items are not in its pieces.

    Its key spreads such records over partitions: no one looks for them by what they hold.
    """
    if not split.unread:
        return []
    taken = request if split.request is None else split.request
    rest = only(taken, signal.request, lambda at: at in split.unread)
    key = zlib.crc32(rest).to_bytes(4)
    return [New(topic=signal.topic, key=key, value=unread_record(rest))]
