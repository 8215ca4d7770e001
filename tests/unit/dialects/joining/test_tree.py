"""The root of a trace, wherever parents are missing."""

from tests.support.conventions import CHAT
from tests.support.dialect_spans import SpanSpec, span_id, trace_of
from tests.support.table import for_each

REMOTE = 0x300


@for_each(
    "spans,root",
    [
        ([SpanSpec(id=1, start=5), SpanSpec(id=2, parent=1, start=1)], ("parentless", span_id(1))),
        # under a remote parent the earliest such span
        (
            [SpanSpec(id=n, parent=7, start=9 - n, flags=REMOTE) for n in (2, 3)],
            ("local", span_id(3)),
        ),
        # not marked as remote
        *(([SpanSpec(id=2, parent=7, flags=n)], ("missing", None)) for n in (0, 0x100, 0x200)),
    ],
)
def test_the_root_is_the_span_without_parent_else_under_a_remote_one(
    spans: list[SpanSpec], root: tuple[str, str | None]
) -> None:
    trace = trace_of(*spans)

    assert (trace.root, trace.root_span_id) == root
    assert ("no_root" in trace.gaps) is (trace.root == "missing")


def test_a_ring_of_parents_is_survived() -> None:
    trace = trace_of(
        SpanSpec(id=1, parent=2, attributes=CHAT),
        SpanSpec(id=2, parent=1, attributes=CHAT),
        SpanSpec(id=3, parent=3),
    )

    assert trace.spans == 3
