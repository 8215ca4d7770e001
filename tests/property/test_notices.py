"""Whatever holds, whoever is away, wherever the process ends: each target hears beginnings and ends by turns."""

from hypothesis import given
from hypothesis import strategies as st

from collector.notices.alarms import Alarms
from collector.notices.series import GAP
from collector.records.notices import decode_alarm
from tests.support.notices import BROKEN, DROPPED, SLOW, Looked

TARGETS = ("chat", "oncall")
POSSIBLE = (BROKEN, SLOW, DROPPED)


def new() -> Looked:
    return Looked(Alarms({name: lambda _: True for name in TARGETS}))


@st.composite
def steps(draw: st.DrawFn) -> list[tuple[float, list[int], frozenset[str], bool]]:
    """(Seconds that pass, what holds, who takes notices, whether the process starts again), the last of them quiet."""
    some = draw(
        st.lists(
            st.tuples(
                st.sampled_from([15.0, 60.0, GAP]),
                st.lists(st.integers(0, 2), unique=True),
                st.frozensets(st.sampled_from(TARGETS)),
                st.booleans(),
            ),
            max_size=12,
        )
    )
    nothing: list[int] = []
    return [*some, *[(GAP, nothing, frozenset(TARGETS), False)] * 3]


@given(steps())
def test_beginnings_and_ends_come_by_turns_and_the_last_is_an_end(
    script: list[tuple[float, list[int], frozenset[str], bool]],
) -> None:
    stand, now = new(), 0.0
    stored: dict[bytes, bytes | None] = {}
    heard: dict[tuple[str, object], list[str]] = {}
    for seconds, holding, takers, restarts in script:
        if restarts:
            stand = new()
            stand.alarms.restore(decode_alarm(each) for each in stored.values() if each)
        now += seconds
        stand.look(now, *(POSSIBLE[at] for at in holding))
        for target in takers:
            for each in stand.alarms.due(target):
                heard.setdefault((target, each.labels), []).append(each.state)
                stand.alarms.was_sent(target, each, each.state)
        stored.update(stand.alarms.pending())

    for states in heard.values():
        assert states == ["firing", "resolved"] * (len(states) // 2)
    assert not any(stored.values())
