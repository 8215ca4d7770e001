"""The edges of every endpoint and parameter that a page names."""

import itertools
from collections.abc import Iterator, Mapping
from urllib.parse import urlencode

TEXTS = (
    *("support-bot", "", " ", "x" * 5_000, "a\0b", "\u202e", "\U0001f600", "-1"),
    *("%", "_", "*", "'; --", "(", "\\", '"'),
)
WHOLE = ("1", "500", "0", "501", "-1", "1.5", "", "x", "²", "9" * 5_000, "0" * 9 + "1", "0" * 99)
HUGE = "000000001" + "9" * 5_000
NUMBERS = ("0", "1", "-0", "-1", ".5", "1e308", "1e309", "nan", "inf", "1_0", "", "x", "²", HUGE)
TIMES = (
    *("24h", "0m", "999999d", "9" * 99 + "d", "2026-03-01T14:00", "2026-02-30"),
    *("0001-01-01T00:00:00Z", "0001-01-01T00:00+23:59"),
    *("9999-12-31T23:59:59.999999+00:00", "9999-12-31T23:59-23:59"),
    *("253402300799", "253402300800", "1e300", *NUMBERS),
)
TRACE = "0af7651916cd43dd8448eb211c80319c"
CURSORS = ("", "x", "A" * 4_000, "bnVsbA==", "W10", "W251bGxd", "\u202e", "=" * 9, "0" * 64)
ATTRIBUTES = ("tenant.id=acme", "=", "x", "x=", "=x", "a=b=c", "x" * 3_000 + "=y", "\0=\0", "")
SIDES = ("baseline_from", "baseline_to", "candidate_from", "candidate_to")
EDGES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("service", "agent", "version", "tool", "model", "user", "failed"), TEXTS),
    "q": (*TEXTS, "the", "a* OR b", "NEAR(", "col:x", "^", '""'),
    "evaluator": ("agent_reliability", *TEXTS),
    "session_id": TEXTS,
    "trace_id": (TRACE, *TEXTS),
    "id": (TRACE, TRACE.upper(), *TEXTS),
    "attribute": ATTRIBUTES,
    **dict.fromkeys(("since", "until", *SIDES), TIMES),
    "status": ("open", "closed", "runaway", "cancelled", *TEXTS),
    **dict.fromkeys(("min_reliability", "max_reliability", "min_cost"), NUMBERS),
    **dict.fromkeys(("min_seconds", "margin"), NUMBERS),
    "sort": ("newest", *TEXTS),
    "format": ("json", "csv", *TEXTS),
    "limit": (*WHOLE, HUGE),
    "cursor": CURSORS,
    "candidate": ("*", *TEXTS),
    "baseline": ("*", *TEXTS),
    "range": ("15m", "1h", "3h", "12h", "24h", "7d", "30d", *TIMES),
}
"""Of every parameter that a page names; the first is one that is taken."""

COMPARED = ("service", "candidate", "agent", "baseline", "evaluator", "margin")
FILTERS = (
    *("service", "agent", "version", "since", "until", "status", "q", "failed", "tool", "model"),
    *("user", "attribute", "min_reliability", "max_reliability", "min_cost", "min_seconds", "sort"),
)
READ: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("/", "/evaluators", "/health", "/healthz", "/help", "/metrics"), ()),
    **dict.fromkeys(("/readyz", "/config/available-metrics", "/api/v1/evaluators"), ()),
    "/agent": ("service", "agent", "since", "range"),
    "/agreement": ("evaluator",),
    "/compare": ("service", "agent", "baseline", "candidate", *SIDES),
    "/session": ("service", "id"),
    "/sessions": (*FILTERS, "cursor"),
    "/trace": ("id",),
    "/api/v1/agents": ("limit", "cursor"),
    "/api/v1/agreement": ("service", "agent", "evaluator", "limit"),
    "/api/v1/compare": COMPARED,
    "/api/v1/sessions": (*FILTERS, "limit", "cursor", "format"),
    "/api/v1/sessions/{id}": ("service",),
    "/api/v1/signals": ("session_id", "trace_id", "evaluator", "limit", "cursor"),
    "/api/v1/traces/{id}": (),
}
"""What is read of a service, with its parameters."""
STREAM = "/api/v1/signals/stream"
GATE = "/api/v1/compare/gate"
TAKEN = ("/v1/traces", "/v1/logs", "/v1/metrics", "/v1/feedback", "/v1/evaluations")
"""What the receiver takes."""
BODIES = (
    b"",
    b"{}",
    b"[]",
    b"null",
    b"\xff",
    b"{" * 100_000,
    b'{"args": [{"name": "service", "value": "shop"}]}',
    b'{"service": 1}',
    b'{"service": "\\ud83d"}',
    b'{"service": "x", "candidate": "y", "margin": NaN}',
)


def requests(path: str) -> Iterator[str]:
    """Each parameter at each edge, every two, all at once, and one that there is not."""
    names = READ[path]
    for name in names:
        yield from (asked({name: edge}) for edge in EDGES[name])
    for one, two in itertools.combinations(names, 2):
        yield asked({one: EDGES[one][0], two: EDGES[two][0]})
    for at in range(6):
        yield asked({name: EDGES[name][at % len(EDGES[name])] for name in names})
    yield asked({"none_such": "1"})
    yield from ("", "?", "&&=", "=%ff", "%00=1", "limit=1&limit=x", "service=%ff%fe", "a" * 9_000)


def asked(parameters: Mapping[str, str]) -> str:
    return urlencode(parameters)
