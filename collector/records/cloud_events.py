"""The headers of a signal's record: CloudEvents 1.0 in the Kafka binding (binary mode), and two between rooms."""

from functools import lru_cache
from urllib.parse import quote

from collector.log.port import Headers

INTERNAL = "spanwise_"  # prefix of headers between rooms: sinks do not send them out
FIRST = (f"{INTERNAL}first", b"1")
"""The header on the first final outcome of its (subject, evaluator), which counters count."""
START = f"{INTERNAL}start"
"""Header: the start of the trace that was scored, unix nanoseconds. The signal itself has no start."""
_CONSTANT = (("content-type", b"application/json"), ("ce_specversion", b"1.0"))


def event_headers(
    id_: str,
    *,
    scope: str,
    service: str,
    subject: str | None,
    span_id: str | None,
    time: str,
    start: int = 0,
    first: bool = False,
) -> Headers:
    """The headers of a signal, with `traceparent` if a span was scored; those between rooms if they say anything.

    `subject`: the trace id or session id. `span_id`: of the span that was scored. `time`: the signal's `time`.
    """
    shared = _of_subject(scope, service, subject, span_id, time, start)
    headers = (*_CONSTANT, ("ce_id", id_.encode()), *shared)
    return (*headers, FIRST) if first else headers


@lru_cache(maxsize=64)
def _of_subject(
    scope: str, service: str, subject: str | None, span_id: str | None, time: str, start: int
) -> Headers:
    """Those that the signals of a subject have in common."""
    headers = (
        ("ce_source", _source(service)),
        ("ce_type", b"spanwise.signal.%b.v1" % scope.encode()),
        ("ce_time", time.encode()),
        ("ce_subject", f"{scope}/{subject}".encode()),
    )
    if scope == "trace" and span_id:
        headers += (_parent(subject or "", span_id),)
    return (*headers, (START, b"%d" % start)) if start else headers


def feedback_headers(
    id_: str, *, service: str | None, subject: str, time: str, span: tuple[str, str] | None
) -> Headers:
    """The headers of feedback that leaves the log.

    `service`: of what it is about, where it is said. `subject`: what it is about: its kind, a slash and its id. `span`:
    trace id and span id, where it is about a span.
    """
    headers = (
        *_CONSTANT,
        ("ce_id", id_.encode()),
        ("ce_source", _source(service or "")),
        ("ce_type", b"spanwise.feedback.v1"),
        ("ce_time", time.encode()),
        ("ce_subject", subject.encode()),
    )
    return headers if span is None else (*headers, _parent(*span))


def _parent(trace_id: str, span_id: str) -> tuple[str, bytes]:
    return "traceparent", f"00-{trace_id}-{span_id}-01".encode()


def start_in(headers: Headers) -> int:
    """The start of the trace that the signal with these headers scored, unix nanoseconds; 0: they do not tell it."""
    for name, value in reversed(headers):
        if name == START:
            return int(value) if value.isdigit() and len(value) < 20 else 0
    return 0


@lru_cache(maxsize=1024)
def _source(service: str) -> bytes:
    return f"/agents/{quote(service, safe='')}".encode()
