"""Only the segments that `learn` names are looked at when more is known: they are all that stand elsewhere now."""

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.assembly.low_water import LowWater
from collector.assembly.owner import Owner
from collector.assembly.timeline import BufferedSegment
from collector.otlp.segment import Segment
from tests.support.examples import examples

OWNER = bytes(16)
_SESSIONS = st.sampled_from([b"session%d" % number for number in range(4)])
_TURNS = st.sampled_from([b"turn-%d--" % number for number in range(6)])
_TRACES = st.sampled_from([b"trace%d----------" % number for number in range(3)])


@st.composite
def segments(draw: st.DrawFn, *, owns: bool) -> Segment:
    kind = draw(st.sampled_from(["work", "work", "prompt", "helper", "link", "named"]))
    has_turn = kind in ("prompt", "helper", "named")
    traces = draw(st.lists(_TRACES, max_size=2, unique=True)) if owns else []
    session = draw(_SESSIONS)
    return Segment(
        owner=OWNER,
        session=session,
        start=draw(st.integers(0, 12)),
        turn=draw(_TURNS) + session if has_turn else b"",  # a digest of both
        traces=tuple(traces),
        is_prompt=kind == "prompt",
        is_helper=kind == "helper",
        owns_traces=bool(traces) and has_turn and draw(st.booleans()),
        helper_session=draw(_SESSIONS) if kind == "link" else b"",
    )


def place(owner: Owner, segment: Segment) -> None:
    """As assembly does it, but for what traces may hold."""
    concerned = owner.learn(segment)
    hold = LowWater().hold(0)
    held = BufferedSegment(
        segment=segment, spans=(), piece=b"", offset=0, time=0.0, hold=hold, service=""
    )
    owner.hold(owner.resolve(segment), held)
    for each in concerned:
        assert owner.look(each)
        now = owner.resolve(each.segment)
        if now != each.turn:
            owner.let_go(each)
            owner.hold(now, each)


ARRIVING = st.booleans().flatmap(lambda owns: st.lists(segments(owns=owns), max_size=16))
"""Of agents whose records own traces, and of others."""


@settings(max_examples=examples(500), deadline=None)
@given(arriving=ARRIVING)
def test_every_segment_is_where_what_is_known_puts_it(arriving: list[Segment]) -> None:
    owner = Owner()
    for segment in arriving:
        place(owner, segment)

        assert all(held.turn == owner.resolve(held.segment) for held in owner.segments)

    for turn in tuple(owner.held):
        owner.close(turn, owner.facts(turn, OWNER, until=0))
        owner.take_all(turn)
    for turn in tuple(owner.closed):
        owner.forget(turn)
    assert owner.is_empty
