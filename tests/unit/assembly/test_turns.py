"""What places a segment does not depend on the order in which others were learned of."""

from itertools import permutations

from collector.assembly.low_water import LowWater
from collector.assembly.owner import Owner
from collector.assembly.timeline import BufferedSegment
from collector.otlp.segment import Segment

OWNER, SESSION = bytes(16), bytes(8)
FIRST, SECOND = b"1" * 16, b"2" * 16


def prompt(turn: bytes, start: int) -> Segment:
    return Segment(owner=OWNER, session=SESSION, start=start, turn=turn, is_prompt=True)


def test_a_prompt_that_is_recorded_twice_began_at_its_first_record() -> None:
    """Qwen Code tells of it by a record, and by the span around the turn."""
    work = Segment(owner=OWNER, session=SESSION, start=15)
    for order in permutations([prompt(FIRST, 1), prompt(SECOND, 10), prompt(SECOND, 20)]):
        owner = Owner()
        for segment in order:
            owner.learn(segment)

        assert owner.resolve(work) == SECOND


def test_what_began_between_an_earlier_and_a_later_start_of_a_prompt_is_moved() -> None:
    owner = Owner()
    owner.learn(prompt(FIRST, 1))
    owner.learn(prompt(SECOND, 20))
    work = BufferedSegment(
        segment=Segment(owner=OWNER, session=SESSION, start=15),
        spans=(),
        piece=b"",
        offset=0,
        time=0.0,
        hold=LowWater().hold(0),
        service="",
    )
    owner.hold(FIRST, work)

    assert owner.learn(prompt(SECOND, 30)) == []
    assert owner.learn(prompt(SECOND, 10)) == [work]
