"""Raw OTLP pieces -> the normalised trace, for every dialect."""

from collections.abc import Sequence
from dataclasses import replace

from evaluators.dialects.content.sessions import Keys
from evaluators.dialects.decoding.decode import decode
from evaluators.dialects.decoding.room import Room
from evaluators.dialects.enrichment.enrich import enrich
from evaluators.dialects.joining.assemble import assemble
from evaluators.dialects.registry import read_facts
from evaluators.model import Closed, Trace

_KEYS = Keys()


def read_trace(
    pieces: Sequence[bytes], *, trace_id: str, closed: Closed, keys: Keys | None = None
) -> Trace:
    """The trace `trace_id` as evaluators see it. The order of `pieces` decides only which copy of a span id counts.

    Spans of other traces are passed over. A span that cannot be read is left out and the trace marked truncated.
    `closed`: why the trace closed. `keys`: attribute keys of the user's own. Raises ValueError: no span of the trace
    could be read at all.
    """
    decoded = decode(pieces, trace_id.lower())
    if not decoded.spans:
        raise ValueError(f"no span of trace `{trace_id}` could be read")
    spans, records = enrich(decoded.spans)
    with Room() as room:
        facts = [read_facts(span) for span in spans]
        trace = assemble(
            facts,
            closed=closed,
            keys=keys or _KEYS,
            broken=decoded.unreadable > 0,
            records=records,
        )
    if room.is_whole or trace.truncated:
        return trace
    return replace(trace, truncated=True, gaps=(*trace.gaps, "truncated"))
