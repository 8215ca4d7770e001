"""Which versions are current depends on the set of their sessions, never on the order in which they are read."""

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.watch.windows.versions import MAX_VERSIONS, MOMENTS, AgentVersions
from tests.support.examples import USUAL, examples

SILENCE = 900.0
MOMENT = SILENCE / MOMENTS
sessions = st.lists(
    st.tuples(
        st.integers(0, 11).map(str),
        st.integers(0, 200).map(lambda number: 10_000.0 + number * MOMENT),
    ),
    max_size=60,
)
few_versions = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.integers(0, 200).map(lambda number: 10_000.0 + number * MOMENT)
    ),
    max_size=60,
)


def versions_of(seen: list[tuple[str, float]]) -> AgentVersions:
    versions = AgentVersions(SILENCE)
    for version, time in seen:
        versions.see(version, time)
    return versions


@given(sessions | few_versions, st.data())
@settings(deadline=None, max_examples=examples(300))
def test_order_repeats_and_restarts_change_nothing(
    seen: list[tuple[str, float]], data: st.DataObject
) -> None:
    other = data.draw(st.permutations(seen))
    restart = data.draw(st.integers(0, len(seen)), label="restart after")

    before = versions_of(other[:restart])
    after = versions_of([(v, time) for v, times in before.seen().items() for time in times])
    for version, time in other[restart // 2 :]:
        after.see(version, time)

    assert after.current == versions_of(seen).current


@given(few_versions)
@settings(deadline=None, max_examples=examples(300))
def test_a_version_ends_when_another_had_sessions_for_the_silence_since_its_last(
    seen: list[tuple[str, float]],
) -> None:
    times: dict[str, set[float]] = {}
    for version, time in seen:
        times.setdefault(version, set()).add(time)

    ended = {
        version
        for version, own in times.items()
        for others in times.values()
        for first in others
        if first > max(own) and max(others) - first >= SILENCE
    }

    assert versions_of(seen).current == times.keys() - ended


@given(sessions)
@settings(deadline=None, max_examples=examples(USUAL))
def test_what_is_kept_is_bounded(seen: list[tuple[str, float]]) -> None:
    kept = versions_of(seen).seen()

    assert len(kept) <= MAX_VERSIONS
    assert all(len(times) <= MOMENTS + 1 for times in kept.values())
